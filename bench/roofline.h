/* Draws a roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785) as an SVG file that needs no
 * other file. The picture shows the speed that a machine allows for each number of multiply-adds per byte, and the
 * measured speeds below it.
 *
 * In: roofs and points, in any order. A roof is a peak of multiply-adds. Out: a picture with two logarithmic axes. Each
 * class (for kernels, an instruction set) has a colour. Points of one series are joined in the order in which they were
 * added. Texts are copied. */
#ifndef FR_BENCH_ROOFLINE_H
#define FR_BENCH_ROOFLINE_H

#include <stdio.h>

typedef struct fr_bench_roofline fr_bench_roofline;

/* Opens a roofline. bandwidth: bytes per second. Returns NULL if there is not enough memory. */
fr_bench_roofline *fr_bench_roofline_open(const char *title, double bandwidth);
void fr_bench_roofline_close(fr_bench_roofline *roofline);

/* fr_bench_roofline_peak adds a roof, and fr_bench_roofline_point a point. `macs` is in multiply-adds per second.
 * Nothing is added if there is not enough memory. */
void fr_bench_roofline_peak(fr_bench_roofline *roofline, const char *class, const char *name, double macs);
void fr_bench_roofline_point(fr_bench_roofline *roofline, const char *class, const char *series, const char *tip,
                             double macs_per_byte, double macs);

void fr_bench_roofline_write(const fr_bench_roofline *roofline, FILE *out);

#endif
