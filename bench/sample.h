/* Repeated timings as one figure: their middle, and how far they lie apart.
 *
 * In: values of one measurement, repeated. Out: the median, and the spread: what lies between the quartiles, as per
 * cent of the median's size, so that one disturbed timing of five changes neither. Of two values it is all that lies
 * between them; one has none, and its figure is never told. */
#ifndef FR_BENCH_SAMPLE_H
#define FR_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fr_bench_figure {
    double middle, least, most;
    double spread; /* per cent; NaN of one value, which can't tell */
} fr_bench_figure;

/* The middle of n values, which are sorted in place. */
double fr_bench_median(double *values, size_t n);

/* n >= 1 values, which are sorted in place. */
fr_bench_figure fr_bench_figure_of(double *values, size_t n);

/* True if the spread exceeds the limit, in per cent, or is unknown because there is one value only: other work on the
 * machine may have disturbed it. */
bool fr_bench_is_doubtful(const fr_bench_figure *figure, double max_spread);

#endif
