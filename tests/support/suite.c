/* The main function of suites: see suite.h. */
#include "tests/support/suite.h"

#include <stdio.h>

/* A suite of which no case runs fails: CK_RUN_CASE names a case that it does not have. */
int fr_suite_run(const char *name, fr_suite_cases_fn *add) {
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
