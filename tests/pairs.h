/* A pairwise cover: runs in which every two values of two factors meet, far fewer than all combinations.
 *
 * In: how many values each factor has. Out: runs, a value for each factor; the same ones every time. */
#ifndef FR_TESTS_PAIRS_H
#define FR_TESTS_PAIRS_H

#include <stddef.h>

enum { FR_PAIRS_FACTORS = 12, FR_PAIRS_VALUES = 16, FR_PAIRS_RUNS = 160 };

typedef size_t fr_pairs_run[FR_PAIRS_FACTORS];

/* Gives how many runs there are. Ends the test if they are more than there is room for. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_run runs[FR_PAIRS_RUNS]);

#endif
