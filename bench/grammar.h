/* Measures the time that a grammar adds to each token: for states that come up for the first time, and for known ones.
 *
 * In: a model. Out: a table with a row for each of some grammars, measured along a text of that grammar in the model's
 * tokens: the time to make the grammar; then the microseconds of a token, mean and largest, and their share of a
 * decode step of the model. A token's time covers the state after the text so far, its mask, and the removal of
 * forbidden logits. */
#ifndef FR_BENCH_GRAMMAR_H
#define FR_BENCH_GRAMMAR_H

#include "bench/facts.h"

typedef struct fr_bench_grammar_plan {
    const char *model;
    size_t repetitions; /* at least 1; each makes the grammar anew */
    double max_spread;  /* per cent: a figure with a larger spread is left out */
    fr_options *options;
} fr_bench_grammar_plan;

fr_status fr_bench_grammar(fr_bench_report *report, const fr_bench_grammar_plan *plan);

#endif
