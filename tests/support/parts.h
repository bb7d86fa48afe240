/* Splits suites that take hours in their full form into parts. Each part fits in the time limit of a suite, and several
 * parts can run at the same time.
 *
 * In: FULL in the environment requests the full form, and SHARD=i/n requests part i of n. Out: the numbers of a loop 0,
 * 1, 2 ... that belong to this part, which are first, first + step, first + 2 step ... Without SHARD a suite runs the
 * cases that are not split. */
#ifndef FR_TESTS_PARTS_H
#define FR_TESTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fr_test_part {
    size_t first, step;
} fr_test_part;

static inline bool fr_test_full(void) {
    return getenv("FULL") && *getenv("FULL");
}

/* Returns the number of times that a case repeats the same code with other numbers. It is `all` if FULL is set in the
 * environment, otherwise `few`. */
static inline size_t fr_test_times(size_t few, size_t all) {
    return fr_test_full() ? all : few;
}

static inline bool fr_test_in_parts(void) {
    return fr_test_full() && getenv("SHARD");
}

/* If SHARD can't be read, ends the program. Otherwise the suite would run nothing and pass. */
static inline fr_test_part fr_test_part_here(void) {
    fr_test_part part;
    if (sscanf(getenv("SHARD"), "%zu/%zu", &part.first, &part.step) != 2 || part.first < 1 || part.first > part.step) {
        fprintf(stderr, "SHARD must be i/n, i from 1 to n\n");
        exit(2);
    }
    part.first--;
    return part;
}

#endif
