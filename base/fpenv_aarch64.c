/* The floating-point environment on AArch64: control bits in FPCR (0: round to nearest, denormals kept, nothing traps,
 * IEEE NaNs), exception flags in FPSR. The word holds FPCR below FPSR. */
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
