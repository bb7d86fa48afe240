/* Chooses runs over several factors: all combinations of their values, or a pairwise cover, in which every two values
 * of two factors meet and which has far fewer runs.
 *
 * In: how many values each factor has, and which two values exclude each other. Out: runs, a value for each factor; the
 * same ones every time. */
#ifndef FR_TESTS_PAIRS_H
#define FR_TESTS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

enum { FR_PAIRS_FACTORS = 12, FR_PAIRS_VALUES = 20, FR_PAIRS_RUNS = 256 };

typedef size_t fr_pairs_run[FR_PAIRS_FACTORS];

/* Says whether a run may have value `a` of factor f together with value `b` of factor g; f is less than g. */
typedef bool fr_pairs_fit(size_t f, size_t a, size_t g, size_t b);

/* Gives how many runs there are. fit: NULL where every two values may meet. Ends the test if the runs are more than
 * there is room for, or if two values that fit can never meet, since a third factor has no value for both. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_fit *fit, fr_pairs_run runs[FR_PAIRS_RUNS]);

/* The first returns the number of combinations, the second one of them by its number; the first factor's values change
 * fastest. */
size_t fr_pairs_combinations(const size_t *values, size_t factors);
void fr_pairs_combination(size_t number, const size_t *values, size_t factors, size_t *run);

#endif
