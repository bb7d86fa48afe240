/* Summarizes repeated timings as one figure (sample.h). */
#include "bench/sample.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fr_bench_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/* Returns a quantile of sorted values, interpolated between neighbours. part: 0 gives the smallest value, 0.5 the
 * median, 1 the largest value. */
static double quantile(const double *values, size_t n, double part) {
    double at = part * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return values[n - 1];
    return values[below] + (at - (double)below) * (values[below + 1] - values[below]);
}

fr_bench_figure fr_bench_figure_of(double *values, size_t n) {
    fr_bench_figure figure = {.middle = fr_bench_median(values, n), .spread = NAN};
    figure.least = values[0];
    figure.most = values[n - 1];
    double apart = n > 2 ? quantile(values, n, 0.75) - quantile(values, n, 0.25) : values[n - 1] - values[0];
    if (n > 1) figure.spread = 100 * apart / fabs(figure.middle);
    return figure;
}

bool fr_bench_is_doubtful(const fr_bench_figure *figure, double max_spread) {
    return !(figure->spread <= max_spread);
}
