/* The cycle of draft, verify, accept and commit: see cycle.h. */
#include "src/engine/session/cycle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/await.h"
#include "src/engine/session/drafting.h"
#include "src/engine/session/leader_decisions.h"
#include "src/engine/session/prompt_score.h"
#include "src/engine/session/timeline.h"

/* ---------------------------------------------------------------------------------------------------------- a round */

/* A grammar's text ends with it whatever was asked for: nothing says what comes behind it. */
static bool ends_text(const fr_session *s, int32_t id) {
    return (!s->ignore_eos || fr_leader_decisions_have_grammar(s)) && fr_model_is_eos(s->model, id);
}

/* The first `count` ids after the timeline stand, up to an end of sequence or of a stop string; they join the
 * timeline. */
static size_t commit(fr_session *s, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int32_t id = s->ids[s->length + i];
        s->ended = ends_text(s, id) || fr_stops_feed(&s->stops, id);
        if (s->ended) count = i + 1;
    }
    s->length += count;
    fr_sampler_commit(&s->sampler, count);
    s->stats.value[FR_STAT_GENERATED_TOKENS] += (double)count;
    return count;
}

/* What the target's rows say of the drafts behind the timeline, one fewer. */
static fr_status accept(const fr_batch_slice *slice, fr_round *t) {
    fr_session *s = slice->session;
    double clock = fr_clock();
    size_t drafted = slice->rows - 1, stood;
    int32_t token;
    FR_TRY(fr_session_choose(s, drafted, &stood, &token));
    s->ids[s->length + stood] = token;
    t->count = commit(s, stood + 1);
    fr_logprobs_take(&s->logprobs, s->logits, s->ids + s->length - t->count, t->count);
    t->accepted = fr_smaller(stood, t->count);
    fr_session_keep_hidden(s, fr_batch_slice_hidden(slice, 0), t->count);
    fr_timeline_advance(s, s->length - 1, false);
    bool asked = (s->drafts.asked || s->drafts.found) && s->draft->method != &fr_draft_none;
    fr_stats_round(&s->stats, asked, drafted, t->accepted, t->count);
    if (s->draft->method->commit) {
        fr_draft_view view = fr_session_view(s);
        s->draft->method->commit(s->draft, &view, drafted, t->accepted);
        s->drafter_seen = s->length;
    }
    fr_stats_lap(&s->stats, FR_STAT_ACCEPT_SECONDS, &clock);
    return FR_OK;
}

static void trace(const fr_round *t, size_t rows) {
    fr_session *s = t->session;
    fr_trace_accept(&s->trace, &s->stats,
                    &(fr_trace_round){.position = s->length - t->count,
                                      .rows = rows,
                                      .accepted = t->accepted,
                                      .ids = t->ids,
                                      .count = t->count,
                                      .logits = s->logits,
                                      .vocab = s->model->trunk.spec.vocab});
}

static void hand_out_ids(const fr_round *t) {
    const fr_session *s = t->session;
    memcpy(t->ids, s->ids + s->length - t->count, t->count * sizeof *t->ids);
}

/* The id that a prompt's forward predicted. */
static void give_next(fr_round *t) {
    fr_session *s = t->session;
    s->fresh = false;
    s->ids[s->length] = s->next;
    t->count = commit(s, 1);
    hand_out_ids(t);
    trace(t, 0);
}

static size_t room(const fr_round *t) {
    const fr_session *s = t->session;
    return s->ended ? 0 : fr_smaller(t->limit, fr_smaller(FR_STEP_MAX, s->context - s->length));
}

/* What the session does in this round. */
static fr_status begin(fr_round *t) {
    fr_session *s = t->session;
    t->count = t->accepted = 0;
    s->stage = FR_STAGE_NOTHING;
    s->awaited_count = 0;
    if (!s->fresh) fr_logprobs_forget(&s->logprobs);
    if (room(t)) fr_timeline_choose_rope(s);
    if (s->pending) {
        FR_TRY(fr_session_check_abort(s));
        FR_TRY(fr_timeline_begin(s));
        s->stage = FR_STAGE_PROMPT;
    } else if (room(t) && s->fresh) {
        give_next(t);
    } else if (room(t)) {
        FR_TRY(fr_session_check_abort(s));
        s->stage = FR_STAGE_VERIFY;
        s->drafts =
            (fr_draft_depth_part){.timeline = &s->draft_depth,
                                  .limit = fr_smaller(fr_smaller(s->draft_max, room(t) - 1), fr_timeline_drafts(s)),
                                  .lags = s->draft->lags};
    }
    return FR_OK;
}

static void note(fr_round *t, fr_status status) {
    t->status = status;
    if (status == FR_OK) return;
    t->session->stage = FR_STAGE_NOTHING;
    fr_timeline_recover(t->session);
    t->session->failure = fr_failure_keep(status);
    t->error = t->session->failure.line;
}

/* Its rows; of prompts at most as many as are left, and none where it waits for pages of another. */
static fr_status take_slice(fr_round *t, size_t *left, fr_batch_slice *slice) {
    fr_session *s = t->session;
    if (s->stage == FR_STAGE_VERIFY) {
        FR_TRY(fr_failure_raise(&s->draft_failure));
        *slice = (fr_batch_slice){.session = s, .rows = s->drafts.drafted + 1, .heads = s->drafts.drafted + 1};
        return fr_batch_admit(slice);
    }
    bool waits = fr_await_pages(s, s->engine->slices, slice);
    *slice = fr_timeline_next_slice(s, waits ? 0 : *left);
    if (slice->rows == 0) {
        s->stage = FR_STAGE_NOTHING;
        return FR_OK;
    }
    FR_TRY(fr_batch_admit(slice)); /* or its rows are left for others */
    *left -= slice->rows;
    return FR_OK;
}

static fr_status finish_verify(fr_round *t, const fr_batch_slice *slice, double seconds) {
    fr_session *s = t->session;
    double start = fr_clock();
    s->stats.value[FR_STAT_VERIFY_SECONDS] += seconds;
    s->drafts.left_out = s->drafts.drafted + 1 - slice->rows; /* for want of pages */
    FR_TRY(accept(slice, t));
    s->drafts.accepted = t->accepted;
    fr_kv_give_back(&s->kv); /* pages that rejected drafts reached into */
    s->stats.value[FR_STAT_DECODE_SECONDS] += s->draft_seconds + seconds + fr_clock() - start;
    hand_out_ids(t);
    trace(t, slice->rows);
    return FR_OK;
}

static fr_status finish(fr_round *t, const fr_batch_slice *slice, double seconds) {
    fr_session *s = t->session;
    if (s->stage == FR_STAGE_VERIFY) return finish_verify(t, slice, seconds);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += seconds;
    FR_TRY(fr_timeline_finish(slice, seconds));
    if (s->fresh && room(t)) give_next(t);
    return FR_OK;
}

/* Runs one forward of every session's slice. Gives true if its rows alone tell how long it takes;
 * *end: the end of the slices. */
static bool run(fr_engine *e, fr_round *rounds, size_t count, double *seconds, const fr_batch_slice **end) {
    fr_batch_slice *slice = e->slices;
    size_t left = e->round_chunk;
    bool verifies = true;
    for (fr_round *t = rounds; t < rounds + count; t++) {
        if (t->session->stage == FR_STAGE_NOTHING) continue;
        verifies &= t->session->stage == FR_STAGE_VERIFY;
        note(t, take_slice(t, &left, slice));
        if (t->session->stage != FR_STAGE_NOTHING) slice++;
    }
    double start = fr_clock();
    fr_batch_run(e, e->slices, (size_t)(slice - e->slices));
    *seconds = fr_clock() - start;
    *end = slice;
    return verifies;
}

/* Prompts that are scored need logits of all rows. They are computed once every session has read its own. */
static void score_prompts(fr_round *rounds, const fr_batch_slice *slice, const fr_batch_slice *end) {
    for (fr_round *t = rounds; slice < end; t++) {
        if (t->session != slice->session) continue;
        double start = fr_clock();
        fr_status status = fr_prompt_score_take(slice++);
        if (t->session->stage == FR_STAGE_PROMPT)
            t->session->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
        if (t->status == FR_OK) note(t, status);
    }
}

void fr_cycle_round(fr_engine *e, fr_round *rounds, size_t count) {
    double seconds;
    const fr_batch_slice *end;
    fr_engine_settle(e);
    for (fr_round *t = rounds; t < rounds + count; t++) note(t, begin(t));
    fr_drafting_run(e, rounds, count);
    bool verifies = run(e, rounds, count, &seconds, &end);
    double start = fr_clock();
    const fr_batch_slice *slice = e->slices;
    for (fr_round *t = rounds; t < rounds + count; t++)
        if (t->session->stage != FR_STAGE_NOTHING) {
            note(t, finish(t, slice++, seconds));
            t->session->last_round_failed = t->status != FR_OK;
        }
    score_prompts(rounds, e->slices, end);
    fr_drafting_report(e, rounds, count, verifies ? seconds + fr_clock() - start : 0);
    for (fr_round *t = rounds; t < rounds + count; t++) fr_async_draft_cancel(t->session); /* what was not taken */
}

fr_status fr_cycle_step(fr_session *s, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    fr_round round = {.session = s, .ids = ids, .limit = limit};
    if (room(&round)) fr_timeline_choose_rope(s);
    if (s->pending) {
        fr_async_draft_cancel(s); /* which has nothing to draft from */
        FR_TRY(fr_timeline_run(s));
    }
    fr_cycle_round(s->engine, &round, 1);
    *count = round.count;
    *accepted = round.accepted;
    return round.status == FR_OK ? FR_OK : fr_failure_raise(&s->failure);
}

/* ----------------------------------------------------------------------------------------------------------- scores */

fr_status fr_cycle_next_logits(fr_session *s, const float **logits) {
    if (!s->fresh || s->run != s->engine->runs) {
        FR_TRY(fr_timeline_again(s));
        FR_TRY(fr_timeline_run(s));
    }
    *logits = s->logits;
    return FR_OK;
}

/* Logits of the batch's rows from `first` on, as many at a time as there is room for. */
static fr_status hand_out(fr_session *s, fr_forward *f, size_t first, fr_logits_fn *sink, void *context) {
    for (f->head_first = first; f->head_first < f->batch.count; f->head_first += f->head_rows) {
        f->head_rows = fr_smaller(f->best_stride, f->batch.count - f->head_first);
        fr_head_run(s->engine->pool, f);
        for (size_t r = 0; r < f->head_rows; r++)
            if (f->best[r] < 0) return fr_session_not_finite(s, s->kv.length + f->head_first + r);
        FR_TRY(sink(context, f->logits, f->head_rows, s->model->trunk.spec.vocab));
    }
    return FR_OK;
}

/* What is handed out of a text that is scored: logits of positions from first_row on, or inputs of layers. */
typedef struct scoring {
    size_t first_row;
    fr_logits_fn *logits; /* NULL: rows are wanted */
    fr_rows_fn *rows;
    void *context;
    const fr_aux_layers *layers; /* whose inputs those are; NULL: hidden rows are wanted */
    float *aux;                  /* [chunk, layers, hidden] */
} scoring;

/* Inputs of layers, or hidden rows; no row of logits tells that one of them is not finite. */
static fr_status hand_out_rows(fr_session *s, const fr_forward *f, const scoring *what) {
    const float *values = what->layers ? what->aux : f->hidden;
    size_t count = f->batch.count, width = (what->layers ? what->layers->count : 1) * s->model->trunk.spec.hidden;
    for (size_t i = 0; i < count * width; i++)
        if (!isfinite(values[i])) return fr_session_not_finite(s, s->kv.length + i / width);
    return what->rows(what->context, values, count, width);
}

/* The next `count` ids. */
static fr_status score_chunk(fr_session *s, size_t count, const scoring *what) {
    fr_engine *e = s->engine;
    size_t position = s->kv.length;
    size_t first = what->first_row > position ? fr_smaller(what->first_row - position, count) : 0;
    FR_TRY(fr_kv_claim(&s->kv, count));
    fr_recurrent_certain(&s->kv.recurrent, fr_smaller(position + count, s->length - 1));
    fr_batch_rows(s, position, count, 0, -1);
    fr_forward f = fr_batch_forward(e, count);
    f.keep = s->draft->follows ? 0 : first;
    if (what->layers) {
        f.aux_layers = what->layers;
        f.aux_hidden = what->aux;
    }
    fr_forward_run(e->pool, &f);
    FR_TRY(what->rows ? hand_out_rows(s, &f, what) : hand_out(s, &f, first, what->logits, what->context));
    fr_timeline_advance(s, position + count, false);
    const float *hidden = e->seen + (count - 1) * e->seen_width;
    fr_session_keep_hidden(s, hidden, 1);
    return fr_session_see(s, hidden);
}

static fr_status score(fr_session *s, const int32_t *ids, size_t count, const scoring *what) {
    fr_session_clear(s);
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_timeline_choose_rope(s);
    FR_TRY(fr_session_follow(s));
    while (s->kv.length < count) {
        FR_TRY(fr_session_check_abort(s));
        fr_status status = score_chunk(s, fr_smaller(s->engine->chunk, count - s->kv.length), what);
        if (status != FR_OK) fr_timeline_recover(s);
        FR_TRY(status);
    }
    fr_timeline_forget_pictures(s);
    fr_kv_rewind(&s->kv, count - 1); /* what the session says next takes the last id's own run */
    fr_session_retreat(s);
    return FR_OK;
}

fr_status fr_cycle_score(fr_session *s, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                         void *context) {
    return score(s, ids, count, &(scoring){.first_row = first_row, .logits = sink, .context = context});
}

/* A text that is scored: each row gives the log-probability of the id after it. */
typedef struct likelihoods {
    fr_session *session;
    const int32_t *ids; /* ids whose log-probabilities have not been given yet, */
    size_t count;       /* and their number */
    fr_score_fn *sink;
    void *context;
    fr_status status; /* what the sink gave first but FR_OK */
} likelihoods;

/* Where rank 0 leads, the other ranks do not know that its sink wants no more: the text is run to its end. */
static fr_status hand_out_likelihoods(void *context, const float *logits, size_t rows, size_t vocab) {
    likelihoods *t = context;
    fr_session *s = t->session;
    for (size_t r = 0; r < rows && t->count && t->status == FR_OK; r++, t->ids++, t->count--)
        t->status = fr_logprobs_score(&s->logprobs, logits + r * vocab, *t->ids, t->sink, t->context);
    return s->engine->leader ? FR_OK : t->status;
}

fr_status fr_cycle_score_ids(fr_session *s, const int32_t *ids, size_t count, fr_score_fn *sink, void *context) {
    likelihoods told = {.session = s, .ids = ids + 1, .count = count - 1, .sink = sink, .context = context};
    double start = fr_clock();
    fr_status status = fr_cycle_score(s, ids, count, 0, hand_out_likelihoods, &told);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    fr_logprobs_forget(&s->logprobs);
    s->ran = 0; /* a prompt that goes on from here counts them as its own, not as reused */
    return status == FR_OK ? told.status : status;
}

fr_status fr_cycle_score_rows(fr_session *s, const int32_t *ids, size_t count, const fr_aux_layers *layers,
                              fr_rows_fn *sink, void *context) {
    if (!layers) return score(s, ids, count, &(scoring){.rows = sink, .context = context});
    size_t rows = fr_smaller(s->engine->chunk, count), width = layers->count * s->model->trunk.spec.hidden;
    float *aux = malloc(rows * width * sizeof *aux);
    if (!aux) return fr_fail_memory("inputs of layers", rows * width * sizeof *aux);
    fr_status status =
        score(s, ids, count, &(scoring){.rows = sink, .context = context, .layers = layers, .aux = aux});
    free(aux);
    return status;
}

fr_status fr_cycle_score_drafts(fr_session *s, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                                void *context) {
    int32_t drafts[FR_STEP_MAX];
    float *logits = s->engine->logits;
    s->engine->runs++;
    fr_session_clear(s);
    FR_TRY(fr_timeline_append(s, ids, count - 1));
    FR_TRY(fr_timeline_extend(s, ids + count - 1, 1));
    s->pending = false; /* the last id is as one that a step gave */
    fr_draft_view view = fr_session_view(s);
    view.picker = NULL; /* the largest logit goes on, whatever would be drawn */
    fr_proposal proposal = {.draft = s->draft, .view = &view, .count = steps, .ids = drafts, .logits = logits};
    FR_TRY(fr_draft_propose_one(&proposal));
    return sink(context, logits, proposal.proposed, s->model->trunk.spec.vocab);
}
