/* Summarizes repeated timings as one figure: their median and their spread.
 *
 * In: values of one measurement, repeated. Out: the median, and the spread. The spread is the distance between the
 * quartiles in per cent of the median, so a single disturbed timing of five changes neither the median nor the spread.
 * For two values the spread is the distance between them. A single value has no spread, so its figure always counts as
 * doubtful. */
#ifndef FR_BENCH_SAMPLE_H
#define FR_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fr_bench_figure {
    double middle, least, most; /* the median, the smallest and the largest value */
    double spread;              /* per cent; NaN for a single value */
} fr_bench_figure;

/* Gives the median of n values, which are sorted in place. */
double fr_bench_median(double *values, size_t n);

/* Gives the figure of n >= 1 values, which are sorted in place. */
fr_bench_figure fr_bench_figure_of(double *values, size_t n);

/* Returns true if the spread exceeds the limit, in per cent. A single value is doubtful too, because nothing shows
 * whether other work disturbed it. */
bool fr_bench_is_doubtful(const fr_bench_figure *figure, double max_spread);

#endif
