/* Keeps a session's state between calls: see state.h. */
#include "src/engine/session/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/session/accept.h"
#include "src/engine/session/leader_decisions.h"

fr_status fr_session_check_state(const fr_session *s) {
    size_t ran = s->cache.kv.length, left = s->length - ran;
    bool holds = s->phase == FR_PHASE_EMPTY       ? s->length == 0 && ran == 0
                 : s->phase == FR_PHASE_PENDING   ? ran < s->length
                 : s->phase == FR_PHASE_PREDICTED ? s->length > 0 && left == 0
                                                  : s->length > 0 && left == 1;
    if (holds && s->length <= s->context) return FR_OK;
    return fr_fail(FR_USAGE, "a fault of the library: a session in phase %d has %zu of %zu tokens run", (int)s->phase,
                   ran, s->length);
}

unsigned fr_session_draft_kv(const fr_session *s, fr_kv *drafters[FR_DRAFTERS_MAX]) {
    unsigned set = 0;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        fr_draft *reader = fr_draft_reader(s->drafting.draft, i);
        bool follows = reader && reader->follows && reader->method->kv;
        drafters[i] = follows ? reader->method->kv(reader) : NULL;
        set |= (unsigned)follows << i;
    }
    return set;
}

/* Returns true if every method that follows the target's rows has a cache with pages that other sessions can share. */
static bool caches_all(const fr_session *s) {
    bool all = true;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_draft *reader = fr_draft_reader(s->drafting.draft, i);
        all &= !reader || !reader->follows || reader->method->kv;
    }
    return all;
}

bool fr_session_shares(const fr_session *s) {
    bool whole = !s->cache.pictures_unknown && !s->cache.restored;
    return s->engine->shares && whole && caches_all(s);
}

bool fr_session_reuses(const fr_session *s) {
    return fr_session_shares(s) && s->options.value[FR_OPT_PROMPT_REUSE] && !s->sampling.score.sink;
}

static fr_kv_content content(const fr_session *s) {
    return (fr_kv_content){.ids = s->ids, .digests = s->cache.digests};
}

/* Offers every checkpoint with recurrent states as a point where other sessions' prompts can begin. */
static void share_points(fr_session *s, uint32_t tail) {
    for (size_t i = 0; s->cache.kv.recurrent.count && i < s->cache.checkpoints.count; i++) {
        const fr_kv_checkpoint *at = &s->cache.checkpoints.at[i];
        fr_kv_prefixes_add_point(&s->engine->prefixes, &s->cache.path, tail, at->position, at->states, at->spare);
    }
}

void fr_session_share(fr_session *s, bool prompt_end) {
    fr_kv *drafters[FR_DRAFTERS_MAX];
    if (!fr_session_shares(s)) return;
    fr_session_draft_kv(s, drafters);
    fr_kv_prefixes_add(&s->engine->prefixes, &s->cache.path, &s->cache.kv, drafters, content(s), prompt_end);
    share_points(s, 0);
}

void fr_session_offer(fr_session *s) {
    fr_kv *drafters[FR_DRAFTERS_MAX];
    if (!fr_session_shares(s)) return;
    fr_session_draft_kv(s, drafters);
    uint32_t tail =
        fr_kv_prefixes_add_tail(&s->engine->prefixes, &s->cache.path, &s->cache.kv, drafters, content(s), s->length);
    share_points(s, tail);
    uint8_t *states = s->cache.kv.recurrent.count ? fr_recurrent_page(&s->cache.kv.recurrent) : NULL;
    if (states)
        fr_kv_prefixes_add_point(&s->engine->prefixes, &s->cache.path, tail, s->cache.kv.recurrent.at, states, false);
}

void fr_session_retreat(fr_session *s) {
    if (s->engine->shares) fr_kv_path_cut(&s->engine->prefixes, &s->cache.path, s->cache.kv.length);
    if (!s->drafting.draft->method->cut) return;
    fr_draft_view view = fr_session_view(s);
    s->drafting.draft->method->cut(s->drafting.draft, &view);
}

/* The fewest tokens that are worth reusing. Running fewer tokens takes less time than taking over their pages. */
enum { LEAST_REUSED = 16 };

/* Makes other sessions offer their last, incomplete blocks, which are not shared yet. Another session is asked if its
 * ids are the same as this session's, up to and including the first id of that block. */
static void ask_others(const fr_session *s) {
    for (size_t i = 0; i < s->engine->capacity; i++) {
        fr_session *other = s->engine->sessions[i];
        if (!other || other == s || !fr_session_shares(other)) continue;
        size_t block = other->cache.path.length, first = block * FR_KV_PAGE,
               most = fr_smaller(s->length, other->cache.kv.length);
        if (most <= first || memcmp(other->ids, s->ids, (first + 1) * sizeof *s->ids) != 0) continue;
        if (memcmp(other->cache.digests, s->cache.digests, (block + 1) * sizeof *s->cache.digests) == 0)
            fr_session_offer(other);
    }
}

void fr_session_reuse(fr_session *s, bool asks) {
    fr_kv_prefixes *prefixes = &s->engine->prefixes;
    fr_kv *drafters[FR_DRAFTERS_MAX];
    unsigned set = fr_session_draft_kv(s, drafters);
    if (!fr_session_reuses(s)) return;
    if (asks) ask_others(s);
    if (asks && s->cache.kv.recurrent.count) {
        s->cache.branch = fr_kv_prefixes_known(prefixes, content(s), s->length);
        /* the drafter's entry for a position also depends on the next id, so that id must be the same too */
        if (set && s->cache.branch) s->cache.branch--;
    }
    size_t found = fr_kv_prefixes_find(prefixes, content(s), s->length, set);
    if (found <= s->cache.kv.length || found < LEAST_REUSED) return;
    fr_kv_checkpoints_truncate(&s->cache.checkpoints, &s->cache.kv, 0);
    fr_kv_reset(&s->cache.kv);
    fr_session_retreat(s);
    fr_kv_prefixes_take(prefixes, &s->cache.path, &s->cache.kv, drafters, content(s), found);
    if (found <= s->ran) return;
    s->stats.value[FR_STAT_REUSED_TOKENS] += (double)(found - s->ran);
    s->ran = found;
}

void fr_session_plain_digests(fr_session *s, size_t first) {
    for (size_t i = first; i < s->cache.kv.blocks; i++) s->cache.digests[i] = s->cache.plain;
}

void fr_session_clear(fr_session *s) {
    fr_session_offer(s);
    fr_kv_checkpoints_truncate(&s->cache.checkpoints, &s->cache.kv, 0);
    fr_kv_reset(&s->cache.kv);
    fr_session_plain_digests(s, 0);
    s->cache.pictures_unknown = s->cache.restored = false;
    s->length = s->ran = s->drafting.seen = 0;
    s->phase = FR_PHASE_EMPTY;
    s->ended = false;
    s->sampling.score = (fr_prompt_score){0};
    s->embeddings = &fr_no_input_embeddings;
    fr_session_retreat(s);
    fr_session_set_rope_positions(s, 0, 0);
    fr_session_begin_text(s);
    fr_stats_reset(&s->stats);
    free(s->saving.swapped_out);
    s->saving.swapped_out = NULL;
}

void fr_session_begin_text(fr_session *s) {
    fr_stops_begin(&s->sampling.stops);
    fr_sampler_begin(&s->sampling.sampler);
    fr_constraint_begin_text(&s->sampling.sampler.constraint);
}

void fr_session_set_rope_positions(fr_session *s, size_t first, size_t rope_position) {
    for (size_t i = first; i < s->context + FR_STEP_MAX; i++, rope_position++)
        for (int axis = 0; axis < FR_AXES; axis++) s->rope_positions[i].at[axis] = (int32_t)rope_position;
}

bool fr_session_wants_abort(fr_session *s) {
    return atomic_exchange(&s->caller.cancelled, false) ||
           (s->caller.abort && s->caller.abort(s->caller.abort_context));
}

fr_status fr_session_check_abort(fr_session *s) {
    FR_TRY(fr_ranks_check(s->model->ranks));
    bool told = s->round.abort_told != FR_ABORT_ASKED;
    if (!(told ? s->round.abort_told == FR_ABORT_YES : fr_session_wants_abort(s)))
        return fr_engine_check_files(s->engine);
    if (told) s->round.abort_told = FR_ABORT_NO; /* the abort takes effect only once */
    return fr_fail(FR_ABORTED, "aborted with %zu of %zu tokens run", s->cache.kv.length, s->length);
}

fr_status fr_session_not_finite(const fr_session *s, size_t position) {
    FR_TRY(fr_ranks_check(s->model->ranks)); /* if ranks have failed, the logits are not valid */
    return fr_fail(FR_NUMERIC, "%s: the logits at position %zu are not finite: damaged weights?", s->model->files.path,
                   position);
}

/* Returns true if, of each row, only the id with the largest logit is needed. After a prompt, all logits of its last
 * row are needed, because the caller may ask for them. */
bool fr_session_wants_best(const fr_session *s) {
    bool draws = s->sampling.sampler.on || s->sampling.sampler.mask || s->sampling.sampler.constraint.grammar;
    return s->phase != FR_PHASE_PENDING && !draws && !s->leader_decides && !s->sampling.logprobs.on && !s->trace.line;
}

static fr_status choose(fr_session *s, size_t drafted, size_t *stood, int32_t *token) {
    fr_past past = {.ids = s->ids, .length = s->length, .drafts = s->ids + s->length, .drafted = drafted};
    if (s->sampling.sampler.on || s->sampling.sampler.mask || s->sampling.sampler.constraint.grammar) {
        *stood = fr_sampler_verify(&s->sampling.sampler, s->result.logits, s->result.best, &past, token);
        bool failed = s->sampling.sampler.mask_status != FR_OK;
        if (failed && *stood == 0) return s->sampling.sampler.mask_status;
        /* The last accepted draft becomes the token. So the failing row is the first row of the next round and fails
         * alone, as it would without drafts. */
        if (failed) *token = past.drafts[--*stood];
    } else {
        *stood = fr_accept_greedy(s->result.best, past.drafts, drafted);
        *token = (int32_t)s->result.best[*stood];
    }
    for (size_t r = 0; r <= *stood; r++)
        if (s->result.best[r] < 0) return fr_session_not_finite(s, s->length - 1 + r);
    if (*token < 0)
        return fr_fail(FR_INPUT,
                       "no token is left at position %zu: logit bias, a mask, a grammar or the model's "
                       "suppress_tokens ban all",
                       s->length + *stood);
    return FR_OK;
}

fr_status fr_session_choose(fr_session *s, size_t drafted, size_t *stood, int32_t *token) {
    *stood = 0;
    *token = -1;
    fr_status status = fr_leader_decisions_are_elsewhere(s) ? FR_OK : choose(s, drafted, stood, token);
    return fr_leader_decisions_share_choice(s, status, stood, token);
}

/* Gives the row with this index; NULL if `width` is 0, because then no such rows are read. */
static const float *row_of(const float *rows, size_t row, size_t width) {
    return width ? rows + row * width : NULL;
}

fr_draft_view fr_session_view(fr_session *s) {
    const fr_engine *e = s->engine;
    size_t row = s->drafting.hidden_row;
    return (fr_draft_view){.ids = s->ids,
                           .rope_positions = s->rope_positions,
                           .embeddings = s->embeddings,
                           .length = s->length,
                           .seen = s->drafting.seen,
                           .kv = &s->cache.kv,
                           .hidden = row_of(s->drafting.hidden, row, e->hidden_width),
                           .aux_hidden = row_of(s->drafting.aux_hidden, row, e->aux_width),
                           .pool = s->engine->pool,
                           .picker = s->sampling.sampler.on ? &s->sampling.picker : NULL};
}

static fr_status see(fr_session *s, const fr_draft_view *view) {
    if (!s->drafting.draft->follows) return FR_OK;
    FR_TRY(s->drafting.draft->method->follow(s->drafting.draft, view));
    fr_session_share(s, false);
    return FR_OK;
}

fr_status fr_session_see(fr_session *s, size_t row) {
    const fr_engine *e = s->engine;
    fr_draft_view view = fr_session_view(s);
    view.hidden = row_of(e->hidden, row, e->hidden_width);
    view.aux_hidden = row_of(e->aux_hidden, row, e->aux_width);
    return see(s, &view);
}

fr_status fr_session_follow(fr_session *s) {
    fr_draft_view view = fr_session_view(s);
    return see(s, &view);
}

fr_status fr_session_follow_later(fr_session *s) {
    fr_draft_view view = fr_session_view(s);
    view.defers = true;
    return see(s, &view);
}

/* Copies the first `count` rows of `hidden` and of `aux_hidden` to the session, where its draft method reads them. */
static void keep(fr_session *s, const float *hidden, const float *aux_hidden, size_t count) {
    const fr_engine *e = s->engine;
    if (e->hidden_width) memcpy(s->drafting.hidden, hidden, count * e->hidden_width * sizeof *hidden);
    if (e->aux_width) memcpy(s->drafting.aux_hidden, aux_hidden, count * e->aux_width * sizeof *aux_hidden);
    s->drafting.hidden_row = count - 1;
}

void fr_session_keep_rows(fr_session *s, size_t row, size_t count) {
    const fr_engine *e = s->engine;
    keep(s, row_of(e->hidden, row, e->hidden_width), row_of(e->aux_hidden, row, e->aux_width), count);
}

void fr_session_keep_rows_of(fr_session *s, const fr_session *other) {
    keep(s, other->drafting.hidden, other->drafting.aux_hidden, other->drafting.hidden_row + 1);
}

bool fr_session_adaptive(const fr_session *s) {
    return s->drafting.adapts && s->drafting.draft->method != &fr_draft_none;
}

void fr_session_ask(fr_session *s, const fr_draft_view *view, size_t count, fr_proposal *proposal) {
    fr_sampler_forget(&s->sampling.sampler);
    *proposal = (fr_proposal){.draft = s->drafting.draft,
                              .view = view,
                              .count = count,
                              .depth = s->drafting.max,
                              .n_min = s->drafting.min,
                              .p_min = s->drafting.p_min > 0 ? s->drafting.p_min : 0,
                              .ids = s->ids + view->length};
}
