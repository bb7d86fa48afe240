/* Tests that every block type of GGUF is decoded to the same bits as by the gguf Python package
 * (tests/references/block_types.py).
 *
 * tests/data/blocks/TYPE.bin has, in this order: u32 count; u32 length; u64 hash; `count` blocks; the values of these
 * blocks as float32. The hash is computed from the values of `length` other blocks, which are made of noise. Any NaN is
 * equal to any other NaN. */
/* suite: hostile */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/block_types.h"
#include "quant/packed.h"
#include "tests/support/block_reference.h"
#include "tests/support/suite.h"

enum { HEAD_BYTES = 16, BYTES_MAX = 1 << 20 };

/* The file of one type. */
typedef struct table {
    fr_dtype type;
    uint32_t count, length;
    uint64_t hash;
    size_t block, block_bytes;
    uint8_t *file;
    const uint8_t *blocks;
    const uint8_t *expected;
} table;

static void open_table(table *t, fr_dtype type) {
    char path[64];
    snprintf(path, sizeof path, "tests/data/blocks/%s.bin", fr_dtype_name(type));
    FILE *file = fopen(path, "rb");
    if (file == NULL) ck_abort_msg("%s is missing", path);
    *t = (table){.type = type, .block = fr_dtype_block(type), .file = malloc(BYTES_MAX)};
    t->block_bytes = fr_dtype_row_bytes(type, t->block);
    size_t size = fread(t->file, 1, BYTES_MAX, file);
    fclose(file);
    ck_assert_uint_gt(size, HEAD_BYTES);
    memcpy(&t->count, t->file, 4);
    memcpy(&t->length, t->file + 4, 4);
    memcpy(&t->hash, t->file + 8, 8);
    ck_assert_uint_gt(t->count, 1);
    ck_assert_uint_eq(size, HEAD_BYTES + t->count * (t->block_bytes + t->block * sizeof(float)));
    t->blocks = t->file + HEAD_BYTES;
    t->expected = t->blocks + t->count * t->block_bytes;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7FC00000 : bits;
}

static void check_values(const table *t, const float *got, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float expected;
        memcpy(&expected, t->expected + (first + i) * sizeof expected, sizeof expected);
        if (bits_of(got[i]) != bits_of(expected))
            ck_abort_msg("%s block %zu column %zu: %a, not %a", fr_dtype_name(t->type), (first + i) / t->block,
                         (first + i) % t->block, (double)got[i], (double)expected);
    }
}

START_TEST(explicit_values) {
    table t;
    open_table(&t, (fr_dtype)_i);
    size_t cols = t.count * t.block;
    float *got = malloc(cols * sizeof *got);
    fr_dtype_decode(t.type, t.blocks, got, cols);
    check_values(&t, got, 0, cols);
    free(got);
    free(t.file);
}
END_TEST

/* Decodes rows that begin at every alignment and end where their allocation ends, so that sanitizers find reads past
 * the end. Bytes after the decoded values must stay unchanged. */
START_TEST(every_alignment) {
    table t;
    open_table(&t, (fr_dtype)_i);
    for (size_t shift = 0; shift < 8; shift++)
        for (size_t rows = 0; rows < 3; rows++) {
            size_t bytes = rows * t.block_bytes, cols = rows * t.block, first = t.count - rows;
            uint8_t *source = malloc(shift + bytes + (shift + bytes == 0));
            float *target = malloc((cols + 1) * sizeof *target);
            memcpy(source + shift, t.blocks + first * t.block_bytes, bytes);
            target[cols] = 77;
            fr_dtype_decode(t.type, source + shift, target, cols);
            check_values(&t, target, first * t.block, cols);
            ck_assert(target[cols] == 77);
            free(target);
            free(source);
        }
    fr_dtype_decode(t.type, NULL, NULL, 0);
    free(t.file);
}
END_TEST

/* Returns the next byte of noise. It comes from Knuth's 64-bit linear congruential generator for MMIX. */
static uint8_t noise(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*state >> 56);
}

/* Computes a hash of the values of many blocks of noise and compares it with the hash in the file. The hash is FNV-1a,
 * but over words instead of bytes. */
START_TEST(hash_of_noise) {
    table t;
    open_table(&t, (fr_dtype)_i);
    uint64_t state = 0, hash = 0xCBF29CE484222325;
    uint8_t *block = malloc(t.block_bytes);
    float *got = malloc(t.block * sizeof *got);
    for (size_t b = 0; b < t.length; b++) {
        for (size_t i = 0; i < t.block_bytes; i++) block[i] = noise(&state);
        fr_dtype_decode(t.type, block, got, t.block);
        for (size_t i = 0; i < t.block; i++) hash = (hash ^ bits_of(got[i])) * 0x100000001B3;
    }
    if (hash != t.hash) ck_abort_msg("%s: the values of %u blocks differ", fr_dtype_name(t.type), t.length);
    free(got);
    free(block);
    free(t.file);
}
END_TEST

/* Other suites test kernels with fr_block_reference. It must give the product of the decoded weights and the row, apart
 * from rounding. */
START_TEST(reference_product) {
    enum { RUN = 32, RUNS_MAX = 8 };
    table t;
    open_table(&t, (fr_dtype)_i);
    uint64_t state = 5;
    fr_qblock x[RUNS_MAX];
    float *w = malloc(t.block * sizeof *w), got;
    for (size_t b = 0; b < t.count; b++) {
        const uint8_t *block = t.blocks + b * t.block_bytes;
        double sum = 0, size = 0;
        fr_dtype_decode(t.type, block, w, t.block);
        for (size_t c = 0; c < t.block; c++) {
            fr_qblock *run = &x[c / RUN];
            if (c % RUN == 0) *run = (fr_qblock){.d = 0.625f};
            run->q[c % RUN] = (int8_t)noise(&state);
            run->sum += run->q[c % RUN];
            run->dsum = run->d * (float)run->sum;
            sum += (double)w[c] * 0.625 * run->q[c % RUN];
            size += fabs((double)w[c] * 0.625 * run->q[c % RUN]);
        }
        fr_block_reference(&got, t.type, block, x, t.block);
        if (size < 0x1p120 && fabs((double)got - sum) > 1e-6 * size)
            ck_abort_msg("%s block %zu: %a, not %a", fr_dtype_name(t.type), b, (double)got, sum);
    }
    free(w);
    free(t.file);
}
END_TEST

/* Kernels use tables of code values. The tables must have the same values as decoding. In a block with scale 1.0, each
 * code decodes to its own value. For MXFP4 the scale is 2.0 here, because its table has doubled values. */
START_TEST(code_values) {
    for (fr_dtype type = FR_F32; type <= FR_DTYPE_COUNT; type++) {
        const int8_t *values = fr_code_values(type);
        bool of_4_bits = type == FR_IQ4_NL || type == FR_IQ4_XS || type == FR_MXFP4 || type == FR_NVFP4;
        bool of_grid = type >= FR_IQ2_XXS && type <= FR_IQ1_M;
        ck_assert_int_eq(values != NULL, of_4_bits || of_grid);
        if (!of_4_bits || type == FR_IQ4_XS || type == FR_NVFP4) continue;
        uint8_t block[18] = {0, 0x3C};
        uint8_t *codes = block + 2;
        if (type == FR_MXFP4) {
            block[0] = 128;
            codes = block + 1;
        }
        float got[32];
        for (unsigned i = 0; i < 16; i++) codes[i] = (uint8_t)i;
        fr_dtype_decode(type, block, got, 32);
        for (unsigned i = 0; i < 16; i++) ck_assert(got[i] == (float)values[i]);
    }
    ck_assert_ptr_eq(fr_code_values(FR_IQ4_XS), fr_code_values(FR_IQ4_NL));
    ck_assert_ptr_eq(fr_code_values(FR_NVFP4), fr_code_values(FR_MXFP4));
}
END_TEST

/* Kernels step through tiles by fixed sizes. These must be the sizes of the types' tiles. */
START_TEST(a_tile_is_as_long_as_its_rows) {
    static const struct {
        fr_dtype type;
        size_t cols, bytes;
    } tiles[] = {
#define TILE(type, word, ...) {type, 32 * FR_RUNS_##word, FR_TILE_BYTES_##word},
        FR_BLOCK_TYPES(TILE)
#undef TILE
    };
    const size_t count = sizeof tiles / sizeof *tiles;
    ck_assert_uint_eq(count, FR_KERNEL_TYPES - FR_FLOAT_TYPES);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(tiles[i].cols, fr_tile_block(tiles[i].type));
        ck_assert_uint_eq(fr_dtype_block(tiles[i].type) % tiles[i].cols, 0);
        ck_assert_uint_eq(tiles[i].bytes, fr_packed_bytes(tiles[i].type, FR_TILE_FEATURES, tiles[i].cols));
    }
}
END_TEST

FR_SUITE("block_types") {
    TCase *cases = tcase_create("block_types");
    suite_add_tcase(suite, cases);
    tcase_add_loop_test(cases, explicit_values, 0, FR_KERNEL_TYPES);
    tcase_add_loop_test(cases, every_alignment, 0, FR_KERNEL_TYPES);
    tcase_add_loop_test(cases, hash_of_noise, 0, FR_KERNEL_TYPES);
    tcase_add_loop_test(cases, reference_product, FR_FLOAT_TYPES, FR_KERNEL_TYPES);
    tcase_add_test(cases, code_values);
    tcase_add_test(cases, a_tile_is_as_long_as_its_rows);
    tcase_set_timeout(cases, 60);
}
