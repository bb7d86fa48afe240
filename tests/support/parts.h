/* Splits suites that take hours in their full form into parts. Each part fits the time limit of a suite, and parts can
 * run side by side.
 *
 * In: FULL in the environment asks for the full form, and SHARD=i/n for part i of n. Out: the numbers of a loop 0, 1,
 * 2 ... that belong to this part: first, first + step, first + 2 step ... Without SHARD a suite runs the cases that
 * are not split. */
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

/* Returns how often a case repeats the same code with other numbers: `all` times with FULL, otherwise `few` times. */
static inline size_t fr_test_times(size_t few, size_t all) {
    return fr_test_full() ? all : few;
}

static inline bool fr_test_in_parts(void) {
    return fr_test_full() && getenv("SHARD");
}

/* Ends the program if SHARD can't be read, because otherwise the suite would run nothing and pass. */
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
