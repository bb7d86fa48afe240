/* Lists the kernels, and makes the operands with which they are called (kernel_cases.h). */
#include "bench/kernel_cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/amx_kernels.h"
#include "quant/fp8.h"
#include "quant/packed.h"
#include "src/engine/layers/attend.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
    RUN = 32,               /* columns in a block of quantized activations */
    WIDEST = 10240,         /* the largest number of columns of a shape */
    CUT = 64,               /* the numbers of features, and of positions in attention, are multiples of this number */
    CACHED_BYTES = 1 << 18, /* bytes of one thread's weights; so few bytes stay in the thread's L2 cache */
    /* Number of different tiles of weights, which are repeated until all tiles are filled. The number is prime, so that
     * a walk over every second or third tile still meets all different ones. */
    DISTINCT = 7,
    GATHERED = 4096,      /* rows of a table that are scored, as by the centroid head of Gemma 4's assistant */
    BEST = 32,            /* number of clusters that the centroid head chooses in a step */
    HEADS = 8,            /* query heads that share a KV head */
    TOKENS = 64,          /* rows in a call of DeltaNet */
    TAPS = 4,             /* rows that DeltaNet's convolution reads, including the current row */
    POSITIONS_MAX = 32768 /* the largest number of cached positions of a shape of attention */
};

/* Describes how to call the kernels of one type of function (kernels.h). Kernels that work on plain arrays all have the
 * same `call`, which calls `apply`. */
struct fr_bench_kind {
    /* If fr_kernels has an array of pointers to kernels of this kind, offset of its first pointer. SIZE_MAX if
     * fr_kernels has only one such pointer */
    size_t first_slot;
    const fr_bench_shape *shapes;
    size_t shape_count;
    void (*size)(fr_bench_case *c);
    void (*fill_stream)(const fr_bench_case *c, uint8_t *stream);
    void (*fill_input)(const fr_bench_case *c, void *input);
    void (*call)(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                 size_t units);
    void (*apply)(fr_bench_function *function, float *y, const float *a, const float *b, size_t n);
    size_t arrays; /* number of arrays that `apply` reads and writes */
};

/* -------------------------------------------------------------------------------------------------- random numbers */

/* Gives the next random bits, by SplitMix64. *state is a counter. */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static float random_value(uint64_t *state) {
    return (float)(int32_t)random_bits(state) * 0x1p-31f;
}

static void fill_floats(float *x, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) x[i] = random_value(&seed);
}

static void fill_float_row(fr_dtype type, uint8_t *row, size_t cols, uint64_t *state) {
    for (size_t i = 0; i < cols; i++) {
        float value = random_value(state);
        uint16_t half = type == FR_F16 ? fr_f16_from_f32(value) : fr_bf16_from_f32(value);
        if (type == FR_F32)
            memcpy(row + i * sizeof value, &value, sizeof value);
        else
            memcpy(row + i * sizeof half, &half, sizeof half);
    }
}

/* Fills a block with random bytes. New bytes are drawn until the block's values are about as large as those of real
 * weights. */
static void fill_block(fr_dtype type, uint8_t *block, uint64_t *state) {
    float values[256], most;
    size_t n = fr_dtype_block(type), bytes = fr_dtype_row_bytes(type, n);
    do {
        for (size_t i = 0; i < bytes; i++) block[i] = (uint8_t)random_bits(state);
        fr_dtype_decode(type, block, values, n);
        most = 0;
        for (size_t i = 0; i < n; i++) most = fabsf(values[i]) <= most ? most : fabsf(values[i]);
    } while (!(most > 0x1p-10f && most < 0x1p10f));
}

static void fill_row(fr_dtype type, uint8_t *row, size_t cols, uint64_t *state) {
    size_t block = fr_dtype_block(type), bytes = fr_dtype_row_bytes(type, block);
    if (type < FR_FLOAT_TYPES)
        fill_float_row(type, row, cols, state);
    else
        for (size_t i = 0; i < cols / block; i++) fill_block(type, row + i * bytes, state);
}

/* Fills rows with values. Only the first rows differ from each other; the other rows are copies of them. */
static void fill_rows(fr_dtype type, uint8_t *rows, size_t count, size_t cols) {
    size_t bytes = fr_dtype_row_bytes(type, cols), distinct = DISTINCT * FR_TILE_FEATURES;
    uint64_t state = 1;
    for (size_t i = 0; i < count && i < distinct; i++) fill_row(type, rows + i * bytes, cols, &state);
    for (size_t i = distinct; i < count; i++) memcpy(rows + i * bytes, rows + (i - distinct) * bytes, bytes);
}

/* -------------------------------------------------------------------------------------------------------- products */

static void size_products(fr_bench_case *c) {
    double weights = (double)(c->features * c->cols);
    c->units = c->features / FR_TILE_FEATURES;
    c->stream_bytes = c->features * fr_dtype_row_bytes(c->type, c->cols);
    c->output_bytes = c->rows * c->features * sizeof(float);
    c->bytes = (double)c->stream_bytes;
    c->macs = weights * (double)c->rows;
    c->values = weights;
}

static void size_matmul(fr_bench_case *c) {
    size_products(c);
    c->input_bytes = c->rows * c->cols * sizeof(float);
}

static void fill_table(const fr_bench_case *c, uint8_t *stream) {
    fill_rows(c->type, stream, c->features, c->cols);
}

static void fill_numbers(const fr_bench_case *c, void *input) {
    fill_floats(input, c->input_bytes / sizeof(float), 2);
}

static void call_matmul(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                        size_t units) {
    size_t row_bytes = fr_dtype_row_bytes(c->type, c->cols), feature = first * FR_TILE_FEATURES;
    ((fr_matmul_fn *)function)(&(fr_matmul){(float *)o->output + feature, c->features, o->input, c->cols, c->rows,
                                            o->stream + feature * row_bytes, row_bytes, c->cols,
                                            units * FR_TILE_FEATURES});
}

/* Computes the sizes of an FP8 product, whose weights are codes followed by a scale for each block. */
static void size_matmul_fp8(fr_bench_case *c) {
    size_matmul(c);
    c->stream_bytes += fr_fp8_blocks(c->features) * fr_fp8_blocks(c->cols) * sizeof(float);
    c->bytes = (double)c->stream_bytes;
}

static void fill_codes(const fr_bench_case *c, uint8_t *stream) {
    size_t count = c->features * c->cols;
    float *scales = (float *)(void *)(stream + count);
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        stream[i] = (uint8_t)random_bits(&state);
        if ((stream[i] & 0x7f) == 0x7f) stream[i] ^= 1;
    }
    for (size_t i = 0; i < (c->stream_bytes - count) / sizeof *scales; i++)
        scales[i] = (1.5f + 0.5f * random_value(&state)) * 0x1p-9f;
}

static void call_matmul_fp8(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o,
                            size_t first, size_t units) {
    size_t feature = first * FR_TILE_FEATURES;
    const float *scales = (const float *)(const void *)(o->stream + c->features * c->cols);
    ((fr_matmul_fp8_fn *)function)(&(fr_matmul_fp8){
        (float *)o->output + feature, c->features, o->input, c->cols, c->rows, o->stream + feature * c->cols, c->cols,
        scales, fr_fp8_blocks(c->cols), feature, c->cols, units * FR_TILE_FEATURES});
}

static void size_matmul_block(fr_bench_case *c) {
    size_products(c);
    /* types with few bits take more bytes when packed than in the file */
    c->stream_bytes = fr_packed_bytes(c->type, c->features, c->cols);
    c->bytes = (double)c->stream_bytes;
    c->integer_macs = c->macs;
    c->input_bytes = c->rows * (c->cols / RUN) * sizeof(fr_qblock);
}

/* Fills tiles with weights. Only the first DISTINCT tiles differ from each other; the other tiles are copies of
 * them. */
static void fill_tiles(const fr_bench_case *c, uint8_t *stream) {
    size_t row_bytes = fr_dtype_row_bytes(c->type, c->cols), tile = fr_packed_bytes(c->type, FR_TILE_FEATURES, c->cols);
    static uint8_t rows[FR_TILE_FEATURES * WIDEST * sizeof(float)];
    uint64_t state = 1;
    for (size_t i = 0; i < c->units && i < DISTINCT; i++) {
        for (size_t o = 0; o < FR_TILE_FEATURES; o++) fill_row(c->type, rows + o * row_bytes, c->cols, &state);
        fr_pack_tile(c->type, stream + i * tile, rows, row_bytes, FR_TILE_FEATURES, c->cols);
    }
    for (size_t i = DISTINCT; i < c->units; i++) memcpy(stream + i * tile, stream + (i - DISTINCT) * tile, tile);
}

static void fill_quantized(const fr_bench_case *c, void *input) {
    static float values[WIDEST];
    for (size_t r = 0; r < c->rows; r++) {
        fill_floats(values, c->cols, 2 + r);
        fr_quantize_scalar((fr_qblock *)input + r * (c->cols / RUN), values, c->cols);
    }
}

static void call_matmul_block(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o,
                              size_t first, size_t units) {
    size_t feature = first * FR_TILE_FEATURES;
    ((fr_matmul_block_fn *)function)(
        &(fr_matmul_block){(float *)o->output + feature, c->features, o->input, c->cols / RUN, c->rows,
                           o->stream + fr_packed_bytes(c->type, feature, c->cols), c->cols, units * FR_TILE_FEATURES});
}

/* Derives the form of grouped codes from the slot that the kernel fills: the number of bits, and whether the codes have
 * biases or zero points. */
static void choose_grouped(fr_bench_case *c, size_t slot) {
    size_t biased = slot > FR_GROUPED_BITS_MAX;
    fr_grouping form = {.bits = (uint8_t)(slot - biased * (FR_GROUPED_BITS_MAX + 1)),
                        .offset = biased ? FR_OFFSET_BIAS : FR_OFFSET_ZERO,
                        .scale_type = FR_F16,
                        .group = 128};
    c->type = FR_STORED;
    fr_grouped_layout(&c->tiles, &form, c->cols);
}

static void size_matmul_grouped(fr_bench_case *c) {
    size_products(c);
    c->stream_bytes = fr_grouped_bytes(&c->tiles, c->features);
    c->bytes = (double)c->stream_bytes;
    c->integer_macs = c->macs;
    c->input_bytes = c->rows * (c->cols / RUN) * sizeof(fr_qblock);
}

/* Fills tiles of grouped codes. Only the first DISTINCT tiles differ from each other; the other tiles are copies of
 * them. */
static void fill_grouped(const fr_bench_case *c, uint8_t *stream) {
    static uint8_t codes[FR_TILE_FEATURES][WIDEST], zeros[FR_TILE_FEATURES][WIDEST / RUN];
    static float scales[FR_TILE_FEATURES][WIDEST / RUN], biases[FR_TILE_FEATURES][WIDEST / RUN];
    fr_grouped_row rows[FR_TILE_FEATURES];
    unsigned mask = (1u << c->tiles.form.bits) - 1;
    size_t tile = c->tiles.tile_bytes;
    uint64_t state = 1;
    for (size_t i = 0; i < c->units && i < DISTINCT; i++) {
        for (size_t o = 0; o < FR_TILE_FEATURES; o++) {
            rows[o] = (fr_grouped_row){codes[o], scales[o], zeros[o], biases[o]};
            for (size_t col = 0; col < c->cols; col++) codes[o][col] = random_bits(&state) & mask;
            for (size_t g = 0; g < c->tiles.blocks; g++) {
                zeros[o][g] = random_bits(&state) & mask;
                scales[o][g] = (float)(1 + random_bits(&state) % 64) * 0x1p-10f;
                biases[o][g] = (float)(1 + random_bits(&state) % 64) * 0x1p-8f;
            }
        }
        fr_grouped_pack(&c->tiles, stream + i * tile, rows, FR_TILE_FEATURES, c->cols);
    }
    for (size_t i = DISTINCT; i < c->units; i++) memcpy(stream + i * tile, stream + (i - DISTINCT) * tile, tile);
}

static void call_matmul_grouped(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o,
                                size_t first, size_t units) {
    ((fr_matmul_grouped_fn *)function)(
        &(fr_matmul_grouped){(float *)o->output + first * FR_TILE_FEATURES, c->features, o->input, c->cols / RUN,
                             c->rows, o->stream + first * c->tiles.tile_bytes, units * FR_TILE_FEATURES, &c->tiles});
}

/* Computes the sizes of products with selected rows of a table. The input is the row that is multiplied with them,
 * followed by the indices of the table's rows. */
static void size_gather(fr_bench_case *c) {
    c->stream_bytes = c->features * fr_dtype_row_bytes(c->type, c->cols);
    c->input_bytes = c->cols * sizeof(float) + GATHERED * sizeof(int32_t);
    c->output_bytes = GATHERED * sizeof(float);
    c->values = c->macs = (double)(GATHERED * c->cols);
    c->bytes = (double)(GATHERED * fr_dtype_row_bytes(c->type, c->cols));
}

static void fill_gather_input(const fr_bench_case *c, void *input) {
    int32_t *ids = (int32_t *)((float *)input + c->cols);
    uint64_t state = 3;
    fill_floats(input, c->cols, 2);
    for (size_t i = 0; i < GATHERED; i++) ids[i] = (int32_t)(random_bits(&state) % c->features);
}

static void call_gather(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                        size_t units) {
    (void)first, (void)units;
    ((fr_gather_fn *)function)(&(fr_gather){o->output, o->input, o->stream, fr_dtype_row_bytes(c->type, c->cols),
                                            c->cols, (const int32_t *)((const float *)o->input + c->cols), GATHERED});
}

/* ------------------------------------------------------------------------------------------------------- attention */

/* Computes the sizes of attention with one KV head. `features` is the number of cached positions. The stream is all
 * keys, then all values. Half of the multiply-adds are those of scores, which multiply integers if keys are codes. */
static void size_attn(fr_bench_case *c) {
    size_t queries = c->rows * HEADS;
    c->stream_bytes = 2 * c->features * fr_dtype_row_bytes(c->type, c->cols);
    c->input_bytes = c->output_bytes = queries * c->cols * sizeof(float);
    c->scratch_bytes = fr_attn_scratch(c->cols, queries) * sizeof(float);
    c->bytes = (double)c->stream_bytes;
    c->values = (double)(2 * c->features * c->cols);
    c->macs = (double)(2 * c->cols * HEADS * (c->rows * c->features - c->rows * (c->rows - 1) / 2));
    if (fr_attn_coded(&(fr_attn){.k_type = c->type})) c->integer_macs = c->macs / 2;
}

static void fill_cache(const fr_bench_case *c, uint8_t *stream) {
    fill_rows(c->type, stream, 2 * c->features, c->cols);
}

/* Calls attention, with at most FR_ATTEND_BATCH queries at a time. The last row sees all positions. Each earlier row
 * sees one position less than the row after it. */
static void call_attn(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                      size_t units) {
    (void)first, (void)units;
    fr_attn_query queries[FR_ATTEND_BATCH];
    const uint8_t *pages[POSITIONS_MAX / FR_KV_PAGE];
    size_t row_bytes = fr_dtype_row_bytes(c->type, c->cols);
    for (size_t p = 0; p < c->features; p += FR_KV_PAGE) pages[p / FR_KV_PAGE] = o->stream + p * row_bytes;
    fr_attn attn = {.k_pages = pages,
                    .v_pages = pages,
                    .v_at = c->features * row_bytes,
                    .k_type = c->type,
                    .v_type = c->type,
                    .k_stride = row_bytes,
                    .v_stride = row_bytes,
                    .head_dim = c->cols,
                    .value_dim = c->cols,
                    .scale = 0.0625f,
                    .queries = queries,
                    .scratch = o->scratch};
    for (size_t i = 0; i < c->rows * HEADS; i += attn.count) {
        attn.count = fr_smaller(c->rows * HEADS - i, FR_ATTEND_BATCH);
        for (size_t j = 0; j < attn.count; j++)
            queries[j] = (fr_attn_query){.q = (const float *)o->input + (i + j) * c->cols,
                                         .out = (float *)o->output + (i + j) * c->cols,
                                         .last = (int64_t)(c->features - c->rows + (i + j) / HEADS)};
        ((fr_attn_fn *)function)(&attn);
    }
}

/* ------------------------------------------------------------------------------------------------- rows and arrays */

/* Computes the sizes for kernels on arrays: the operands a and b and the output y, each of n floats. */
static void size_array(fr_bench_case *c) {
    c->input_bytes = 2 * c->cols * sizeof(float);
    c->output_bytes = c->cols * sizeof(float);
    c->values = (double)c->cols;
    c->bytes = (double)(c->kind->arrays * c->cols * sizeof(float));
}

/* Fills the operands of kernels that multiply in place. Repeated calls multiply the same array again and again. So all
 * values are 1 or -1, with which the products neither vanish nor overflow. */
static void fill_signs(const fr_bench_case *c, void *input) {
    uint64_t state = 2;
    for (size_t i = 0; i < c->input_bytes / sizeof(float); i++) ((float *)input)[i] = random_bits(&state) & 1 ? 1 : -1;
}

static void call_array(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                       size_t units) {
    (void)first, (void)units;
    c->kind->apply(function, o->output, o->input, (const float *)o->input + c->cols, c->cols);
}

static void apply_one(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    ((fr_exp_fn *)function)(y, a, n);
}

static void apply_two(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    ((fr_gelu_mul_fn *)function)(y, a, b, n);
}

static void apply_clamped(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    ((fr_clamped_swiglu_fn *)function)(y, a, b, n, 7.0f);
}

static void apply_rmsnorm(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    ((fr_rmsnorm_fn *)function)(y, a, b, n, 1e-6f);
}

static void apply_layernorm(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    ((fr_layernorm_fn *)function)(y, a, b, b, n, 1e-6f);
}

static void apply_softcap(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    (void)a, (void)b;
    ((fr_softcap_fn *)function)(y, n, 30);
}

static void apply_scale(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    (void)a, (void)b;
    ((fr_scale_fn *)function)(y, n, -1);
}

static void apply_axpy(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    ((fr_axpy_fn *)function)(y, a, n, 0.5f);
}

/* Applies a Hadamard transform. Its block is the largest power of two that divides the row's length. */
static void apply_hadamard(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    ((fr_hadamard_fn *)function)(y, a, b, n & (~n + 1), n);
}

/* Fills the first half of the columns with cosines and the second half with sines. The input's second array is not
 * used. */
static void fill_angles(const fr_bench_case *c, void *input) {
    size_t half = c->cols / 2;
    for (size_t i = 0; i < half; i++) {
        ((float *)input)[i] = (float)cos((double)i);
        ((float *)input)[half + i] = (float)sin((double)i);
    }
}

static void apply_rope(fr_bench_function *function, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    ((fr_rope_fn *)function)(y, a, a + n / 2, n);
}

/* Computes the sizes for kernels that read one array and write little. */
static void size_row(fr_bench_case *c) {
    c->input_bytes = c->cols * sizeof(float);
    c->values = (double)c->cols;
    c->bytes = (double)(c->input_bytes + c->output_bytes);
}

static void size_quantize(fr_bench_case *c) {
    c->output_bytes = c->cols / RUN * sizeof(fr_qblock);
    size_row(c);
}

static void call_quantize(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                          size_t units) {
    (void)first, (void)units;
    ((fr_quantize_fn *)function)(o->output, o->input, c->cols);
}

static void size_kv_store(fr_bench_case *c) {
    c->output_bytes = fr_dtype_row_bytes(c->type, c->cols);
    size_row(c);
}

static void call_kv_store(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                          size_t units) {
    (void)first, (void)units;
    ((fr_kv_store_fn *)function)(o->output, o->input, c->cols);
}

static void size_argmax(fr_bench_case *c) {
    c->output_bytes = sizeof(int64_t);
    size_row(c);
}

static void call_argmax(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                        size_t units) {
    (void)first, (void)units;
    *(int64_t *)o->output = ((fr_argmax_fn *)function)(o->input, c->cols);
}

static void size_topk(fr_bench_case *c) {
    c->output_bytes = BEST * sizeof(int32_t);
    c->scratch_bytes = c->cols * sizeof(int32_t);
    size_row(c);
}

static void call_topk(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                      size_t units) {
    (void)first, (void)units;
    ((fr_topk_fn *)function)(o->input, c->cols, BEST, o->output, o->scratch);
}

/* -------------------------------------------------------------------------------------------- DeltaNet and Mamba-2 */

/* Computes the sizes of one head of DeltaNet or Mamba-2 over TOKENS rows. The input is the keys, queries and values of
 * the rows. The output is the rows' results, followed by the state. */
static void size_deltanet(fr_bench_case *c) {
    size_t row = 2 * c->cols + c->features, state = fr_deltanet_state(c->cols, c->features);
    c->input_bytes = TOKENS * row * sizeof(float);
    c->output_bytes = (TOKENS * c->features + state) * sizeof(float);
    c->bytes = (double)(c->input_bytes + c->output_bytes) + (double)(state * sizeof(float));
    c->values = (double)(TOKENS * state);
}

/* Fills keys of about length 1, so that the state neither grows nor vanishes when a call is repeated often. */
static void fill_deltanet_input(const fr_bench_case *c, void *input) {
    fill_numbers(c, input);
    for (size_t i = 0; i < TOKENS * c->cols; i++) ((float *)input)[i] *= (float)sqrt(3.0 / (double)c->cols);
}

static void fill_recurrent_rows(const fr_bench_case *c, const fr_bench_operands *o, fr_deltanet_row *rows) {
    const float *keys = o->input, *queries = keys + TOKENS * c->cols, *values = queries + TOKENS * c->cols;
    float *state = o->output, *out = state + fr_deltanet_state(c->cols, c->features);
    for (size_t r = 0; r < TOKENS; r++)
        rows[r] = (fr_deltanet_row){.key = keys + r * c->cols,
                                    .query = queries + r * c->cols,
                                    .value = values + r * c->features,
                                    .out = out + r * c->features,
                                    .decay = 0.9f,
                                    .beta = 0.5f};
}

static void call_deltanet(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                          size_t units) {
    (void)first, (void)units;
    fr_deltanet_row rows[TOKENS];
    fill_recurrent_rows(c, o, rows);
    ((fr_deltanet_fn *)function)(&(fr_deltanet){o->output, c->cols, c->features, rows, TOKENS, TOKENS, NULL});
}

static void call_mamba(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                       size_t units) {
    (void)first, (void)units;
    fr_deltanet_row rows[TOKENS];
    fill_recurrent_rows(c, o, rows);
    ((fr_mamba_fn *)function)(&(fr_deltanet){o->output, c->cols, c->features, rows, TOKENS, TOKENS, NULL}, 1);
}

/* Computes the sizes of DeltaNet's short convolution. The input is TAPS rows, then the weights. */
static void size_short_conv(fr_bench_case *c) {
    c->input_bytes = 2 * TAPS * c->cols * sizeof(float);
    c->output_bytes = c->cols * sizeof(float);
    c->values = (double)c->cols;
    c->bytes = (double)(c->input_bytes + c->output_bytes);
}

static void call_short_conv(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o,
                            size_t first, size_t units) {
    (void)first, (void)units;
    const float *input = o->input, *rows[TAPS];
    for (size_t t = 0; t < TAPS; t++) rows[t] = input + t * c->cols;
    ((fr_short_conv_fn *)function)(o->output, rows, input + TAPS * c->cols, c->cols, TAPS, NULL, c->cols);
}

/* ---------------------------------------------------------------------------------------------------------- shapes */

/* Shapes of matrix products: the gate of Gemma 4 E2B, the down projection of E4B, and as many features of 1536 columns
 * as fit in the cache. */
static const fr_bench_shape products[] = {
    {FR_BENCH_STREAMED, 6144, 1536, SIZE_MAX, 0},
    {FR_BENCH_STREAMED, 2560, 10240, SIZE_MAX, 0},
    {FR_BENCH_CACHED, 0, 1536, 8, 0},
};

static const fr_bench_shape fp8_products[] = {
    {FR_BENCH_STREAMED, 6144, 1536, SIZE_MAX, FR_F8_E4M3},
    {FR_BENCH_STREAMED, 2560, 10240, SIZE_MAX, FR_F8_E4M3},
    {FR_BENCH_CACHED, 0, 1536, 8, FR_F8_E4M3},
};

/* A part of the table of the head of Gemma 4's assistant. The whole table has 262144 rows of 256 columns. */
static const fr_bench_shape tables[] = {{FR_BENCH_STREAMED, 16384, 256, 0, 0}};

/* CACHE describes the full attention of Gemma 4 E2B, in which 8 query heads share the one KV head. SMALL describes
 * attention with heads of 64 values. */
#define CACHE(type, positions) \
    { FR_BENCH_ATTENTION, positions, 512, 8, type }
#define SMALL(positions, rows) \
    { FR_BENCH_ATTENTION, positions, 64, rows, FR_F16 }
static const fr_bench_shape caches[] = {
    CACHE(FR_F32, 128),   CACHE(FR_F32, 4096), CACHE(FR_F16, 128),     CACHE(FR_F16, 4096), CACHE(FR_BF16, 128),
    CACHE(FR_BF16, 4096), CACHE(FR_Q8_0, 128), CACHE(FR_Q8_0, 4096),   CACHE(FR_Q4_0, 128), CACHE(FR_Q4_0, 4096),
    SMALL(512, 64),       SMALL(4096, 64),     SMALL(POSITIONS_MAX, 8)};
#undef SMALL
#undef CACHE

static const fr_bench_shape hidden[] = {{FR_BENCH_ARRAYS, 1, 1536, 0, 0}};   /* E2B's hidden row */
static const fr_bench_shape inner[] = {{FR_BENCH_ARRAYS, 1, 6144, 0, 0}};    /* E2B's feed-forward row */
static const fr_bench_shape logits[] = {{FR_BENCH_ARRAYS, 1, 262144, 0, 0}}; /* E2B's vocabulary */
static const fr_bench_shape head[] = {{FR_BENCH_ARRAYS, 1, 512, 0, 0}};      /* a head of E2B's full attention */
/* the scores of the clusters of Gemma 4 E2B's assistant */
static const fr_bench_shape clusters[] = {{FR_BENCH_ARRAYS, 1, 2048, 0, 0}};

/* sizes of values and keys in Qwen3.5 */
static const fr_bench_shape delta_head[] = {{FR_BENCH_ARRAYS, 128, 128, 0, 0}};
/* Qwen3.5 4B's queries, keys and values together */
static const fr_bench_shape channels[] = {{FR_BENCH_ARRAYS, 1, 8192, 0, 0}};

/* ----------------------------------------------------------------------------------------------------- the kernels */

#define KIND(slots, list, sized, streamed, filled, called)                                                       \
    {                                                                                                            \
        .first_slot = slots, .shapes = list, .shape_count = COUNT(list), .size = sized, .fill_stream = streamed, \
        .fill_input = filled, .call = called                                                                     \
    }
#define ARRAY(list, filled, how, count)                                                                               \
    {                                                                                                                 \
        .first_slot = SIZE_MAX, .shapes = list, .shape_count = COUNT(list), .size = size_array, .fill_input = filled, \
        .call = call_array, .apply = how, .arrays = count                                                             \
    }

static const fr_bench_kind kind_matmul =
    KIND(offsetof(fr_kernels, matmul), products, size_matmul, fill_table, fill_numbers, call_matmul);
static const fr_bench_kind kind_matmul_fp8 =
    KIND(SIZE_MAX, fp8_products, size_matmul_fp8, fill_codes, fill_numbers, call_matmul_fp8);
static const fr_bench_kind kind_matmul_block = KIND(offsetof(fr_kernels, matmul_block), products, size_matmul_block,
                                                    fill_tiles, fill_quantized, call_matmul_block);
static const fr_bench_kind kind_matmul_grouped =
    KIND(offsetof(fr_kernels, matmul_grouped), products, size_matmul_grouped, fill_grouped, fill_quantized,
         call_matmul_grouped);
static const fr_bench_kind kind_gather =
    KIND(offsetof(fr_kernels, gather), tables, size_gather, fill_table, fill_gather_input, call_gather);
static const fr_bench_kind kind_attn = KIND(SIZE_MAX, caches, size_attn, fill_cache, fill_numbers, call_attn);
static const fr_bench_kind kind_deltanet =
    KIND(SIZE_MAX, delta_head, size_deltanet, NULL, fill_deltanet_input, call_deltanet);
static const fr_bench_kind kind_mamba =
    KIND(SIZE_MAX, delta_head, size_deltanet, NULL, fill_deltanet_input, call_mamba);
static const fr_bench_kind kind_short_conv =
    KIND(SIZE_MAX, channels, size_short_conv, NULL, fill_numbers, call_short_conv);
static const fr_bench_kind kind_quantize = KIND(SIZE_MAX, hidden, size_quantize, NULL, fill_numbers, call_quantize);
static const fr_bench_kind kind_kv_store =
    KIND(offsetof(fr_kernels, kv_store), head, size_kv_store, NULL, fill_numbers, call_kv_store);
static const fr_bench_kind kind_argmax = KIND(SIZE_MAX, logits, size_argmax, NULL, fill_numbers, call_argmax);
static const fr_bench_kind kind_topk = KIND(SIZE_MAX, clusters, size_topk, NULL, fill_numbers, call_topk);
static const fr_bench_kind kind_rmsnorm = ARRAY(hidden, fill_numbers, apply_rmsnorm, 3);
static const fr_bench_kind kind_layernorm = ARRAY(hidden, fill_numbers, apply_layernorm, 3);
static const fr_bench_kind kind_rope = ARRAY(head, fill_angles, apply_rope, 3);
static const fr_bench_kind kind_gelu_mul = ARRAY(inner, fill_numbers, apply_two, 3);
static const fr_bench_kind kind_gelu_erf = ARRAY(inner, fill_numbers, apply_one, 2);
static const fr_bench_kind kind_silu_mul = ARRAY(inner, fill_numbers, apply_two, 3);
static const fr_bench_kind kind_clamped_swiglu = ARRAY(inner, fill_numbers, apply_clamped, 3);
static const fr_bench_kind kind_sigmoid_mul = ARRAY(inner, fill_numbers, apply_two, 3);
static const fr_bench_kind kind_softcap = ARRAY(logits, fill_numbers, apply_softcap, 2);
static const fr_bench_kind kind_add = ARRAY(hidden, fill_numbers, apply_one, 3);
static const fr_bench_kind kind_scale = ARRAY(hidden, fill_numbers, apply_scale, 2);
static const fr_bench_kind kind_div = ARRAY(hidden, fill_numbers, apply_scale, 2);
static const fr_bench_kind kind_mul = ARRAY(hidden, fill_signs, apply_one, 3);
static const fr_bench_kind kind_axpy = ARRAY(hidden, fill_numbers, apply_axpy, 3);
static const fr_bench_kind kind_hadamard = ARRAY(hidden, fill_signs, apply_hadamard, 3);
static const fr_bench_kind kind_exp = ARRAY(inner, fill_numbers, apply_one, 2);
static const fr_bench_kind kind_tanh = ARRAY(inner, fill_numbers, apply_one, 2);

const fr_bench_kernel fr_bench_kernels[] = {
#define FR_KERNEL(level, kind, slot, function) \
    {#function, level, (fr_bench_function *)(function), offsetof(fr_kernels, slot), &kind_##kind},
#define FR_TWIN_KERNEL(...) /* empty: a kernel that two types use is listed only for the first type */
#include "kernels/kernels.def"
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#define FR_TWIN_KERNEL(...) /* defined again, because block_kernels.def undefines it */
#include "kernels/amx_kernels.def"
#undef FR_KERNEL
};

const size_t fr_bench_kernel_count = COUNT(fr_bench_kernels);

/* ----------------------------------------------------------------------------------------------------------- cases */

size_t fr_bench_shapes(const fr_bench_kernel *kernel, const fr_bench_shape **shapes) {
    *shapes = kernel->kind->shapes;
    return kernel->kind->shape_count;
}

static size_t row_bytes(const fr_bench_case *c) {
    if (c->type == FR_STORED) return c->tiles.tile_bytes / FR_TILE_FEATURES;
    return fr_dtype_row_bytes(c->type, c->cols);
}

fr_bench_case fr_bench_case_make(const fr_bench_kernel *kernel, const fr_bench_shape *shape, size_t rows,
                                 size_t threads, size_t room) {
    const fr_bench_kind *kind = kernel->kind;
    fr_bench_case c = {kind, shape->type, .rows = rows, .features = shape->features, .cols = shape->cols};
    bool partitioned = shape->group == FR_BENCH_STREAMED && shape->most_rows > 0;
    size_t slot = kind->first_slot != SIZE_MAX ? (kernel->slot - kind->first_slot) / sizeof(void *) : 0;
    if (kind == &kind_matmul_grouped)
        choose_grouped(&c, slot);
    else if (kind->first_slot != SIZE_MAX)
        c.type = (fr_dtype)slot;
    size_t share = threads * FR_TILE_FEATURES;
    if (partitioned) c.features = (c.features + share - 1) / share * FR_TILE_FEATURES;
    if (shape->group == FR_BENCH_CACHED)
        c.features = CACHED_BYTES / row_bytes(&c) / FR_TILE_FEATURES * FR_TILE_FEATURES;
    c.units = 1;
    kind->size(&c);
    if (c.stream_bytes <= room) return c;
    c.features = (size_t)((double)c.features * (double)room / (double)c.stream_bytes) / CUT * CUT;
    kind->size(&c);
    return c;
}

void fr_bench_case_name(const fr_bench_case *c, size_t units, size_t threads, char *text, size_t size) {
    if (c->units > 1)
        snprintf(text, size, "%zu x %zu", c->features / c->units * units * threads, c->cols);
    else if (c->kind->size == size_attn)
        snprintf(text, size, "%s, %zu x %zu", fr_dtype_name(c->type), c->features, c->cols);
    else if (c->kind->size == size_gather)
        snprintf(text, size, "%d of %zu x %zu", GATHERED, c->features, c->cols);
    else if (c->kind->size == size_deltanet)
        snprintf(text, size, "%d of %zu x %zu", TOKENS, c->features, c->cols);
    else
        snprintf(text, size, "%zu", c->cols);
}

void fr_bench_fill_stream(const fr_bench_case *c, uint8_t *stream) {
    if (c->kind->fill_stream) c->kind->fill_stream(c, stream);
}

void fr_bench_fill_input(const fr_bench_case *c, void *input) {
    c->kind->fill_input(c, input);
}

/* Fills the output. Kernels on arrays may work in place, so they get ordinary numbers. A product overwrites its output,
 * so it gets invalid numbers. */
void fr_bench_fill_output(const fr_bench_case *c, void *output) {
    if (c->units == 1)
        fill_floats(output, c->output_bytes / sizeof(float), 4);
    else
        memset(output, 0xff, c->output_bytes);
}

void fr_bench_call(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                   size_t units) {
    c->kind->call(c, function, o, first, units);
}

/* Gives the distance between the units of a product that are checked. Only some units of a large product are checked,
 * because the scalar definition is slow. */
static size_t stride_of(const fr_bench_case *c) {
    double affordable = 4e6 / (c->macs / (double)c->units);
    return affordable >= (double)c->units ? 1 : affordable < 1 ? c->units : (size_t)((double)c->units / affordable);
}

void fr_bench_define(const fr_bench_case *c, const fr_bench_kernel *kernel, const fr_bench_operands *o,
                     void *expected) {
    const fr_bench_kernel *definition = fr_bench_kernels;
    while (definition->slot != kernel->slot) definition++;
    fr_bench_operands there = *o;
    there.output = expected;
    fr_bench_fill_output(c, expected);
    for (size_t unit = 0; unit < c->units; unit += stride_of(c))
        fr_bench_call(c, definition->function, &there, unit, 1);
}

bool fr_bench_same_bits(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t units,
                        const void *expected) {
    fr_bench_fill_output(c, o->output);
    fr_bench_call(c, function, o, 0, units);
    if (c->units == 1) return memcmp(o->output, expected, c->output_bytes) == 0;
    const float *y = o->output, *wanted = expected;
    for (size_t unit = 0; unit < units; unit += stride_of(c))
        for (size_t r = 0; r < c->rows; r++) {
            size_t at = r * c->features + unit * FR_TILE_FEATURES;
            if (memcmp(y + at, wanted + at, FR_TILE_FEATURES * sizeof *y) != 0) return false;
        }
    return true;
}
