/* A weight matrix, and the operations that a team of threads performs with it on rows.
 *
 * In: rows of activations. Out: rows of activations. All threads of a team call an operation with equal arguments. Each
 * thread computes the features (or rows) that are its part (partition.h). A thread's part is the same each time, so
 * that a weight's pages are read by the NUMA node that first touched them. Only fr_matrix_input_rows synchronizes;
 * around all other operations the caller places the barriers (fr_team_sync, and partition.h's).
 *
 * The weight's type alone decides how a product is computed. Float types and FP8 are multiplied by float kernels, from
 * the file's own bytes. Block types and grouped codes are multiplied as packed tiles, by quantized rows. Other stored
 * types are decoded, and multiplied by float kernels. */
#ifndef FR_SRC_ENGINE_WEIGHTS_MATRIX_H
#define FR_SRC_ENGINE_WEIGHTS_MATRIX_H

#include "base/arena.h"
#include "base/pool.h"
#include "formats/rotation.h"
#include "kernels/kernels.h"

/* Output features are divided among threads in units of this size. So no two threads write the same cache line of a
 * row, and each packed tile belongs to one thread. */
#define FR_FEATURE_UNIT 16

/* Sums of squares over the rows to which a matrix was applied. An importance matrix is made from them. */
typedef struct fr_activation_stats {
    double *squares; /* [cols] the sum for each column */
    uint64_t rows;
} fr_activation_stats;

typedef struct fr_adapter_set fr_adapter_set; /* the struct is in low_rank.h */

typedef struct fr_matrix {
    const uint8_t *data; /* [features, cols], row-major; or packed tiles (quant/packed.h, quant/grouped.h) */
    fr_dtype type;       /* a weight type */
    bool packed;
    size_t features, cols;
    size_t row_bytes; /* bytes of a feature's row; if the matrix is packed, its mean share of a tile */

    /* The scales of FP8 codes (quant/fp8.h). There is one row of scales for every 128 features: feature o uses row
     * (first + o) / 128. Rows are scale_stride floats apart. For NVFP4, `scales` points to one float by which every
     * product is multiplied, or is NULL. Other types have no scales. */
    const float *scales;
    size_t scale_stride, first;
    const float *row_scales; /* for FP8 with a scale for each row; feature o is multiplied by row_scales[first + o],
                              * and `scales` are all 1; NULL: there are none */

    const struct fr_storage *storage; /* for FR_STORED: the storage by which the matrix is decoded (formats/storage.h);
                                       * feature o is row first + o of the storage */
    const fr_grouped_tiles *tiles;    /* the tiles of a packed matrix of FR_STORED */
    const fr_rotation *rotation; /* the rotation in which the matrix's rows are stored; input rows are rotated in the
                                  * same way; NULL: none */

    float factor; /* factor by which every product is multiplied; 0: there is none */

    /* the matrix's number among those that adapters can change (low_rank.h); 0: none can change it */
    uint32_t adapted;

    fr_activation_stats *stats; /* the sums to which the squares of the matrix's input rows are added, in row order;
                                 * NULL: none */
} fr_matrix;

/* Memory for products, besides the rows and the weights. All threads of a team use the same workspace. If several
 * streams of rows can run at the same time, each of them has a workspace of its own. */
typedef struct fr_workspace {
    const fr_kernels *kernels;
    fr_qblock *blocks;   /* the input rows of the next product, quantized; NULL if no weight is packed */
    size_t block_stride; /* blocks from one row to the next */

    /* For weights that are stored rotated: the input rows, rotated, as floats and quantized. */
    const fr_rotation_set *rotations; /* NULL: no weight is stored rotated */
    float *rotated;
    size_t rotated_stride; /* floats from one row to the next */
    fr_qblock *rotated_blocks;

    /* [rows] the adapters of each input row's timeline, or NULL for a row without adapters; the array itself is NULL if
     * no row uses adapters */
    const fr_adapter_set *const *adapters;
} fr_workspace;

/* The input rows x of a product, and its output rows y; strides are in floats. */
typedef struct fr_matrix_rows {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, count;
} fr_matrix_rows;

/* Takes a workspace for `rows` rows of up to `widest` columns from the arena, which may only count bytes
 * (base/arena.h). packed: at least one weight is packed. rotations: rotations of the weights; NULL: none is rotated. */
void fr_workspace_layout(fr_workspace *workspace, const fr_kernels *kernels, fr_arena *arena, bool packed,
                         const fr_rotation_set *rotations, size_t rows, size_t widest);

/* Prepares row r of the next product's input. If a weight of this width is stored rotated, the row is rotated too. The
 * thread that has computed the row calls this. A barrier must come between this call and the product. */
void fr_matrix_input_row(const fr_workspace *workspace, size_t r, const float *x, size_t cols);

/* Prepares all rows of the next product's input, with the whole team, and ends with a barrier. All rows must be
 * complete on this rank; if they aren't, call fr_publish_input instead. matrix: the only matrix that is multiplied by
 * these rows. If matrix is NULL, several matrices may be multiplied by them, but none of these may have a rotation that
 * regroups heads (formats/rotation.h). */
void fr_matrix_input_rows(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, const float *x,
                          size_t x_stride, size_t cols, size_t rows);

/* Gives a workspace whose first prepared row is row `row` of the given workspace. */
fr_workspace fr_workspace_from(const fr_workspace *workspace, size_t row);

/* Gives output features [begin, end) as a matrix; begin is a multiple of FR_FEATURE_UNIT if the matrix is packed. */
fr_matrix fr_matrix_features(const fr_matrix *matrix, size_t begin, size_t end);

/* Computes y[r][o], the product of matrix[o] and x[r], for the thread's own features o of the rank's share, and all
 * rows r. The rows must be prepared; x[0] is the first of them. */
void fr_matrix_apply(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_matrix_rows *rows);

/* These two functions compute products as fr_matrix_apply does, but for other features than those of the rank's share.
 * fr_matrix_apply_share takes features [begin, end), such as those of the rank's heads, and widens this range to whole
 * units of features. fr_matrix_apply_whole takes all features. The threads of this process divide the features. */
void fr_matrix_apply_share(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, size_t begin,
                           size_t end, const fr_matrix_rows *rows);
void fr_matrix_apply_whole(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                           const fr_matrix_rows *rows);

/* Computes products as fr_matrix_apply does, but only of features [begin, end), and in the calling thread alone. begin
 * is a multiple of FR_FEATURE_UNIT. */
void fr_matrix_apply_part(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                          const fr_matrix_rows *rows);

/* Returns the bytes of the first `features` features, which are whole tiles if the matrix is packed. */
size_t fr_matrix_features_bytes(const fr_matrix *matrix, size_t features);
size_t fr_matrix_bytes(const fr_matrix *matrix);

/* Writes row[c] = matrix[feature][c] as it is stored, without rotating it back. */
void fr_matrix_decode(const fr_matrix *matrix, size_t feature, float *row);

/* Writes row[c] = matrix[feature][c] * factor, as looking up an embedding does. A rotated row is rotated back
 * first. */
void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t feature, float factor, float *row);
#endif
