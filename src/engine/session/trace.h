/* Writes a session's rounds as lines of JSON, for later analysis.
 *
 * In: the session's work as it is done, and its running totals of seconds. Out: complete lines, which are passed to the
 * caller's function; forerun.h describes the lines. They are written into one buffer, which is allocated when the
 * session is opened, so tracing allocates nothing. If no function is set, a call costs one comparison. */
#ifndef FR_SRC_ENGINE_SESSION_TRACE_H
#define FR_SRC_ENGINE_SESSION_TRACE_H

#include "src/engine/session/stats.h"

typedef struct fr_trace {
    fr_trace_fn *line; /* NULL: tracing is off */
    void *context;
    char *text; /* [capacity] the line being written */
    size_t length, capacity;
    double began, told[FR_STAT_COUNT]; /* began: the clock at the first line; told: the totals at the last line */
    size_t round;
    /* the difference between the largest and the second largest logit for the id that was predicted last */
    double margin;
} fr_trace;

/* Reserves room for the longest line of a session that uses these paths (drafter NULL: none). The session's prompt
 * forwards have up to `rows` rows. */
void fr_trace_layout(fr_trace *trace, fr_arena *arena, const char *model, const char *drafter, size_t rows);

/* Names the model, drafter and settings of a trace. */
typedef struct fr_trace_subject {
    const char *model, *drafter; /* paths; drafter NULL: none */
    const char *method, *isa;
    size_t draft_max, threads, context;
} fr_trace_subject;

/* Sets the function that gets the lines, and writes the first line, which names the subject. line NULL ends the
 * trace. */
void fr_trace_begin(fr_trace *trace, const fr_stats *stats, const fr_trace_subject *subject, fr_trace_fn *line,
                    void *context);

/* Writes that a prompt's forward is done: `count` ids from `position` on. */
void fr_trace_prompt(fr_trace *trace, double seconds, size_t position, const int32_t *ids, size_t count);

/* Stores the margin of the id that is given next, from the logits by which the id was chosen. A round of other sessions
 * may overwrite these logits before the id is given. */
void fr_trace_predict(fr_trace *trace, const float *logits, size_t vocab);

/* Writes the ids that were proposed for the positions from `position` on. */
void fr_trace_draft(fr_trace *trace, const char *method, size_t position, const int32_t *ids, size_t count);

/* Holds the outcome of a round. */
typedef struct fr_trace_round {
    size_t position; /* position of the first id */
    size_t rows;     /* rows of the target's forward; 0: the id was predicted by a prompt's forward */
    size_t accepted; /* number of ids that were drafts; they come first */
    const int32_t *ids;
    size_t count;
    /* [count, vocab] the logits by which the ids were chosen; NULL if rows is 0 (see fr_trace_predict) */
    const float *logits;
    size_t vocab;
} fr_trace_round;

void fr_trace_accept(fr_trace *trace, const fr_stats *stats, const fr_trace_round *round);

#endif
