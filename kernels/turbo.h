/* Rotates heads for the cache's types turbo4 and turbo3 (quant/turbo.h), and stores them.
 *
 * A head of n values is divided into parts as wide as the largest power of two that divides n, at most FR_TURBO_WIDEST.
 * A part is rotated by fr_hadamard_fn with pseudo-random signs: s[i] = 1664525 s[i - 1] + 1013904223 in 32 bits, s[-1]
 * = 1, and sign i of the head is -1 if bit 31 of s[i] is set. A key and the queries that read it are rotated in the
 * same way, so their dot product is that of the unrotated heads. For values, only the result is rotated back: the
 * weighted sum of a query's values.
 *
 * In: heads, and the table of kernels whose Hadamard transform is used. Out: heads, or a row of the cache. The result
 * is the same for all tables. */
#ifndef FR_KERNELS_TURBO_H
#define FR_KERNELS_TURBO_H

#include "kernels/kernels.h"
#include "quant/turbo.h"

enum { FR_TURBO_WIDEST = 512 };

/* fr_turbo_rotate rotates a head of n values in place. fr_turbo_rotate_back undoes the rotation, except for rounding. n
 * is a multiple of FR_TURBO_BLOCK. */
void fr_turbo_rotate(const fr_kernels *kernels, float *head, size_t n);
void fr_turbo_rotate_back(const fr_kernels *kernels, float *head, size_t n);

/* Stores a rotated head in blocks of type turbo4 or turbo3. For a block x of 32 values:
 *
 *     s = sum of x[i] * x[i];  r = UNIT / sqrt(s / 32)
 *     c[i] = the table's nearest value to x[i] * r; if two are equally near, the one of larger magnitude
 *     d = f16(s / sum of x[i] * c[i]), so that the dot product of the stored block with x is s again
 *
 * Each sum is taken as in dot: in 16 partial sums by i mod 16, from +0, which are then added. If s is not finite, the
 * block is stored with d = NaN. If s is below 2^-100, it is stored with d = 0. In both cases all codes are 0. */
void fr_turbo_store(fr_dtype type, void *slot, const float *x, size_t n);

#endif
