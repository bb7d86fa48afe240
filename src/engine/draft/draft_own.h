/* Opens a session's state for a draft method that the caller supplies (fr_proposer in forerun.h): see draft_own.c.
 *
 * The session's built-in method goes on working too. inner: the state of the built-in method, which the new state owns
 * from then on. compares: the distributions of drafts are needed. After a failure, the caller still owns `inner` and
 * the context of the caller's method. The `close` of the new state's method frees the new state. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_OWN_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_OWN_H

#include "src/engine/draft/draft.h"

/* If `draft` is the state of a caller's method, gives the state of the session's other method. Any other state is
 * returned as it is. */
const fr_draft *fr_draft_inner(const fr_draft *draft);

fr_status fr_draft_own(const fr_proposer *method, size_t vocab, bool compares, fr_draft *inner, fr_draft **draft);

#endif
