/* The machine's limits: see limits.h. */
#include "bench/limits.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "src/stats.h"

/* As wide as the widest registers; the compiler splits it where they are narrower. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(64)));

/* The widest loads that the machine has, chosen by the linker: a narrow loop would measure itself. */
#ifdef __x86_64__
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

typedef struct reading {
    const uint8_t *bytes;
    size_t size;
    volatile uint64_t sums[FR_MAX_THREADS];
} reading;

static void touch(void *context, const fr_team *team) {
    reading *job = context;
    size_t begin, end;
    fr_partition(job->size, 4096, team->index, team->count, &begin, &end);
    memset((uint8_t *)job->bytes + begin, (int)team->index + 1, end - begin);
}

/* bytes: a multiple of 4096, page-aligned. */
WIDEST static uint64_t read_range(const uint8_t *bytes, size_t size) {
    wide a = {0}, b = {0}, c = {0}, d = {0};
    for (const wide *w = (const wide *)bytes, *end = (const wide *)(bytes + size); w < end; w += 4) {
        a ^= w[0];
        b ^= w[1];
        c ^= w[2];
        d ^= w[3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

static void read_all(void *context, const fr_team *team) {
    reading *job = context;
    size_t begin, end;
    fr_partition(job->size, 4096, team->index, team->count, &begin, &end);
    job->sums[team->index] = read_range(job->bytes + begin, end - begin);
}

static fr_bench_memory take(fr_pool *pool, size_t size, int advice) {
    size = size / 4096 * 4096;
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return (fr_bench_memory){0};
    madvise(bytes, size, advice);
    fr_pool_run(pool, touch, &(reading){.bytes = bytes, .size = size});
    return (fr_bench_memory){bytes, size};
}

void fr_bench_memory_close(fr_bench_memory *memory) {
    if (memory->bytes) munmap((void *)(uintptr_t)memory->bytes, memory->size);
    *memory = (fr_bench_memory){0};
}

double fr_bench_memory_read(fr_pool *pool, const fr_bench_memory *memory) {
    reading job = {.bytes = memory->bytes, .size = memory->size};
    double start = fr_clock();
    fr_pool_run(pool, read_all, &job);
    return (double)memory->size / (fr_clock() - start);
}

static double best_reading(fr_pool *pool, const fr_bench_memory *memory, int repeats) {
    double best = 0;
    for (int i = 0; memory->bytes && i < repeats; i++) {
        double rate = fr_bench_memory_read(pool, memory);
        if (rate > best) best = rate;
    }
    return best;
}

/* Both kinds of pages, tried in turn; the faster one is kept. */
static fr_bench_memory faster(fr_pool *pool, size_t size, int repeats, double *best) {
    fr_bench_memory small = take(pool, size, MADV_NOHUGEPAGE), huge = take(pool, size, MADV_HUGEPAGE);
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

/* -------------------------------------------------------------------------------------------------------- arithmetic */

/* A chain of additions, each of which needs the one before: one a cycle on every processor we know. Of registers: some
 * processors add constants while they rename. */
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
    double done[FR_MAX_THREADS], seconds[FR_MAX_THREADS], clock[FR_MAX_THREADS];
} multiplying;

static void multiply(void *context, const fr_team *team) {
    multiplying *job = context;
    double start = fr_clock();
    job->done[team->index] = job->loop(job->rounds);
    job->seconds[team->index] = fr_clock() - start;
    job->clock[team->index] = fr_bench_clock_rate(); /* what the loop has made of it */
}

double fr_bench_multiply(fr_pool *pool, const fr_bench_peak *peak, size_t rounds, double *clock) {
    multiplying job = {.loop = peak->loop, .rounds = rounds};
    double done = 0, seconds = 0, clocks = 0;
    size_t threads = 0;
    fr_pool_run(pool, multiply, &job);
    for (; threads < FR_MAX_THREADS && job.done[threads] > 0; threads++) {
        done += job.done[threads];
        seconds = fmax(seconds, job.seconds[threads]);
        clocks += job.clock[threads];
    }
    if (clock) *clock = clocks / (double)threads;
    return done / seconds;
}

size_t fr_bench_multiply_rounds(const fr_bench_peak *peak, double seconds) {
    size_t rounds = 1000;
    for (;; rounds *= 2) {
        double start = fr_clock();
        peak->loop(rounds);
        double took = fr_clock() - start;
        if (took > seconds / 8) return 1 + (size_t)((double)rounds * seconds / took);
    }
}

static double best_rate(fr_pool *pool, fr_bench_operation operation, const char *isa) {
    const fr_bench_peak *peak = NULL;
    double best = 0;
    size_t level = 0;
    while (fr_isa_word(level) && strcmp(fr_isa_word(level), isa) != 0) level++;
    unsigned allowed = fr_isa_word(level) ? fr_isa_allows((fr_isa_level)level) : 0;
    for (size_t i = 0; i < fr_bench_peak_count; i++) {
        const fr_bench_peak *next = &fr_bench_peaks[i];
        if (next->operation == operation && next->kernels && (allowed >> next->level & 1) && fr_bench_peak_runs(next))
            peak = next;
    }
    if (!peak) return 0;
    size_t rounds = fr_bench_multiply_rounds(peak, 0.01);
    for (int i = 0; i < 7; i++) best = fmax(best, fr_bench_multiply(pool, peak, rounds, NULL));
    return best;
}

double fr_bench_dot_peak(fr_pool *pool, const char *isa) {
    return best_rate(pool, FR_BENCH_INT8, isa);
}

double fr_bench_fma_peak(fr_pool *pool, const char *isa) {
    return best_rate(pool, FR_BENCH_FP32, isa);
}
