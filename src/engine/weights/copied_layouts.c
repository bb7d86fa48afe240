/* Copies the matrices of a stack that the file does not store as rows, when the stack is placed. See bound.h.
 *
 * In: MXFP4 as gpt-oss is published, with codes and exponents in separate tensors; MXFP4 and NVFP4 as quantized folders
 * have them, with codes and scales in separate tensors; float matrices stored as [inputs, outputs], as in transformers'
 * gpt-oss, in published mixtures of Qwen3-VL and in GPT-2; or queries, keys and values one head after the other, as in
 * GPT-NeoX. An entry may hold two matrices, gate and up. The rows of the two alternate in gpt-oss, but not in Qwen3-VL.
 * Out: packed tiles of GGUF's blocks; or rows of the same floats. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "formats/storage.h"
#include "quant/fp8.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"
#include "src/engine/weights/partition.h"

enum { MX_BYTES = 1 + FR_MX_BLOCK / 2 }; /* bytes of GGUF's block: an exponent, then 4-bit codes */
enum { NV_BLOCK = 64, NV_GROUP = 16 };   /* columns of GGUF's block of NVFP4; columns that share a scale */

/* Returns the type of GGUF's blocks that hold a folder's FP4. */
static fr_dtype fp4_type(const fr_storage *storage) {
    return storage->exponents ? FR_MXFP4 : FR_NVFP4;
}

fr_dtype fr_copied_type(const fr_bound *bound) {
    if (bound->layout == FR_LAYOUT_FP4) return fp4_type(bound->tensor->storage);
    return bound->layout == FR_LAYOUT_MX ? FR_MXFP4 : bound->tensor->type;
}

bool fr_copied_fp4(const fr_tensor *t) {
    return t->type == FR_STORED && t->storage->form == FR_STORAGE_FP4 &&
           t->storage->cols % (t->storage->exponents ? FR_MX_BLOCK : NV_BLOCK) == 0;
}

static bool is_packed(const fr_bound *bound) {
    return bound->layout == FR_LAYOUT_MX || bound->layout == FR_LAYOUT_FP4;
}

static size_t cols_of(const fr_bound *bound) {
    const uint64_t *shape = bound->tensor->shape;
    if (bound->layout == FR_LAYOUT_HALVES && bound->tensor->dims == 2) return (size_t)shape[0];
    if (bound->layout == FR_LAYOUT_COLUMNS && bound->tensor->dims == 2)
        return (size_t)shape[0] * bound->parts / bound->matrices;
    return bound->layout == FR_LAYOUT_MX ? (size_t)shape[2] * FR_MX_BLOCK : (size_t)shape[1];
}

/* Gives the bytes of `rows` rows of a copy, counted from the first row of a tile. */
size_t fr_copied_rows_bytes(const fr_bound *bound, size_t rows) {
    size_t cols = cols_of(bound);
    if (is_packed(bound)) return fr_packed_bytes(fr_copied_type(bound), rows, cols);
    return rows * fr_dtype_row_bytes(bound->tensor->type, cols);
}

/* Measures the room for a copy. A matrix may be cut into two parts, and the room includes up to a tile of padding for
 * each part. A float tensor's name tells whether it will be transposed. */
void fr_copied_measure(const fr_tensor *t, fr_arena *measure) {
    static const char *const turned[] = {".experts.gate_up_proj", ".experts.down_proj", ".query_key_value.weight",
                                         ".c_attn.weight",        ".c_fc.weight",       ".c_proj.weight",
                                         ".experts.mlp.w2"};
    size_t length = strlen(t->name);
    if (t->type == FR_U8 && t->dims == 4)
        fr_arena_take(measure, 2 * t->shape[0],
                      fr_packed_bytes(FR_MXFP4, (t->shape[1] + 1) / 2, t->shape[2] * FR_MX_BLOCK));
    if (fr_copied_fp4(t))
        fr_arena_take(measure, 2, fr_packed_bytes(fp4_type(t->storage), (t->shape[0] + 1) / 2, t->shape[1]));
    for (size_t i = 0; i < sizeof turned / sizeof *turned && t->type < FR_FLOAT_TYPES; i++)
        if (length > strlen(turned[i]) && strcmp(t->name + length - strlen(turned[i]), turned[i]) == 0)
            fr_arena_take(measure, 1, t->bytes);
}

fr_status fr_copied_bind(fr_weights *weights, fr_bound *bound, size_t count, size_t features, size_t cols,
                         fr_matrix *matrices) {
    bool packs = is_packed(bound);
    bound->matrices = count;
    bound->rows = features;
    size_t bytes = fr_copied_rows_bytes(bound, features);
    if (!bound->packed) bound->packed = fr_arena_take(&weights->packed, count, bytes);
    FR_TRY(fr_arena_check(&weights->packed, "packed weights"));
    weights->has_packed |= packs;
    for (size_t i = 0; i < count; i++)
        matrices[i] = (fr_matrix){.data = bound->packed + i * bytes,
                                  .type = fr_copied_type(bound),
                                  .packed = packs,
                                  .features = features,
                                  .cols = cols,
                                  .scales = bound->scales,
                                  .row_bytes = fr_dtype_row_bytes(fr_copied_type(bound), cols)};
    return FR_OK;
}

fr_status fr_copied_fill(const fr_weights *weights, const fr_bound *bound) {
    if (bound->exponents) FR_TRY(fr_bound_fill(weights, bound->exponents, 0, bound->exponents->bytes));
    return fr_bound_fill(weights, bound->tensor, 0, bound->tensor->bytes);
}

/* Reorders the codes of a block. A byte of the file holds two neighbouring values; a byte of GGUF's block holds two
 * values that are 16 apart. */
static void block_of(const uint8_t *codes, uint8_t exponent, uint8_t *block) {
    block[0] = exponent;
    for (size_t i = 0; i < FR_MX_BLOCK / 2; i++) {
        unsigned shift = i % 2 * 4, low = codes[i / 2] >> shift & 15;
        unsigned high = codes[FR_MX_BLOCK / 4 + i / 2] >> shift & 15;
        block[1 + i] = (uint8_t)(low | high << 4);
    }
}

fr_status fr_copied_bind_fp4(fr_weights *weights, fr_bound *bound, size_t count, size_t features, size_t cols,
                             fr_matrix *matrices) {
    const fr_storage *storage = bound->tensor->storage;
    const fr_tensor *of_matrix = storage->of_matrix;
    bound->layout = FR_LAYOUT_FP4;
    bound->parts = 1;
    if (!bound->scales && of_matrix) {
        float *scale = fr_arena_take(&weights->vectors, 1, sizeof *scale);
        FR_TRY(fr_arena_check(&weights->vectors, "scales"));
        FR_TRY(fr_bound_fill(weights, of_matrix, 0, of_matrix->bytes));
        memcpy(scale, of_matrix->data, sizeof *scale);
        if (storage->divides) *scale = 1.0F / *scale;
        bound->scales = scale;
    }
    return fr_copied_bind(weights, bound, count, features, cols, matrices);
}

size_t fr_row_by_heads(size_t row, size_t rows, size_t head, size_t key_heads) {
    size_t keys = key_heads * head, queries = rows - 2 * keys, each = queries / key_heads, group = each + 2 * head;
    if (row < queries) return row / each * group + row % each;
    size_t behind = row - queries < keys ? each : each + head;
    return (row - queries) % keys / head * group + behind + row % head;
}

/* Gives the number that row `row` has in the file. Rows are numbered through all matrices. */
static size_t row_in_file(const fr_bound *bound, size_t row) {
    size_t matrix = row / bound->rows, entry = matrix / bound->parts;
    if (bound->layout == FR_LAYOUT_HALVES) return row;
    if (bound->layout == FR_LAYOUT_HEADS) return fr_row_by_heads(row, bound->rows, bound->head, bound->key_heads);
    return (entry * bound->rows + row % bound->rows) * bound->parts + matrix % bound->parts;
}

static fr_status mx_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows) {
    const fr_tensor *codes = bound->tensor, *exponents = bound->exponents;
    size_t blocks = (size_t)codes->shape[2], code_bytes = blocks * FR_MX_BLOCK / 2;
    for (size_t r = begin; r < end; r++) {
        size_t at = row_in_file(bound, r);
        FR_TRY(fr_bound_fill(weights, codes, at * code_bytes, (at + 1) * code_bytes));
        FR_TRY(fr_bound_fill(weights, exponents, at * blocks, (at + 1) * blocks));
        for (size_t b = 0; b < blocks; b++, rows += MX_BYTES)
            block_of((const uint8_t *)codes->data + at * code_bytes + b * FR_MX_BLOCK / 2,
                     ((const uint8_t *)exponents->data)[at * blocks + b], rows);
    }
    return FR_OK;
}

/* Writes a row of NVFP4 as GGUF's blocks. Each block begins with four scales, which have no sign. Then come 8 bytes
 * for each 16 columns; byte i holds columns i and i + 8. In the file, a byte holds two neighbouring columns. */
static fr_status nvfp4_row(const fr_weights *weights, const fr_storage *s, const uint8_t *codes, const uint8_t *scales,
                           uint8_t *blocks) {
    for (size_t g = 0; g < s->groups; g++) {
        uint8_t *block = blocks + g / 4 * (4 + NV_BLOCK / 2), *run = block + 4 + g % 4 * (NV_GROUP / 2);
        if (scales[g] > 0x80)
            return fr_fail(FR_INPUT, "%s: tensor %s has %g at index %zu, which is no scale", weights->files->path,
                           s->scales->name, (double)fr_fp8_value(scales[g]),
                           (size_t)(scales + g - (const uint8_t *)s->scales->data));
        block[g % 4] = scales[g] & 0x7f;
        for (size_t i = 0; i < NV_GROUP / 2; i++, codes += i % 2 == 0) {
            unsigned low = *codes >> i % 2 * 4 & 15, high = codes[NV_GROUP / 4] >> i % 2 * 4 & 15;
            run[i] = (uint8_t)(low | high << 4);
        }
        codes += NV_GROUP / 4;
    }
    return FR_OK;
}

/* Checks the scales of rows [begin, end), and writes the rows as GGUF's blocks of MXFP4 or NVFP4. */
static fr_status fp4_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows) {
    const fr_storage *s = bound->tensor->storage;
    size_t row_bytes = fr_dtype_row_bytes(fp4_type(s), s->cols), bytes = s->cols / 2, groups = s->groups;
    for (size_t r = begin; r < end; r++, rows += row_bytes) {
        size_t at = s->first + r;
        FR_TRY(fr_bound_fill(weights, s->codes.tensor, at * bytes, (at + 1) * bytes));
        FR_TRY(fr_bound_fill(weights, s->scales, at * groups, (at + 1) * groups));
        FR_TRY(fr_storage_check(s, r, r + 1, weights->files->path));
        const uint8_t *codes = (const uint8_t *)s->codes.tensor->data + at * bytes;
        const uint8_t *scales = (const uint8_t *)s->scales->data + at * groups;
        if (!s->exponents) FR_TRY(nvfp4_row(weights, s, codes, scales, rows));
        for (size_t g = 0; s->exponents && g < groups; g++)
            block_of(codes + g * FR_MX_BLOCK / 2, scales[g], rows + g * MX_BYTES);
    }
    return FR_OK;
}

/* Writes rows [begin, end) of one matrix from the file's columns. */
static fr_status turned_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end,
                             uint8_t *rows) {
    const fr_tensor *tensor = bound->tensor;
    size_t size = fr_dtype_row_bytes(tensor->type, 1), cols = cols_of(bound), across = bound->parts * bound->rows;
    size_t entry = begin / bound->rows / bound->parts * cols * across * size;
    const uint8_t *from = (const uint8_t *)tensor->data + entry;
    FR_TRY(fr_bound_fill(weights, tensor, entry, entry + cols * across * size));
    for (size_t c = 0; c < cols; c++, from += across * size)
        for (size_t r = begin; r < end; r++)
            memcpy(rows + ((r - begin) * cols + c) * size, from + row_in_file(bound, r) % across * size, size);
    return FR_OK;
}

/* Writes rows [begin, end) of queries, keys and values from the file's rows. */
static fr_status head_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows) {
    size_t bytes = fr_dtype_row_bytes(bound->tensor->type, cols_of(bound));
    for (size_t r = begin; r < end; r++, rows += bytes) {
        size_t at = row_in_file(bound, r) * bytes;
        FR_TRY(fr_bound_fill(weights, bound->tensor, at, at + bytes));
        memcpy(rows, (const uint8_t *)bound->tensor->data + at, bytes);
    }
    return FR_OK;
}

fr_status fr_copied_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows) {
    if (bound->layout == FR_LAYOUT_FP4) return fp4_rows(weights, bound, begin, end, rows);
    if (bound->layout == FR_LAYOUT_HEADS) return head_rows(weights, bound, begin, end, rows);
    return bound->layout == FR_LAYOUT_MX ? mx_rows(weights, bound, begin, end, rows)
                                         : turned_rows(weights, bound, begin, end, rows);
}

/* Gives an entry's pages back to the system, once the last of its parts has been copied. Other threads may still read
 * their rows, so each thread gives back only the pages of rows that it has read itself. */
static void release(const fr_weights *weights, const fr_bound *bound, size_t matrix, size_t begin, size_t end) {
    size_t rows = bound->matrices * bound->rows, first = matrix / bound->parts * bound->rows;
    if (!is_packed(bound) || matrix % bound->parts != bound->parts - 1 || begin == end) return;
    begin = (first + begin) * bound->parts;
    end = (first + end) * bound->parts;
    size_t row_bytes = bound->tensor->bytes / rows;
    fr_bound_release(weights, bound->tensor, begin * row_bytes, end * row_bytes);
    const fr_storage *s = bound->layout == FR_LAYOUT_FP4 ? bound->tensor->storage : NULL;
    if (s) fr_bound_release(weights, s->scales, (s->first + begin) * s->groups, (s->first + end) * s->groups);
}

/* Copies the rows of one tile: packed into the tile, or as floats if the copy is not packed. */
static fr_status copy_tile(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows,
                           uint8_t *to) {
    size_t cols = cols_of(bound);
    fr_dtype type = fr_copied_type(bound);
    if (!is_packed(bound)) return fr_copied_rows(weights, bound, begin, end, to);
    FR_TRY(fr_copied_rows(weights, bound, begin, end, rows));
    fr_pack_tile(type, to, rows, fr_dtype_row_bytes(type, cols), end - begin, cols);
    return FR_OK;
}

fr_status fr_copied_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team) {
    size_t row_bytes = fr_dtype_row_bytes(fr_copied_type(bound), cols_of(bound)), begin, end;
    uint8_t *rows = malloc(FR_TILE_FEATURES * row_bytes);
    if (!rows) return fr_fail_memory("rows to pack", FR_TILE_FEATURES * row_bytes);
    fr_status status = FR_OK;
    for (size_t run = 0; run < fr_bound_runs(bound) && status == FR_OK; run++) {
        fr_bound_own_rows(weights, bound, run, team, &begin, &end);
        for (size_t m = 0; m < bound->matrices && status == FR_OK; m++) {
            uint8_t *copy = bound->packed + m * fr_copied_rows_bytes(bound, bound->rows);
            for (size_t o = begin; o < end && status == FR_OK; o += FR_TILE_FEATURES) {
                size_t first = m * bound->rows, last = fr_smaller(o + FR_TILE_FEATURES, end);
                status =
                    copy_tile(weights, bound, first + o, first + last, rows, copy + fr_copied_rows_bytes(bound, o));
            }
            release(weights, bound, m, begin, end);
        }
    }
    free(rows);
    return status;
}
