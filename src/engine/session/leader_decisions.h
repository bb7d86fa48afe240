/* Sends what masks and grammars decide about a session's text from rank 0 to the other ranks. If rank 0's engine leads
 * those of the other ranks (src/api/rank_leader.h), only rank 0 has the caller's masks and grammars. The other ranks'
 * sessions compute everything else themselves.
 *
 * In: on rank 0, its decision. Out: the same decision on all ranks, which make the same calls in the same order. If a
 * session's text has no mask or grammar, or no rank leads, each call gives back its arguments unchanged. */
#ifndef FR_SRC_ENGINE_SESSION_LEADER_DECISIONS_H
#define FR_SRC_ENGINE_SESSION_LEADER_DECISIONS_H

#include "src/engine/session/state.h"

/* Returns true if rank 0 decides about the text and this process is another rank. */
bool fr_leader_decisions_are_elsewhere(const fr_session *session);

/* Returns true if the session's text follows a grammar, here or on rank 0. */
bool fr_leader_decisions_have_grammar(const fr_session *session);

/* Shares the drafts after the timeline and their number *count; if rank 0 failed to make them, shares the failure. */
fr_status fr_leader_decisions_share_drafts(fr_session *session, fr_status status, size_t *count);

/* Shares the result of fr_session_choose: the accepted drafts and the token after them. */
fr_status fr_leader_decisions_share_choice(fr_session *session, fr_status status, size_t *stood, int32_t *token);

#endif
