/* Decodes FP8 weights: 8-bit codes, E4M3. Each block of 128 rows by 128 columns has one scale, which is in another
 * tensor.
 *
 * In: codes and scales as published (DeepSeek-V3, Qwen3.5 and later). Out: float32, w = value of the code * scale,
 * rounded once. E4M3 has a sign, 4 bits of exponent (bias 7) and 3 of fraction. Codes with exponent 0 are denormal,
 * there are no infinities, and 0x7f and 0xff are NaN. Scales are not negative and at most FR_FP8_SCALE_MAX, so weights
 * are finite. A kernel may read codes as values that are up to 2^120 times too small, and multiply the scale by the
 * same factor to correct this. The scale stays finite. */
#ifndef FR_QUANT_FP8_H
#define FR_QUANT_FP8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_FP8_BLOCK 128

#define FR_FP8_SCALE_MAX 0x1p7f /* published scales are below 1, and the largest code has the value 448 */

/* Returns the number of blocks that cover n rows or columns. */
static inline size_t fr_fp8_blocks(size_t n) {
    return (n + FR_FP8_BLOCK - 1) / FR_FP8_BLOCK;
}

/* Returns the number of scales of a tensor with two or more dimensions. The last two dimensions are cut into
 * blocks. */
size_t fr_fp8_scales(const uint64_t *shape, uint32_t dims);

/* Returns a code's value, which float32 holds exactly. */
float fr_fp8_value(uint8_t code);

/* Decodes a row of cols codes, with one scale for each block of columns. */
void fr_fp8_decode(const uint8_t *codes, const float *scales, float *row, size_t cols);

/* Returns the index of the first NaN among n codes, or n if there is none. */
size_t fr_fp8_find_nan(const uint8_t *codes, size_t n);

#endif
