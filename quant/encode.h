/* Encodes float32 values as a block type: finds the codes and scales that decode to the smallest squared error found.
 *
 * In: rows of float32. Out: blocks as GGUF stores them (quant/dtype.h), which fr_dtype_decode reads back. Every type is
 * searched: starting points for the scale (and the minimum), from each of them alternately the nearest codes for a
 * scale and the least-squares scale for the codes. The error that is compared is that of the values as they will be
 * decoded, scales rounded to the bits they get. The result is a function of the block's values and of how much they
 * matter: only + - * /, square roots and comparisons, in one order.
 *
 * Squared error as a share of llama-quantize's, on weights of models, normal and heavy-tailed noise: Q8_0 0.86 to 0.92,
 * Q4_0 0.88 to 0.93, Q5_0 0.88 to 0.94, Q4_1 0.76 to 0.79, Q5_1 0.75 to 0.79, IQ4_NL 0.92 to 0.93, IQ4_XS 0.92 to 0.93,
 * Q2_K 0.69 to 0.78, Q3_K 0.90 to 0.92, Q4_K 0.94 to 0.95, Q5_K 0.87 to 0.89, Q6_K 0.89 to 0.91; by an importance
 * matrix 0.75 (Q5_K) to 0.97 (Q3_K). Float32 read a second by one core of a Zen 5: Q8_0 230 MB, Q4_0 and Q5_0 170,
 * Q6_K 90, Q4_1 and Q5_1 57, IQ4_NL 39, Q4_K and Q5_K 34; Q3_K takes 1.25 of Q6_K's time, Q2_K 1.4 and IQ4_XS 1.8 of
 * Q4_K's. */
#ifndef FR_QUANT_ENCODE_H
#define FR_QUANT_ENCODE_H

#include "quant/dtype.h"

/* The words of the types that are written, in the order that help has them, NULL past the last; and the type of a word,
 * in any case, FR_DTYPE_COUNT for any other. */
const char *fr_written_word(size_t index);
fr_dtype fr_written_from_word(const char *word);

/* Encodes cols values, whole blocks, of a type that is written. target needs no alignment. A value beyond what the type
 * holds (fr_encode_limit), or not finite, gives its block numbers without meaning and does no other harm. The caller
 * has set the default floating-point environment. */
void fr_dtype_encode(fr_dtype type, const float *source, void *target, size_t cols);

/* The same where columns matter more or less: importance[i], at least 0, is the mean square of what column i will be
 * multiplied by (an importance matrix, formats/imatrix.h); NULL: all alike. An error weighs as llama-quantize has it,
 * importance * sqrt(s + x^2), where s is as large as the squares of the block; for Q6_K it is the importance alone.
 * Q8_0 and MXFP4 take all columns alike, and so does a block whose importance is 0 everywhere. */
void fr_dtype_encode_weighted(fr_dtype type, const float *source, const float *importance, void *target, size_t cols);

/* The largest magnitude that a type surely holds. */
float fr_encode_limit(fr_dtype type);

/* One block; weights: of the squared errors, around 1, or NULL: all 1. */
typedef void fr_encode_fn(const float *x, const float *weights, uint8_t *block);

/* encode_simple.c */
fr_encode_fn fr_encode_q8_0, fr_encode_q4_0, fr_encode_q4_1, fr_encode_q5_0, fr_encode_q5_1, fr_encode_iq4_nl,
    fr_encode_mxfp4;

/* encode_k.c */
fr_encode_fn fr_encode_q2_k, fr_encode_q4_k, fr_encode_q5_k;

/* encode_k_signed.c */
fr_encode_fn fr_encode_q3_k, fr_encode_q6_k, fr_encode_iq4_xs;

#endif
