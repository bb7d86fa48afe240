/* Lets rank 0 lead an engine that all ranks of a job have, as a server needs it: only rank 0 is called, and the other
 * ranks follow.
 *
 * In: the calls to rank 0's engine and its sessions. Out: the same calls on the other ranks (fr_lab_engine_follow),
 * which sample and draft for themselves, and so run the same forwards. Work that ranks must do together is announced
 * before it is done. All other calls are sent after rank 0 has done them, so that calls which it refuses are not sent.
 * If a rank can't do a call, the job fails. Masks and grammars stay on rank 0: the other ranks are told that a session
 * has one, and then its decisions (src/engine/session/leader_decisions.h). Pictures are run by rank 0. Calls that are
 * not sent are refused (fr_rank_leader_refuse). For an engine that does not lead, these functions do nothing. */
#ifndef FR_SRC_API_RANK_LEADER_H
#define FR_SRC_API_RANK_LEADER_H

#include "src/engine/session/session.h"

typedef struct fr_rank_leader fr_rank_leader;

/* A session has been opened; a session is about to be closed. */
void fr_rank_leader_opened(const fr_engine *engine, const fr_options *options, fr_session *session);
void fr_rank_leader_close(const fr_session *session);

/* A session has been reset; it was given ids, and has taken or refused them. */
void fr_rank_leader_reset(const fr_session *session);
void fr_rank_leader_put(const fr_session *session, fr_status status, const int32_t *ids, size_t count);
void fr_rank_leader_put_scored(const fr_session *session, fr_status status, const int32_t *ids, size_t count);

/* A session has been given pictures, a mask or a grammar, a start of its text, other sampling options, stop strings or
 * a trace; it was swapped out, or swapped in again. A call with a status is sent only if it is FR_OK. */
void fr_rank_leader_show(const fr_session *session, fr_status *status);
void fr_rank_leader_decide(fr_session *session, fr_status status);
void fr_rank_leader_draw(const fr_session *session, fr_status status, const fr_options *options);
void fr_rank_leader_stops(const fr_session *session, fr_status status, const char *const *strings, size_t count);
void fr_rank_leader_trace(const fr_session *session);
void fr_rank_leader_set_aside(const fr_session *session, fr_status status);
void fr_rank_leader_take_up(const fr_session *session, fr_status status);

/* A text is about to be pooled or scored; it has been run. No abort callback is called for it. */
void fr_rank_leader_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling);
void fr_rank_leader_score(fr_session *session, const int32_t *ids, size_t count);
void fr_rank_leader_ran(fr_session *session);

/* A round is about to be run; it has been run. The abort callbacks of its sessions are called before it. */
void fr_rank_leader_step(const fr_engine *engine, const fr_round *rounds, size_t count);
void fr_rank_leader_stepped(const fr_engine *engine, const fr_round *rounds, size_t count);

/* The engine is about to be closed. */
void fr_rank_leader_end(fr_engine *engine);

/* Gives FR_UNBUILT if the engine leads. */
fr_status fr_rank_leader_refuse(const fr_engine *engine, const char *call);

#endif
