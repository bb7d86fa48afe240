/* Adds the low-rank products of adapters (LoRA) to the products of a matrix.
 *
 * In: rows of activations with the adapters that each row's timeline uses, and a matrix's products with these rows.
 * Out: the products after scale * b(a(x)) has been added for every adapter in turn (section 5 of quant/NUMERICS.md).
 * The matrix itself is unchanged and stays packed. Rows of several timelines, each with adapters of its own, may be in
 * one batch, because each row's sum depends on that row alone. */
#ifndef FR_SRC_ENGINE_WEIGHTS_LOW_RANK_H
#define FR_SRC_ENGINE_WEIGHTS_LOW_RANK_H

#include "forerun.h"
#include "src/engine/weights/matrix.h"

/* The product that one adapter adds to one matrix. */
typedef struct fr_low_rank {
    const float *a; /* [rank, cols] applied to a row first; NULL: the adapter does not change the model's matrix */
    const float *b; /* [features, rank] applied to the result of a */
    size_t rank;
    double scale; /* alpha / rank, or alpha / sqrt(rank) */
} fr_low_rank;

enum { FR_LOW_RANK_MAX = 1 << 13 }; /* largest rank */

/* The adapters that a timeline uses, in the order in which their products are added. */
struct fr_adapter_set {
    size_t count;
    struct {
        const fr_low_rank *products; /* indexed by fr_matrix.adapted; entry 0 is unused */
        const float *directions;     /* [layers, hidden] what a control vector adds after layers; NULL: the adapter is
                                      * no control vector */
        double scale;                /* multiplies the scale of each product, or the directions */
    } uses[FR_ADAPTERS_MAX];
};

/* Adds the low-rank products of the workspace's adapters to y, for features [begin, end) of the matrix, in the calling
 * thread. Each calling thread computes a(x) for itself. So a(x) is computed several times, which costs rank * cols
 * multiplications each time, but no barrier is needed. */
void fr_low_rank_add(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                     const fr_matrix_rows *rows);

#endif
