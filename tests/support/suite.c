/* The main function of suites: see suite.h. */
#include "tests/support/suite.h"

int fr_suite_run(const char *name, fr_suite_cases_fn *add) {
    Suite *suite = suite_create(name);
    add(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
