/* A model's speed: prompts and decode as llama-bench names them, verifying K rows, drafting, and speculation on texts.
 *
 * In: a plan. Out: facts and tables of a report (table.h), and the curve of T(K) for a picture. Every figure is the
 * middle of repeated timings after a warm-up, its spread beside it; one that spread more than the plan allows, or is of
 * one timing, is left out and remarked on. A model is opened once for each instruction set and number of threads. */
#ifndef FR_BENCH_MODEL_H
#define FR_BENCH_MODEL_H

#include "bench/table.h"
#include "forerun.h"

#define FR_BENCH_LIST 64 /* numbers of a list at most */

typedef struct fr_bench_list {
    int64_t at[FR_BENCH_LIST];
    size_t count;
} fr_bench_list;

/* A prompt and what is generated after it, timed as one. */
typedef struct fr_bench_both {
    size_t prompt, generate;
} fr_bench_both;

typedef struct fr_bench_model_plan {
    const char *model;
    const char *drafter;   /* NULL: the model's own MTP layer, if it has one */
    const char *spec_type; /* who drafts (FR_OPT_SPEC_TYPE); NULL: the drafter */
    fr_options *options;   /* how to open them; threads, instruction set and drafting are set here */
    fr_bench_list threads; /* none: as many as the library takes */
    char isas[FR_BENCH_LIST][16];
    size_t isa_count;                  /* 0: the best here */
    fr_bench_list prompts;             /* pp: lengths, 0 for none */
    fr_bench_list generate;            /* tg: tokens, 0 for none */
    fr_bench_both both[FR_BENCH_LIST]; /* pp+tg */
    size_t both_count;
    fr_bench_list depths;      /* tokens in the context before */
    bool depths_fit;           /* those beyond the model's context are left out; else they are FR_INPUT */
    fr_bench_list rows;        /* T(K): 1 to FR_STEP_MAX; none or 0: not measured */
    fr_bench_list drafts;      /* a round, or FR_DRAFT_AUTO: one manner of speculation each */
    size_t text_tokens;        /* that speculation generates after each prompt; 0: none */
    const char *prompt_folder; /* NULL: prompts of our own */
    bool drafts_asked;         /* the list of drafts is the user's: without a drafter it is refused */
    double rates[FR_STEP_MAX]; /* drafts are made right at these, by depth, the last one for all deeper */
    size_t rate_count;         /* 0: drafts are what the drafter says */
    size_t repetitions;
    double max_spread;                              /* per cent */
    void (*doing)(void *context, const char *what); /* called before each measurement; NULL: it is done */
    void *context;
} fr_bench_model_plan;

/* T(K)/T(1) at the first instruction set, number of threads and depth, for a picture; count 0: not measured. Values
 * that were left out are NaN. */
typedef struct fr_bench_curve {
    char how[64]; /* ", 2 threads, avx2" */
    size_t depth;
    double rows[FR_STEP_MAX], ratio[FR_STEP_MAX], limit[FR_STEP_MAX];
    double spread[FR_STEP_MAX]; /* of ratio, per cent */
    size_t count;
} fr_bench_curve;

/* Measures the model. If speculation changed an id or a logit it gives FR_NUMERIC, after everything has been
 * measured. */
fr_status fr_bench_model(const fr_bench_model_plan *plan, fr_bench_report *report, fr_bench_curve *curve);

#endif
