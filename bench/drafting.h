/* Shared parts of the programs that judge speculation: a target with its drafter, the texts that they write, and
 * drafts that are accepted at known rates.
 *
 * In: folders. Out: sessions, ids, tokens per second. A failure ends the program with the library's error line. */
#ifndef FR_BENCH_DRAFTING_H
#define FR_BENCH_DRAFTING_H

#include "src/engine/session/state.h"

typedef struct fr_bench_engine {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options; /* 1024 positions; texts continue after an end of sequence */
} fr_bench_engine;

fr_bench_engine fr_bench_engine_open(const char *target, const char *assistant);
void fr_bench_engine_close(fr_bench_engine *engine);

/* Opens a session. words: as for --spec-type; depth: drafts in a round, or FR_DRAFT_AUTO. */
fr_session *fr_bench_engine_session(const fr_bench_engine *engine, const char *words, int depth);

/* Runs steps until there are `count` ids. */
void fr_bench_generate(fr_session *session, int32_t *ids, size_t count);

/* Returns the speed at which the session generated the tokens after its first one. */
double fr_bench_tokens_per_second(const fr_session *session);

/* Gives the ids of a demo prompt such as "1-parser"; the caller frees them with fr_free. */
int32_t *fr_bench_demo_prompt(const fr_model *model, const char *name, size_t *count);

/* Accepts drafts at random, for fr_lab_session_script. at[d]: the share of the rounds that reach depth d which accept
 * the draft there. */
typedef struct fr_bench_replay {
    double at[FR_STEP_MAX];
    uint64_t random;
} fr_bench_replay;

bool fr_bench_replay_accepts(void *replay, size_t round, size_t depth);

#endif
