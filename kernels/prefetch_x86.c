/* Finds out which prefetch hints are fastest on this processor: see prefetch_x86.h. */
#include "kernels/prefetch_x86.h"

#include <cpuid.h>
#include <stdatomic.h>

/* Holds the facts from CPUID's leaves 0, 1 and 7 (AMD64 Architecture Programmer's Manual 3, appendix E; Intel 64 and
 * IA-32 Architectures Software Developer's Manual 2, CPUID). */
typedef struct processor {
    bool amd, intel;
    unsigned family;
    bool fp16; /* has AVX-512 arithmetic on float16 */
} processor;

static processor this_processor(void) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    processor p = {0};
    __get_cpuid(0, &eax, &ebx, &ecx, &edx);
    p.amd = ebx == signature_AMD_ebx && ecx == signature_AMD_ecx && edx == signature_AMD_edx;
    p.intel = ebx == signature_INTEL_ebx && ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    p.family = (eax >> 8 & 15) + (eax >> 20 & 255);
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) p.fp16 = edx >> 23 & 1;
    return p;
}

/* Returns the answer of `ask`, which is called only once. *known stores the answer plus 1; 0 means that `ask` was not
 * called yet. */
static int answer(atomic_int *known, int (*ask)(const processor *)) {
    int here = atomic_load_explicit(known, memory_order_relaxed);
    if (here == 0) {
        processor p = this_processor();
        here = 1 + ask(&p);
        atomic_store_explicit(known, here, memory_order_relaxed);
    }
    return here - 1;
}

static int hint_on(const processor *p) {
    return p->amd && p->family == 0x19 ? FR_PREFETCH_L2 : FR_PREFETCH_L1;
}

static int few_to_l2_on(const processor *p) {
    return p->intel && p->fp16;
}

fr_prefetch_hint fr_prefetch_hint_here(void) {
    static atomic_int known;
    return (fr_prefetch_hint)answer(&known, hint_on);
}

bool fr_prefetch_few_to_l2(void) {
    static atomic_int known;
    return answer(&known, few_to_l2_on);
}
