/* Measures the machine's limits (limits.h). */
#include "bench/limits.h"

#include <math.h>

#include "base/clock.h"

#define ROUNDS 4000000 /* rounds of the timed loop, which take about 10 ms */

static double best_reading(fr_pool *pool, const fr_bench_memory *memory, int repeats) {
    double best = 0;
    for (int i = 0; memory->bytes && i < repeats; i++) {
        double rate = fr_bench_memory_read(pool, memory);
        if (rate > best) best = rate;
    }
    return best;
}

/* Tries small and huge pages in turn, and keeps the memory that is read faster. */
static fr_bench_memory faster(fr_pool *pool, size_t size, int repeats, double *best) {
    fr_bench_memory small = fr_bench_memory_take(pool, size, FR_BENCH_SMALL),
                    huge = fr_bench_memory_take(pool, size, FR_BENCH_HUGE);
    double small_rate = best_reading(pool, &small, repeats), huge_rate = best_reading(pool, &huge, repeats);
    bool is_huge = huge_rate >= small_rate;
    fr_bench_memory_close(is_huge ? &small : &huge);
    *best = is_huge ? huge_rate : small_rate;
    return is_huge ? huge : small;
}

fr_bench_memory fr_bench_memory_open(fr_pool *pool, size_t size) {
    double unused;
    return faster(pool, size, 5, &unused);
}

double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats) {
    double best;
    fr_bench_memory memory = faster(pool, bytes, repeats, &best);
    fr_bench_memory_close(&memory);
    return best;
}

/* ------------------------------------------------------------------------------------------------------- arithmetic */

/* Times a chain of additions, in which each addition needs the result of the addition before it. All known processors
 * do one of these additions per cycle, so their rate is the clock. The operands are registers, because some processors
 * add constants for free while they rename registers. */
static double chain_rate(void) {
    const size_t rounds = 1000, adds = 64;
    size_t sum = 0, one = 1;
    double start = fr_clock();
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 64
        for (size_t i = 0; i < adds; i++) {
            __asm__ volatile("" : "+r"(one), "+r"(sum));
            sum += one;
        }
    }
    __asm__ volatile("" : : "r"(sum));
    return (double)(rounds * adds) / (fr_clock() - start);
}

double fr_bench_clock_rate(void) {
    double best = 0;
    for (int i = 0; i < 3; i++) best = fmax(best, chain_rate());
    return best;
}

typedef struct multiplying {
    fr_bench_loop *loop;
    size_t rounds;
    double done[FR_THREADS_MAX];
} multiplying;

static void multiply(void *context, const fr_team *team) {
    multiplying *job = context;
    job->done[team->index] = job->loop(job->rounds);
}

double fr_bench_multiply(fr_pool *pool, const fr_bench_peak *peak, size_t rounds) {
    multiplying job = {.loop = peak->loop, .rounds = rounds};
    double start = fr_clock(), done = 0;
    fr_pool_run(pool, multiply, &job);
    double seconds = fr_clock() - start;
    for (size_t i = 0; i < FR_THREADS_MAX; i++) done += job.done[i];
    return done / seconds;
}

const fr_bench_peak *fr_bench_peak_of(fr_bench_operation operation, const char *isa) {
    const fr_bench_peak *peak = NULL;
    fr_isa_level level = fr_isa_from_word(isa);
    unsigned allowed = level < FR_ISA_WORDS ? fr_isa_allows(level) : 0;
    for (size_t i = 0; i < fr_bench_peak_count; i++) {
        const fr_bench_peak *next = &fr_bench_peaks[i];
        if (next->operation == operation && next->kernels && (allowed >> next->level & 1) && fr_bench_peak_runs(next))
            peak = next;
    }
    return peak;
}

static double best_rate(fr_pool *pool, fr_bench_operation operation, const char *isa) {
    const fr_bench_peak *peak = fr_bench_peak_of(operation, isa);
    double best = 0;
    if (!peak) return 0;
    for (int i = 0; i < 7; i++) best = fmax(best, fr_bench_multiply(pool, peak, ROUNDS));
    return best;
}

double fr_bench_dot_peak(fr_pool *pool, const char *isa) {
    return best_rate(pool, FR_BENCH_INT8, isa);
}

double fr_bench_fma_peak(fr_pool *pool, const char *isa) {
    return best_rate(pool, FR_BENCH_FP32, isa);
}
