/* Implements suite.h: the main function of suites. */
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

/* Fails if no case has run. This happens if CK_RUN_CASE names a case that the suite does not have. Commands of the
 * tests get no cache folder, so that they can't use results of an earlier run, and don't change the user's folder. */
int fr_suite_run(const char *name, fr_suite_cases_fn *add) {
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    Suite *suite = suite_create(name);
    add(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner), ran = srunner_ntests_run(runner);
    srunner_free(runner);
    if (ran == 0) fprintf(stderr, "%s: no case has run\n", name);
    return failed > 0 || ran == 0;
}

void fr_test_skipped(const char *reason) {
    fprintf(stderr, "skipped: %s\n", reason);
}
