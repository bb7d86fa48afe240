/* Makes cases for the checks of block-quantized kernels: random and hostile weights, rows of activations, and memory
 * with an inaccessible page on one side. Also has a clock.
 *
 * In: a seed. Out: blocks as GGUF stores them, rows of floats, and guarded memory. The same seed gives the same
 * numbers. */
#ifndef FR_TESTS_BLOCK_CASES_H
#define FR_TESTS_BLOCK_CASES_H

#include "quant/dtype.h"

void fr_random_start(uint64_t seed);
uint64_t fr_random_bits(void);

/* Returns a random number from 0 to limit - 1. */
uint32_t fr_random_below(uint32_t limit);

/* The kinds of values in a row of activations. */
typedef enum fr_row_mode {
    FR_ROW_ORDINARY,
    FR_ROW_FULL,      /* one magnitude with random signs: all codes are 127 or -127 */
    FR_ROW_POSITIVE,  /* one magnitude and one sign: the largest sums possible */
    FR_ROW_TIES,      /* values halfway between two codes */
    FR_ROW_SMALL,     /* values around 2^-100, so that a block quantizes to zeros; some are denormal */
    FR_ROW_LARGE,     /* values up to the largest float */
    FR_ROW_NONFINITE, /* NaN and infinities in some blocks */
    FR_ROW_SPARSE,    /* whole blocks of +0 or -0 */
    FR_ROW_MODES
} fr_row_mode;

/* Kinds of values in a row of weights. d is the float16 scale of a block. In all kinds except FR_WEIGHTS_FULL, the
 * codes are random bytes, and so are the scales of runs inside a block. */
typedef enum fr_weight_mode {
    FR_WEIGHTS_ORDINARY, /* d is neither zero nor very large or small */
    /* All bytes of the row except d are 0, 127, 128 or 255, which gives the largest codes. d is as in
     * FR_WEIGHTS_ORDINARY. */
    FR_WEIGHTS_FULL,
    FR_WEIGHTS_SPECIAL,   /* d is zero, denormal or the largest number, of both signs */
    FR_WEIGHTS_NONFINITE, /* the bits of d are random, so d may be infinite or NaN */
    FR_WEIGHT_MODES
} fr_weight_mode;

const char *fr_row_mode_name(fr_row_mode mode);
const char *fr_weight_mode_name(fr_weight_mode mode);

void fr_fill_row(float *x, size_t cols, fr_row_mode mode);
void fr_fill_weights(fr_dtype type, uint8_t *row, size_t cols, fr_weight_mode mode);

/* Returns `bytes` bytes of memory next to an inaccessible page. If at_end is true, the page comes directly after the
 * memory, otherwise directly before it. `index` is from 0 to 7. The same index gives the same memory again, except when
 * the memory has to grow. Exits if there is no memory. */
void *fr_guarded(size_t index, size_t bytes, bool at_end);

double fr_now(void); /* Returns the seconds of a clock. Only differences of two results have a meaning. */

#endif
