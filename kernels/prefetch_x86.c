/* Which processor this is, as far as prefetching goes: see prefetch_x86.h. */
#include "kernels/prefetch_x86.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Vendor and family, as CPUID's leaves 0 and 1 have them (AMD64 Architecture Programmer's Manual 3, appendix E). */
static bool is_amd_family(unsigned family) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __get_cpuid(0, &eax, &ebx, &ecx, &edx);
    if (ebx != signature_AMD_ebx || ecx != signature_AMD_ecx || edx != signature_AMD_edx) return false;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    return (eax >> 8 & 15) + (eax >> 20 & 255) == family;
}

fr_prefetch_hint fr_prefetch_hint_here(void) {
    static atomic_int known; /* 0: not asked yet */
    int here = atomic_load_explicit(&known, memory_order_relaxed);
    if (here == 0) {
        here = is_amd_family(0x19) ? FR_PREFETCH_L2 : FR_PREFETCH_L1;
        atomic_store_explicit(&known, here, memory_order_relaxed);
    }
    return (fr_prefetch_hint)here;
}
