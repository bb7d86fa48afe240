/* Reads memory and times it (memory.h). */
#include "bench/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define PAGE      ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define LINE      64

typedef struct reading {
    const uint8_t *bytes;
    size_t size, passes;
    fr_bench_read_loop *loop;
    volatile uint64_t sums[FR_THREADS_MAX];
} reading;

/* ----------------------------------------------------------------------------------------------------------- taking */

/* Returns the number of bytes of this process's memory that are in huge pages, or 0 if the system does not state it. */
static size_t huge_bytes(void) {
    char line[256];
    size_t kilobytes = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file) && sscanf(line, "AnonHugePages: %zu", &kilobytes) != 1) continue;
    fclose(file);
    return kilobytes << 10;
}

static void touch(void *context, const fr_team *team) {
    reading *job = context;
    size_t begin, end;
    fr_partition(job->size, PAGE, team->index, team->count, &begin, &end);
    memset((uint8_t *)job->bytes + begin, (int)team->index + 1, end - begin);
}

/* Maps memory that is aligned to huge pages. The mapping is one huge page larger than needed, and the parts before and
 * after the aligned memory are released. */
static uint8_t *map(size_t size) {
    uint8_t *bytes = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)bytes % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(bytes, before);
    munmap(bytes + before + size, HUGE_PAGE - before);
    return bytes + before;
}

fr_bench_memory fr_bench_memory_take(fr_pool *pool, size_t size, fr_bench_pages pages) {
    size = size / PAGE * PAGE;
    size_t mapped = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, before = huge_bytes();
    uint8_t *bytes = map(mapped);
    if (!bytes) return (fr_bench_memory){0};
    madvise(bytes, mapped, pages == FR_BENCH_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    fr_pool_run(pool, touch, &(reading){.bytes = bytes, .size = size});
    size_t after = huge_bytes();
    return (fr_bench_memory){.bytes = bytes,
                             .size = size,
                             .mapped = mapped,
                             .huge = after > before && after - before > size / 2,
                             .reader = fr_bench_widest_reader(NULL)};
}

void fr_bench_memory_close(fr_bench_memory *memory) {
    if (memory->bytes) munmap((void *)(uintptr_t)memory->bytes, memory->mapped);
    *memory = (fr_bench_memory){0};
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static void read_all(void *context, const fr_team *team) {
    reading *job = context;
    size_t begin, end;
    fr_partition(job->size, PAGE, team->index, team->count, &begin, &end);
    job->sums[team->index] = job->loop(job->bytes + begin, end - begin, job->passes);
}

double fr_bench_memory_reread(fr_pool *pool, const fr_bench_memory *memory, size_t passes) {
    reading job = {.bytes = memory->bytes, .size = memory->size, .passes = passes, .loop = memory->reader->loop};
    double start = fr_clock();
    fr_pool_run(pool, read_all, &job);
    return (double)memory->size * (double)passes / (fr_clock() - start);
}

double fr_bench_memory_read(fr_pool *pool, const fr_bench_memory *memory) {
    return fr_bench_memory_reread(pool, memory, 1);
}

/* ---------------------------------------------------------------------------------------------------------- chasing */

typedef union line {
    const union line *next;
    size_t number;
    uint8_t bytes[LINE];
} line;

/* Links all cache lines in random order into one ring. The shuffle (Sattolo 1986) gives a permutation that is a single
 * cycle, so the chain of loads visits every line. */
void fr_bench_memory_link(const fr_bench_memory *memory) {
    line *lines = (line *)(uintptr_t)memory->bytes;
    size_t count = memory->size / LINE;
    uint64_t random = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < count; i++) lines[i].number = i;
    for (size_t i = count - 1; i > 0; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t other = random % i, number = lines[i].number;
        lines[i].number = lines[other].number;
        lines[other].number = number;
    }
    for (size_t i = 0; i < count; i++) lines[i].next = &lines[lines[i].number];
}

const void *fr_bench_memory_chase(const void *from, size_t loads) {
    const line *at = from;
    for (size_t i = 0; i < loads; i++) {
        at = at->next;
        __asm__ volatile("" : "+r"(at));
    }
    return at;
}
