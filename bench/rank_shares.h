/* Divides a model's weights among ranks of several machines so that all ranks read their own part in the same time.
 *
 * In: a job of ranks, all of which make the call; the number of threads of this rank (0: as many as the rank would use
 * by default). Out: the parts of all ranks, and the measured speeds. A rank's part is in proportion to the bandwidth at
 * which the rank reads memory now. Parts are rounded to eighths of the fastest rank's part, so that small differences
 * between timings don't change the parts from one start to the next. If any rank can't measure, all parts are equal.
 * All ranks get the same result. */
#ifndef FR_BENCH_RANK_SHARES_H
#define FR_BENCH_RANK_SHARES_H

#include <stddef.h>
#include <stdint.h>

typedef struct fr_bench_rank_speed {
    double bandwidth; /* bytes per second that all ranks together read; 0 if unknown */
    double latency;   /* seconds of a gather of a few bytes */
} fr_bench_rank_speed;

fr_bench_rank_speed fr_bench_rank_shares(size_t threads, uint32_t *parts);

/* Computes the parts from known bandwidths; measures nothing. */
void fr_bench_shares_of(const double *bandwidths, size_t ranks, uint32_t *parts);

#endif
