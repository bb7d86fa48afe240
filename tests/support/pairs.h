/* Chooses runs over several factors. The runs are either all combinations of values, or a pairwise cover. In a pairwise
 * cover, every two values of two different factors occur together in some run. It has far fewer runs.
 *
 * In: the number of values of each factor, and the pairs of values that exclude each other. Out: runs, each with one
 * value of each factor. They are the same every time. */
#ifndef FR_TESTS_PAIRS_H
#define FR_TESTS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

enum { FR_PAIRS_FACTORS = 12, FR_PAIRS_VALUES = 20, FR_PAIRS_RUNS = 256 };

typedef size_t fr_pairs_run[FR_PAIRS_FACTORS];

/* Returns true if a run may have value `a` of factor f together with value `b` of factor g; f is less than g. */
typedef bool fr_pairs_fit(size_t f, size_t a, size_t g, size_t b);

/* Returns the number of runs. If `fit` is NULL, any two values may be combined. Ends the test in two cases. In the
 * first, there is not enough room for all runs. In the second, two values may be combined but no run can have both,
 * because each value of a third factor excludes one of them. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_fit *fit, fr_pairs_run runs[FR_PAIRS_RUNS]);

/* fr_pairs_combinations returns the number of combinations. fr_pairs_combination writes the combination with this
 * number to `run`. From number to number, the value of the first factor changes fastest. */
size_t fr_pairs_combinations(const size_t *values, size_t factors);
void fr_pairs_combination(size_t number, const size_t *values, size_t factors, size_t *run);

#endif
