/* Computes ALiBi's slopes, and the term that a slope adds to a query's scores.
 *
 * A model with ALiBi (Press et al. 2021, arXiv:2108.12409) does not rotate its heads. Instead, scores fall with the
 * distance of key and query. Each head has a slope of its own. This is plain C, rounded operation by operation, so that
 * the bits are the same on every machine.
 *
 * In: a number of heads, positions. Out: slopes, and the number to add to a score. */
#ifndef FR_KERNELS_ALIBI_H
#define FR_KERNELS_ALIBI_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Gives the slopes of all heads. Let n be the largest power of two that is at most the number of heads. Heads are
 * counted from 1. If i is at most n, head i has the slope 2^(-octaves i / n). The remaining heads have every second
 * slope of a model with 2 n heads. */
void fr_alibi_slopes(size_t heads, double octaves, float *slopes);

/* Returns the number that a query's slope adds to the query's score for a position. */
float fr_alibi_added(const fr_attn *attn, const fr_attn_query *query, int64_t position);

#endif
