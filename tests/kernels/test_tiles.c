/* Tests the emulation of AMX's instructions (tests/emulated). It must do what Intel's manual says about sums that wrap
 * around, signed and unsigned bytes, and tiles that are smaller than their registers. */
/* suite: links=tiles native no-valgrind */
#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu.h"
#include "tests/emulated/tiles.h"
#include "tests/support/block_cases.h"
#include "tests/support/suite.h"

enum { ROWS = 16, BYTES = 64, SUMS = 0, LEFT = 4, RIGHT = 6 };

/* The sizes of a product: the left tile has m rows, the right tile has k rows, and the tile of sums has n columns. */
typedef struct product {
    unsigned m, k, n;
} product;

static void configure(product of) {
    fr_tile_shapes shapes = {.palette = 1};
    shapes.rows[SUMS] = shapes.rows[LEFT] = (uint8_t)of.m;
    shapes.row_bytes[SUMS] = shapes.row_bytes[RIGHT] = (uint16_t)(4 * of.n);
    shapes.row_bytes[LEFT] = (uint16_t)(4 * of.k);
    shapes.rows[RIGHT] = (uint8_t)of.k;
    fr_emulated_ldtilecfg(&shapes);
}

static void fill(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)fr_random_bits();
}

/* By the manual, the sums are those of a product of two matrices. The left matrix is the left tile, with m rows and 4k
 * columns. The right matrix has 4k rows and n columns. Its element in row 4r + i and column c is byte 4c + i of row r
 * of the right tile. */
static void check_product(product of, bool right_signed) {
    uint8_t left[ROWS * BYTES], right[ROWS * BYTES];
    int32_t sums[ROWS * BYTES / 4], got[ROWS * BYTES / 4], untouched = -7;
    fill(left, sizeof left);
    fill(right, sizeof right);
    fill((uint8_t *)sums, sizeof sums);
    for (size_t i = 0; i < ROWS * BYTES / 4; i++) got[i] = untouched;
    configure(of);
    fr_emulated_tileloadd(SUMS, sums, BYTES);
    fr_emulated_tileloadd(LEFT, left, BYTES);
    fr_emulated_tileloadd(RIGHT, right, BYTES);
    if (right_signed)
        fr_emulated_tdpbssd(SUMS, LEFT, RIGHT);
    else
        fr_emulated_tdpbsud(SUMS, LEFT, RIGHT);
    fr_emulated_tilestored(SUMS, got, BYTES);
    for (unsigned m = 0; m < ROWS; m++)
        for (unsigned n = 0; n < BYTES / 4; n++) {
            int64_t sum = sums[m * BYTES / 4 + n];
            for (unsigned c = 0; c < 4 * of.k; c++) {
                uint8_t byte = right[c / 4 * BYTES + 4 * n + c % 4];
                int a = left[m * BYTES + c] > 127 ? left[m * BYTES + c] - 256 : left[m * BYTES + c];
                sum += (int64_t)a * (right_signed && byte > 127 ? byte - 256 : byte);
            }
            if (sum > INT32_MAX) sum -= (int64_t)1 << 32;
            if (sum < INT32_MIN) sum += (int64_t)1 << 32;
            bool inside = m < of.m && n < of.n;
            ck_assert_int_eq(got[m * BYTES / 4 + n], inside ? (int32_t)sum : untouched);
        }
}

START_TEST(products_are_those_of_matrices) {
    static const product shapes[] = {{16, 16, 16}, {16, 8, 16}, {16, 4, 16}, {1, 1, 1}, {7, 3, 11}, {16, 1, 5}};
    fr_random_start(1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int repeat = 0; repeat < 50; repeat++) check_product(shapes[i], repeat % 2);
}
END_TEST

/* The largest possible sums: 64 products of -128 and -128, of 127 and -128, or of -128 and 255. */
START_TEST(bytes_have_their_signs) {
    uint8_t left[ROWS * BYTES], right[ROWS * BYTES];
    int32_t got[ROWS * BYTES / 4];
    memset(left, 0x80, sizeof left);
    memset(right, 0x80, sizeof right);
    configure((product){16, 16, 16});
    fr_emulated_tileloadd(LEFT, left, BYTES);
    fr_emulated_tileloadd(RIGHT, right, BYTES);
    fr_emulated_tdpbssd(SUMS, LEFT, RIGHT);
    fr_emulated_tilestored(SUMS, got, BYTES);
    ck_assert_int_eq(got[0], 64 * 128 * 128);
    fr_emulated_tilezero(SUMS);
    fr_emulated_tdpbsud(SUMS, LEFT, RIGHT);
    fr_emulated_tilestored(SUMS, got, BYTES);
    ck_assert_int_eq(got[255], 64 * -128 * 128);
}
END_TEST

/* If a tile is loaded only in part, the rest of it becomes zero. If a tile is configured again, all of it becomes
 * zero. */
START_TEST(loads_and_configurations_leave_zeros) {
    uint8_t ones[ROWS * BYTES], got[ROWS * BYTES];
    memset(ones, 1, sizeof ones);
    configure((product){16, 16, 16});
    fr_emulated_tileloadd(SUMS, ones, BYTES);
    configure((product){16, 16, 16});
    fr_emulated_tilestored(SUMS, got, BYTES);
    for (size_t i = 0; i < sizeof got; i++) ck_assert_int_eq(got[i], 0);
    /* the rows are loaded from the last to the first */
    fr_emulated_tileloadd(SUMS, ones + sizeof ones - BYTES, -BYTES);
    fr_emulated_tilestored(SUMS, got, BYTES);
    ck_assert_mem_eq(got, ones, sizeof got);
}
END_TEST

START_TEST(unconfigured_tiles_end_the_program) {
    fr_emulated_tilerelease();
    fr_emulated_tilezero(SUMS);
}
END_TEST

START_TEST(shapes_that_do_not_match_end_the_program) {
    fr_tile_shapes shapes = {.palette = 1, .rows = {16, [LEFT] = 16, [RIGHT] = 8}};
    shapes.row_bytes[SUMS] = shapes.row_bytes[RIGHT] = 64;
    shapes.row_bytes[LEFT] = 64;
    fr_emulated_ldtilecfg(&shapes);
    fr_emulated_tdpbssd(SUMS, LEFT, RIGHT);
}
END_TEST

START_TEST(the_machine_has_amx_where_it_has_what_amx_builds_on) {
    unsigned here = fr_cpu_levels();
    ck_assert_uint_eq(here >> FR_ISA_AMX & 1, here >> FR_ISA_AVX512VNNI & 1);
}
END_TEST

FR_SUITE("tiles") {
    TCase *cases = tcase_create("instructions");
    tcase_add_test(cases, products_are_those_of_matrices);
    tcase_add_test(cases, bytes_have_their_signs);
    tcase_add_test(cases, loads_and_configurations_leave_zeros);
    tcase_add_test_raise_signal(cases, unconfigured_tiles_end_the_program, SIGABRT);
    tcase_add_test_raise_signal(cases, shapes_that_do_not_match_end_the_program, SIGABRT);
    tcase_add_test(cases, the_machine_has_amx_where_it_has_what_amx_builds_on);
    suite_add_tcase(suite, cases);
}
