/* An fr_lab_accept_fn that accepts every draft. A scripted draft method calls such a function to decide whether a draft
 * is to be right. */
#ifndef FR_TESTS_ALWAYS_H
#define FR_TESTS_ALWAYS_H

#include <stdbool.h>
#include <stddef.h>

static inline bool fr_test_always(void *context, size_t round, size_t depth) {
    (void)context;
    (void)round;
    (void)depth;
    return true;
}

#endif
