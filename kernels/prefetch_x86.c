/* Which processor this is, as far as fetching goes: see prefetch_x86.h. */
#include "kernels/prefetch_x86.h"

#include <cpuid.h>
#include <stdatomic.h>

/* Vendor and family, as CPUID's leaves 0 and 1 have them (AMD64 Architecture Programmer's Manual 3, appendix E). */
static bool is_amd_family(unsigned family) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __get_cpuid(0, &eax, &ebx, &ecx, &edx);
    if (ebx != signature_AMD_ebx || ecx != signature_AMD_ecx || edx != signature_AMD_edx) return false;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    return (eax >> 8 & 15) + (eax >> 20 & 255) == family;
}

bool fr_prefetch_into_l2(void) {
    enum { UNKNOWN, NO, YES };
    static atomic_int known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == UNKNOWN) {
        answer = is_amd_family(0x19) ? YES : NO;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == YES;
}
