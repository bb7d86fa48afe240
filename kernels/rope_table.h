/* Rotary angles: frequencies of a head, cosines and sines of a position.
 *
 * In: a configuration's numbers. Out: the float32 values that transformers computes with torch, but for a last bit here
 * and there; the same bits on every machine (no libm, no fused operation). Compiled once for all instruction sets: a
 * row of angles is made once per position, not per head. */
#ifndef FR_KERNELS_ROPE_TABLE_H
#define FR_KERNELS_ROPE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fr_rope_kind {
    FR_ROPE_DEFAULT,      /* every pair is rotated */
    FR_ROPE_PROPORTIONAL, /* the first floor(partial_rotary_factor * head_dim / 2) pairs are rotated */
    FR_ROPE_LINEAR,       /* every pair is rotated, slower by the factor */
    FR_ROPE_LLAMA3,       /* every pair is rotated as by default, before fr_rope_scale */
    FR_ROPE_YARN,         /* every pair is rotated as by default, before fr_rope_yarn */
    FR_ROPE_LONGROPE,     /* every pair is rotated as fr_rope_divided has it */
} fr_rope_kind;

/* Gives head_dim / 2 frequencies: inverse[i] = (1 / theta^(2i / head_dim)) / factor for pairs that are rotated, 0 for
 * the others. theta, the exponent, the power, its reciprocal and the quotient are each rounded to float32; theta must
 * be positive and normal there. Only FR_ROPE_PROPORTIONAL reads partial_rotary_factor; only it and FR_ROPE_LINEAR
 * divide by the factor. */
void fr_rope_frequencies(fr_rope_kind kind, double theta, size_t head_dim, double partial_rotary_factor, double factor,
                         float *inverse);

/* Llama 3's scaling of n frequencies, in place (transformers 5.17, modeling_rope_utils): a pair whose wave is longer
 * than trained / low is slower by the factor, one shorter than trained / high stays, between them smoothly. In float32,
 * each step rounded:
 *
 *     wave = 2 pi / inverse;  smooth = (trained / wave - low) / (high - low)
 *     between: ((1 - smooth) * inverse) / factor + smooth * inverse
 */
void fr_rope_scale(float *inverse, size_t n, double factor, double low, double high, double trained);

/* YaRN's scaling of n frequencies of a base, in place (Peng et al. 2023, arXiv:2309.00071; transformers 5.17): pairs
 * of more than `fast` rotations within the trained positions stay, those of fewer than `slow` rotations are
 * slower by the factor, between them a ramp over the pairs' numbers. Each step on the right rounded to float32:
 *
 *     low = pair(fast), at least 0;  high = pair(slow), at most 2n - 1;  if equal, high + 0.001
 *     truncates: low is rounded down before, high up
 *     pair(rotations) = n log(trained / (2 pi rotations)) / log(theta)
 *     kept = 1 - clamp((i - low) / (high - low), 0, 1)
 *     (inverse / factor) * (1 - kept) + inverse * kept
 */
void fr_rope_yarn(float *inverse, size_t n, double theta, double factor, double fast, double slow, double trained,
                  bool truncates);

/* LongRoPE's n frequencies of a base: 1 / (divisor[i] * theta^(i / n)), the power as above, the product and its
 * reciprocal each rounded to float32 (Ding et al. 2024, arXiv:2402.13753; transformers 5.17). */
void fr_rope_divided(double theta, const float *divisor, size_t n, float *inverse);

/* Returns the factor by which LongRoPE enlarges cosines and sines: the root of 1 + log(factor) / log(trained); 1 where
 * the factor is at most 1. */
double fr_rope_longrope_magnitude(double factor, double trained);

/* Returns the factor by which YaRN sharpens attention: 0.1 weight log(factor) + 1; 1 where the factor is at most 1. */
double fr_rope_yarn_magnitude(double factor, double weight);

/* Computes cosine[i] and sine[i] of the float32 product position * inverse[i], i < n, correctly rounded except for rare
 * last bits. The product's magnitude must be at most 2^27. Frequency 0 gives exactly 1 and 0. */
void fr_rope_angles(const float *inverse, size_t n, int64_t position, float *cosine, float *sine);

#endif
