/* What masks and grammars decide of a session's text where rank 0 alone has them: its engine leads those of the other
 * ranks (src/api/rank_leader.h), whose sessions do all else for themselves.
 *
 * In: on rank 0 what it has come to. Out: the same on all ranks, which make the same calls in the same order. Of a
 * session whose text nothing of the kind decides, and of one that no rank leads, all of these hand back what they were
 * given. */
#ifndef FR_SRC_ENGINE_SESSION_LEADER_DECISIONS_H
#define FR_SRC_ENGINE_SESSION_LEADER_DECISIONS_H

#include "src/engine/session/state.h"

/* Whether they are rank 0's, and this is another one: there is nothing here to find them by. */
bool fr_leader_decisions_are_elsewhere(const fr_session *session);

/* Whether its text is of a grammar, wherever that is. */
bool fr_leader_decisions_have_grammar(const fr_session *session);

/* The drafts behind the timeline, *count of them, or why there are none. */
fr_status fr_leader_decisions_share_drafts(fr_session *session, fr_status status, size_t *count);

/* What fr_session_choose gives. */
fr_status fr_leader_decisions_share_choice(fr_session *session, fr_status status, size_t *stood, int32_t *token);

#endif
