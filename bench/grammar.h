/* Measures the time that a grammar adds to each token: for states that come up for the first time, and for known ones.
 *
 * In: a model. Out: a table with a row for each of some grammars, which is followed along one of its texts in the
 * model's tokens: the time to make the grammar; then the microseconds of a token, the mean and the largest, and their
 * share of a decode step of the model. A token's time covers the state after the text so far, its mask, and the removal
 * of forbidden logits. */
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
