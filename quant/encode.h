/* Encodes float32 values as a block type: searches for the codes and scales with the smallest squared error.
 *
 * In: rows of float32. Out: blocks as GGUF stores them (quant/dtype.h), which fr_dtype_decode reads back. The search
 * begins at several values of the scale (and of the minimum, in types that have one). From each start it alternates
 * between two steps: the nearest codes for the scale, and the least-squares scale for the codes. It compares the errors
 * of decoded values, whose scales are rounded to the bits in which they are stored. The result depends only on the
 * block's values and their importance, because the search uses only + - * /, square roots and comparisons, in one
 * order.
 *
 * Squared error as a share of llama-quantize's, on weights of models, normal and heavy-tailed noise: Q8_0 0.86 to 0.92,
 * Q4_0 0.88 to 0.93, Q5_0 0.88 to 0.94, Q4_1 0.76 to 0.79, Q5_1 0.75 to 0.79, IQ4_NL 0.92 to 0.93, IQ4_XS 0.92 to 0.93,
 * Q2_K 0.69 to 0.78, Q3_K 0.90 to 0.92, Q4_K 0.94 to 0.95, Q5_K 0.87 to 0.89, Q6_K 0.89 to 0.91. With an importance
 * matrix the share is 0.75 (Q5_K) to 0.97 (Q3_K). Float32 encoded per second by one core of a Zen 5: Q8_0 230 MB, Q4_0
 * and Q5_0 170 MB, Q6_K 90 MB, Q4_1 and Q5_1 57 MB, IQ4_NL 39 MB, Q4_K and Q5_K 34 MB. Q3_K takes 1.25 times as long as
 * Q6_K; Q2_K takes 1.4 times and IQ4_XS 1.8 times as long as Q4_K. */
#ifndef FR_QUANT_ENCODE_H
#define FR_QUANT_ENCODE_H

#include "quant/dtype.h"

/* fr_written_word returns the word for a type that can be written; `index` is the type's index in the help text's list
 * of such types. Past the end of the list it returns NULL. fr_written_from_word returns the type for a word in upper or
 * lower case, or FR_DTYPE_COUNT if the word is unknown. */
const char *fr_written_word(size_t index);
fr_dtype fr_written_from_word(const char *word);

/* Encodes cols values, a whole number of blocks, as a type that can be written. target needs no alignment. The caller
 * must have set the default floating-point environment. Values must be finite and at most fr_encode_limit in magnitude.
 * Any other value makes its block's contents meaningless, but does no other harm. */
void fr_dtype_encode(fr_dtype type, const float *source, void *target, size_t cols);

/* Encodes with an importance for each column. importance[i] is the mean square of the activations that column i is
 * multiplied with (an importance matrix, formats/imatrix.h), at least 0. NULL weights all columns alike. As in
 * llama-quantize, an error is weighted with importance * sqrt(s + x^2), where x is the value and s is about the mean
 * square of the block. In Q6_K it is weighted with the importance alone. Q8_0 and MXFP4 ignore importances. A block
 * whose importances are all 0 ignores them too. */
void fr_dtype_encode_weighted(fr_dtype type, const float *source, const float *importance, void *target, size_t cols);

/* Returns the largest magnitude that is safe to encode as the type. */
float fr_encode_limit(fr_dtype type);

/* Encodes one block. weights: factors of the squared errors, around 1; NULL if all factors are 1. */
typedef void fr_encode_fn(const float *x, const float *weights, uint8_t *block);

/* encode_simple.c */
fr_encode_fn fr_encode_q8_0, fr_encode_q4_0, fr_encode_q4_1, fr_encode_q5_0, fr_encode_q5_1, fr_encode_iq4_nl,
    fr_encode_mxfp4;

/* encode_k.c */
fr_encode_fn fr_encode_q2_k, fr_encode_q4_k, fr_encode_q5_k;

/* encode_k_signed.c */
fr_encode_fn fr_encode_q3_k, fr_encode_q6_k, fr_encode_iq4_xs;

/* encode_ternary.c */
fr_encode_fn fr_encode_q1_0, fr_encode_q2_0, fr_encode_pq2_0, fr_encode_tq1_0, fr_encode_ptq1_0, fr_encode_tq2_0;

#endif
