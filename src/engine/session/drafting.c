/* The drafts of a round: see drafting.h. */
#include "src/engine/session/drafting.h"

#include "base/clock.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/session/draft_cut.h"
#include "src/engine/session/leader_decisions.h"

fr_draft_depth_part fr_drafting_part(fr_session *s, size_t limit) {
    fr_draft *draft = s->drafting.draft;
    fr_draft_depth_part part = {
        .timeline = &s->drafting.depth, .limit = limit, .block = draft->block, .lags = draft->lags};
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_draft *reader = fr_draft_reader(draft, i);
        if (!reader) continue;
        size_t block = draft->block ? reader->block : 0; /* a caller's method has no block: it drafts step by step */
        part.choices[i] = (fr_draft_depth_choice){
            .limit = block ? fr_smaller(limit, block) : limit, .block = block, .lags = reader->lags};
    }
    return part;
}

/* Returns true if the depth controller chooses how many drafts the session gets in this round. If false, the number of
 * drafts is fixed, or the drafts were submitted before the round. */
static bool weighs(const fr_session *s) {
    return s->round.stage == FR_STAGE_VERIFY && fr_session_adaptive(s) && s->drafting.async.state == FR_ASYNC_NONE;
}

/* Applies FR_OPT_DRAFT_MIN to a number of drafts. A smaller number is raised to the minimum if `limit` allows that;
 * otherwise it becomes 0. */
static size_t raise_to_least(const fr_session *s, size_t asked, size_t limit) {
    if (asked == 0 || asked >= s->drafting.min) return asked;
    return s->drafting.min <= limit ? s->drafting.min : 0;
}

/* Returns the most rows that the session's drafts may take: the planned number of drafts, or the number that may be
 * looked up (`found`) if that is larger. */
static size_t most_rows(const fr_session *s) {
    return fr_larger(s->round.drafts.planned, s->round.drafts.found);
}

/* Sets how many drafts each session is asked for. The number of rows with logits is limited. Sessions with a fixed
 * number of drafts come first and share these rows evenly; the depth controller divides the rest among the other
 * sessions. */
static void allot_drafts(fr_engine *e, const fr_round *rounds, size_t count) {
    size_t rows = e->head_rows, waiting = 0, fixed = 0, given = 0, weighing = 0, asked = 0;
    for (size_t i = 0; i < count; i++) {
        rows -= rounds[i].session->round.stage != FR_STAGE_NOTHING;
        waiting += rounds[i].session->round.stage == FR_STAGE_VERIFY;
    }
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY || weighs(s)) continue;
        s->round.drafts.planned = s->round.drafts.asked = fr_smaller(s->round.drafts.limit, (rows - given) / waiting--);
        given += s->round.drafts.asked;
        fixed++;
    }

    /* Asks the depth controller for the numbers of drafts. If a method only looks drafts up, its limit is used for
     * looked-up drafts (most_found) alone, because the method makes no other drafts. */
    for (size_t i = 0; i < count; i++) {
        const fr_session *s = rounds[i].session;
        if (!weighs(s)) continue;
        fr_draft_depth_part *part = &e->depth_parts[weighing++];
        *part = s->round.drafts;
        if (s->drafting.draft->finds) part->most_found = part->limit;
        if (s->drafting.draft->only_finds) part->limit = 0;
        part->compares = s->sampling.sampler.on && s->sampling.picker.compares;
    }
    e->weighing = weighing;
    fr_draft_depth_choose(&e->draft_depth, e->depth_parts, weighing, rows - given, fixed + given);
    weighing = 0;
    for (size_t i = 0; i < count; i++)
        if (weighs(rounds[i].session)) rounds[i].session->round.drafts = e->depth_parts[weighing++];

    /* The number of a session's drafts may have to be raised to FR_OPT_DRAFT_MIN. If there are not enough rows for that
     * many drafts, the session gets none. */
    for (size_t i = 0; i < count; i++)
        if (rounds[i].session->round.stage == FR_STAGE_VERIFY) asked += most_rows(rounds[i].session);
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        size_t others = asked - most_rows(s),
               enough = raise_to_least(s, s->round.drafts.planned, s->round.drafts.limit);
        if (others + fr_larger(enough, s->round.drafts.found) > rows) enough = 0;
        s->round.drafts.asked = enough ? fr_larger(enough, s->round.drafts.asked) : 0;
        s->round.drafts.planned = enough;
        asked = others + most_rows(s);
    }
}

/* Makes drafts of the ids that the session's grammar forces. The draft method is not asked for drafts in this round,
 * but it still gets the target's rows. The depth controller learns nothing from these drafts. Returns false if no id is
 * forced. */
static bool take_forced(fr_session *s) {
    fr_constraint *c = &s->sampling.sampler.constraint;
    const fr_past past = {.ids = s->ids, .length = s->length};
    size_t forced = 0;
    if (!fr_leader_decisions_have_grammar(s)) return false;
    fr_status status = c->grammar ? fr_constraint_forced(c, &past, most_rows(s), s->ids + s->length, &forced) : FR_OK;
    status = fr_leader_decisions_share_drafts(s, status, &forced);
    if (status == FR_OK && forced == 0) return false;
    if (status == FR_OK) status = fr_session_follow_later(s);
    s->round.draft_failure = fr_failure_keep(status);
    s->round.drafts.drafted = forced;
    s->round.drafts.timeline = NULL;
    return true;
}

/* Drops the first draft that the session's grammar forbids, and all drafts after it. */
static void cut_forbidden(fr_session *s) {
    fr_constraint *c = &s->sampling.sampler.constraint;
    if (!fr_leader_decisions_have_grammar(s) || s->round.draft_failure.status != FR_OK) return;
    const fr_past past = {
        .ids = s->ids, .length = s->length, .drafts = s->ids + s->length, .drafted = s->round.drafts.drafted};
    fr_status status = c->grammar ? fr_constraint_cut(c, &past, &s->round.drafts.drafted) : FR_OK;
    s->round.draft_failure = fr_failure_keep(fr_leader_decisions_share_drafts(s, status, &s->round.drafts.drafted));
}

/* In the sessions for which the depth controller chooses the number of drafts, leaves out drafts so that the verified
 * rows bring the most tokens. If fewer than FR_OPT_DRAFT_MIN drafts of a session are left, the session gets none. */
static void cut_tails(fr_engine *e, const fr_round *rounds, size_t count) {
    size_t rows = e->head_rows, taken = 0, weighing = 0;
    for (size_t i = 0; i < count; i++) {
        const fr_session *s = rounds[i].session;
        rows -= s->round.stage != FR_STAGE_NOTHING;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        if (s->round.proposal && fr_session_adaptive(s))
            e->depth_parts[weighing++] = s->round.drafts;
        else
            taken += 1 + s->round.drafts.drafted, rows -= s->round.drafts.drafted;
    }
    fr_draft_cut(&e->draft_depth, e->depth_parts, weighing, rows, taken);
    weighing = 0;
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY || !s->round.proposal || !fr_session_adaptive(s)) continue;
        s->round.drafts = e->depth_parts[weighing++];
        if (fr_draft_depth_verified(&s->round.drafts) < s->drafting.min)
            s->round.drafts.left_out = s->round.drafts.drafted;
    }
}

void fr_drafting_run(fr_engine *e, fr_round *rounds, size_t count) {
    double start = fr_clock();
    size_t proposing = 0;
    allot_drafts(e, rounds, count);

    /* All requests are collected first, so that a method runs once for all sessions that it drafts for. */
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        bool submitted = s->drafting.async.state != FR_ASYNC_NONE,
             asks = !submitted && (s->round.drafts.asked || s->round.drafts.found);
        s->round.proposal = NULL;
        if (asks && take_forced(s)) continue;
        fr_status status = submitted ? fr_async_draft_take(s, s->round.drafts.asked, &s->round.drafts) : FR_OK;
        if (status == FR_OK && !asks && s->round.drafts.asked == 0) status = fr_session_follow_later(s);
        s->round.draft_failure = fr_failure_keep(status);
        if (!asks) continue;
        s->round.proposal = &e->proposals[proposing];
        e->views[proposing] = fr_session_view(s);
        fr_session_ask(s, &e->views[proposing], s->round.drafts.asked, s->round.proposal);
        if (weighs(s)) {
            s->round.proposal->by = 1 + s->round.drafts.drafter;
            s->round.proposal->gains = &s->round.drafts.gains;
            s->round.proposal->most_found = s->round.drafts.found;
            if (s->drafting.p_min < 0) { /* with FR_DRAFT_P_AUTO a chain ends where its next draft does not pay */
                s->round.proposal->chances = s->round.drafts.chances;
                /* A block is made whole. Once the chances of all its drafts are known, the least likely drafts are left
                 * out. */
                s->round.proposal->ends = s->round.drafts.ends && (!s->round.drafts.block || s->round.drafts.compares);
            }
        }
        proposing++;
    }
    fr_draft_propose(e->proposals, proposing);

    /* Every session waits until all sessions have their drafts, so the whole time counts for each of them. */
    double seconds = fr_clock() - start;
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        if (s->round.proposal) {
            s->round.drafts.drafted = s->round.proposal->proposed;
            s->round.drafts.made = s->round.proposal->made;
            s->round.drafts.tells = s->round.proposal->chances && (s->round.proposal->made || s->round.proposal->found);
            s->round.drafts.looked_up = s->round.proposal->found;
            s->round.draft_failure = s->round.proposal->failure;
            /* the method has run the target's new rows in order to propose, so the pages with them can be shared */
            if (s->drafting.draft->follows) fr_session_share(s, false);
        }
        cut_forbidden(s);
        s->round.draft_seconds = seconds;
        s->stats.value[FR_STAT_DRAFT_SECONDS] += seconds;
    }
    cut_tails(e, rounds, count);
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        fr_trace_draft(&s->trace, fr_draft_speaker(s->drafting.draft)->method->name, s->length, s->ids + s->length,
                       fr_draft_depth_verified(&s->round.drafts));
    }
}

void fr_drafting_report(fr_engine *e, fr_round *rounds, size_t count, double seconds) {
    size_t weighing = 0, taken = 0;
    double drafting = 0;
    for (size_t i = 0; i < count; i++) {
        const fr_session *s = rounds[i].session;
        if (s->round.stage != FR_STAGE_VERIFY) continue;
        if (s->round.drafts.timeline && fr_session_adaptive(s))
            e->depth_parts[weighing++] = s->round.drafts;
        else
            taken += 1 + fr_draft_depth_verified(&s->round.drafts);
        drafting = s->round.draft_seconds;
    }
    if (weighing == 0) return;
    /* all ranks must decide alike, so they use rank 0's times in place of their own */
    double times[] = {drafting, seconds};
    fr_ranks_broadcast(e->model->ranks, times, sizeof times);
    fr_draft_depth_report(&e->draft_depth, e->depth_parts, weighing, taken, times[0], times[1]);
}

fr_draft_depth_part fr_drafting_submit(fr_session *s, size_t limit) {
    fr_engine *e = s->engine;
    fr_draft_depth_part part = fr_drafting_part(s, limit);
    part.asked = raise_to_least(s, limit, limit);
    if (!fr_session_adaptive(s)) return part;
    size_t like = fr_larger(e->weighing, 1);
    for (size_t i = 0; i < like; i++) e->depth_parts[i] = part;
    fr_draft_depth_choose(&e->draft_depth, e->depth_parts, like, e->head_rows - like, 0);
    part.drafter = e->depth_parts[0].drafter;
    part.limit = e->depth_parts[0].limit;
    part.block = e->depth_parts[0].block;
    part.lags = e->depth_parts[0].lags;
    part.asked = raise_to_least(s, e->depth_parts[0].planned, part.limit);
    return part;
}
