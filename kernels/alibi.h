/* Computes ALiBi's slopes, and what a slope adds to a query's scores.
 *
 * A model with ALiBi (Press et al. 2021, arXiv:2108.12409) does not rotate its heads. Instead, scores fall with the
 * distance of key and query, in each head by another slope. This is plain C, rounded operation by operation, so that
 * the bits are the same on every machine.
 *
 * In: a number of heads, positions. Out: slopes, what is added to a score. */
#ifndef FR_KERNELS_ALIBI_H
#define FR_KERNELS_ALIBI_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Gives the slopes of all heads. Let n be the largest power of two up to their number. Head i, counted from 1, has the
 * slope 2^(-octaves i / n) if i is at most n. The other heads have every second slope of a model with 2 n heads. */
void fr_alibi_slopes(size_t heads, double octaves, float *slopes);

/* Returns what the slope of a query adds to the query's score of a position. */
float fr_alibi_added(const fr_attn *attn, const fr_attn_query *query, int64_t position);

#endif
