/* The cycle of draft, verify, accept and commit: see cycle.h. */
#include "src/session/cycle.h"

#include <string.h>

#include "formats/error.h"
#include "src/base/sizes.h"
#include "src/session/timeline.h"

/* ---------------------------------------------------------------------------------------------------------- a round */

/* The first `count` ids after the timeline stand, up to an end of sequence; they join the timeline. */
static size_t commit(fr_session *s, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (s->ignore_eos || !fr_model_is_eos(s->model, s->ids[s->length + i])) continue;
        s->ended = true;
        count = i + 1;
    }
    s->length += count;
    s->stats.value[FR_STAT_GENERATED_TOKENS] += (double)count;
    return count;
}

static fr_status draft_now(fr_session *s, size_t limit, fr_depth_round *round) {
    fr_draft_view view = fr_session_view(s);
    *round = (fr_depth_round){.asked = fr_session_depth(s, limit)};
    return fr_session_draft(s, &view, round);
}

/* At most `limit` drafts, behind the timeline: those that were submitted, or new ones. */
static fr_status propose(fr_session *s, size_t limit, fr_depth_round *round) {
    double start = fr_clock(), clock = start;
    bool submitted = s->async.state != FR_ASYNC_NONE;
    FR_TRY(submitted ? fr_async_draft_take(s, limit, round) : draft_now(s, limit, round));
    if (round->asked == 0) fr_session_follow(s);
    fr_stats_lap(&s->stats, FR_STAT_DRAFT_SECONDS, &clock);
    round->draft_seconds = clock - start;
    fr_trace_draft(&s->trace, s->draft->method->name, s->length, s->ids + s->length, round->drafted);
    return FR_OK;
}

/* Drafts stand behind the timeline already; one forward of K + 1 rows says how far they are right. */
static fr_status verify(fr_session *s, size_t drafted, size_t *count, size_t *accepted) {
    size_t rows = drafted + 1, stood;
    int32_t token;
    fr_forward f;
    FR_TRY(fr_session_batch(s, rows, &f));
    f.head_rows = rows;
    double clock = fr_clock();
    fr_forward_run(s->pool, &f);
    fr_stats_lap(&s->stats, FR_STAT_VERIFY_SECONDS, &clock);
    FR_TRY(fr_session_choose(s, drafted, &stood, &token));
    s->ids[s->length + stood] = token;
    fr_logprobs_take(&s->logprobs, s->logits, s->ids + s->length, stood + 1);
    *count = commit(s, stood + 1);
    *accepted = fr_smaller(stood, *count);
    s->hidden_row = *count - 1;
    fr_timeline_advance(s, s->length - 1, false);
    fr_stats_round(&s->stats, drafted, *accepted, *count);
    if (s->draft->method->commit) {
        fr_draft_view view = fr_session_view(s);
        s->draft->method->commit(s->draft, &view, drafted, *accepted);
        s->told = s->length;
    }
    fr_stats_lap(&s->stats, FR_STAT_ACCEPT_SECONDS, &clock);
    return FR_OK;
}

fr_status fr_cycle_round(fr_session *s, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    size_t from = s->length;
    fr_depth_round round = {0};
    *count = *accepted = 0;
    FR_TRY(fr_session_check_abort(s));
    if (s->pending) FR_TRY(fr_timeline_run(s));
    bool ran = !s->fresh;
    limit = fr_smaller(limit, fr_smaller(FR_STEP_MAX, s->context - s->length));
    if (s->ended || limit == 0) return FR_OK;
    if (!ran) {
        fr_async_draft_cancel(s); /* which had nothing to draft from */
        s->fresh = false;
        s->ids[s->length] = s->next;
        *count = commit(s, 1);
    } else {
        double start = fr_clock(), clock = start;
        FR_TRY(propose(s, fr_smaller(s->draft_max, limit - 1), &round));
        FR_TRY(verify(s, round.drafted, count, accepted));
        fr_stats_lap(&s->stats, FR_STAT_DECODE_SECONDS, &clock);
        round.accepted = *accepted;
        round.verify_seconds = clock - start - round.draft_seconds;
        if (fr_session_adaptive(s)) fr_depth_report(&s->depth, &round);
    }
    memcpy(ids, s->ids + from, *count * sizeof *ids);
    fr_trace_accept(&s->trace, &s->stats,
                    &(fr_trace_round){.position = from,
                                      .rows = ran ? round.drafted + 1 : 0,
                                      .accepted = *accepted,
                                      .ids = ids,
                                      .count = *count,
                                      .logits = s->logits,
                                      .vocab = s->model->trunk.spec.vocab});
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- scores */

/* Logits of the batch's rows from `first` on, FR_STEP_MAX rows at a time. */
static fr_status hand_out(fr_session *s, fr_forward *f, size_t first, fr_logits_fn *sink, void *context) {
    for (f->head_first = first; f->head_first < f->batch.count; f->head_first += f->head_rows) {
        f->head_rows = fr_smaller(FR_STEP_MAX, f->batch.count - f->head_first);
        fr_head_run(s->pool, f);
        for (size_t r = 0; r < f->head_rows; r++)
            if (s->best[r] < 0) return fr_session_not_finite(s, s->kv.length + f->head_first + r);
        FR_TRY(sink(context, s->logits, f->head_rows, s->model->trunk.spec.vocab));
    }
    return FR_OK;
}

fr_status fr_cycle_score(fr_session *s, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                         void *context) {
    fr_session_clear(s);
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_session_follow(s);
    while (s->kv.length < count) {
        FR_TRY(fr_session_check_abort(s));
        fr_forward f;
        FR_TRY(fr_session_batch(s, fr_smaller(s->chunk, count - s->kv.length), &f));
        size_t first = first_row > s->kv.length ? first_row - s->kv.length : 0;
        first = fr_smaller(first, f.batch.count);
        f.keep = s->draft->follows ? 0 : first;
        fr_forward_run(s->pool, &f);
        FR_TRY(hand_out(s, &f, first, sink, context));
        fr_timeline_advance(s, s->kv.length + f.batch.count, false);
        s->hidden_row = f.batch.count - 1;
        fr_session_follow(s);
    }
    fr_timeline_forget_pictures(s);
    fr_kv_rewind(&s->kv, count - 1); /* what the session says next takes the last id's own run */
    return FR_OK;
}

fr_status fr_cycle_score_drafts(fr_session *s, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                                void *context) {
    int32_t drafts[FR_STEP_MAX];
    size_t proposed;
    fr_session_clear(s);
    FR_TRY(fr_timeline_append(s, ids, count - 1));
    FR_TRY(fr_timeline_extend(s, ids + count - 1, 1));
    s->pending = false; /* the last id is as one that a step gave */
    fr_draft_view view = fr_session_view(s);
    view.picker = NULL; /* the largest logit goes on, whatever would be drawn */
    FR_TRY(s->draft->method->propose(s->draft, &view, steps, drafts, &proposed, s->logits));
    return sink(context, s->logits, proposed, s->model->trunk.spec.vocab);
}
