/* Sets the floating-point environment on x86, where MXCSR holds control bits and exception flags in one word. */
#include "base/fpenv.h"

#include <xmmintrin.h>

/* The state of a fresh process: round to nearest, denormals kept, every exception masked, no flag raised. */
enum { MXCSR_DEFAULT = 0x1f80 };

uint64_t fr_fpenv_enter(void) {
    uint64_t word = _mm_getcsr();
    _mm_setcsr(MXCSR_DEFAULT);
    return word;
}

void fr_fpenv_leave(uint64_t word) {
    _mm_setcsr((unsigned)word);
}
