/* The drafts of a round: see drafting.h. */
#include "src/engine/session/drafting.h"

#include "base/clock.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/session/leader_decisions.h"

/* Whether the depth controller says how much it drafts. */
static bool weighs(const fr_session *s) {
    return s->stage == FR_STAGE_VERIFY && fr_session_adaptive(s) && s->async.state == FR_ASYNC_NONE;
}

static bool is_fixed(const fr_session *s) {
    return s->stage == FR_STAGE_VERIFY && !weighs(s);
}

/* So many drafts, or as many as count, or none. */
static size_t enough_of(const fr_session *s, size_t asked, size_t limit) {
    if (asked == 0 || asked >= s->draft_min) return asked;
    return s->draft_min <= limit ? s->draft_min : 0;
}

/* Rows with logits that are left for drafts. */
static size_t rows_left(const fr_engine *e, const fr_round *rounds, size_t count) {
    size_t rows = e->head_rows;
    for (size_t i = 0; i < count; i++) rows -= rounds[i].session->stage != FR_STAGE_NOTHING;
    return rows;
}

/* Of sessions whose number is fixed, or whose drafts are there already. Gives how many drafts that may be. */
static size_t ask_fixed(const fr_round *rounds, size_t count, size_t rows) {
    size_t asked = 0, waiting = 0;
    for (size_t i = 0; i < count; i++) waiting += rounds[i].session->stage == FR_STAGE_VERIFY;
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (!is_fixed(s)) continue;
        s->drafts.asked = fr_smaller(s->drafts.limit, (rows - asked) / waiting--);
        asked += s->drafts.asked;
    }
    return asked;
}

/* What the depth controller is asked for a session: of drafts that are made, and of those that are looked up. */
static fr_draft_depth_part part_of(const fr_session *s) {
    fr_draft_depth_part part = s->drafts;
    if (s->draft->finds) part.most_found = part.limit;
    if (s->draft->only_finds) part.limit = 0;
    return part;
}

/* Of the others. taken: rows of those that were asked. */
static void ask_depths(fr_engine *e, const fr_round *rounds, size_t count, size_t rows, size_t taken) {
    size_t weighing = 0;
    for (size_t i = 0; i < count; i++)
        if (weighs(rounds[i].session)) e->depth_parts[weighing++] = part_of(rounds[i].session);
    e->weighing = weighing;
    fr_draft_depth_choose(&e->draft_depth, e->depth_parts, weighing, rows, taken);
    weighing = 0;
    for (size_t i = 0; i < count; i++)
        if (weighs(rounds[i].session)) rounds[i].session->drafts = e->depth_parts[weighing++];
}

/* Rows that its drafts may take, made or found. */
static size_t most_rows(const fr_session *s) {
    return fr_larger(s->drafts.asked, s->drafts.found);
}

/* What can be too few to count is none, or just enough. */
static void ask_enough(const fr_round *rounds, size_t count, size_t rows) {
    size_t asked = 0;
    for (size_t i = 0; i < count; i++)
        if (rounds[i].session->stage == FR_STAGE_VERIFY) asked += most_rows(rounds[i].session);
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->stage != FR_STAGE_VERIFY) continue;
        size_t enough = enough_of(s, s->drafts.asked, s->drafts.limit);
        size_t others = asked - most_rows(s);
        if (others + fr_larger(enough, s->drafts.found) > rows) enough = 0;
        s->drafts.asked = enough;
        asked = others + most_rows(s);
    }
}

static void ask(fr_engine *e, const fr_round *rounds, size_t count) {
    size_t rows = rows_left(e, rounds, count), fixed = 0;
    for (size_t i = 0; i < count; i++) fixed += is_fixed(rounds[i].session);
    size_t drafts = ask_fixed(rounds, count, rows);
    ask_depths(e, rounds, count, rows - drafts, fixed + drafts);
    ask_enough(rounds, count, rows);
}

/* What was submitted is taken; who is not asked for any still sees the target's rows. */
static fr_status take_without_proposing(fr_session *s) {
    if (s->async.state != FR_ASYNC_NONE) FR_TRY(fr_async_draft_take(s, s->drafts.asked, &s->drafts));
    return s->drafts.asked ? FR_OK : fr_session_follow_later(s);
}

/* What a grammar has follow is drafted without asking a method, which sees the target's rows all the same; the depth
 * controller learns nothing of it. False: nothing has to follow. */
static bool take_forced(fr_session *s) {
    fr_constraint *c = &s->sampler.constraint;
    const fr_past past = {.ids = s->ids, .length = s->length};
    size_t forced = 0, most = most_rows(s);
    if (!fr_leader_decisions_have_grammar(s)) return false;
    fr_status status = c->grammar ? fr_constraint_forced(c, &past, most, s->ids + s->length, &forced) : FR_OK;
    status = fr_leader_decisions_share_drafts(s, status, &forced);
    if (status == FR_OK && forced == 0) return false;
    if (status == FR_OK) status = fr_session_follow_later(s);
    s->draft_failure = fr_failure_keep(status);
    s->drafts.drafted = forced;
    s->drafts.timeline = NULL;
    return true;
}

/* Drafts from the first on that a grammar forbids are not verified. */
static void cut_forbidden(fr_session *s) {
    fr_constraint *c = &s->sampler.constraint;
    if (!fr_leader_decisions_have_grammar(s) || s->draft_failure.status != FR_OK) return;
    const fr_past past = {
        .ids = s->ids, .length = s->length, .drafts = s->ids + s->length, .drafted = s->drafts.drafted};
    fr_status status = c->grammar ? fr_constraint_cut(c, &past, &s->drafts.drafted) : FR_OK;
    s->draft_failure = fr_failure_keep(fr_leader_decisions_share_drafts(s, status, &s->drafts.drafted));
}

/* A chain may end by what its drafts are worth, and others may be found. */
static void ask_worth(fr_session *s) {
    s->proposal->gains = &s->drafts.gains;
    s->proposal->most_found = s->drafts.found;
    if (s->draft_p_min >= 0) return;
    s->proposal->chances = s->drafts.chances;
    s->proposal->ends = s->drafts.ends;
}

/* Whether its method is asked for any. */
static bool wants(const fr_session *s) {
    return s->async.state == FR_ASYNC_NONE && (s->drafts.asked || s->drafts.found);
}

/* All who are asked for drafts propose in one call. */
static void propose(fr_engine *e, const fr_round *rounds, size_t count) {
    size_t proposing = 0;
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->stage != FR_STAGE_VERIFY) continue;
        s->proposal = NULL;
        if (wants(s) && take_forced(s)) continue;
        s->draft_failure = fr_failure_keep(wants(s) ? FR_OK : take_without_proposing(s));
        s->proposal = wants(s) ? &e->proposals[proposing] : NULL;
        if (!s->proposal) continue;
        e->views[proposing] = fr_session_view(s);
        fr_session_ask(s, &e->views[proposing], s->drafts.asked, s->proposal);
        if (weighs(s)) ask_worth(s);
        proposing++;
    }
    fr_draft_propose(e->proposals, proposing);
}

/* Everybody waits for all drafts. */
static void take(const fr_round *rounds, size_t count, double seconds) {
    for (size_t i = 0; i < count; i++) {
        fr_session *s = rounds[i].session;
        if (s->stage != FR_STAGE_VERIFY) continue;
        if (s->proposal) {
            s->drafts.drafted = s->proposal->proposed;
            s->drafts.made = s->proposal->made;
            s->drafts.tells = s->proposal->made && s->proposal->chances;
            s->drafts.looked_up = s->proposal->found;
            s->draft_failure = s->proposal->failure;
            if (s->draft->follows) fr_session_share(s, false); /* what it has seen by proposing */
        }
        cut_forbidden(s);
        s->draft_seconds = seconds;
        s->stats.value[FR_STAT_DRAFT_SECONDS] += seconds;
        fr_trace_draft(&s->trace, s->draft->method->name, s->length, s->ids + s->length, s->drafts.drafted);
    }
}

void fr_drafting_run(fr_engine *e, fr_round *rounds, size_t count) {
    double start = fr_clock();
    ask(e, rounds, count);
    propose(e, rounds, count);
    take(rounds, count, fr_clock() - start);
}

/* Ranks measure different times, and must decide the same. */
static void agree_on(fr_ranks *ranks, double *drafting, double *seconds) {
    double both[] = {*drafting, *seconds};
    fr_ranks_broadcast(ranks, both, sizeof both);
    *drafting = both[0];
    *seconds = both[1];
}

void fr_drafting_report(fr_engine *e, fr_round *rounds, size_t count, double seconds) {
    size_t weighing = 0, taken = 0;
    double drafting = 0;
    for (size_t i = 0; i < count; i++) {
        const fr_session *s = rounds[i].session;
        if (s->stage != FR_STAGE_VERIFY) continue;
        if (s->drafts.timeline && fr_session_adaptive(s))
            e->depth_parts[weighing++] = s->drafts;
        else
            taken += 1 + fr_draft_depth_verified(&s->drafts);
        drafting = s->draft_seconds;
    }
    if (weighing) agree_on(e->model->ranks, &drafting, &seconds);
    if (weighing) fr_draft_depth_report(&e->draft_depth, e->depth_parts, weighing, taken, drafting, seconds);
}

size_t fr_drafting_depth(fr_session *s, size_t limit) {
    fr_engine *e = s->engine;
    if (!fr_session_adaptive(s)) return enough_of(s, limit, limit);
    size_t like = fr_larger(e->weighing, 1);
    for (size_t i = 0; i < like; i++)
        e->depth_parts[i] = (fr_draft_depth_part){.timeline = &s->draft_depth, .limit = limit};
    fr_draft_depth_choose(&e->draft_depth, e->depth_parts, like, e->head_rows - like, 0);
    return enough_of(s, e->depth_parts[0].asked, limit);
}
