/* Shared parts of a model's bench: what is open, and the cells that begin a row of a table.
 *
 * In: a plan, an opened model. Out: cells that all tables begin with, under llama-bench's names. */
#ifndef FR_BENCH_MODEL_RUN_H
#define FR_BENCH_MODEL_RUN_H

#include "bench/busy.h"
#include "bench/model.h"
#include "bench/model_prompts.h"
#include "bench/sample.h"
#include "src/engine/session/state.h"

#define FR_BENCH_COLUMNS 40
#define FR_BENCH_TIMINGS 3000 /* of one measurement at most */

typedef struct fr_bench_run {
    const fr_bench_model_plan *plan;
    fr_bench_report *report;
    fr_model *model;
    fr_drafter *drafter;      /* NULL: none */
    fr_bench_prompts prompts; /* of the plan's folder, or our own; none while nothing is to be said about texts */
    fr_bench_curve *curve;
    fr_session *session;            /* that forwards are timed in; it has no drafter */
    fr_bench_list depths;           /* those that fit the model's context */
    char how[64];                   /* ", 2 threads, avx2": what a title ends with */
    double one;                     /* T(1) at the first depth, seconds; NaN: not known, as below */
    double ratio[FR_STEP_MAX + 1];  /* T(K)/T(1) there */
    double draft_start, draft_step; /* seconds of proposing K drafts: start + K * step */
    size_t doubtful;                /* figures of this table whose spread is too large */
    fr_bench_busy busy;             /* when what is being measured began */
    double others;                  /* the most that other programs took during a row of this table, per cent */
    bool differs;                   /* speculation changed an answer */
} fr_bench_run;

/* One measurement: a test's name, and its timings. */
typedef struct fr_bench_test {
    const char *name;
    size_t prompt, generate, depth;
    size_t tokens; /* that each timing is about */
    const double *seconds;
    size_t count; /* of timings; 0: none may be told */
} fr_bench_test;

/* Begins a table: the columns that all tables have, then its own, which must last until the next call. */
void fr_bench_begin(fr_bench_run *run, const char *name, const char *title, const fr_bench_column *own, size_t count);

/* Adds the common cells of a row. */
void fr_bench_begin_row(fr_bench_run *run, const fr_bench_test *test);

/* The first function gives the figure of n values, without changing them; the second adds its cell, which is empty if
 * it spread too much. */
fr_bench_figure fr_bench_figure_kept(const double *values, size_t n);
void fr_bench_put(fr_bench_run *run, const fr_bench_figure *figure, double value);

/* Ends a table with a line that tells how many figures were left out. */
void fr_bench_end(fr_bench_run *run);

/* Opens a session of the model. drafts: in a round (0: none, FR_DRAFT_AUTO); context: ids for which it has room. */
fr_status fr_bench_session(const fr_bench_run *run, int64_t drafts, size_t context, fr_session **session);

/* Writes a test's name, such as "pp512 @ d4096". */
void fr_bench_name(char *name, size_t size, const char *what, size_t depth);

/* Reports the measurement that begins now; NULL: it is done. */
void fr_bench_doing(fr_bench_run *run, const char *what);

/* Gives the chance a of each draft to be accepted after all before it, at which a round of so many drafts is worth its
 * cost in decode steps: 1 + a + ... + a^drafts = cost. 0: it pays at any chance; NaN: at none. */
double fr_bench_break_even(size_t drafts, double cost);

/* Returns true if there is a draft method. */
bool fr_bench_drafts_at_all(const fr_bench_run *run);

/* The parts of the bench. All but the last time forwards in run->session. */
void fr_bench_model_tests(fr_bench_run *run);
fr_status fr_bench_model_drafts(fr_bench_run *run);
void fr_bench_model_rows(fr_bench_run *run);
void fr_bench_model_ranks(fr_bench_run *run);
fr_status fr_bench_model_texts(fr_bench_run *run);

/* Reads the texts for the last part, so that a folder without any is refused before hours of timing. */
fr_status fr_bench_model_read_texts(fr_bench_run *run);

#endif
