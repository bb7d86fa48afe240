/* Tests base/arena. A block of the measured size must have room for all allocations. The allocations must be aligned
 * and must not overlap. Sizes that would overflow must be refused. */
#include "base/arena.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"

static bool all_are(const uint8_t *bytes, size_t count, int value) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != value) return false;
    }
    return true;
}

static const size_t sizes[] = {1, 63, 64, 65, 0, 4096, 1, 100003, 0, 7};
#define PIECES (sizeof sizes / sizeof *sizes)

START_TEST(measured_pieces_fit) {
    fr_arena measured = {0}, arena;
    for (size_t i = 0; i < PIECES; i++) ck_assert_ptr_null(fr_arena_take(&measured, sizes[i], 3));
    ck_assert_uint_eq(fr_arena_open(&arena, measured.used, "pieces"), FR_OK);

    uint8_t *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = fr_arena_take(&arena, sizes[i], 3);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % 64, 0);
        ck_assert(all_are(pieces[i], 3 * sizes[i], 0));
        memset(pieces[i], (int)i + 1, 3 * sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) ck_assert(all_are(pieces[i], 3 * sizes[i], (int)i + 1));
    ck_assert_uint_eq(arena.used, measured.used);
    ck_assert(!arena.overflow);

    ck_assert_ptr_null(fr_arena_take(&arena, 1, 1));
    ck_assert(arena.overflow);
    fr_arena_close(&arena);
    ck_assert_ptr_null(arena.base);
    fr_arena_close(&arena);
}
END_TEST

START_TEST(empty) {
    fr_arena arena;
    ck_assert_uint_eq(fr_arena_open(&arena, 0, "nothing"), FR_OK);
    ck_assert_ptr_nonnull(arena.base);
    ck_assert_ptr_nonnull(fr_arena_take(&arena, 0, 8));
    ck_assert_ptr_null(fr_arena_take(&arena, 1, 1));
    fr_arena_close(&arena);
}
END_TEST

/* Each case overflows in exactly one operation: in the product, in rounding up to 64, or in the sum. */
static const struct {
    size_t before, count, item;
} huge[] = {{0, SIZE_MAX, 2}, {0, SIZE_MAX / 2 + 1, 2}, {0, SIZE_MAX - 5, 1}, {128, SIZE_MAX - 127, 1}};

START_TEST(overflow_is_refused) {
    fr_arena measured = {0}, arena;
    fr_arena_take(&measured, huge[_i].before, 1);
    ck_assert(!measured.overflow);
    ck_assert_ptr_null(fr_arena_take(&measured, huge[_i].count, huge[_i].item));
    ck_assert(measured.overflow);
    fr_arena_take(&measured, 1, 1);
    ck_assert(measured.overflow);
    ck_assert_uint_eq(measured.used, SIZE_MAX);

    ck_assert_uint_eq(fr_arena_open(&arena, measured.used, "a session of everything"), FR_MEMORY);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "a session of everything"));
    ck_assert_ptr_null(arena.base);
    fr_arena_close(&arena);

    ck_assert_uint_eq(fr_arena_open(&arena, 256, "some"), FR_OK);
    ck_assert_ptr_nonnull(fr_arena_take(&arena, huge[_i].before, 1));
    ck_assert_ptr_null(fr_arena_take(&arena, huge[_i].count, huge[_i].item));
    ck_assert(arena.overflow);
    fr_arena_close(&arena);
}
END_TEST

/* The system provides a page of memory only when the page is first written. So if only a small part of a large block is
 * used, the rest costs nothing. */
START_TEST(large_blocks_are_sparse) {
    fr_arena arena;
    ck_assert_uint_eq(fr_arena_open(&arena, (size_t)1 << 30, "a gigabyte"), FR_OK);
    uint8_t *first = fr_arena_take(&arena, 1 << 20, 1), *rest = fr_arena_take(&arena, 1023 << 20, 1);
    first[0] = rest[0] = rest[((size_t)1023 << 20) - 1] = 1;
    ck_assert_ptr_null(fr_arena_take(&arena, 1, 1));
    fr_arena_close(&arena);
}
END_TEST

FR_SUITE("arena") {
    TCase *cases = tcase_create("arena");
    tcase_add_test(cases, measured_pieces_fit);
    tcase_add_test(cases, empty);
    tcase_add_loop_test(cases, overflow_is_refused, 0, sizeof huge / sizeof *huge);
    tcase_add_test(cases, large_blocks_are_sparse);
    suite_add_tcase(suite, cases);
}
