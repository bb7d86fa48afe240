/* Computes rotary angles: the frequencies of a head, and the cosines and sines of a position.
 *
 * In: numbers of a model's configuration. Out: the float32 values that transformers computes with torch, except for a
 * rare last bit. The bits are the same on every machine (no libm, no fused operation). One build serves all instruction
 * sets. The angles are computed once per position and not per head, so the speed of this code matters little. */
#ifndef FR_KERNELS_ROPE_TABLE_H
#define FR_KERNELS_ROPE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fr_rope_kind {
    FR_ROPE_DEFAULT,      /* every pair is rotated */
    FR_ROPE_PROPORTIONAL, /* the first floor(partial_rotary_factor * head_dim / 2) pairs are rotated */
    FR_ROPE_LINEAR,       /* every pair is rotated, at 1 / `factor` of the usual frequency */
    FR_ROPE_LLAMA3,       /* like FR_ROPE_DEFAULT, but fr_rope_scale then changes the frequencies */
    FR_ROPE_YARN,         /* like FR_ROPE_DEFAULT, but fr_rope_yarn then changes the frequencies */
    FR_ROPE_LONGROPE,     /* every pair is rotated; fr_rope_divided gives the frequencies */
} fr_rope_kind;

/* Gives head_dim / 2 frequencies. inverse[i] is (1 / theta^(2i / head_dim)) / factor for pairs that are rotated, and 0
 * for the others. theta, the exponent, the power, its reciprocal and the quotient are each rounded to float32. As a
 * float32, theta must be positive and normal. Only FR_ROPE_PROPORTIONAL reads partial_rotary_factor. Only
 * FR_ROPE_PROPORTIONAL and FR_ROPE_LINEAR divide by the factor. */
void fr_rope_frequencies(fr_rope_kind kind, double theta, size_t head_dim, double partial_rotary_factor, double factor,
                         float *inverse);

/* Applies Llama 3's scaling to n frequencies, in place (transformers 5.17, modeling_rope_utils). The frequency of a
 * pair whose wavelength is above trained / low is divided by the factor. A pair whose wavelength is below trained /
 * high keeps its frequency. In between, the change is gradual. Each step is rounded to float32:
 *
 *     wave = 2 pi / inverse;  smooth = (trained / wave - low) / (high - low)
 *     in between: ((1 - smooth) * inverse) / factor + smooth * inverse */
void fr_rope_scale(float *inverse, size_t n, double factor, double low, double high, double trained);

/* Applies YaRN's scaling to n frequencies of base theta, in place (Peng et al. 2023, arXiv:2309.00071; transformers
 * 5.17). Pairs that make more than `fast` rotations within the trained positions keep their frequency. The frequency of
 * pairs that make fewer than `slow` rotations is divided by the factor. In between, there is a linear ramp over the
 * pair's index i. Each step is rounded to float32:
 *
 *     pair(rotations) = n log(trained / (2 pi rotations)) / log(theta)
 *     low = pair(fast), at least 0;  high = pair(slow), at most 2n - 1;  if they are equal, 0.001 is added to high
 *     if `truncates` is true, pair(fast) is rounded down and pair(slow) up before these limits are applied
 *     kept = 1 - clamp((i - low) / (high - low), 0, 1)
 *     result: (inverse / factor) * (1 - kept) + inverse * kept */
void fr_rope_yarn(float *inverse, size_t n, double theta, double factor, double fast, double slow, double trained,
                  bool truncates);

/* Gives LongRoPE's n frequencies of base theta: 1 / (divisor[i] * theta^(i / n)). The power is computed as in
 * fr_rope_frequencies; the product and its reciprocal are each rounded to float32 (Ding et al. 2024, arXiv:2402.13753;
 * transformers 5.17). */
void fr_rope_divided(double theta, const float *divisor, size_t n, float *inverse);

/* Returns the factor by which LongRoPE enlarges cosines and sines: the square root of 1 + log(factor) / log(trained),
 * or 1 if the factor is at most 1. */
double fr_rope_longrope_magnitude(double factor, double trained);

/* Returns YaRN's factor for cosines and sines, which sharpens attention: 0.1 weight log(factor) + 1, or 1 if the factor
 * is at most 1. */
double fr_rope_yarn_magnitude(double factor, double weight);

/* Computes cosine[i] and sine[i] of the float32 product position * inverse[i] for i < n, correctly rounded except for
 * rare last bits. The product's magnitude must be at most 2^27. Frequency 0 gives exactly cosine 1 and sine 0. */
void fr_rope_angles(const float *inverse, size_t n, int64_t position, float *cosine, float *sine);

#endif
