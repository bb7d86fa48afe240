/* Declares the objects and functions that all parts of a model's bench share.
 *
 * In: a plan, an opened model. Out: the cells with which each line of all tables begins, under llama-bench's names. */
#ifndef FR_BENCH_MODEL_RUN_H
#define FR_BENCH_MODEL_RUN_H

#include "bench/busy.h"
#include "bench/model.h"
#include "bench/model_prompts.h"
#include "bench/sample.h"
#include "src/engine/session/state.h"

#define FR_BENCH_COLUMNS 40
#define FR_BENCH_TIMINGS 3000 /* the largest number of timings of one measurement */

typedef struct fr_bench_run {
    const fr_bench_model_plan *plan;
    fr_bench_report *report;
    fr_model *model;
    fr_drafter *drafter;      /* NULL if the run has no drafter */
    fr_bench_prompts prompts; /* prompts of the plan's folder, or the built-in prompts; there are none if no texts are
                               * wanted */
    fr_bench_curve *curve;
    fr_session *session;            /* session in which forwards are timed, without a drafter */
    fr_bench_list depths;           /* depths that fit the model's context */
    char how[64];                   /* description of the setting for titles, such as ", 2 threads, avx2" */
    double one;                     /* T(1) at the first depth, in seconds; NaN if unknown */
    double ratio[FR_STEP_MAX + 1];  /* ratio[K] is T(K)/T(1) at the first depth; NaN if unknown */
    double draft_start, draft_step; /* proposing K drafts takes draft_start + K * draft_step seconds; NaN if unknown */
    size_t doubtful;                /* number of figures in this table whose spread is too large */
    fr_bench_busy busy;             /* the moment when the current measurement began */
    /* the largest share of the CPUs that other programs took during a measurement of this table, in per cent */
    double others;
    bool differs; /* speculation changed a text or a logit */
} fr_bench_run;

/* Describes a measurement, which becomes a line of a table: its name and its timings. */
typedef struct fr_bench_test {
    const char *name;
    size_t prompt, generate, depth;
    size_t tokens; /* number of tokens that are run in each timing */
    const double *seconds;
    size_t count; /* number of timings; 0 if nothing was timed, for example because speculation changed the text */
} fr_bench_test;

/* Begins a table. Its columns are those that all tables have, followed by `own`, the table's own columns. `own` must
 * stay valid until the next call. */
void fr_bench_begin(fr_bench_run *run, const char *name, const char *title, const fr_bench_column *own, size_t count);

/* Begins a line of a table with the cells that all lines of all tables have. */
void fr_bench_begin_row(fr_bench_run *run, const fr_bench_test *test);

/* fr_bench_figure_kept computes the figure (median and spread) of n values, and leaves their order as it is.
 * fr_bench_put adds a cell to the current line of the table: `value`, which was computed from the figure. The cell is
 * marked with ? if the figure's spread is too large. */
fr_bench_figure fr_bench_figure_kept(const double *values, size_t n);
void fr_bench_put(fr_bench_run *run, const fr_bench_figure *figure, double value);

/* Ends a table with remarks: how many figures are marked with ?, and which share of the CPUs other programs took. */
void fr_bench_end(fr_bench_run *run);

/* Opens a session of the model. drafts: number of drafts in a round, 0 for no drafts, or FR_DRAFT_AUTO; context: number
 * of ids that the session must have room for. */
fr_status fr_bench_session(const fr_bench_run *run, int64_t drafts, size_t context, fr_session **session);

/* Writes a test's name, such as "pp512 @ d4096". */
void fr_bench_name(char *name, size_t size, const char *what, size_t depth);

/* Reports that the measurement `what` begins now. NULL reports that the measurement has ended. */
void fr_bench_doing(fr_bench_run *run, const char *what);

/* Gives the break-even rate a, the acceptance rate at which speculation is as fast as plain decoding. A round costs as
 * much time as `cost` decode steps. If each draft is accepted with probability a once all drafts before it were
 * accepted, the round gives 1 + a + ... + a^drafts tokens. At the break-even rate this number equals `cost`. The result
 * is 0 if the drafts always pay, and NaN if they never pay. */
double fr_bench_break_even(size_t drafts, double cost);

/* Returns true if the run can make drafts. */
bool fr_bench_drafts_at_all(const fr_bench_run *run);

/* Each runs a part of the bench. All parts except fr_bench_model_phases and fr_bench_model_texts time forwards in
 * run->session. */
void fr_bench_model_tests(fr_bench_run *run);
fr_status fr_bench_model_drafts(fr_bench_run *run);
void fr_bench_model_rows(fr_bench_run *run);
void fr_bench_model_ranks(fr_bench_run *run);
fr_status fr_bench_model_phases(fr_bench_run *run);
fr_status fr_bench_model_texts(fr_bench_run *run);

/* Reads the texts of fr_bench_model_texts before anything is measured. So a folder without texts is refused at once,
 * and not after hours of measuring. */
fr_status fr_bench_model_read_texts(fr_bench_run *run);

#endif
