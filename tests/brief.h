/* The short form of suites that are long under valgrind: FORERUN_BRIEF in the environment asks for it.
 *
 * In: a loop test and how often it would run. Out: the case has all its runs, or in the short form every fifth. */
#ifndef FR_TESTS_BRIEF_H
#define FR_TESTS_BRIEF_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

static inline bool fr_test_brief(void) {
    return getenv("FORERUN_BRIEF") != NULL;
}

static inline void fr_test_add_loop(TCase *cases, const TTest *test, int count) {
    for (int i = 0; i < count; i += fr_test_brief() ? 5 : 1) tcase_add_loop_test(cases, test, i, i + 1);
}

#endif
