/* A weight matrix, and the operators that a team of threads applies to rows with it.
 *
 * In: rows of activations. Out: rows of activations. Every operator here is called by all threads of a team with equal
 * arguments; each computes the features (or rows) that are its part (partition.h), the same ones each time, so that the
 * pages of a weight are read by the NUMA node that first touched them. No operator synchronizes but
 * fr_matrix_input_rows: the caller says where the barriers are (fr_team_sync, and partition.h's).
 *
 * How a product is computed depends on the weight's type alone: float types and FP8 by float kernels from the file's
 * own bytes, block types from packed tiles and quantized rows. */
#ifndef FR_SRC_ENGINE_WEIGHTS_MATRIX_H
#define FR_SRC_ENGINE_WEIGHTS_MATRIX_H

#include "base/arena.h"
#include "base/pool.h"
#include "kernels/kernels.h"

/* Output features are partitioned in whole units: no two threads write one cache line of a row, and a packed tile has
 * one owner. */
#define FR_FEATURE_UNIT 16

/* Sums over the rows that a matrix was applied to: what an importance matrix is made of. */
typedef struct fr_tap {
    double *squares; /* [cols] */
    uint64_t rows;
} fr_tap;

typedef struct fr_matrix {
    const uint8_t *data; /* [features, cols], row-major; or packed tiles (quant/packed.h) */
    fr_dtype type;       /* a weight type */
    bool packed;
    size_t features, cols;
    size_t row_bytes;    /* of a feature, on average if packed */

    /* Of FP8 codes (quant/fp8.h): feature o's row of scales is the (first + o) / 128th, scale_stride floats behind the
     * one before. Of NVFP4 one float that every product is multiplied by, or NULL. Other types have none. */
    const float *scales;
    size_t scale_stride, first;

    fr_tap *tap; /* NULL, or what its rows are added to, by one thread and in their order */
} fr_matrix;

/* What products need beside rows and weights: one for each stream of rows that runs at a time, shared by the team. */
typedef struct fr_workspace {
    const fr_kernels *kernels;
    fr_qblock *blocks;   /* the rows that are multiplied next, quantized; NULL where no weight is packed */
    size_t block_stride; /* blocks a row */
} fr_workspace;

/* What a matrix is applied to, and where the products go: rows, strides in floats. */
typedef struct fr_matrix_rows {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, count;
} fr_matrix_rows;

/* Takes it for `rows` rows of up to `widest` columns from the arena, or measures it. packed: some weight is. */
void fr_workspace_layout(fr_workspace *workspace, const fr_kernels *kernels, fr_arena *arena, bool packed, size_t rows,
                         size_t widest);

/* Prepares row r of the next product's input, by the thread that made it; a barrier must come before the product. */
void fr_matrix_input_row(const fr_workspace *workspace, size_t r, const float *x, size_t cols);

/* Prepares all rows of the next product's input, by the whole team, and synchronizes it; the rows are complete.
 * fr_publish_input is for rows that aren't. */
void fr_matrix_input_rows(const fr_team *team, const fr_workspace *workspace, const float *x, size_t x_stride,
                          size_t cols, size_t rows);

/* The workspace whose first prepared row is the one that is its `row`th here. */
fr_workspace fr_workspace_from(const fr_workspace *workspace, size_t row);

/* Output features [begin, end) as a matrix; begin is a multiple of FR_FEATURE_UNIT if the matrix is packed. */
fr_matrix fr_matrix_features(const fr_matrix *matrix, size_t begin, size_t end);

/* y[r][o] = product of matrix[o] and x[r] for the thread's own features o, of the rank's share, and all rows r, which
 * were prepared: x[0] is the first of them. */
void fr_matrix_apply(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_matrix_rows *rows);

/* The same for features [begin, end), all of them or those of heads that the rank has, by the team of this process. Not
 * all of a unit of features need be meant: all are computed. */
void fr_matrix_apply_share(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, size_t begin,
                           size_t end, const fr_matrix_rows *rows);
void fr_matrix_apply_whole(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                           const fr_matrix_rows *rows);

/* The same for features [begin, end) on the calling thread alone; begin is a multiple of FR_FEATURE_UNIT. */
void fr_matrix_apply_part(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                          const fr_matrix_rows *rows);

/* All its bytes. */
size_t fr_matrix_bytes(const fr_matrix *matrix);

/* row[c] = matrix[feature][c]. */
void fr_matrix_decode(const fr_matrix *matrix, size_t feature, float *row);

/* row[c] = matrix[feature][c] * factor: a table look-up. */
void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t feature, float factor, float *row);
#endif
