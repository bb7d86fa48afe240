/* Chooses runs over several factors: all combinations of their values, or a pairwise cover, in which every two values
 * of two factors meet and which has far fewer runs.
 *
 * In: how many values each factor has. Out: runs, a value for each factor; the same ones every time. */
#ifndef FR_TESTS_PAIRS_H
#define FR_TESTS_PAIRS_H

#include <stddef.h>

enum { FR_PAIRS_FACTORS = 12, FR_PAIRS_VALUES = 16, FR_PAIRS_RUNS = 160 };

typedef size_t fr_pairs_run[FR_PAIRS_FACTORS];

/* Gives how many runs there are. Ends the test if they are more than there is room for. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_run runs[FR_PAIRS_RUNS]);

/* How many combinations there are, and one of them by its number; the first factor's values change fastest. */
size_t fr_pairs_combinations(const size_t *values, size_t factors);
void fr_pairs_combination(size_t number, const size_t *values, size_t factors, size_t *run);

#endif
