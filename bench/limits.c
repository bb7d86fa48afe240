/* The machine's limits: see limits.h. */
#include "bench/limits.h"

#include <stdlib.h>
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

static double bandwidth(fr_pool *pool, size_t bytes, int repeats, int advice) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    madvise(memory, bytes, advice);
    reading job = {.bytes = memory, .size = bytes};
    fr_pool_run(pool, touch, &job);
    double best = 0;
    for (int i = 0; i < repeats; i++) {
        double start = fr_clock();
        fr_pool_run(pool, read_all, &job);
        double rate = (double)bytes / (fr_clock() - start);
        if (rate > best) best = rate;
    }
    munmap(memory, bytes);
    return best;
}

double fr_bench_read_bandwidth(fr_pool *pool, size_t bytes, int repeats) {
    bytes = bytes / 4096 * 4096;
    double small = bandwidth(pool, bytes, repeats, MADV_NOHUGEPAGE),
           huge = bandwidth(pool, bytes, repeats, MADV_HUGEPAGE);
    return small > huge ? small : huge;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fr_bench_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}
