/* Drafts in the background: the next round's drafts are made while the caller is busy with the last round's tokens.
 *
 * In: a session between two rounds. Out: drafts after its timeline, which the next round verifies. Drafting works on
 * the timeline and the cache's frontier as they were at the submission. A call that would change the timeline or the
 * frontier first waits for the drafts and drops them (fr_async_draft_cancel). So background drafting can cost time but
 * never changes a token. The functions do the work of fr_draft_* in forerun.h. */
#ifndef FR_SRC_ENGINE_SESSION_ASYNC_DRAFT_H
#define FR_SRC_ENGINE_SESSION_ASYNC_DRAFT_H

#include "base/worker.h"
#include "src/engine/draft/draft.h"
#include "src/engine/session/draft_depth.h"

typedef struct fr_session fr_session;

typedef enum fr_async_state {
    FR_ASYNC_NONE,
    FR_ASYNC_UNDER_WAY,
    FR_ASYNC_READY, /* there are drafts after the timeline */
} fr_async_state;

typedef struct fr_async_draft {
    fr_worker *worker; /* NULL until something is submitted */
    fr_async_state state;
    fr_draft_view view;         /* the session as it was when the drafts were submitted */
    fr_draft_depth_part drafts; /* number of drafts asked for, and of drafts proposed */
} fr_async_draft;

fr_status fr_async_draft_submit(fr_session *session);

/* Waits for drafts that are under way and copies them to ids, which has room for FR_STEP_MAX - 1. The drafts stay
 * submitted, so the next round can still take them. */
fr_status fr_async_draft_wait(fr_session *session, int32_t *ids, size_t *count);

/* Takes the submitted drafts for a round, at most `limit` of them. Afterwards no drafts are submitted. */
fr_status fr_async_draft_take(fr_session *session, size_t limit, fr_draft_depth_part *drafts);

/* fr_async_draft_cancel drops the session's submitted drafts. fr_async_draft_close does the same and ends the thread.
 * Both functions first wait for all drafts that the engine is making, including those of other sessions, because all
 * drafts take pages from the same pools. */
void fr_async_draft_cancel(fr_session *session);
void fr_async_draft_close(fr_session *session);

/* Makes up to `steps` drafts before it returns; each draft is the id with the largest logit. The session keeps none of
 * these drafts. logits: NULL, or room for [steps, vocab]. */
fr_status fr_async_draft_now(fr_session *session, size_t steps, int32_t *ids, size_t *count, float *logits);

#endif
