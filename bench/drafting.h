/* Opens a target with its drafter, generates texts, and accepts drafts at known rates, for all programs that measure
 * speculation.
 *
 * In: folders of models. Out: sessions, ids, tokens per second. A failure ends the program with the library's error
 * line. */
#ifndef FR_BENCH_DRAFTING_H
#define FR_BENCH_DRAFTING_H

#include "src/engine/session/state.h"

typedef struct fr_bench_engine {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options; /* a context of 1024 positions; texts continue after an end-of-sequence token */
} fr_bench_engine;

fr_bench_engine fr_bench_engine_open(const char *target, const char *assistant);
void fr_bench_engine_close(fr_bench_engine *engine);

/* Opens a session. words: the draft methods, as for --spec-type; depth: the number of drafts in a round, or
 * FR_DRAFT_AUTO for an adaptive number. */
fr_session *fr_bench_engine_session(const fr_bench_engine *engine, const char *words, int depth);

/* Steps the session until it has generated `count` ids. */
void fr_bench_generate(fr_session *session, int32_t *ids, size_t count);

/* Returns the speed at which the session generated the tokens after its first one. */
double fr_bench_tokens_per_second(const fr_session *session);

/* Gives the ids of a demo prompt such as "1-parser"; the caller frees them with fr_free. */
int32_t *fr_bench_demo_prompt(const fr_model *model, const char *name, size_t *count);

/* Accepts drafts at random; it is the context of a callback of fr_lab_session_script. at[d]: the probability that a
 * draft at depth d is accepted if all drafts before it were accepted. */
typedef struct fr_bench_replay {
    double at[FR_STEP_MAX];
    uint64_t random;
} fr_bench_replay;

bool fr_bench_replay_accepts(void *replay, size_t round, size_t depth);

#endif
