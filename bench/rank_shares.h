/* Divides a model's weights among ranks of several machines, so that all read their own in the same time.
 *
 * In: a job of ranks, all of which ask; the threads of this one, 0: as many as it would take. Out: parts for each rank,
 * the same on all of them, in proportion to the bandwidth at which it reads memory now; how fast they are. In eighths
 * of the fastest one's at least, as timings differ from start to start; equal ones where a rank can't tell. */
#ifndef FR_BENCH_RANK_SHARES_H
#define FR_BENCH_RANK_SHARES_H

#include <stddef.h>
#include <stdint.h>

typedef struct fr_bench_rank_speed {
    double bandwidth; /* of all together, bytes a second; 0: one can't tell */
    double latency;   /* of a gather of a few bytes, seconds */
} fr_bench_rank_speed;

fr_bench_rank_speed fr_bench_rank_shares(size_t threads, uint32_t *parts);

/* Does the same with known bandwidths. Pure. */
void fr_bench_shares_of(const double *bandwidths, size_t ranks, uint32_t *parts);

#endif
