/* Measures a model's speed: prompts and decoding under llama-bench's names, verifying K rows, drafting, and speculation
 * on texts.
 *
 * In: a plan. Out: facts and tables of a report (table.h), and for a picture the curve of T(K), the time of a forward
 * of K rows. Every figure is the median of repeated timings after a warm-up, with its spread. A figure is marked with ?
 * if its spread is larger than the plan allows. A figure that was timed only once has no spread and is marked too. A
 * model is opened once for each instruction set and number of threads. */
#ifndef FR_BENCH_MODEL_H
#define FR_BENCH_MODEL_H

#include "bench/table.h"
#include "forerun.h"

#define FR_BENCH_LIST 64 /* the largest number of entries in a list */

typedef struct fr_bench_list {
    int64_t at[FR_BENCH_LIST];
    size_t count;
} fr_bench_list;

/* Describes a prompt and the tokens generated after it, which are timed together. */
typedef struct fr_bench_both {
    size_t prompt, generate;
} fr_bench_both;

typedef struct fr_bench_model_plan {
    const char *model;
    const char *drafter;   /* the drafter's file; NULL: the model's own MTP layer, if it has one */
    const char *spec_type; /* draft method (FR_OPT_SPEC_TYPE); NULL for the drafter's own method */
    fr_options *options;   /* options of the model; threads, instruction set and drafting are set by the bench */
    fr_bench_list threads; /* numbers of threads; if there are none, the library's default is used */
    char isas[FR_BENCH_LIST][16];
    size_t isa_count;                  /* number of instruction sets; 0 means only the best one of this machine */
    fr_bench_list prompts;             /* lengths of prompts for the tests pp; 0 if they are not measured */
    fr_bench_list generate;            /* numbers of tokens for the tests tg; 0 if they are not measured */
    fr_bench_both both[FR_BENCH_LIST]; /* prompts with the tokens after them for the tests pp+tg */
    size_t both_count;
    fr_bench_list depths; /* numbers of tokens that are in the context before a test */
    bool depths_fit;      /* depths that exceed the model's context are left out; otherwise they make the bench fail
                           * with FR_INPUT */
    fr_bench_list rows;   /* numbers K of rows for T(K), 1 to FR_STEP_MAX; if there are none, or 0, T(K) is not
                           * measured */
    /* numbers of drafts in a round, or FR_DRAFT_AUTO; speculation is measured with each of them */
    fr_bench_list drafts;
    /* number of tokens that are generated after each prompt to measure speculation; 0 if it is not measured */
    size_t text_tokens;
    size_t phases;             /* length of the prompt whose time is divided into phases; 0 if it is not measured */
    const char *prompt_folder; /* NULL: the built-in prompts */
    bool drafts_asked;         /* whether the user gave the list of drafts; if so, a missing drafter is an error */
    /* share of drafts that are made right at each depth; the last share holds for all greater depths */
    double rates[FR_STEP_MAX];
    size_t rate_count; /* number of rates; 0 if the real drafter makes the drafts */
    size_t repetitions;
    double max_spread;                              /* in per cent; a figure whose spread is larger is marked with ? */
    void (*doing)(void *context, const char *what); /* called before each measurement, and with NULL after it */
    void *context;
} fr_bench_model_plan;

/* Holds the curve of T(K)/T(1) for a picture, at the first instruction set, number of threads and depth of the plan.
 * count is 0 if the curve was not measured. A value is NaN if it is unknown. */
typedef struct fr_bench_curve {
    char how[64]; /* description of the setting, such as ", 2 threads, avx2" */
    size_t depth;
    double rows[FR_STEP_MAX], ratio[FR_STEP_MAX], limit[FR_STEP_MAX];
    double spread[FR_STEP_MAX]; /* spread of `ratio`, in per cent */
    size_t count;
} fr_bench_curve;

/* Measures the model. If speculation changed an id or a logit, the call fails with FR_NUMERIC, but only after
 * everything has been measured. */
fr_status fr_bench_model(const fr_bench_model_plan *plan, fr_bench_report *report, fr_bench_curve *curve);

#endif
