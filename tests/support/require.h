/* Ends a test with the library's error line if a call in the test's set-up has failed.
 *
 * In: the status that the call returned. Out: nothing. */
#ifndef FR_TESTS_REQUIRE_H
#define FR_TESTS_REQUIRE_H

#include <check.h>

#include "forerun.h"

/* Does not use Check's assertions, because each of them writes to a file. Some suites call this function a million
 * times. */
static inline void require(fr_status status) {
    if (status != FR_OK) ck_abort_msg("%s", fr_last_error());
}

#endif
