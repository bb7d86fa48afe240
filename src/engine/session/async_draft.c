/* Drafts in the background: see async_draft.h. */
#include "src/engine/session/async_draft.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/drafting.h"
#include "src/engine/session/timeline.h"

/* Counts the drafts that fit after the timeline. The count is 0 after an end of sequence, and until the target has run
 * all ids except the last one. */
static size_t most_drafts(const fr_session *s) {
    size_t left = s->context - s->length;
    if (s->length < 2 || s->phase != FR_PHASE_BETWEEN || s->ended || left < 2) return 0;
    return fr_smaller(left - 1, fr_timeline_drafts(s));
}

static fr_status draft(void *context) {
    fr_session *s = context;
    fr_draft_depth_part *drafts = &s->drafting.async.drafts;
    fr_proposal proposal;
    if (drafts->asked == 0) return FR_OK;
    fr_session_ask(s, &s->drafting.async.view, drafts->asked, &proposal);
    if (fr_session_adaptive(s)) proposal.by = 1 + drafts->drafter;
    FR_TRY(fr_draft_propose_one(&proposal));
    drafts->drafted = proposal.proposed;
    return FR_OK;
}

/* Returns true if the draft model runs on several ranks. The draft model's messages among ranks must not mix with those
 * of the caller's own forwards. */
static bool shares_ranks(const fr_drafter *drafter) {
    const fr_model *model = drafter ? fr_drafter_model(drafter) : NULL;
    return model && model->ranks;
}

fr_status fr_async_draft_submit(fr_session *s) {
    fr_async_draft *a = &s->drafting.async;
    if (a->state == FR_ASYNC_UNDER_WAY) return fr_fail(FR_USAGE, "fr_draft_submit: drafts are under way already");
    if (shares_ranks(s->engine->drafter))
        return fr_fail(FR_UNBUILT, "fr_draft_submit: not built where several ranks run the draft model together");
    if (!a->worker) FR_TRY(fr_worker_open(&a->worker));
    fr_engine_settle(s->engine);
    a->view = fr_session_view(s);
    size_t limit = fr_smaller(most_drafts(s), s->drafting.max);
    a->drafts = fr_drafting_submit(s, limit);
    a->state = FR_ASYNC_UNDER_WAY;
    s->engine->drafting = a->worker;
    fr_worker_start(a->worker, draft, s);
    return FR_OK;
}

/* Waits for drafts that are under way. The caller counts the waiting time as time of drafting. */
static fr_status finish(fr_session *s) {
    fr_async_draft *a = &s->drafting.async;
    if (a->state != FR_ASYNC_UNDER_WAY) return FR_OK;
    fr_status status = fr_worker_join(a->worker);
    a->state = status == FR_OK ? FR_ASYNC_READY : FR_ASYNC_NONE;
    return status;
}

fr_status fr_async_draft_wait(fr_session *s, int32_t *ids, size_t *count) {
    const fr_draft_depth_part *drafts = &s->drafting.async.drafts;
    double start = fr_clock();
    *count = 0;
    if (s->drafting.async.state == FR_ASYNC_NONE) return fr_fail(FR_USAGE, "fr_draft_wait: nothing was submitted");
    FR_TRY(finish(s));
    double waited = fr_clock() - start;
    s->stats.value[FR_STAT_DRAFT_SECONDS] += waited;
    s->stats.value[FR_STAT_DECODE_SECONDS] += waited;
    memcpy(ids, s->ids + s->length, drafts->drafted * sizeof *ids);
    *count = drafts->drafted;
    return FR_OK;
}

fr_status fr_async_draft_take(fr_session *s, size_t limit, fr_draft_depth_part *drafts) {
    FR_TRY(finish(s));
    s->drafting.async.state = FR_ASYNC_NONE;
    *drafts = s->drafting.async.drafts;
    drafts->asked = fr_smaller(drafts->asked, limit);
    drafts->drafted = fr_smaller(drafts->drafted, limit);
    return FR_OK;
}

void fr_async_draft_cancel(fr_session *s) {
    fr_engine_settle(s->engine);
    if (s->drafting.async.state == FR_ASYNC_UNDER_WAY) fr_worker_drop(s->drafting.async.worker);
    s->drafting.async.state = FR_ASYNC_NONE;
}

void fr_async_draft_close(fr_session *s) {
    fr_engine_settle(s->engine);
    if (s->engine->process == getpid()) fr_worker_close(s->drafting.async.worker);
}

fr_status fr_async_draft_now(fr_session *s, size_t steps, int32_t *ids, size_t *count, float *logits) {
    *count = 0;
    if (s->drafting.async.state == FR_ASYNC_UNDER_WAY) return fr_fail(FR_USAGE, "fr_draft_now: drafts are under way");
    s->drafting.async.state = FR_ASYNC_NONE;
    size_t most = fr_smaller(most_drafts(s), steps);
    if (most == 0) return FR_OK;
    fr_draft_view view = fr_session_view(s);
    view.picker = NULL;
    fr_proposal proposal = {.draft = s->drafting.draft, .view = &view, .count = most, .ids = ids, .logits = logits};
    FR_TRY(fr_draft_propose_one(&proposal));
    *count = proposal.proposed;
    return FR_OK;
}
