/* Finds the least memory, in bytes, for keys and values with which an engine opens. In: the model, drafter and options
 * of the engine. Out: the least value of --kv-memory. */
#ifndef FR_TESTS_LEAST_KV_H
#define FR_TESTS_LEAST_KV_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "forerun.h"

/* Reads this least number from the error of an engine that refuses to open. Leaves FR_OPT_KV_MEMORY at a value that is
 * too small, so the caller must set this option again. */
static inline int64_t fr_test_least_kv(const fr_model *model, const fr_drafter *drafter, fr_options *options,
                                       size_t sessions) {
    fr_engine *none;
    ck_assert_int_eq(fr_options_set(options, FR_OPT_KV_MEMORY, 1), FR_OK);
    ck_assert_int_eq(fr_engine_open(model, drafter, options, sessions, &none), FR_INPUT);
    const char *least = strstr(fr_last_error(), "at least ");
    ck_assert_ptr_nonnull(least);
    return strtoll(least + 9, NULL, 10);
}

#endif
