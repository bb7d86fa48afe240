/* An engine that all ranks of a job have and rank 0 alone is asked of, as a server is: it leads, the others follow.
 *
 * In: what a caller asks of rank 0's engine and its sessions. Out: told to the other ranks, which do the same with
 * theirs (fr_lab_engine_follow), draw and draft for themselves, and so come to the same forwards. What ranks have to do
 * together is told before it is done; all else once rank 0 has done it, so that what it refuses is no matter of theirs,
 * and where one of them can't do it its failure is the job's. Masks and grammars stay on rank 0: of their sessions the
 * others are told that there are some, and then what they decide (src/engine/session/leader_decisions.h). Pictures are
 * run by rank 0. What isn't told is refused (fr_rank_leader_refuse). Of an engine that doesn't lead all of these are
 * nothing. */
#ifndef FR_SRC_API_RANK_LEADER_H
#define FR_SRC_API_RANK_LEADER_H

#include "src/engine/session/session.h"

typedef struct fr_rank_leader fr_rank_leader;

/* A session has been opened; is about to be closed. */
void fr_rank_leader_opened(const fr_engine *engine, const fr_options *options, fr_session *session);
void fr_rank_leader_close(const fr_session *session);

/* It has been reset; given ids, which it has taken or refused. */
void fr_rank_leader_reset(const fr_session *session);
void fr_rank_leader_put(const fr_session *session, fr_status status, const int32_t *ids, size_t count);
void fr_rank_leader_put_scored(const fr_session *session, fr_status status, const int32_t *ids, size_t count);

/* It has been shown pictures, given a mask or a grammar, or a place where its text begins, other settings of drawing,
 * stop strings, somebody who traces it; gave its pages up, and has them again. status: of what is told where it is
 * FR_OK alone. */
void fr_rank_leader_show(const fr_session *session, fr_status *status);
void fr_rank_leader_decide(fr_session *session, fr_status status);
void fr_rank_leader_draw(const fr_session *session, fr_status status, const fr_options *options);
void fr_rank_leader_stops(const fr_session *session, fr_status status, const char *const *strings, size_t count);
void fr_rank_leader_trace(const fr_session *session);
void fr_rank_leader_set_aside(const fr_session *session, fr_status status);
void fr_rank_leader_take_up(const fr_session *session, fr_status status);

/* A text is about to be pooled, or scored, and has been run. Nobody is asked whether to give it up. */
void fr_rank_leader_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling);
void fr_rank_leader_score(fr_session *session, const int32_t *ids, size_t count);
void fr_rank_leader_ran(fr_session *session);

/* A round is about to be run, and has been; whether one of its sessions is given up is asked before it. */
void fr_rank_leader_step(const fr_engine *engine, const fr_round *rounds, size_t count);
void fr_rank_leader_stepped(const fr_engine *engine, const fr_round *rounds, size_t count);

/* The engine is about to be closed. */
void fr_rank_leader_end(fr_engine *engine);

/* FR_UNBUILT where it leads. */
fr_status fr_rank_leader_refuse(const fr_engine *engine, const char *call);

#endif
