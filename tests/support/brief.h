/* Shortens suites that take hours under valgrind or in an emulator. Two environment variables control this.
 * FORERUN_BRIEF requests the short form. FORERUN_EMULATOR means that an emulator runs the suite, which is about fifty
 * times slower.
 *
 * In: a test case, a loop test, its full number of runs, and its number of runs in the short form. Out: the loop test
 * is added to the case. In the short form it has the smaller number of runs, spread over the whole range. The short
 * form leaves out runs that execute the same code with other numbers. */
#ifndef FR_TESTS_BRIEF_H
#define FR_TESTS_BRIEF_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/parts.h"

static inline bool fr_test_brief(void) {
    return getenv("FORERUN_BRIEF") != NULL;
}

static inline bool fr_test_emulated(void) {
    return getenv("FORERUN_EMULATOR") != NULL;
}

/* Returns the number N for suites of kernels, which run one in N of their random cases. If FULL is set in the
 * environment, they run all cases. */
static inline unsigned fr_test_one_in(void) {
    if (fr_test_full()) return 1;
    return fr_test_emulated() ? 40 : 4;
}

static inline void fr_test_add_loop(TCase *cases, const TTest *test, int count, int few) {
    int step = fr_test_brief() ? (count + few - 1) / few : 1;
    for (int i = 0; i < count; i += step) tcase_add_loop_test(cases, test, i, i + 1);
}

/* Adds a loop over pairs of values of two factors. Run i has value i / inner of the first factor and value i % inner of
 * the second factor. One pair in `step` is run. If FULL is set in the environment, every pair is run. If `step` is at
 * most `inner` and at most `outer`, each value of both factors occurs in some run. */
static inline void fr_test_add_pairs(TCase *cases, const TTest *test, int outer, int inner, int step, int few) {
    if (fr_test_brief() || fr_test_full()) {
        fr_test_add_loop(cases, test, outer * inner, few);
        return;
    }
    for (int i = 0; i < outer * inner; i++)
        if ((i / inner + i % inner) % step == 0) tcase_add_loop_test(cases, test, i, i + 1);
}

static inline void fr_test_add_long(TCase *cases, const TTest *test) {
    if (!fr_test_brief()) tcase_add_test(cases, test);
}

#endif
