/* The machine's limits: see limits.h. */
#include "bench/limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/stats.h"

/* Wide enough that loads, not additions, are what a core is busy with; the compiler splits it where registers are
 * narrower. */
typedef uint64_t wide __attribute__((vector_size(64), aligned(64)));

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

static void read_all(void *context, const fr_team *team) {
    reading *job = context;
    size_t begin, end;
    fr_partition(job->size, 4096, team->index, team->count, &begin, &end);
    wide a = {0}, b = {0}, c = {0}, d = {0};
    for (const uint8_t *p = job->bytes + begin; p < job->bytes + end; p += 4 * sizeof(wide)) {
        const wide *w = (const wide *)p;
        a ^= w[0];
        b ^= w[1];
        c ^= w[2];
        d ^= w[3];
    }
    a ^= b ^ c ^ d;
    job->sums[team->index] = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
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
    double small = bandwidth(pool, bytes, repeats, MADV_NOHUGEPAGE), huge = bandwidth(pool, bytes, repeats, MADV_HUGEPAGE);
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
