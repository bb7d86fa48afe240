/* Implements fp_caller.h: sets an unfriendly floating-point environment. */
#include "tests/support/fp_caller.h"

#ifdef __x86_64__

#include <xmmintrin.h>

#define FLAGS      0x3fu
#define UNFRIENDLY 0xbfc0u /* flush to zero, denormals are zero, round down, no traps */

uint64_t fr_fp_word(void) {
    return _mm_getcsr() & ~FLAGS;
}

void fr_fp_set(uint64_t word) {
    _mm_setcsr((unsigned)word);
}

#else

#define UNFRIENDLY 0x1800000u /* FZ, round towards minus infinity */

uint64_t fr_fp_word(void) {
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}

void fr_fp_set(uint64_t word) {
    __asm__ volatile("msr fpcr, %0" : : "r"(word));
}

#endif

void fr_fp_unfriendly(void) {
    fr_fp_set(UNFRIENDLY);
}
