/* Drafting ahead: see ahead.h. */
#include "src/session/ahead.h"

#include <string.h>

#include "formats/error.h"
#include "src/base/sizes.h"
#include "src/session/state.h"

/* Drafts that fit behind the timeline; none where there is nothing to draft from: before the target has run all but the
 * last id, after an end of sequence. */
static size_t room(const fr_session *s) {
    size_t left = s->context - s->length;
    if (s->length < 2 || s->fresh || s->pending || s->ended || left < 2) return 0;
    return left - 1;
}

static fr_status draft(void *context) {
    fr_session *s = context;
    return fr_session_draft(s, &s->ahead.view, &s->ahead.round);
}

fr_status fr_ahead_submit(fr_session *s) {
    fr_ahead *a = &s->ahead;
    if (a->state == FR_AHEAD_UNDER_WAY) return fr_fail(FR_USAGE, "fr_draft_submit: drafts are under way already");
    if (!a->worker) FR_TRY(fr_worker_open(&a->worker));
    a->view = fr_session_view(s);
    a->round = (fr_depth_round){.asked = fr_session_depth(s, fr_smaller(room(s), s->draft_max))};
    a->state = FR_AHEAD_UNDER_WAY;
    fr_worker_start(a->worker, draft, s);
    return FR_OK;
}

/* The time that is spent waiting is what drafting costs. */
static fr_status finish(fr_session *s) {
    fr_ahead *a = &s->ahead;
    if (a->state != FR_AHEAD_UNDER_WAY) return FR_OK;
    fr_status status = fr_worker_join(a->worker);
    a->state = status == FR_OK ? FR_AHEAD_READY : FR_AHEAD_NONE;
    return status;
}

fr_status fr_ahead_wait(fr_session *s, int32_t *ids, size_t *count) {
    const fr_depth_round *round = &s->ahead.round;
    double start = fr_clock();
    *count = 0;
    if (s->ahead.state == FR_AHEAD_NONE) return fr_fail(FR_USAGE, "fr_draft_wait: nothing was submitted");
    FR_TRY(finish(s));
    double waited = fr_clock() - start;
    s->stats.value[FR_STAT_DRAFT_SECONDS] += waited;
    s->stats.value[FR_STAT_DECODE_SECONDS] += waited;
    memcpy(ids, s->ids + s->length, round->drafted * sizeof *ids);
    *count = round->drafted;
    return FR_OK;
}

fr_status fr_ahead_take(fr_session *s, size_t limit, fr_depth_round *round) {
    FR_TRY(finish(s));
    s->ahead.state = FR_AHEAD_NONE;
    *round = s->ahead.round;
    if (round->asked > limit) round->asked = limit;
    if (round->drafted > limit) round->drafted = limit;
    return FR_OK;
}

void fr_ahead_cancel(fr_session *s) {
    if (s->ahead.state == FR_AHEAD_UNDER_WAY) fr_worker_drop(s->ahead.worker);
    s->ahead.state = FR_AHEAD_NONE;
}

fr_status fr_ahead_now(fr_session *s, size_t steps, int32_t *ids, size_t *count, float *logits) {
    *count = 0;
    if (s->ahead.state == FR_AHEAD_UNDER_WAY) return fr_fail(FR_USAGE, "fr_draft_now: drafts are under way");
    s->ahead.state = FR_AHEAD_NONE;
    size_t most = fr_smaller(room(s), steps);
    if (most == 0) return FR_OK;
    fr_draft_view view = fr_session_view(s);
    view.picker = NULL;
    return s->draft->method->propose(s->draft, &view, most, ids, count, logits);
}
