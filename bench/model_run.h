/* Shared parts of a model's bench: the opened objects, and the cells with which a row of a table begins.
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
    fr_session *session;            /* session in which forwards are timed; it has no drafter */
    fr_bench_list depths;           /* depths that fit the model's context */
    char how[64];                   /* end of a title, such as ", 2 threads, avx2" */
    double one;                     /* T(1) at the first depth, in seconds; NaN: unknown, also in the members below */
    double ratio[FR_STEP_MAX + 1];  /* T(K)/T(1) at the first depth */
    double draft_start, draft_step; /* seconds of proposing K drafts: start + K * step */
    size_t doubtful;                /* figures of this table whose spread is too large */
    fr_bench_busy busy;             /* the moment when the present measurement began */
    /* the largest share that other programs took during a row of this table, in per cent */
    double others;
    bool differs; /* speculation changed an answer */
} fr_bench_run;

/* A measurement: the test's name, and its timings. */
typedef struct fr_bench_test {
    const char *name;
    size_t prompt, generate, depth;
    size_t tokens; /* tokens of each timing */
    const double *seconds;
    size_t count; /* number of timings; 0: they must not be reported */
} fr_bench_test;

/* Begins a table with the columns that all tables have, then its own columns, which must last until the next call. */
void fr_bench_begin(fr_bench_run *run, const char *name, const char *title, const fr_bench_column *own, size_t count);

/* Adds the common cells of a row. */
void fr_bench_begin_row(fr_bench_run *run, const fr_bench_test *test);

/* The first function gives the figure of n values, without changing them. The second adds the figure's cell, which is
 * empty if the spread is too large. */
fr_bench_figure fr_bench_figure_kept(const double *values, size_t n);
void fr_bench_put(fr_bench_run *run, const fr_bench_figure *figure, double value);

/* Ends a table with a line that gives the number of figures that were left out. */
void fr_bench_end(fr_bench_run *run);

/* Opens a session of the model. drafts: drafts in a round (0: none, or FR_DRAFT_AUTO); context: the number of ids for
 * which the session has room. */
fr_status fr_bench_session(const fr_bench_run *run, int64_t drafts, size_t context, fr_session **session);

/* Writes a test's name, such as "pp512 @ d4096". */
void fr_bench_name(char *name, size_t size, const char *what, size_t depth);

/* Reports the measurement that begins now; NULL: it is done. */
void fr_bench_doing(fr_bench_run *run, const char *what);

/* Gives the break-even rate a: if each draft is accepted with probability a after all before it, a round with this
 * many drafts gives just as many tokens as its cost in decode steps, 1 + a + ... + a^drafts = cost. 0: it pays at any
 * rate; NaN: at no rate. */
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
