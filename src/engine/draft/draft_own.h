/* Makes a state of the method that is the caller's own: see draft_own.c.
 *
 * inner: what the session drafts with otherwise; taken over. compares: distributions of drafts are asked for. On
 * failure neither it nor the method's context is taken. Free it with its method's close. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_OWN_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_OWN_H

#include "src/engine/draft/draft.h"

/* What it works beside: the session's own method; another's state is that itself. */
const fr_draft *fr_draft_inner(const fr_draft *draft);

fr_status fr_draft_own(const fr_proposer *method, size_t vocab, bool compares, fr_draft *inner, fr_draft **draft);

#endif
