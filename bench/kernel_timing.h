/* Checks one kernel on one case, and times it on a team of threads at once.
 *
 * In: a case (kernel_cases.h), the kernels of its slot. Out: seconds, beside the machine's bandwidth, arithmetic and
 * clock at the same time, which are measured in turn with the kernel. Each thread has operands of its own. A stream
 * that must come from memory has more copies than any cache holds, which are used in turn. */
#ifndef FR_BENCH_KERNEL_TIMING_H
#define FR_BENCH_KERNEL_TIMING_H

#include "bench/counters.h"
#include "bench/kernel_cases.h"
#include "bench/limits.h"

typedef struct fr_bench_bed fr_bench_bed;

/* Opens a bed. stream_bytes: of all threads together; 0: more than the caches hold. The pool must outlive it. */
fr_status fr_bench_bed_open(fr_pool *pool, size_t threads, size_t stream_bytes, size_t repetitions, fr_bench_bed **bed);
void fr_bench_bed_close(fr_bench_bed *bed);

/* Returns the bytes that a thread's stream may take: fr_bench_case_make's room. */
size_t fr_bench_bed_room(const fr_bench_bed *bed);

/* Gives 0, or the errno with the reason why this system counts nothing. */
int fr_bench_bed_no_counters(const fr_bench_bed *bed);

/* Measures the bytes per second of memory, as it is done between two timings. */
double fr_bench_bed_bandwidth(const fr_bench_bed *bed);

/* Makes the operands of a case and the definition's result. If refill is false the streams of the case before are
 * kept, which differed only in its rows. The case must outlive its timings. */
fr_status fr_bench_bed_load(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_case *c, bool cached,
                            bool refill);

typedef struct fr_bench_timing {
    bool same_bits;   /* as the definition's; if not, nothing was timed */
    bool from_memory; /* the streams did not fit the caches */
    size_t units;     /* of the case, that a call takes: a slow kernel's product is cut */
    /* Totals of one call of every thread together. */
    double bytes, macs, values;
    fr_bench_figure seconds;
    double bandwidth, peak, clock;    /* medians of the same time; NaN: not measured, the streams were cached */
    fr_bench_figure of_limit;         /* the limit's seconds over the call's; NaN: no limit is known */
    const char *limit;                /* "bandwidth", "arithmetic"; NULL: not known */
    double counts[FR_BENCH_COUNTERS]; /* of a call of every thread */
} fr_bench_timing;

/* A loop with the peak of multiply-adds, and the rounds of it that can be timed. peak NULL: none is known. */
typedef struct fr_bench_roof {
    const fr_bench_peak *peak;
    size_t rounds;
} fr_bench_roof;

void fr_bench_bed_time(fr_bench_bed *bed, const fr_bench_kernel *kernel, fr_bench_roof roof, fr_bench_timing *timing);

#endif
