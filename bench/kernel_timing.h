/* Checks one kernel on one case, and times it on a team of threads at once.
 *
 * In: a case (kernel_cases.h), the kernels of its slot. Out: seconds; and the machine's bandwidth, arithmetic and
 * clock at that time, which are measured in turn with the kernel. Each thread has operands of its own. If a stream
 * must come from memory, it has more copies than the caches hold, and these are used in turn. */
#ifndef FR_BENCH_KERNEL_TIMING_H
#define FR_BENCH_KERNEL_TIMING_H

#include "bench/counters.h"
#include "bench/kernel_cases.h"
#include "bench/limits.h"

typedef struct fr_bench_bed fr_bench_bed;

/* Opens a bed. stream_bytes: bytes of all threads' streams together; 0: more than the caches hold. The pool must
 * outlive the bed. */
fr_status fr_bench_bed_open(fr_pool *pool, size_t threads, size_t stream_bytes, size_t repetitions, fr_bench_bed **bed);
void fr_bench_bed_close(fr_bench_bed *bed);

/* Returns the bytes that a thread's stream may take, for `room` of fr_bench_case_make. */
size_t fr_bench_bed_room(const fr_bench_bed *bed);

/* Gives 0, or the errno with the reason why this system can't count events. */
int fr_bench_bed_no_counters(const fr_bench_bed *bed);

/* Measures the bytes per second that memory gives, in the way in which it is done between two timings. */
double fr_bench_bed_bandwidth(const fr_bench_bed *bed);

/* Makes the operands of a case, and the definition's result. If refill is false, the streams of the last case are used
 * again, which differed only in its rows. The case must outlive its timings. */
fr_status fr_bench_bed_load(fr_bench_bed *bed, const fr_bench_kernel *kernel, const fr_bench_case *c, bool cached,
                            bool refill);

typedef struct fr_bench_timing {
    bool same_bits;   /* the kernel gives the definition's bits; if not, it is not timed */
    bool from_memory; /* the streams did not fit the caches */
    size_t units;     /* units of the case in a call; a slow kernel's product is made smaller */
    /* Totals of a call of all threads together. */
    double bytes, macs, values;
    fr_bench_figure seconds;
    /* medians at the time of the timings; bandwidth is NaN if the streams lie in caches */
    double bandwidth, peak, clock;
    fr_bench_figure of_limit;         /* the limit's seconds divided by the call's; NaN: no limit is known */
    const char *limit;                /* "bandwidth" or "arithmetic"; NULL: no limit is known */
    double counts[FR_BENCH_COUNTERS]; /* counts of a call of all threads */
} fr_bench_timing;

/* A loop that reaches the peak of multiply-adds, and how many rounds of it are timed. peak NULL: no peak is known. */
typedef struct fr_bench_roof {
    const fr_bench_peak *peak;
    size_t rounds;
} fr_bench_roof;

void fr_bench_bed_time(fr_bench_bed *bed, const fr_bench_kernel *kernel, fr_bench_roof roof, fr_bench_timing *timing);

#endif
