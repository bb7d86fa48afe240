/* A weight matrix as it lies in its file, and the operators that a team of threads applies to rows with it.
 *
 * In: rows of activations. Out: rows of activations. Every operator here is called by all threads of a team with equal
 * arguments; each computes the outs (or rows) that fr_partition gives it, the same ones each time, so that the pages of
 * a weight are read by the NUMA node that first touched them. No operator synchronizes: the caller says where the
 * barriers are (fr_team_sync). */
#ifndef FR_SRC_MATRIX_H
#define FR_SRC_MATRIX_H

#include "kernels/kernels.h"
#include "src/pool.h"

/* Outs are dealt in whole units, so that no two threads write one cache line of a row. */
#define FR_OUT_UNIT 16

typedef struct fr_matrix {
    const uint8_t *data; /* [outs, cols], row-major */
    fr_dtype type;       /* a float type */
    size_t outs, cols;
    size_t row_bytes;
} fr_matrix;

/* The part of a matrix's outs that this thread owns. */
void fr_matrix_part(const fr_team *team, const fr_matrix *matrix, size_t *begin, size_t *end);

/* y[r][o] = dot(matrix[o], x[r]) for the thread's own outs o and all rows r. Strides in floats. */
void fr_matrix_apply(const fr_team *team, const fr_kernels *kernels, const fr_matrix *matrix, float *y, size_t y_stride,
                     const float *x, size_t x_stride, size_t rows);

/* The same for outs [begin, end) on the calling thread alone. */
void fr_matrix_apply_part(const fr_kernels *kernels, const fr_matrix *matrix, size_t begin, size_t end, float *y,
                          size_t y_stride, const float *x, size_t x_stride, size_t rows);

/* row[c] = matrix[out][c] * factor: a table look-up. */
void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t out, float factor, float *row);

/* The rows [begin, end) of a batch that this thread owns in steps that work row by row. */
static inline void fr_rows_part(const fr_team *team, size_t rows, size_t *begin, size_t *end) {
    fr_partition(rows, 1, team->index, team->count, begin, end);
}

#endif
