/* Makes the program of a Check suite. FR_SUITE defines its main function.
 *
 * In: the name of the suite, and a body that adds its cases to `suite`. Out: exit status 0 if all cases pass, otherwise
 * 1. The environment variables CK_RUN_CASE, CK_VERBOSITY, CK_TIMEOUT_MULTIPLIER and CK_FORK work as in Check's
 * manual. */
#ifndef FR_TESTS_SUITE_H
#define FR_TESTS_SUITE_H

#include <check.h>

typedef void fr_suite_cases_fn(Suite *suite);

/* Runs the cases that `add` adds. Returns the exit status. FR_SUITE's main function calls it. A suite calls it directly
 * only if its main function must also do other things. */
int fr_suite_run(const char *name, fr_suite_cases_fn *add);

/* Prints the reason why a case tests nothing on this machine. tests/run shows this line below the result of the
 * suite. */
void fr_test_skipped(const char *reason);

#define FR_SUITE(name)                              \
    static fr_suite_cases_fn add_suite_cases;       \
    int main(void) {                                \
        return fr_suite_run(name, add_suite_cases); \
    }                                               \
    static void add_suite_cases(Suite *suite)

#endif
