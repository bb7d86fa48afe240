/* A roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785): what a machine allows at how many
 * multiply-adds a byte, and where measured work lies under it, as an SVG that stands alone.
 *
 * In: roofs and points, in any order. Out: a picture, both axes logarithmic. Colours go by class, an instruction set
 * for kernels; points of one series are joined in the order that they came in. Texts are copied. */
#ifndef FR_BENCH_ROOFLINE_H
#define FR_BENCH_ROOFLINE_H

#include <stdio.h>

typedef struct fr_bench_roofline fr_bench_roofline;

/* NULL: no memory. bandwidth: bytes a second. */
fr_bench_roofline *fr_bench_roofline_open(const char *title, double bandwidth);
void fr_bench_roofline_close(fr_bench_roofline *roofline);

/* Multiply-adds a second. What does not fit into memory is left out. */
void fr_bench_roofline_peak(fr_bench_roofline *roofline, const char *class, const char *name, double macs);
void fr_bench_roofline_point(fr_bench_roofline *roofline, const char *class, const char *series, const char *tip,
                             double macs_per_byte, double macs);

void fr_bench_roofline_write(const fr_bench_roofline *roofline, FILE *out);

#endif
