/* A model's speed: prompts and decode as llama-bench names them, verifying K rows, drafting, and speculation on texts.
 *
 * In: a plan. Out: facts and tables of a report (table.h), and the curve of T(K) for a picture. Every figure is the
 * median of repeated timings after a warm-up, with its spread. A figure is left out, with a remark, if its spread is
 * larger than the plan allows or if it is of a single timing. A model is opened once for each instruction set and
 * number of threads. */
#ifndef FR_BENCH_MODEL_H
#define FR_BENCH_MODEL_H

#include "bench/table.h"
#include "forerun.h"

#define FR_BENCH_LIST 64 /* the most numbers of a list */

typedef struct fr_bench_list {
    int64_t at[FR_BENCH_LIST];
    size_t count;
} fr_bench_list;

/* A prompt and the tokens generated after it, timed together. */
typedef struct fr_bench_both {
    size_t prompt, generate;
} fr_bench_both;

typedef struct fr_bench_model_plan {
    const char *model;
    const char *drafter;   /* NULL: the model's own MTP layer, if it has one */
    const char *spec_type; /* method that drafts (FR_OPT_SPEC_TYPE); NULL: the drafter's */
    fr_options *options;   /* options for opening them; threads, instruction set and drafting are set here */
    fr_bench_list threads; /* none: the library's default number */
    char isas[FR_BENCH_LIST][16];
    size_t isa_count;                  /* 0: only the best one here */
    fr_bench_list prompts;             /* pp: lengths; 0: not measured */
    fr_bench_list generate;            /* tg: numbers of tokens; 0: not measured */
    fr_bench_both both[FR_BENCH_LIST]; /* pp+tg */
    size_t both_count;
    fr_bench_list depths; /* tokens that are in the context before */
    bool depths_fit;      /* depths beyond the model's context are left out; otherwise they fail with FR_INPUT */
    fr_bench_list rows;   /* T(K): 1 to FR_STEP_MAX; none or 0: not measured */
    /* drafts a round, or FR_DRAFT_AUTO: each is a setting in which speculation is measured */
    fr_bench_list drafts;
    size_t text_tokens;        /* tokens that speculation generates after each prompt; 0: not measured */
    const char *prompt_folder; /* NULL: the built-in prompts */
    bool drafts_asked;         /* the user gave the list of drafts, so a missing drafter is an error */
    /* share of drafts that are made right, by depth; the last one holds for all deeper ones */
    double rates[FR_STEP_MAX];
    size_t rate_count; /* 0: drafts are the drafter's */
    size_t repetitions;
    double max_spread;                              /* the largest spread of a figure, in per cent */
    void (*doing)(void *context, const char *what); /* called before each measurement; NULL: it is done */
    void *context;
} fr_bench_model_plan;

/* T(K)/T(1) for a picture, at the first instruction set, number of threads and depth; count 0: not measured. Values
 * that were left out are NaN. */
typedef struct fr_bench_curve {
    char how[64]; /* description of the setting, such as ", 2 threads, avx2" */
    size_t depth;
    double rows[FR_STEP_MAX], ratio[FR_STEP_MAX], limit[FR_STEP_MAX];
    double spread[FR_STEP_MAX]; /* spread of `ratio`, in per cent */
    size_t count;
} fr_bench_curve;

/* Measures the model. If speculation has changed an id or a logit, it gives FR_NUMERIC after everything was
 * measured. */
fr_status fr_bench_model(const fr_bench_model_plan *plan, fr_bench_report *report, fr_bench_curve *curve);

#endif
