/* Divides a model among ranks by their bandwidth (rank_shares.h). */
#include "bench/rank_shares.h"

#include <math.h>

#include "base/clock.h"
#include "bench/memory.h"
#include "forerun_lab_ranks.h"

enum { STEPS = 8, GATHERS = 30 };
#define BYTES   ((size_t)256 << 20) /* bytes that are read; the number is larger than the caches */
#define SECONDS 0.1

/* Opens a pool. Returns NULL if the pool can't be opened. */
static fr_pool *open_pool(size_t threads) {
    static fr_machine machine;
    static fr_plan plan;
    fr_pool *pool = NULL;
    if (fr_machine_read(&machine) != FR_OK) return NULL;
    fr_plan_make(&machine, threads, false, true, &plan);
    return fr_pool_open(&plan, &pool) == FR_OK ? pool : NULL;
}

static double read_for_a_while(fr_pool *pool, const fr_bench_memory *memory) {
    double bytes = 0, start = fr_clock(), seconds = 0;
    for (; seconds < SECONDS; seconds = fr_clock() - start) {
        fr_bench_memory_read(pool, memory);
        bytes += (double)memory->size;
    }
    return bytes / seconds;
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

static double sum_of(const double *bandwidths, size_t ranks) {
    double sum = 0;
    for (size_t r = 0; r < ranks; r++) {
        if (!(bandwidths[r] > 0)) return 0;
        sum += bandwidths[r];
    }
    return sum;
}

/* Returns the seconds of a gather. Each rank takes the shortest of several timings, because in the other timings it may
 * have waited for ranks that started late. The result is the time of the slowest rank. */
static double time_gathers(void) {
    double all[FR_LAB_MOST_RANKS], least = INFINITY, slowest = 0;
    for (size_t i = 0; i < GATHERS; i++) {
        double start = fr_clock();
        fr_lab_ranks_collect(0, all);
        least = fmin(least, fr_clock() - start);
    }
    fr_lab_ranks_collect(least, all);
    for (size_t r = 0; r < fr_rank_count(); r++) slowest = fmax(slowest, all[r]);
    return slowest;
}

fr_bench_rank_speed fr_bench_rank_shares(size_t threads, uint32_t *parts) {
    double all[FR_LAB_MOST_RANKS], own = 0;
    fr_pool *pool = open_pool(threads);
    fr_bench_memory memory = pool ? fr_bench_memory_take(pool, BYTES, FR_BENCH_HUGE) : (fr_bench_memory){0};
    /* All ranks begin to read at the same time, because ranks on the same machine share its memory. */
    fr_lab_ranks_collect(0, all);
    if (memory.bytes) own = read_for_a_while(pool, &memory);
    fr_lab_ranks_collect(own, all);
    fr_bench_memory_close(&memory);
    if (pool) fr_pool_close(pool);
    fr_bench_shares_of(all, fr_rank_count(), parts);
    return (fr_bench_rank_speed){.bandwidth = sum_of(all, fr_rank_count()), .latency = time_gathers()};
}
