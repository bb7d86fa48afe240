/* Times a grammar's cost a row: masks of states that come up for the first time, and of those that are known.
 *
 * In: a model. Out: a table with a row for each of some grammars, each followed along a text of it in the model's
 * tokens: how long it takes to be made, then microseconds a row, on average and the worst one, and as a part of a
 * decode step of the model. A row: the state behind the text so far, its mask, logits without what is forbidden. */
#ifndef FR_BENCH_GRAMMAR_H
#define FR_BENCH_GRAMMAR_H

#include "bench/facts.h"

typedef struct fr_bench_grammar_plan {
    const char *model;
    size_t repetitions; /* at least 1: the grammar is made anew in each */
    double max_spread;  /* per cent: a figure that spread more is left out */
    fr_options *options;
} fr_bench_grammar_plan;

fr_status fr_bench_grammar(fr_bench_report *report, const fr_bench_grammar_plan *plan);

#endif
