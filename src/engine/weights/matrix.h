/* A weight matrix, and the operators that a team of threads applies to rows with it.
 *
 * In: rows of activations. Out: rows of activations. All threads of a team call an operator with equal arguments; each
 * computes the features (or rows) that are its part (partition.h), the same ones each time, so that a weight's pages
 * are read by the NUMA node that first touched them. No operator but fr_matrix_input_rows synchronizes: the caller
 * places the barriers (fr_team_sync, and partition.h's).
 *
 * The weight's type alone decides how a product is computed: float types and FP8 by float kernels from the file's own
 * bytes, block types from packed tiles and quantized rows. */
#ifndef FR_SRC_ENGINE_WEIGHTS_MATRIX_H
#define FR_SRC_ENGINE_WEIGHTS_MATRIX_H

#include "base/arena.h"
#include "base/pool.h"
#include "kernels/kernels.h"

/* Output features are partitioned in units of this size, so that no two threads write one cache line of a row, and a
 * packed tile has one owner. */
#define FR_FEATURE_UNIT 16

/* Sums of squares over the rows that a matrix was applied to, from which an importance matrix is made. */
typedef struct fr_activation_stats {
    double *squares; /* [cols] */
    uint64_t rows;
} fr_activation_stats;

typedef struct fr_matrix {
    const uint8_t *data; /* [features, cols], row-major; or packed tiles (quant/packed.h) */
    fr_dtype type;       /* a weight type */
    bool packed;
    size_t features, cols;
    size_t row_bytes; /* bytes of a feature's row, on average if packed */

    /* The scales of FP8 codes (quant/fp8.h): feature o has row (first + o) / 128, and rows are scale_stride floats
     * apart. The scale of NVFP4 is one float by which every product is multiplied, or NULL. Other types have none. */
    const float *scales;
    size_t scale_stride, first;

    fr_activation_stats
        *stats; /* the sums that its rows are added to, by one thread and in the rows' order; NULL: none */
} fr_matrix;

/* The memory that products need beside rows and weights. The team shares one for each stream of rows that runs at a
 * time. */
typedef struct fr_workspace {
    const fr_kernels *kernels;
    fr_qblock *blocks;   /* the input rows of the next product, quantized; NULL if no weight is packed */
    size_t block_stride; /* blocks a row */
} fr_workspace;

/* The rows that a matrix is applied to, and those for the products; strides in floats. */
typedef struct fr_matrix_rows {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, count;
} fr_matrix_rows;

/* Takes a workspace for `rows` rows of up to `widest` columns from the arena, or measures it. packed: some weight is
 * packed. */
void fr_workspace_layout(fr_workspace *workspace, const fr_kernels *kernels, fr_arena *arena, bool packed, size_t rows,
                         size_t widest);

/* Prepares row r of the next product's input. The thread that made the row calls it, and a barrier must follow before
 * the product. */
void fr_matrix_input_row(const fr_workspace *workspace, size_t r, const float *x, size_t cols);

/* Prepares all rows of the next product's input, by the whole team, and synchronizes it. The rows must be complete on
 * this rank; fr_publish_input is for rows that aren't. */
void fr_matrix_input_rows(const fr_team *team, const fr_workspace *workspace, const float *x, size_t x_stride,
                          size_t cols, size_t rows);

/* Gives the same workspace, but beginning with its prepared row `row`. */
fr_workspace fr_workspace_from(const fr_workspace *workspace, size_t row);

/* Gives output features [begin, end) as a matrix; begin is a multiple of FR_FEATURE_UNIT if the matrix is packed. */
fr_matrix fr_matrix_features(const fr_matrix *matrix, size_t begin, size_t end);

/* Computes y[r][o], the product of matrix[o] and x[r], for the thread's own features o of the rank's share, and all
 * rows r, which were prepared; x[0] is the first of them. */
void fr_matrix_apply(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_matrix_rows *rows);

/* Does the same for features [begin, end), which are all features or those of the rank's heads, with this process's
 * team. The range is widened to whole units of features. */
void fr_matrix_apply_share(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, size_t begin,
                           size_t end, const fr_matrix_rows *rows);
void fr_matrix_apply_whole(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                           const fr_matrix_rows *rows);

/* Does the same for features [begin, end) on the calling thread alone; begin is a multiple of FR_FEATURE_UNIT. */
void fr_matrix_apply_part(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                          const fr_matrix_rows *rows);

size_t fr_matrix_bytes(const fr_matrix *matrix);

/* row[c] = matrix[feature][c]. */
void fr_matrix_decode(const fr_matrix *matrix, size_t feature, float *row);

/* row[c] = matrix[feature][c] * factor, as looking up an embedding does. */
void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t feature, float factor, float *row);
#endif
