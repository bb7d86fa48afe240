/* Makes the engines of all ranks of a job do what rank 0's engine does. A server needs this: only rank 0 gets calls,
 * and the other ranks repeat them.
 *
 * In: the calls to rank 0's engine and its sessions. Out: the same calls on the other ranks (fr_lab_engine_follow).
 * Each of these ranks samples and drafts by itself, so it runs the same forwards. Calls in which ranks compute together
 * are sent before rank 0 makes them. All other calls are sent afterwards, most of them only if rank 0 accepted them. If
 * a rank can't make a call, the job fails. Masks and grammars stay on rank 0: the other ranks learn that a session has
 * a mask or a grammar, and then get rank 0's decisions (src/engine/session/leader_decisions.h). The vision tower runs
 * on rank 0 only. Calls that are never sent are refused (fr_rank_leader_refuse). For an engine that does not lead,
 * these functions do nothing. */
#ifndef FR_SRC_API_RANK_LEADER_H
#define FR_SRC_API_RANK_LEADER_H

#include "src/engine/session/session.h"

typedef struct fr_rank_leader fr_rank_leader;

/* Tell the other ranks that a session was opened, and that a session will be closed. */
void fr_rank_leader_opened(const fr_engine *engine, const fr_options *options, fr_session *session);
void fr_rank_leader_close(const fr_session *session);

/* Tell the other ranks that a session was reset, or that ids were given to a session. status: rank 0's result. The ids
 * are sent even if rank 0 refused them, because the other ranks must refuse them too. */
void fr_rank_leader_reset(const fr_session *session);
void fr_rank_leader_put(const fr_session *session, fr_status status, const int32_t *ids, size_t count);
void fr_rank_leader_put_scored(const fr_session *session, fr_status status, const int32_t *ids, size_t count);

/* Tell the other ranks that a session got pictures, a mask, a grammar, other sampling options, stop strings or a trace,
 * or that a session was set aside or taken up. A function that takes a status sends only if that status is FR_OK. */
void fr_rank_leader_show(const fr_session *session, fr_status *status);
void fr_rank_leader_decide(fr_session *session, fr_status status);
void fr_rank_leader_draw(const fr_session *session, fr_status status, const fr_options *options);
void fr_rank_leader_stops(const fr_session *session, fr_status status, const char *const *strings, size_t count);
void fr_rank_leader_trace(const fr_session *session);
void fr_rank_leader_set_aside(const fr_session *session, fr_status status);
void fr_rank_leader_take_up(const fr_session *session, fr_status status);

/* Tell the other ranks that a text will be pooled or scored. fr_rank_leader_ran is called when the text was run.
 * Between the two calls, the session's abort callback is not called. */
void fr_rank_leader_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling);
void fr_rank_leader_score(fr_session *session, const int32_t *ids, size_t count);
void fr_rank_leader_ran(fr_session *session);

/* fr_rank_leader_step calls the abort callbacks of a round's sessions, and then tells the other ranks that the round
 * will be run. fr_rank_leader_stepped must be called after the round was run. */
void fr_rank_leader_step(const fr_engine *engine, const fr_round *rounds, size_t count);
void fr_rank_leader_stepped(const fr_engine *engine, const fr_round *rounds, size_t count);

/* Tells the other ranks that the engine will be closed. */
void fr_rank_leader_end(fr_engine *engine);

/* Refuses a call that is never sent to the other ranks: FR_UNBUILT if the engine leads them. */
fr_status fr_rank_leader_refuse(const fr_engine *engine, const char *call);

#endif
