/* Finds the levels that an AArch64 processor can run, from the hardware-capability words that Linux gives every
 * process. */
#include "kernels/cpu.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

unsigned fr_cpu_levels(void) {
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    unsigned levels = 1u << FR_ISA_SCALAR;
    if (!(first & HWCAP_ASIMD)) return levels;
    levels |= 1u << FR_ISA_NEON;
    if (!(first & HWCAP_ASIMDDP)) return levels;
    levels |= 1u << FR_ISA_DOTPROD;
    if (second & HWCAP2_I8MM) levels |= 1u << FR_ISA_I8MM;
    return levels;
}

bool fr_cpu_permits(fr_isa_level level) {
    (void)level;
    return true;
}
