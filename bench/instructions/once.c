/* Calls kernels under a tool that counts instructions. Under callgrind (the script `count`), each kernel that this
 * machine can run is called once. Under perf stat (the script `perf_stat`), one kernel is called as often as requested.
 *
 * In: nothing, or a kernel's name and a number of calls. Out: a line for each kernel: its name, its shape, and its
 * number of blocks of 32 values. In a single call, products have 4 rows and 64 features of 1536 columns, and attention
 * has one row and 128 positions of float16. In repeated calls, a product has 4 rows and the shape that `bench kernels
 * -t 1` keeps in the L2 cache. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernel_cases.h"

/* ROWS: rows of a product. THREADS: number of threads that share 6144 features, so that a call of one thread has 64
 * features. BLOCK: number of values in a block. */
enum { ROWS = 4, THREADS = 96, BLOCK = 32 };

/* Allocates whole cache lines, so that the memory shares no cache line with other data. */
static void *take(size_t bytes) {
    size_t lines = (bytes + 64) / 64;
    void *memory = aligned_alloc(64, lines * 64);
    if (memory) return memory;
    perror("once");
    exit(1);
}

static bool is_wanted(const fr_bench_shape *shape, bool cached) {
    if (cached) return shape->group == FR_BENCH_CACHED;
    return shape->group != FR_BENCH_ATTENTION || shape->type == FR_F16;
}

/* Gives the first shape of the wanted kind. If there is none of that kind, gives the last shape. */
static const fr_bench_shape *shape_of(const fr_bench_kernel *kernel, bool cached) {
    const fr_bench_shape *shapes;
    size_t count = fr_bench_shapes(kernel, &shapes), i = 0;
    while (i + 1 < count && !is_wanted(&shapes[i], cached)) i++;
    return &shapes[i];
}

static void call(const fr_bench_kernel *kernel, const fr_bench_shape *wanted, size_t threads, size_t calls) {
    char shape[64];
    size_t rows = wanted->group == FR_BENCH_STREAMED || wanted->group == FR_BENCH_CACHED ? ROWS : 1;
    fr_bench_case c = fr_bench_case_make(kernel, wanted, rows, threads, SIZE_MAX);
    fr_bench_operands o = {take(c.stream_bytes), take(c.input_bytes), take(c.output_bytes), take(c.scratch_bytes)};
    fr_bench_fill_stream(&c, o.stream);
    fr_bench_fill_input(&c, o.input);
    fr_bench_fill_output(&c, o.output);
    for (size_t i = 0; i < calls; i++) fr_bench_call(&c, kernel->function, &o, 0, c.units);
    fr_bench_case_name(&c, c.units, 1, shape, sizeof shape);
    printf("%s\t%s\t%.0f\n", kernel->name, shape, c.values / BLOCK);
    free(o.stream);
    free(o.input);
    free(o.output);
    free(o.scratch);
}

int main(int argc, char **argv) {
    unsigned here = fr_cpu_levels();
    for (size_t i = 0; i < fr_bench_kernel_count; i++) {
        const fr_bench_kernel *kernel = &fr_bench_kernels[i];
        if (!(here >> kernel->level & 1) || !fr_cpu_permits(kernel->level)) continue;
        if (argc < 3)
            call(kernel, shape_of(kernel, false), THREADS, 1);
        else if (strcmp(kernel->name, argv[1]) == 0)
            call(kernel, shape_of(kernel, true), 1, strtoull(argv[2], NULL, 10));
    }
    return 0;
}
