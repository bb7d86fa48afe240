/* Tests turbo4 and turbo3, two types in which the KV cache stores keys and values. The rotation, the codes and the
 * scales must be those of a float64 reference (tests/references/turbo.py). The error must be within the bound that
 * TurboQuant's paper proves. Every instruction set must rotate to the same bits. Latents, and heads whose width is not
 * a multiple of 32, must be refused. */
/* suite: quick neon */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "forerun_lab.h"
#include "kernels/dispatch.h"
#include "kernels/turbo.h"
#include "src/engine/cache/kv.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { WIDEST = 1024, BLOCK = FR_TURBO_BLOCK };

static const fr_dtype both[] = {FR_TURBO4, FR_TURBO3};

/* Returns the kernels of the index-th instruction set that this machine has. Returns NULL if the machine has fewer. */
static const fr_kernels *kernels_of(size_t index) {
    const fr_kernels *kernels = NULL;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i)) || index-- > 0) continue;
        require(fr_kernels_select(fr_lab_word(FR_LAB_ISA, i), &kernels));
        return kernels;
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- the float64 reference */

typedef struct head {
    int32_t n;
    float x[WIDEST];
    double rotated[WIDEST];
    uint8_t codes[2][WIDEST];
    double scales[2][WIDEST / BLOCK];
} head;

static void read_exactly(FILE *file, void *to, size_t bytes) {
    ck_assert_uint_eq(fread(to, 1, bytes, file), bytes);
}

static bool read_head(FILE *file, head *h) {
    if (fread(&h->n, sizeof h->n, 1, file) != 1) return false;
    size_t n = (size_t)h->n;
    ck_assert(n <= WIDEST && n % BLOCK == 0);
    read_exactly(file, h->x, n * sizeof *h->x);
    read_exactly(file, h->rotated, n * sizeof *h->rotated);
    for (size_t t = 0; t < 2; t++) {
        read_exactly(file, h->codes[t], n);
        read_exactly(file, h->scales[t], n / BLOCK * sizeof **h->scales);
    }
    return true;
}

/* Returns the code of value i of a block, in the layout that turbo.h describes. */
static unsigned code_at(fr_dtype type, const uint8_t *block, size_t i) {
    if (type == FR_TURBO4) return block[2 + i % 16] >> (i / 16 * 4) & 15;
    return (block[2 + i % 8] >> (i / 8 * 2) & 3) | (unsigned)(block[10 + i / 8] >> (i % 8) & 1) << 2;
}

/* Compares the codes and scales of a stored head with the reference. Then compares the decoded values with code times
 * scale. */
static void check_stored(const head *h, size_t t, const uint8_t *row) {
    static const int magnitudes[2][8] = {{5, 15, 25, 36, 48, 62, 79, 104}, {10, 31, 55, 88}};
    size_t n = (size_t)h->n, bytes = t == 0 ? 18 : 14;
    unsigned count = t == 0 ? 8 : 4;
    float y[WIDEST];
    fr_dtype_decode(both[t], row, y, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *block = row + i / BLOCK * bytes;
        unsigned code = code_at(both[t], block, i % BLOCK);
        uint16_t half;
        memcpy(&half, block, sizeof half);
        float d = fr_f32_from_f16(half);
        double scale = h->scales[t][i / BLOCK];
        ck_assert_msg(code == h->codes[t][i], "head of %zu, value %zu: code %u, not %d", n, i, code, h->codes[t][i]);
        ck_assert_msg(fabs((double)d - scale) <= 0x1.01p-11 * scale + 0x1p-25, "head of %zu: scale %g, not %g", n,
                      (double)d, scale);
        int value = magnitudes[t][code % count] * (code < count ? 1 : -1);
        ck_assert(y[i] == d * (float)value);
    }
}

START_TEST(heads_are_those_of_a_float64_reference) {
    static head h;
    const fr_kernels *kernels;
    for (size_t isa = 0; (kernels = kernels_of(isa)); isa++) {
        FILE *file = fopen("tests/data/turbo/heads.bin", "rb");
        size_t heads = 0;
        ck_assert_ptr_nonnull(file);
        for (; read_head(file, &h); heads++) {
            float x[WIDEST];
            double largest = 0;
            uint8_t row[WIDEST];
            size_t n = (size_t)h.n;
            memcpy(x, h.x, n * sizeof *x);
            fr_turbo_rotate(kernels, x, n);
            for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(h.rotated[i]));
            for (size_t i = 0; i < n; i++)
                ck_assert_msg(fabs((double)x[i] - h.rotated[i]) <= 1e-6 * largest, "%s: %g, not %g", kernels->isa,
                              (double)x[i], h.rotated[i]);
            for (size_t t = 0; t < 2; t++) {
                fr_turbo_store(both[t], row, x, n);
                check_stored(&h, t, row);
            }
        }
        fclose(file);
        ck_assert_uint_eq(heads, 24);
    }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- errors */

static uint32_t state = 1;

static double random_value(void) {
    state = state * 1664525u + 1013904223u;
    return ((double)(state >> 8) + 0.5) / 0x1p24;
}

static double random_normal(void) {
    return sqrt(-2 * log(random_value())) * cos(6.283185307179586 * random_value());
}

typedef enum spread { NORMAL, UNIFORM, OUTLIERS, SPARSE, SHIFTED, SPREADS } spread;

static void fill(spread kind, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double value = kind == UNIFORM ? random_value() - 0.5 : random_normal();
        if (kind == OUTLIERS && random_value() < 0.02) value *= 30;
        if (kind == SPARSE && random_value() < 0.9) value = 0;
        x[i] = (float)(kind == SHIFTED ? value + 3 : value);
    }
    if (kind == SPARSE) x[0] = 1;
}

/* Checks the bound of the paper's first theorem: the expected squared error of a head is at most sqrt(3) pi / 2 /
 * 4^bits of the head's squared length. Here `bits` is the number of bits of a code. For normally distributed numbers
 * the error must also be at least 4^-(bits + 1/2), because no code that spends bits + 1/2 bits on a number has a
 * smaller error. The additional half bit is a number's share of the scale, which has 16 bits for 32 numbers. */
START_TEST(the_error_is_within_the_papers_bound) {
    static const size_t widths[] = {64, 96, 128, 256, 512};
    const fr_kernels *kernels = kernels_of(0);
    for (size_t t = 0; t < 2; t++)
        for (spread kind = 0; kind < SPREADS; kind++)
            for (size_t w = 0; w < 5; w++) {
                double error = 0, bits = t == 0 ? 4 : 3;
                enum { HEADS = 300 };
                for (size_t repeat = 0; repeat < HEADS; repeat++) {
                    float x[WIDEST], rotated[WIDEST], y[WIDEST];
                    uint8_t row[WIDEST];
                    double square = 0, off = 0;
                    size_t n = widths[w];
                    fill(kind, x, n);
                    memcpy(rotated, x, n * sizeof *x);
                    fr_turbo_rotate(kernels, rotated, n);
                    fr_turbo_store(both[t], row, rotated, n);
                    fr_dtype_decode(both[t], row, y, n);
                    fr_turbo_rotate_back(kernels, y, n);
                    for (size_t i = 0; i < n; i++) {
                        square += (double)x[i] * (double)x[i];
                        off += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
                    }
                    error += off / square / HEADS;
                }
                double bound = sqrt(3) * 3.141592653589793 / 2 * pow(4, -bits);
                ck_assert_msg(error <= bound && (kind != NORMAL || error >= pow(4, -bits - 0.5)),
                              "%g bits, kind %d, heads of %zu: an error of %g, the bound is %g", bits, (int)kind,
                              widths[w], error, bound);
            }
}
END_TEST

/* A block's scale is chosen so that the dot product of the original block with the stored block is the original's
 * squared length. */
START_TEST(lengths_are_kept) {
    for (size_t t = 0; t < 2; t++)
        for (size_t repeat = 0; repeat < 1000; repeat++) {
            float x[BLOCK], y[BLOCK];
            uint8_t row[BLOCK];
            double square = 0, dot = 0;
            fill((spread)(repeat % SPREADS), x, BLOCK);
            fr_turbo_store(both[t], row, x, BLOCK);
            fr_dtype_decode(both[t], row, y, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) {
                square += (double)x[i] * (double)x[i];
                dot += (double)x[i] * (double)y[i];
            }
            ck_assert_msg(fabs(dot / square - 1) < 0x1.1p-11, "%g of the squared length", dot / square);
        }
}
END_TEST

START_TEST(every_instruction_set_rotates_alike) {
    static const size_t widths[] = {32, 64, 96, 128, 160, 192, 256, 512, 1024};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (spread kind = 0; kind < SPREADS; kind++) {
            float x[WIDEST], there[2][WIDEST], back[2][WIDEST];
            const fr_kernels *kernels;
            size_t n = widths[w];
            fill(kind, x, n);
            for (size_t isa = 0; (kernels = kernels_of(isa)); isa++) {
                size_t at = isa > 0;
                memcpy(there[at], x, n * sizeof *x);
                fr_turbo_rotate(kernels, there[at], n);
                memcpy(back[at], there[at], n * sizeof *x);
                fr_turbo_rotate_back(kernels, back[at], n);
                ck_assert_msg(memcmp(there[0], there[at], n * sizeof *x) == 0, "%s: heads of %zu", kernels->isa, n);
                ck_assert_msg(memcmp(back[0], back[at], n * sizeof *x) == 0, "%s: heads of %zu", kernels->isa, n);
                for (size_t i = 0; i < n; i++) ck_assert(fabsf(back[at][i] - x[i]) < 2e-5F);
            }
        }
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- special heads */

START_TEST(what_does_not_fit_is_not_finite) {
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e30F, -1e30F, 1e15F};
    for (size_t t = 0; t < 2; t++)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            float x[BLOCK], y[BLOCK];
            uint8_t row[BLOCK];
            for (size_t i = 0; i < BLOCK; i++) x[i] = i == 17 ? bad[b] : 1;
            fr_turbo_store(both[t], row, x, BLOCK);
            fr_dtype_decode(both[t], row, y, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) ck_assert_msg(!isfinite(y[i]), "%g", (double)bad[b]);
        }
}
END_TEST

START_TEST(nothing_is_stored_as_nothing) {
    for (size_t t = 0; t < 2; t++)
        for (int tiny = 0; tiny < 2; tiny++) {
            float x[BLOCK] = {0}, y[BLOCK];
            uint8_t row[BLOCK];
            x[5] = tiny ? -1e-30F : 0;
            fr_turbo_store(both[t], row, x, BLOCK);
            fr_dtype_decode(both[t], row, y, BLOCK);
            for (size_t i = 0; i < BLOCK; i++) ck_assert(y[i] == 0);
        }
}
END_TEST

START_TEST(latents_and_odd_widths_are_refused) {
    const fr_kv_shape latents = {.heads = 1, .head_dim = 576, .latent = 512}, odd = {.heads = 2, .head_dim = 80};
    const fr_kv_types keys = {FR_TURBO4, FR_F16}, values = {FR_F16, FR_TURBO3};
    ck_assert_int_eq(fr_kv_check(&latents, 1, (fr_kv_types){FR_TURBO3, FR_TURBO3}), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "latents can't be cached as turbo3, only keys and values of heads can");
    ck_assert_int_eq(fr_kv_check(&odd, 1, keys), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "keys of type turbo4 need heads that are multiples of 32 wide, this model has "
                                      "some of 80");
    ck_assert_int_eq(fr_kv_check(&odd, 1, values), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "values of type turbo3"), "%s", fr_last_error());
    ck_assert(fr_kv_drafter_types(&odd, 1, keys).k == FR_F16);
}
END_TEST

FR_SUITE("turbo") {
    TCase *cases = tcase_create("heads");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, heads_are_those_of_a_float64_reference);
    tcase_add_test(cases, the_error_is_within_the_papers_bound);
    tcase_add_test(cases, lengths_are_kept);
    tcase_add_test(cases, every_instruction_set_rotates_alike);
    tcase_add_test(cases, what_does_not_fit_is_not_finite);
    tcase_add_test(cases, nothing_is_stored_as_nothing);
    tcase_add_test(cases, latents_and_odd_widths_are_refused);
    suite_add_tcase(suite, cases);
}
