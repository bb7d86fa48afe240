/* Makes tables of the messages that ranks send each other in a forward, layer by layer.
 *
 * In: a model that ranks run. Out: a table. For each number of rows the table gives two figures of the median forward:
 * the bytes that this rank sends, and the time that it waits. The table has lines for the layers, for the head, and for
 * the search for the best id. Neighbouring layers that send the same amount share a line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ranks.h"
#include "bench/measure.h"
#include "bench/model_run.h"
#include "src/api/ranks.h"

/* Counts the messages of one forward, for each layer and for the parts of a forward outside of layers. */
typedef struct traffic {
    uint64_t messages[FR_RANKS_PLACES], bytes[FR_RANKS_PLACES];
    double seconds[FR_RANKS_PLACES][FR_BENCH_PAIRS]; /* seconds of waiting at each place, in each of several forwards */
} traffic;

static void count_forward(const fr_bench_run *run, size_t rows, traffic *t, size_t pair) {
    static fr_ranks_traffic before[FR_RANKS_PLACES];
    for (size_t p = 0; p < FR_RANKS_PLACES; p++) before[p] = fr_ranks_told(fr_job(), p);
    fr_bench_forward(run->session, rows, 0);
    for (size_t p = 0; p < FR_RANKS_PLACES; p++) {
        fr_ranks_traffic after = fr_ranks_told(fr_job(), p);
        t->messages[p] = after.messages - before[p].messages;
        t->bytes[p] = after.bytes - before[p].bytes;
        t->seconds[p][pair] = after.seconds - before[p].seconds;
    }
}

static bool alike(const traffic *t, size_t place, size_t other) {
    return t->messages[place] == t->messages[other] && t->bytes[place] == t->bytes[other];
}

static void put_places(const fr_bench_run *run, size_t rows, traffic *t, const char *name, size_t first, size_t count) {
    double seconds = 0;
    for (size_t p = first; p < first + count; p++) seconds += fr_bench_median(t->seconds[p], FR_BENCH_PAIRS);
    fr_bench_number(run->report, (double)rows);
    fr_bench_text(run->report, name);
    fr_bench_number(run->report, (double)count);
    fr_bench_number(run->report, (double)t->messages[first]);
    fr_bench_number(run->report, (double)t->bytes[first]);
    fr_bench_number(run->report, seconds / (double)count * 1e6);
}

static void put_rows(const fr_bench_run *run, size_t rows) {
    static traffic t;
    size_t layers = run->model->trunk.spec.layers;
    if (layers > FR_RANKS_ELSEWHERE) layers = FR_RANKS_ELSEWHERE;
    for (size_t i = 0; i < FR_BENCH_PAIRS; i++) count_forward(run, rows, &t, i);
    for (size_t first = 0, last; first < layers; first = last) {
        char name[32];
        for (last = first + 1; last < layers && alike(&t, first, last);) last++;
        snprintf(name, sizeof name, last - first > 1 ? "%zu-%zu" : "%zu", first, last - 1);
        put_places(run, rows, &t, name, first, last - first);
    }
    put_places(run, rows, &t, "elsewhere", FR_RANKS_ELSEWHERE, 1);
}

void fr_bench_model_ranks(fr_bench_run *run) {
    static const fr_bench_column columns[] = {{"rows", "rows", 0},
                                              {"layers", "layers", 0},
                                              {"count", NULL, 0},
                                              {"messages", "messages of each", 0},
                                              {"bytes", "bytes of each", 0},
                                              {"waited_us", "waiting in each, us", 1}};
    const fr_bench_list *rows = &run->plan->rows;
    char title[128];
    if (!fr_job() || rows->count == 0) return;
    fr_bench_doing(run, "what ranks tell each other");
    snprintf(title, sizeof title, "What rank 0 of %zu sends in a forward%s", fr_rank_count(), run->how);
    fr_bench_table(run->report, "ranks", title, columns, sizeof columns / sizeof *columns);
    for (size_t k = 0; k < rows->count; k++) put_rows(run, (size_t)rows->at[k]);
    fr_bench_doing(run, NULL);
}
