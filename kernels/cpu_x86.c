/* Finds the levels that an x86-64 processor can run, from CPUID. A level is included only if the operating system saves
 * its registers on a context switch. XCR0 lists the registers that are saved. */
#include "kernels/cpu.h"
#include "kernels/cpu_tiles.h"

#include <cpuid.h>
#include <stdint.h>

typedef struct cpuid_leaf {
    unsigned eax, ebx, ecx, edx;
} cpuid_leaf;

/* Returns a leaf of CPUID. All its registers are zero if the processor does not have this leaf. */
static cpuid_leaf cpuid(unsigned leaf, unsigned subleaf) {
    cpuid_leaf r = {0, 0, 0, 0};
    __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
    return r;
}

/* Returns the register sets that the operating system saves, as the bits of XCR0. The caller must have checked
 * OSXSAVE. */
static uint64_t saved_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint64_t word, uint64_t bits) {
    return (word & bits) == bits;
}

unsigned fr_cpu_levels(void) {
    const uint64_t ymm = 0x6, zmm = 0xe6; /* bits of XCR0 */
    unsigned levels = 1u << FR_ISA_SCALAR;
    cpuid_leaf one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
    bool osxsave = one.ecx & bit_OSXSAVE;
    uint64_t state = osxsave ? saved_state() : 0;

    if (!has(state, ymm) || !has(one.ecx, bit_AVX | bit_FMA)) return levels;
    levels |= 1u << FR_ISA_SCALAR_FMA;
    if (!has(one.ecx, bit_F16C) || !has(seven.ebx, bit_AVX2)) return levels;
    levels |= 1u << FR_ISA_AVX2;
    if (has(seven_one.eax, 1u << 4)) levels |= 1u << FR_ISA_AVXVNNI;
    if (!has(state, zmm) || !has(seven.ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL)) return levels;
    levels |= 1u << FR_ISA_AVX512;
    if (!has(seven.ecx, 1u << 11)) return levels;
    levels |= 1u << FR_ISA_AVX512VNNI;
    return fr_cpu_has_tiles() ? levels | 1u << FR_ISA_AMX : levels;
}

bool fr_cpu_permits(fr_isa_level level) {
    return level != FR_ISA_AMX || fr_cpu_ask_for_tiles();
}
