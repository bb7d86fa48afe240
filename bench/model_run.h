/* Declares what all parts of a model's bench share: the opened objects, and the cells with which each line of a table
 * begins.
 *
 * In: a plan, an opened model. Out: the cells with which all tables begin, under llama-bench's names. */
#ifndef FR_BENCH_MODEL_RUN_H
#define FR_BENCH_MODEL_RUN_H

#include "bench/busy.h"
#include "bench/model.h"
#include "bench/model_prompts.h"
#include "bench/sample.h"
#include "src/engine/session/state.h"

#define FR_BENCH_COLUMNS 40
#define FR_BENCH_TIMINGS 3000 /* the most timings of one measurement */

typedef struct fr_bench_run {
    const fr_bench_model_plan *plan;
    fr_bench_report *report;
    fr_model *model;
    fr_drafter *drafter;      /* NULL: none */
    fr_bench_prompts prompts; /* prompts of the plan's folder, or the built-in ones; none if no texts are wanted */
    fr_bench_curve *curve;
    fr_session *session;            /* session in which forwards are timed, without a drafter */
    fr_bench_list depths;           /* depths that fit the model's context */
    char how[64];                   /* description of the setting for titles, such as ", 2 threads, avx2" */
    double one;                     /* T(1) at the first depth, in seconds; NaN: unknown */
    double ratio[FR_STEP_MAX + 1];  /* T(K)/T(1) at the first depth; NaN: unknown */
    double draft_start, draft_step; /* proposing K drafts takes draft_start + K * draft_step seconds; NaN: unknown */
    size_t doubtful;                /* number of figures in this table whose spread is too large */
    fr_bench_busy busy;             /* the moment when the present measurement began */
    /* the largest share of the CPUs that other programs took during a measurement of this table, in per cent */
    double others;
    bool differs; /* speculation changed a text or a logit */
} fr_bench_run;

/* A measurement, which becomes a line of a table: its name and its timings. */
typedef struct fr_bench_test {
    const char *name;
    size_t prompt, generate, depth;
    size_t tokens; /* number of tokens that are run in each timing */
    const double *seconds;
    size_t count; /* number of timings; 0: nothing was timed, for example because speculation changed the text */
} fr_bench_test;

/* Begins a table with the columns that all tables have, then its own columns, which must last until the next call. */
void fr_bench_begin(fr_bench_run *run, const char *name, const char *title, const fr_bench_column *own, size_t count);

/* Begins a line of a table with the cells that the lines of all tables have. */
void fr_bench_begin_row(fr_bench_run *run, const fr_bench_test *test);

/* fr_bench_figure_kept computes the figure (median and spread) of n values, and leaves their order as it is.
 * fr_bench_put adds a cell to the present line of the table: `value`, which was computed from the figure. The cell is
 * marked with ? if the figure's spread is too large. */
fr_bench_figure fr_bench_figure_kept(const double *values, size_t n);
void fr_bench_put(fr_bench_run *run, const fr_bench_figure *figure, double value);

/* Ends a table with remarks: how many figures are marked with ?, and how much other programs used the CPUs. */
void fr_bench_end(fr_bench_run *run);

/* Opens a session of the model. drafts: number of drafts in a round (0: none; or FR_DRAFT_AUTO); context: number of
 * ids that the session must have room for. */
fr_status fr_bench_session(const fr_bench_run *run, int64_t drafts, size_t context, fr_session **session);

/* Writes a test's name, such as "pp512 @ d4096". */
void fr_bench_name(char *name, size_t size, const char *what, size_t depth);

/* Reports the measurement that begins now; NULL: the measurement has ended. */
void fr_bench_doing(fr_bench_run *run, const char *what);

/* Gives the break-even rate a, the acceptance at which speculation is as fast as plain decoding. A round costs as much
 * time as `cost` decode steps. If each draft is accepted with probability a once all drafts before it were, the round
 * gives 1 + a + ... + a^drafts tokens. At the break-even rate this number equals `cost`. 0: the drafts always pay;
 * NaN: they never do. */
double fr_bench_break_even(size_t drafts, double cost);

/* Returns true if the run can make drafts. */
bool fr_bench_drafts_at_all(const fr_bench_run *run);

/* Run the parts of the bench. All of them but fr_bench_model_phases and fr_bench_model_texts time forwards in
 * run->session. */
void fr_bench_model_tests(fr_bench_run *run);
fr_status fr_bench_model_drafts(fr_bench_run *run);
void fr_bench_model_rows(fr_bench_run *run);
void fr_bench_model_ranks(fr_bench_run *run);
fr_status fr_bench_model_phases(fr_bench_run *run);
fr_status fr_bench_model_texts(fr_bench_run *run);

/* Reads the texts of fr_bench_model_texts before anything is measured. So a folder without texts is refused at once,
 * and not after hours. */
fr_status fr_bench_model_read_texts(fr_bench_run *run);

#endif
