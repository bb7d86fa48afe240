/* A session between calls: see state.h. */
#include "src/session/state.h"

#include "formats/error.h"
#include "src/session/accept.h"

void fr_session_clear(fr_session *s) {
    fr_kv_checkpoints_truncate(&s->kv_checkpoints, &s->kv, 0);
    fr_kv_reset(&s->kv);
    s->length = s->met = s->told = 0;
    s->fresh = s->pending = s->ended = false;
    s->embeddings = &fr_no_input_embeddings;
    fr_session_place(s, 0, 0);
    fr_stats_reset(&s->stats);
}

void fr_session_place(fr_session *s, size_t first, size_t place) {
    for (size_t i = first; i < s->context + FR_STEP_MAX; i++, place++)
        for (int axis = 0; axis < FR_AXES; axis++) s->places[i].at[axis] = (int32_t)place;
}

fr_batch fr_session_rows(fr_session *s, size_t position, size_t count) {
    size_t hidden = s->model->trunk.spec.hidden;
    for (size_t r = 0; r < count; r++)
        s->rows[r] = (fr_row){.id = s->ids[position + r],
                              .position = (int32_t)(position + r),
                              .parent = (int32_t)r - 1,
                              .place = s->places[position + r],
                              .embedding = fr_input_embedding(s->embeddings, position + r, hidden)};
    return (fr_batch){.rows = s->rows, .count = count, .timelines = s->timelines};
}

fr_status fr_session_batch(fr_session *s, size_t count, fr_forward *forward) {
    FR_TRY(fr_kv_claim(&s->kv, count));
    *forward = (fr_forward){.model = s->model,
                            .activations = s->activations,
                            .batch = fr_session_rows(s, s->kv.length, count),
                            .hidden = s->hidden,
                            .logits = s->logits,
                            .best = s->best};
    return FR_OK;
}

fr_status fr_session_check_abort(const fr_session *s) {
    if (!s->abort || !s->abort(s->abort_context)) return FR_OK;
    return fr_fail(FR_ABORTED, "aborted with %zu of %zu tokens run", s->kv.length, s->length);
}

fr_status fr_session_not_finite(const fr_session *s, size_t position) {
    return fr_fail(FR_NUMERIC, "%s: the logits at position %zu are not finite: damaged weights?", s->model->files.path,
                   position);
}

fr_status fr_session_choose(fr_session *s, size_t drafted, size_t *stood, int32_t *token) {
    fr_past past = {.ids = s->ids, .length = s->length, .drafts = s->ids + s->length, .drafted = drafted};
    if (s->sampler.on) {
        *stood = fr_sampler_verify(&s->sampler, s->logits, &past, token);
    } else {
        *stood = fr_accept_greedy(s->best, past.drafts, drafted);
        *token = (int32_t)s->best[*stood];
    }
    for (size_t r = 0; r <= *stood; r++)
        if (s->best[r] < 0) return fr_session_not_finite(s, s->length - 1 + r);
    if (*token < 0) return fr_fail(FR_INPUT, "logit bias: no token is left at position %zu", s->length + *stood);
    return FR_OK;
}

fr_draft_view fr_session_view(fr_session *s) {
    return (fr_draft_view){.ids = s->ids,
                           .places = s->places,
                           .embeddings = s->embeddings,
                           .length = s->length,
                           .told = s->told,
                           .kv = &s->kv,
                           .hidden = s->hidden + s->hidden_row * s->model->trunk.spec.hidden,
                           .pool = s->pool,
                           .picker = s->sampler.on ? &s->picker : NULL};
}

void fr_session_follow(fr_session *s) {
    if (!s->draft->follows) return;
    fr_draft_view view = fr_session_view(s);
    s->draft->method->follow(s->draft, &view);
}

bool fr_session_adaptive(const fr_session *s) {
    return s->adapts && s->draft->method != &fr_draft_none;
}

size_t fr_session_depth(fr_session *s, size_t limit) {
    return fr_session_adaptive(s) ? fr_depth_choose(&s->depth, limit) : limit;
}

fr_status fr_session_draft(fr_session *s, const fr_draft_view *view, fr_depth_round *round) {
    round->drafted = 0;
    if (round->asked == 0) return FR_OK;
    fr_sampler_forget(&s->sampler);
    return s->draft->method->propose(s->draft, view, round->asked, s->ids + view->length, &round->drafted, NULL);
}
