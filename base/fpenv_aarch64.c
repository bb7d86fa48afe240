/* Sets the floating-point environment on AArch64. FPCR has the control bits (0: round to nearest, denormals kept,
 * nothing traps, IEEE NaNs), and FPSR has the exception flags. The 64-bit word has FPCR in its lower half, FPSR in its
 * upper half. */
#include "base/fpenv.h"

uint64_t fr_fpenv_enter(void) {
    uint64_t control, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return flags << 32 | (uint32_t)control;
}

void fr_fpenv_leave(uint64_t word) {
    __asm__ volatile("msr fpsr, %0" : : "r"(word >> 32) : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(word & 0xffffffff) : "memory");
}
