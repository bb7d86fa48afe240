/* FP8 weights: codes of 8 bits, E4M3, and a scale for each block of 128 rows by 128 columns, in a tensor of its own.
 *
 * In: codes and scales as published (DeepSeek-V3, Qwen3.5 and later). Out: float32, w = value of the code * scale,
 * rounded once. E4M3 is a sign, 4 bits of exponent (bias 7) and 3 of fraction; exponent 0 is denormal, there are no
 * infinities, and 0x7f and 0xff are NaN. Scales are not negative and at most FR_FP8_SCALE_MAX: weights are finite, and
 * a kernel may give a scale the factor by which it makes codes too small, which is 2^120 at most. */
#ifndef FR_QUANT_FP8_H
#define FR_QUANT_FP8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_FP8_BLOCK 128

#define FR_FP8_SCALE_MAX 0x1p7f /* published ones are below 1: the largest code stands for 448 */

/* Blocks of so many rows or columns. */
static inline size_t fr_fp8_blocks(size_t n) {
    return (n + FR_FP8_BLOCK - 1) / FR_FP8_BLOCK;
}

/* Scales of a tensor of two or more dimensions, the last two of them cut into blocks. */
size_t fr_fp8_scales(const uint64_t *shape, uint32_t dims);

/* Exact. */
float fr_fp8_value(uint8_t code);

/* A row: cols codes, a scale for each block of columns. */
void fr_fp8_decode(const uint8_t *codes, const float *scales, float *row, size_t cols);

/* The index of the first NaN among n codes; n: there is none. */
size_t fr_fp8_find_nan(const uint8_t *codes, size_t n);

#endif
