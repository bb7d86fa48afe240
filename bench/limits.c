/* The machine's limits: see limits.h. */
#include "bench/limits.h"

#include <string.h>
#include <sys/mman.h>

#include "bench/dot.h"
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

/* AMX has a matrix unit, no loop here: its word is measured by the level below, as its kernels are chosen. */
static const struct {
    const char *isa;
    fr_dot_fn *dot;
} dots[] = {
#ifdef __x86_64__
    {"avx2", fr_dot_avx2},
    {"avxvnni", fr_dot_avxvnni},
    {"avx512", fr_dot_avx512},
    {"avx512vnni", fr_dot_avx512vnni},
    {"amx", fr_dot_avx512vnni},
#endif
#ifdef __aarch64__
    {"neon", fr_dot_neon},
    {"dotprod", fr_dot_dotprod},
    {"i8mm", fr_dot_i8mm},
#endif
    {NULL, NULL},
};

typedef struct dotting {
    fr_dot_fn *dot;
    size_t rounds;
    double done[FR_MAX_THREADS];
} dotting;

static void dot_all(void *context, const fr_team *team) {
    dotting *job = context;
    job->done[team->index] = job->dot(job->rounds);
}

static double dots_per_second(fr_pool *pool, dotting *job, size_t rounds) {
    *job = (dotting){.dot = job->dot, .rounds = rounds};
    double start = fr_clock(), done = 0;
    fr_pool_run(pool, dot_all, job);
    double seconds = fr_clock() - start;
    for (size_t i = 0; i < FR_MAX_THREADS; i++) done += job->done[i];
    return done / seconds;
}

double fr_bench_dot_peak(fr_pool *pool, const char *isa) {
    static dotting job;
    double best = 0;
    size_t level = 0;
    while (dots[level].isa && strcmp(dots[level].isa, isa) != 0) level++;
    if (!dots[level].isa) return 0;
    job.dot = dots[level].dot;
    for (int i = 0; i < 7; i++) {
        double rate = dots_per_second(pool, &job, 4000000);
        if (rate > best) best = rate;
    }
    return best;
}
