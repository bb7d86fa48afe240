/* Runs the round of draft, verify and accept: see round.h. */
#include "src/engine/session/round.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/await.h"
#include "src/engine/session/drafting.h"
#include "src/engine/session/leader_decisions.h"
#include "src/engine/session/prompt_score.h"
#include "src/engine/session/timeline.h"

/* Returns how many ids the session may still give in this round. */
static size_t count_room(const fr_round *t) {
    const fr_session *s = t->session;
    return s->ended ? 0 : fr_smaller(t->limit, fr_smaller(FR_STEP_MAX, s->context - s->length));
}

/* Appends to the timeline up to `count` ids that already lie after it in s->ids, and gives them to the caller. No ids
 * are appended after an end of sequence or after the end of a stop string. If the session has a grammar, an end of
 * sequence ends the text even if ignore_eos is set, because the grammar has no rule for what follows. */
static void commit_ids(fr_round *t, size_t count) {
    fr_session *s = t->session;
    bool heeds_eos = !s->ignore_eos || fr_leader_decisions_have_grammar(s);
    for (size_t i = 0; i < count; i++) {
        int32_t id = s->ids[s->length + i];
        s->ended = (heeds_eos && fr_model_is_eos(s->model, id)) || fr_stops_feed(&s->sampling.stops, id);
        if (s->ended) count = i + 1;
    }
    memcpy(t->ids, s->ids + s->length, count * sizeof *t->ids);
    t->count = count;
    s->length += count;
    fr_sampler_commit(&s->sampling.sampler, count);
    s->stats.value[FR_STAT_GENERATED_TOKENS] += (double)count;
}

/* Traces the ids that a round gave. rows: number of rows that were verified; 0 for an id that a prompt predicted. */
static void trace_ids(const fr_round *t, size_t rows) {
    fr_session *s = t->session;
    const fr_trace_round traced = {.position = s->length - t->count,
                                   .rows = rows,
                                   .accepted = t->accepted,
                                   .ids = t->ids,
                                   .count = t->count,
                                   .logits = s->result.logits,
                                   .vocab = s->model->trunk.spec.vocab};
    fr_trace_accept(&s->trace, &s->stats, &traced);
}

/* Gives the id that a prompt's forward predicted. */
static void give_predicted(fr_round *t) {
    fr_session *s = t->session;
    s->phase = FR_PHASE_BETWEEN;
    s->ids[s->length] = s->next;
    commit_ids(t, 1);
    trace_ids(t, 0);
}

/* Decides what the session does in this round. A predicted id needs no forward, so it is given at once. */
static fr_status choose_stage(fr_round *t) {
    fr_session *s = t->session;
    t->count = t->accepted = 0;
    s->round.stage = FR_STAGE_NOTHING;
    s->cache.awaited_count = 0;
    if (s->phase != FR_PHASE_PREDICTED) fr_logprobs_forget(&s->sampling.logprobs);
    FR_TRY(fr_session_check_state(s));
    if (count_room(t)) fr_timeline_choose_rope(s);
    if (s->phase == FR_PHASE_PENDING) {
        FR_TRY(fr_session_check_abort(s));
        FR_TRY(fr_timeline_begin(s));
        s->round.stage = FR_STAGE_PROMPT;
    } else if (s->phase == FR_PHASE_PREDICTED && count_room(t)) {
        give_predicted(t);
    } else if (s->phase == FR_PHASE_BETWEEN && count_room(t)) {
        FR_TRY(fr_session_check_abort(s));
        size_t most = fr_smaller(s->drafting.max, count_room(t) - 1);
        s->round.stage = FR_STAGE_VERIFY;
        s->round.drafts = fr_drafting_part(s, fr_smaller(most, fr_timeline_drafts(s)));
    }
    return FR_OK;
}

/* Chooses the session's rows of the forward. They are the last id and its drafts, or as much of its prompt as
 * *prompt_rows allows. A picture that may not be cut may have more rows than *prompt_rows. Such a picture is run if no
 * earlier prompt got rows in this round. If another session in this round computes the pages that the prompt begins
 * with, the prompt gets no rows. */
static fr_status take_slice(fr_round *t, size_t *prompt_rows, fr_batch_slice *slice) {
    fr_session *s = t->session;
    if (s->round.stage == FR_STAGE_VERIFY) {
        FR_TRY(fr_failure_raise(&s->round.draft_failure));
        size_t rows = fr_draft_depth_verified(&s->round.drafts) + 1;
        *slice = (fr_batch_slice){.session = s, .rows = rows, .heads = rows};
        return fr_batch_admit(slice);
    }
    bool waits = fr_await_pages(s, s->engine->slices, slice);
    *slice = fr_timeline_next_slice(s, waits ? 0 : *prompt_rows);
    bool fits = slice->rows <= *prompt_rows || *prompt_rows == s->engine->round_chunk;
    if (slice->rows == 0 || !fits) {
        s->round.stage = FR_STAGE_NOTHING;
        return FR_OK;
    }
    FR_TRY(fr_batch_admit(slice)); /* if this fails, the prompt's rows are left to the next prompts */
    *prompt_rows -= fr_smaller(slice->rows, *prompt_rows);
    return FR_OK;
}

/* Accepts the drafts that agree with the target's rows (fr_session_choose), and adds the target's own token after
 * them. The frontier moves over the accepted drafts. The keys and values of rejected drafts lie after the frontier in
 * memory and need no clearing. */
static fr_status accept_drafts(fr_round *t, const fr_batch_slice *slice, double forward_seconds) {
    fr_session *s = t->session;
    double start = fr_clock(), clock = start;
    size_t drafted = slice->rows - 1, stood;
    int32_t token;
    s->stats.value[FR_STAT_VERIFY_SECONDS] += forward_seconds;
    s->round.drafts.left_out = s->round.drafts.drafted - drafted; /* drafts whose rows got no page are also left out */
    FR_TRY(fr_session_choose(s, drafted, &stood, &token));
    s->ids[s->length + stood] = token;
    commit_ids(t, stood + 1);
    t->accepted = s->round.drafts.accepted = fr_smaller(stood, t->count);
    fr_logprobs_take(&s->sampling.logprobs, s->result.logits, t->ids, t->count);
    fr_session_keep_rows(s, fr_batch_slice_row(slice, 0), t->count);
    fr_timeline_advance(s, s->length - 1, false);
    bool asked = (s->round.drafts.asked || s->round.drafts.found) && s->drafting.draft->method != &fr_draft_none;
    fr_stats_round(&s->stats, asked, drafted, t->accepted, t->count);
    if (s->drafting.draft->method->commit) {
        fr_draft_view view = fr_session_view(s);
        s->drafting.draft->method->commit(s->drafting.draft, &view, drafted, t->accepted);
        s->drafting.seen = s->length;
    }
    fr_stats_lap(&s->stats, FR_STAT_ACCEPT_SECONDS, &clock);
    fr_kv_give_back(&s->cache.kv); /* returns pages that only rejected drafts reached */
    s->stats.value[FR_STAT_DECODE_SECONDS] += s->round.draft_seconds + forward_seconds + fr_clock() - start;
    trace_ids(t, slice->rows);
    return FR_OK;
}

/* Records the status of a session's part of the round. A session that failed takes no further part in the round, and
 * goes back to its state before the round. */
static void note_status(fr_round *t, fr_status status) {
    fr_session *s = t->session;
    t->status = status;
    if (status == FR_OK) return;
    s->round.stage = FR_STAGE_NOTHING;
    fr_timeline_recover(s);
    s->round.failure = fr_failure_keep(status);
    t->error = s->round.failure.line;
}

void fr_round_run(fr_engine *e, fr_round *rounds, size_t count) {
    fr_round *const last = rounds + count;
    fr_batch_slice *end = e->slices;
    size_t prompt_rows = e->round_chunk; /* number of prompt rows that are still available */
    bool prompts = false;

    /* 1. Wait for drafts that are made in the background, because they use the same threads. */
    fr_engine_settle(e);

    /* 2. Each session chooses its stage: run a part of its prompt, verify drafts, or nothing. */
    for (fr_round *t = rounds; t < last; t++) note_status(t, choose_stage(t));

    /* 3. Sessions that verify get drafts, as many as pay: forced by a grammar, looked up, or made by a model. */
    fr_drafting_run(e, rounds, count);

    /* 4. The slices of all sessions are collected. A session that gets no rows has no further part in this round. */
    for (fr_round *t = rounds; t < last; t++) {
        if (t->session->round.stage == FR_STAGE_NOTHING) continue;
        prompts |= t->session->round.stage == FR_STAGE_PROMPT;
        note_status(t, take_slice(t, &prompt_rows, end));
        if (t->session->round.stage != FR_STAGE_NOTHING) end++;
    }

    /* 5. One forward computes all rows. */
    double start = fr_clock();
    fr_batch_run(e, e->slices, (size_t)(end - e->slices));
    double forward = fr_clock() - start;

    /* 6. Each session takes its result: the accepted drafts and the token after them, or the next part of its
     * prompt. */
    const fr_batch_slice *slice = e->slices;
    start = fr_clock();
    for (fr_round *t = rounds; t < last; t++) {
        fr_session *s = t->session;
        if (s->round.stage == FR_STAGE_NOTHING) continue;
        if (s->round.stage == FR_STAGE_PROMPT) s->stats.value[FR_STAT_PREFILL_SECONDS] += forward;
        note_status(t, s->round.stage == FR_STAGE_VERIFY ? accept_drafts(t, slice, forward)
                                                         : fr_timeline_finish(slice, forward));
        if (t->status == FR_OK && s->phase == FR_PHASE_PREDICTED && count_room(t)) give_predicted(t);
        s->round.last_failed = t->status != FR_OK;
        slice++;
    }

    /* 7. Prompts that are scored need logits of all their rows. These overwrite the forward's logits, which every
     * session has read by now. */
    slice = e->slices;
    for (fr_round *t = rounds; slice < end; t++) {
        fr_session *s = t->session;
        if (s != slice->session) continue;
        double clock = fr_clock();
        fr_status status = fr_prompt_score_take(slice++);
        if (s->round.stage == FR_STAGE_PROMPT) s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - clock;
        if (t->status == FR_OK) note_status(t, status);
    }

    /* 8. If the forward ran no prompts, the depth controller learns from the round's time. Submitted drafts that were
     * not taken are dropped. */
    fr_drafting_report(e, rounds, count, prompts ? 0 : forward + fr_clock() - start);
    for (fr_round *t = rounds; t < last; t++) {
        fr_async_draft_cancel(t->session);
        if (t->status == FR_OK) note_status(t, fr_session_check_state(t->session));
    }
}

fr_status fr_round_step(fr_session *s, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    fr_round round = {.session = s, .ids = ids, .limit = limit};
    if (count_room(&round)) fr_timeline_choose_rope(s);
    if (s->phase == FR_PHASE_PENDING) {
        fr_async_draft_cancel(s); /* drops drafts that were submitted while a prompt waits */
        FR_TRY(fr_timeline_run(s));
    }
    fr_round_run(s->engine, &round, 1);
    *count = round.count;
    *accepted = round.accepted;
    return round.status == FR_OK ? FR_OK : fr_failure_raise(&s->round.failure);
}
