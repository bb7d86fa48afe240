/* Ends a test with the library's line unless a call of its set-up gave FR_OK. In: a status of the library. Out:
 * nothing. */
#ifndef FR_TESTS_REQUIRE_H
#define FR_TESTS_REQUIRE_H

#include <check.h>

#include "forerun.h"

/* Not an assertion, because Check writes each into a file, and some suites call this a million times. */
static inline void require(fr_status status) {
    if (status != FR_OK) ck_abort_msg("%s", fr_last_error());
}

#endif
