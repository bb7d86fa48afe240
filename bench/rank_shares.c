/* Shares of ranks by their bandwidth: see rank_shares.h. */
#include "bench/rank_shares.h"

#include <math.h>

#include "base/topology.h"
#include "bench/limits.h"
#include "forerun_lab_ranks.h"

enum { STEPS = 8, TIMES = 3 };
#define BYTES ((size_t)256 << 20) /* more than caches hold */

/* 0: it can't be told. */
static double own_bandwidth(size_t threads) {
    static fr_machine machine;
    static fr_plan plan;
    fr_pool *pool;
    if (fr_machine_read(&machine) != FR_OK) return 0;
    fr_plan_make(&machine, threads, false, true, &plan);
    if (fr_pool_open(&plan, &pool) != FR_OK) return 0;
    double bandwidth = fr_bench_read_bandwidth(pool, BYTES, TIMES);
    fr_pool_close(pool);
    return bandwidth;
}

void fr_bench_shares_of(const double *bandwidths, size_t ranks, uint32_t *parts) {
    double most = 0;
    bool told = true;
    for (size_t r = 0; r < ranks; r++) {
        told &= isfinite(bandwidths[r]) && bandwidths[r] > 0;
        most = fmax(most, bandwidths[r]);
    }
    for (size_t r = 0; r < ranks; r++) parts[r] = told ? (uint32_t)fmax(1, rint(STEPS * bandwidths[r] / most)) : 1;
}

void fr_bench_rank_shares(size_t threads, uint32_t *parts) {
    double all[FR_LAB_MOST_RANKS];
    fr_lab_ranks_collect(own_bandwidth(threads), all);
    fr_bench_shares_of(all, fr_rank_count(), parts);
}
