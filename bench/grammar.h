/* Measures the time that a grammar adds to each token. It distinguishes states that the grammar reaches for the first
 * time from states that it has reached before.
 *
 * In: a model. Out: a table with a line for each of several grammars. Each grammar is measured along a text that it
 * accepts, in the model's tokens. A line has the time to make the grammar, the mean and the largest microseconds per
 * token, and these microseconds as a share of the model's decode step. The time of a token consists of advancing the
 * grammar's state, computing its mask, and removing the forbidden logits. */
#ifndef FR_BENCH_GRAMMAR_H
#define FR_BENCH_GRAMMAR_H

#include "bench/facts.h"

typedef struct fr_bench_grammar_plan {
    const char *model;
    size_t repetitions; /* at least 1; each makes the grammar again */
    double max_spread;  /* in per cent; a figure whose spread is larger is marked with ? */
    fr_options *options;
} fr_bench_grammar_plan;

fr_status fr_bench_grammar(fr_bench_report *report, const fr_bench_grammar_plan *plan);

#endif
