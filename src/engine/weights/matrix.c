/* Applies weight matrices with a team: see matrix.h. */
#include "src/engine/weights/matrix.h"

#include <string.h>

#include "base/sizes.h"
#include "formats/storage.h"
#include "quant/fp8.h"
#include "quant/packed.h"
#include "src/engine/weights/low_rank.h"
#include "src/engine/weights/partition.h"

enum { BLOCK = 32 };

static size_t blocks_of(size_t cols) {
    return (cols + BLOCK - 1) / BLOCK;
}

void fr_workspace_layout(fr_workspace *workspace, const fr_kernels *kernels, fr_arena *arena, bool packed,
                         const fr_rotation_set *rotations, size_t rows, size_t widest) {
    fr_workspace w = {.kernels = kernels, .block_stride = blocks_of(widest), .rotations = rotations};
    if (packed) w.blocks = fr_arena_take(arena, rows * w.block_stride, sizeof *w.blocks);
    w.rotated_stride = w.block_stride * BLOCK;
    if (rotations) w.rotated = fr_arena_take(arena, rows * w.rotated_stride, sizeof *w.rotated);
    if (rotations && packed) w.rotated_blocks = fr_arena_take(arena, rows * w.block_stride, sizeof *w.rotated_blocks);
    *workspace = w;
}

/* Rotates columns [from, to) of a row, which are whole blocks of the rotation, and quantizes them. If the rotation also
 * moves heads, the heads are copied one at a time. The first head may begin before `from`, and the last head may end
 * after `to`. */
static void rotate(const fr_workspace *workspace, const fr_rotation *rotation, size_t r, const float *x, size_t from,
                   size_t to) {
    const fr_kernels *k = workspace->kernels;
    float *y = workspace->rotated + r * workspace->rotated_stride;
    if (rotation->groups) {
        size_t each = rotation->heads / rotation->groups, head_dim = rotation->cols / rotation->heads;
        for (size_t c = from, end; c < to; c = end) {
            size_t head = c / head_dim, given = head % each * rotation->groups + head / each;
            end = fr_smaller((head + 1) * head_dim, to);
            memcpy(y + c, x + given * head_dim + c % head_dim, (end - c) * sizeof *y);
        }
        x = y;
    }
    k->hadamard(y + from, x + from, rotation->signs ? rotation->signs + from : NULL, rotation->block, to - from);
    if (workspace->rotated_blocks)
        k->quantize(workspace->rotated_blocks + r * workspace->block_stride + from / BLOCK, y + from, to - from);
}

void fr_matrix_input_row(const fr_workspace *workspace, size_t r, const float *x, size_t cols) {
    const fr_rotation *rotation = fr_rotation_of_width(workspace->rotations, cols);
    if (workspace->blocks) workspace->kernels->quantize(workspace->blocks + r * workspace->block_stride, x, cols);
    if (rotation) rotate(workspace, rotation, r, x, 0, cols);
}

/* Prepares rows. The threads divide the columns of the rows among themselves, for two reasons. Each thread then
 * quantizes columns that it or a neighbour has written, and even a single wide row is divided. */
void fr_matrix_input_rows(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, const float *x,
                          size_t x_stride, size_t cols, size_t rows) {
    const fr_rotation *rotation = matrix ? matrix->rotation : fr_rotation_of_width(workspace->rotations, cols);
    if (!workspace->blocks && !rotation) return;
    size_t begin, end;
    fr_part_blocks(team, blocks_of(cols), &begin, &end);
    size_t from = begin * BLOCK, to = end * BLOCK < cols ? end * BLOCK : cols;
    for (size_t r = 0; r < rows && begin < end && workspace->blocks && !(matrix && rotation); r++)
        workspace->kernels->quantize(workspace->blocks + r * workspace->block_stride + begin, x + r * x_stride + from,
                                     to - from);
    if (rotation) {
        fr_partition(cols, fr_larger(rotation->block, BLOCK), team->index, team->count, &from, &to);
        for (size_t r = 0; r < rows && from < to; r++) rotate(workspace, rotation, r, x + r * x_stride, from, to);
    }
    fr_team_sync(team);
}

fr_workspace fr_workspace_from(const fr_workspace *workspace, size_t row) {
    fr_workspace from = *workspace;
    if (from.blocks) from.blocks += row * from.block_stride;
    if (from.rotated) from.rotated += row * from.rotated_stride;
    if (from.rotated_blocks) from.rotated_blocks += row * from.block_stride;
    if (from.adapters) from.adapters += row;
    return from;
}

size_t fr_matrix_features_bytes(const fr_matrix *matrix, size_t features) {
    if (!matrix->packed) return features * matrix->row_bytes;
    if (matrix->tiles) return fr_grouped_bytes(matrix->tiles, features);
    return fr_packed_bytes(matrix->type, features, matrix->cols);
}

size_t fr_matrix_bytes(const fr_matrix *matrix) {
    return fr_matrix_features_bytes(matrix, matrix->features);
}

fr_matrix fr_matrix_features(const fr_matrix *matrix, size_t begin, size_t end) {
    fr_matrix view = *matrix;
    view.data += fr_matrix_features_bytes(matrix, begin);
    view.features = end - begin;
    view.first += begin;
    return view;
}

/* STORED_ROWS, STORED_RUN: number of features and of columns of FR_STORED that are decoded at a time. STORED_BATCH:
 * number of input rows that are multiplied by these at a time. */
enum { STORED_ROWS = 8, STORED_RUN = 1024, STORED_BATCH = 32 };

/* Multiplies by features of FR_STORED. The features are decoded a run of columns at a time, and the products of these
 * runs are added up in order (quant/NUMERICS.md). */
static void apply_stored(const fr_kernels *kernels, const fr_matrix *m, const fr_matrix_rows *rows) {
    float values[STORED_ROWS * STORED_RUN], sums[STORED_BATCH * STORED_ROWS];
    for (size_t o = 0; o < m->features; o += STORED_ROWS) {
        size_t features = fr_smaller(STORED_ROWS, m->features - o);
        for (size_t begin = 0; begin < m->cols; begin += STORED_RUN) {
            size_t end = fr_smaller(begin + STORED_RUN, m->cols), width = end - begin;
            for (size_t f = 0; f < features; f++)
                fr_storage_decode(m->storage, m->first + o + f, begin, end, values + f * width);
            for (size_t r = 0; r < rows->count; r += STORED_BATCH) {
                size_t batch = fr_smaller(STORED_BATCH, rows->count - r);
                kernels->matmul[FR_F32](&(fr_matmul){sums, STORED_ROWS, rows->x + r * rows->x_stride + begin,
                                                     rows->x_stride, batch, values, width * sizeof *values, width,
                                                     features});
                for (size_t i = 0; i < batch * features; i++) {
                    float *y = rows->y + (r + i / features) * rows->y_stride + o + i % features;
                    float sum = sums[i / features * STORED_ROWS + i % features];
                    *y = begin ? *y + sum : sum;
                }
            }
        }
    }
}

/* Multiplies by FP8 codes. If each row has a scale of its own, the row's sum is multiplied by that scale at the end. */
static void apply_fp8(const fr_kernels *kernels, const fr_matrix *m, const fr_matrix_rows *rows) {
    kernels->matmul_fp8(&(fr_matmul_fp8){rows->y, rows->y_stride, rows->x, rows->x_stride, rows->count, m->data,
                                         m->row_bytes, m->scales, m->scale_stride, m->first, m->cols, m->features});
    for (size_t r = 0; m->row_scales && r < rows->count; r++)
        for (size_t o = 0; o < m->features; o++) rows->y[r * rows->y_stride + o] *= m->row_scales[m->first + o];
}

static void apply(const fr_workspace *workspace, const fr_matrix *m, const fr_matrix_rows *rows) {
    const fr_kernels *k = workspace->kernels;
    if (m->packed && m->tiles) {
        fr_matmul_grouped_fn *const *kernels =
            m->tiles->form.offset == FR_OFFSET_BIAS ? k->matmul_biased : k->matmul_grouped;
        kernels[m->tiles->form.bits](&(fr_matmul_grouped){rows->y, rows->y_stride, workspace->blocks,
                                                          workspace->block_stride, rows->count, m->data, m->features,
                                                          m->tiles});
    } else if (m->packed) {
        k->matmul_block[m->type](&(fr_matmul_block){rows->y, rows->y_stride, workspace->blocks, workspace->block_stride,
                                                    rows->count, m->data, m->cols, m->features});
        for (size_t r = 0; m->scales && r < rows->count; r++) /* an NVFP4 tensor has one more scale */
            k->scale(rows->y + r * rows->y_stride, m->features, *m->scales);
    } else if (m->type < FR_FLOAT_TYPES)
        k->matmul[m->type](&(fr_matmul){rows->y, rows->y_stride, rows->x, rows->x_stride, rows->count, m->data,
                                        m->row_bytes, m->cols, m->features});
    else if (m->type == FR_STORED)
        apply_stored(k, m, rows);
    else
        apply_fp8(k, m, rows);
}

/* Adds the squares of the input rows to the sums. Only the thread that computes output 0 does this, so that no row
 * counts twice. */
static void add_activations(const fr_matrix *matrix, const fr_matrix_rows *rows) {
    fr_activation_stats *stats = matrix->stats;
    for (size_t r = 0; r < rows->count; r++) {
        const float *x = rows->x + r * rows->x_stride;
        for (size_t c = 0; c < matrix->cols; c++) stats->squares[c] += (double)x[c] * (double)x[c];
    }
    stats->rows += rows->count;
}

void fr_matrix_apply_part(const fr_workspace *workspace, const fr_matrix *matrix, size_t begin, size_t end,
                          const fr_matrix_rows *rows) {
    if (begin == end) return;
    fr_matrix part = fr_matrix_features(matrix, begin, end);
    fr_matrix_rows of_part = *rows;
    fr_workspace w = *workspace;
    if (matrix->rotation) {
        of_part.x = w.rotated;
        of_part.x_stride = w.rotated_stride;
        w.blocks = w.rotated_blocks;
    }
    if (matrix->stats && begin == 0) add_activations(matrix, &of_part);
    of_part.y += begin;
    apply(&w, &part, &of_part);
    if (w.adapters && matrix->adapted) fr_low_rank_add(&w, matrix, begin, end, rows);
    for (size_t r = 0; r < rows->count && part.factor != 0.0F; r++)
        w.kernels->scale(of_part.y + r * rows->y_stride, part.features, part.factor);
}

void fr_matrix_apply(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_matrix_rows *rows) {
    size_t begin, end;
    fr_part_features(team, matrix->features, &begin, &end);
    fr_matrix_apply_part(workspace, matrix, begin, end, rows);
}

void fr_matrix_apply_share(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix, size_t begin,
                           size_t end, const fr_matrix_rows *rows) {
    if (begin == end) return;
    size_t from = begin / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
    size_t to = fr_smaller((end + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT * FR_FEATURE_UNIT, matrix->features);
    fr_partition(to - from, FR_FEATURE_UNIT, team->index, team->count, &begin, &end);
    fr_matrix_apply_part(workspace, matrix, from + begin, from + end, rows);
}

void fr_matrix_apply_whole(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                           const fr_matrix_rows *rows) {
    fr_matrix_apply_share(team, workspace, matrix, 0, matrix->features, rows);
}

/* Unpacks a packed row into GGUF's blocks, one at a time, and decodes them. */
static void decode_packed(const fr_matrix *matrix, size_t feature, float *row) {
    size_t block = fr_dtype_block(matrix->type), tile_block = fr_packed_bytes(matrix->type, FR_TILE_FEATURES, block);
    size_t first = feature / FR_TILE_FEATURES * FR_TILE_FEATURES; /* the first feature of the tile */
    const uint8_t *tile = matrix->data + fr_packed_bytes(matrix->type, first, matrix->cols);
    for (size_t c = 0; c < matrix->cols; c += block, tile += tile_block) {
        uint8_t bytes[FR_BLOCK_BYTES_MAX];
        fr_unpack_row(matrix->type, bytes, tile, feature % FR_TILE_FEATURES, block);
        fr_dtype_decode(matrix->type, bytes, row + c, block);
    }
}

void fr_matrix_decode(const fr_matrix *matrix, size_t feature, float *row) {
    if (matrix->packed && matrix->tiles)
        fr_grouped_decode(matrix->tiles, row, matrix->data + feature / FR_TILE_FEATURES * matrix->tiles->tile_bytes,
                          feature % FR_TILE_FEATURES, matrix->cols);
    else if (matrix->packed)
        decode_packed(matrix, feature, row);
    else if (matrix->type == FR_F8_E4M3)
        fr_fp8_decode(matrix->data + feature * matrix->row_bytes,
                      matrix->scales + (matrix->first + feature) / FR_FP8_BLOCK * matrix->scale_stride, row,
                      matrix->cols);
    else if (matrix->type == FR_STORED)
        fr_storage_decode(matrix->storage, matrix->first + feature, 0, matrix->cols, row);
    else
        fr_dtype_decode(matrix->type, matrix->data + feature * matrix->row_bytes, row, matrix->cols);
    for (size_t c = 0; matrix->row_scales && c < matrix->cols; c++)
        row[c] *= matrix->row_scales[matrix->first + feature];
    for (size_t c = 0; matrix->type == FR_NVFP4 && matrix->scales && c < matrix->cols; c++) row[c] *= *matrix->scales;
}

void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t feature, float factor, float *row) {
    const fr_rotation *rotation = matrix->rotation;
    fr_matrix_decode(matrix, feature, row);
    if (rotation) kernels->hadamard(row, row, NULL, rotation->block, matrix->cols);
    if (rotation && rotation->signs) kernels->mul(row, rotation->signs, matrix->cols);
    kernels->scale(row, matrix->cols, factor);
}
