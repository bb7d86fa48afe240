/* Tests the pairwise cover with which other suites choose their runs (tests/support/pairs.h). If two values may be
 * combined, they must occur together in at least one run. Values that exclude each other must not occur together. The
 * cover must have few runs, and must be the same each time. */
/* suite: quick */
#include "tests/support/pairs.h"

#include <check.h>
#include <string.h>

#include "tests/support/suite.h"

/* Excludes pairs in the way of real suites. A run without drafts has no depth. Like this, the last value of factor 0
 * may occur only with the first value of factor 1. Value 0 of factor 2 may not occur with the second half of factor 3's
 * values. */
static bool fits(size_t f, size_t a, size_t g, size_t b) {
    if (f == 0 && g == 1) return (a == 2) == (b == 0);
    if (f == 2 && g == 3) return a != 0 || b < 3;
    return true;
}

/* The sets of factors for which covers are tested. `most` is the largest allowed number of runs. Any cover needs at
 * least as many runs as the product of the numbers of values of the two largest factors. `most` is not much larger than
 * this product. */
static const struct {
    size_t values[FR_PAIRS_FACTORS], factors, most;
    fr_pairs_fit *fit;
} spaces[] = {
    {{2, 2}, 2, 4, NULL},
    {{3, 1, 2}, 3, 6, NULL},
    {{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 12, 12, NULL},
    {{8, 3, 4, 6, 9, 3}, 6, 90, NULL},
    {{16, 16, 2}, 3, 256, NULL},
    {{3, 5, 4, 6}, 4, 40, fits},
    {{3, 9, 11, 6, 8}, 5, 130, fits},
};

START_TEST(every_two_values_that_may_meet_do_and_no_others) {
    static fr_pairs_run runs[FR_PAIRS_RUNS];
    const size_t *values = spaces[_i].values, factors = spaces[_i].factors;
    size_t count = fr_pairs_cover(values, factors, spaces[_i].fit, runs);
    ck_assert_uint_le(count, spaces[_i].most);
    for (size_t f = 0; f < factors; f++)
        for (size_t g = f + 1; g < factors; g++)
            for (size_t a = 0; a < values[f]; a++)
                for (size_t b = 0; b < values[g]; b++) {
                    size_t met = 0;
                    for (size_t i = 0; i < count; i++) met += runs[i][f] == a && runs[i][g] == b;
                    bool may = !spaces[_i].fit || spaces[_i].fit(f, a, g, b);
                    ck_assert_msg(may == (met > 0), "values %zu and %zu of factors %zu and %zu meet in %zu runs", a, b,
                                  f, g, met);
                }
}
END_TEST

START_TEST(the_runs_are_the_same_each_time) {
    static fr_pairs_run once[FR_PAIRS_RUNS], again[FR_PAIRS_RUNS];
    static const size_t values[] = {5, 7, 3, 4};
    size_t count = fr_pairs_cover(values, 4, NULL, once);
    ck_assert_uint_eq(fr_pairs_cover(values, 4, NULL, again), count);
    for (size_t i = 0; i < count; i++) ck_assert_mem_eq(once[i], again[i], 4 * sizeof(size_t));
}
END_TEST

START_TEST(every_combination_has_a_number) {
    static const size_t values[] = {3, 1, 4};
    bool seen[12] = {false};
    ck_assert_uint_eq(fr_pairs_combinations(values, 3), 12);
    for (size_t number = 0; number < 12; number++) {
        size_t run[3];
        fr_pairs_combination(number, values, 3, run);
        ck_assert(run[0] < 3 && run[1] < 1 && run[2] < 4);
        seen[run[0] + 3 * run[2]] = true;
    }
    for (size_t i = 0; i < 12; i++) ck_assert(seen[i]);
}
END_TEST

FR_SUITE("pairs") {
    TCase *cases = tcase_create("pairs");
    tcase_add_loop_test(cases, every_two_values_that_may_meet_do_and_no_others, 0, sizeof spaces / sizeof *spaces);
    tcase_add_test(cases, the_runs_are_the_same_each_time);
    tcase_add_test(cases, every_combination_has_a_number);
    suite_add_tcase(suite, cases);
}
