/* Times gathers (gathers.h). */
#include "bench/gathers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/machine.h"
#include "bench/sample.h"
#include "src/api/ranks.h"

enum {
    REPETITIONS = 1000,       /* largest number of repetitions */
    LEAST = 64,               /* the smallest number of bytes that a rank sends */
    MOST = 1 << 20,           /* the largest number of bytes that a rank sends */
    TOGETHER = 200,           /* the largest number of gathers in one timing */
    TOGETHER_BYTES = 1 << 23, /* the largest number of bytes that a rank sends in one timing */
};

typedef struct bench {
    fr_ranks *ranks;
    size_t count, own; /* count: number of ranks; own: index of this rank */
    uint8_t *row;      /* [count][MOST] */
    double seconds[REPETITIONS];
} bench;

/* Checks one gather. Each rank sends bytes whose value is the rank's number. Before the gather, the bytes of the other
 * ranks are set to a wrong value. */
static fr_status check_gather(const bench *b, size_t bytes) {
    for (size_t r = 0; r < b->count; r++) memset(b->row + r * bytes, (int)(r == b->own ? r : ~r & 0xff), bytes);
    fr_ranks_gather_equal(b->ranks, b->row, bytes);
    FR_TRY(fr_ranks_check(b->ranks));
    for (size_t i = 0; i < b->count * bytes; i++)
        if (b->row[i] != i / bytes) return fr_fail(FR_NUMERIC, "rank %zu's bytes came as another's", i / bytes);
    return FR_OK;
}

static fr_status time_gathers(bench *b, size_t bytes, size_t repetitions) {
    size_t together = TOGETHER_BYTES / bytes < TOGETHER ? TOGETHER_BYTES / bytes : TOGETHER;
    FR_TRY(check_gather(b, bytes));
    for (size_t i = 0; i < repetitions; i++) {
        double start = fr_clock();
        for (size_t n = 0; n < together; n++) fr_ranks_gather_equal(b->ranks, b->row, bytes);
        b->seconds[i] = (fr_clock() - start) / (double)together;
    }
    return fr_ranks_check(b->ranks);
}

static fr_status run(bench *b, fr_bench_report *report, const fr_bench_gathers_plan *plan) {
    static const fr_bench_column columns[] = {{"bytes", "bytes of a rank", 0},
                                              {"gather_us", "a gather, us", 2},
                                              {"spread", "spread, %", 1},
                                              {"mb_s", "MB/s to each other one", 1}};
    FR_TRY(fr_bench_machine_facts(report, NULL, 0));
    fr_bench_fact_number(report, "ranks", "ranks", (double)b->count);
    fr_bench_fact_number(report, "delay_us", "messages leave late by, us", plan->delay_us);
    fr_bench_table(report, "gathers", "Making rows whole on all ranks", columns, sizeof columns / sizeof *columns);
    for (size_t bytes = LEAST; bytes <= MOST; bytes *= 2) {
        FR_TRY(time_gathers(b, bytes, plan->repetitions));
        fr_bench_figure figure = fr_bench_figure_of(b->seconds, plan->repetitions);
        fr_bench_number(report, (double)bytes);
        fr_bench_from(report, &figure, figure.middle * 1e6, plan->max_spread);
        fr_bench_number(report, figure.spread);
        fr_bench_from(report, &figure, (double)bytes / figure.middle / 1e6, plan->max_spread);
    }
    return FR_OK;
}

fr_status fr_bench_gathers(fr_bench_report *report, const fr_bench_gathers_plan *plan) {
    static bench b;
    b = (bench){.ranks = fr_job(), .count = fr_rank_count(), .own = fr_rank()};
    if (!b.ranks)
        return fr_fail(FR_USAGE, "bench ranks is of several processes: make RANKS=mpi; mpirun -n 2 build/mpi/forerun "
                                 "bench ranks");
    b.row = malloc(b.count * MOST);
    if (!b.row) return fr_fail_memory("rows of ranks", b.count * MOST);
    fr_status status = run(&b, report, plan);
    free(b.row);
    return status;
}
