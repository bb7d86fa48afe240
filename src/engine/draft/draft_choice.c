/* Chooses the next draft of a chain: see draft_choice.h. */
#include "src/engine/draft/draft_choice.h"

#include <math.h>

#include "base/sizes.h"

/* Gives the listed id with the largest score, or if no ids are listed, the best of ids [0, count). Of equal scores the
 * lowest id wins. */
static int64_t best_id(const fr_kernels *kernels, const fr_scores *scores) {
    int64_t at = kernels->argmax(scores->logits, scores->count);
    if (at < 0 || !scores->ids) return at;
    int32_t best = scores->ids[at];
    for (size_t i = (size_t)at + 1; i < scores->count; i++)
        if (scores->logits[i] == scores->logits[at] && scores->ids[i] < best) best = scores->ids[i];
    return best;
}

static void write_logits(const fr_scores *scores, size_t vocab, float *logits) {
    for (size_t i = 0; i < vocab; i++) logits[i] = scores->ids || i >= scores->count ? -INFINITY : scores->logits[i];
    for (size_t i = 0; scores->ids && i < scores->count; i++) logits[scores->ids[i]] = scores->logits[i];
}

static float score_of(const fr_scores *scores, int32_t id) {
    if (!scores->ids) return scores->logits[id];
    for (size_t i = 0; i < scores->count; i++)
        if (scores->ids[i] == id) return scores->logits[i];
    return -INFINITY;
}

/* Computes the probability of an id, before temperature and filters. It is exp(score), divided by the sum of exp(score)
 * over all ids. */
static double chance_of(const fr_kernels *kernels, const fr_scores *scores, int32_t best, int32_t id) {
    enum { PIECE = 256 };
    float largest = score_of(scores, best), piece[PIECE], own = score_of(scores, id) - largest;
    double sum = 0;
    for (size_t at = 0; at < scores->count; at += PIECE) {
        size_t n = fr_smaller(PIECE, scores->count - at);
        for (size_t i = 0; i < n; i++) piece[i] = scores->logits[at + i] - largest;
        kernels->exp(piece, piece, n);
        for (size_t i = 0; i < n; i++) sum += (double)piece[i];
    }
    kernels->exp(&own, &own, 1);
    return (double)own / sum;
}

/* Decides by a draft's probability whether the draft is kept and whether the chain goes on. Rejection sampling compares
 * distributions, so there the probability of the best id is used instead. If the drawn id's probability decided, then
 * ids that end chains would become less likely in the text. */
static fr_draft_gain_verdict judge(fr_proposal *p, const fr_scores *scores, const fr_scorer *scorer, int32_t best,
                                   int32_t id) {
    const fr_token_picker *picker = p->view->picker;
    if (p->p_min <= 0 && !p->chances) return FR_DRAFT_GAIN_MORE;
    if (picker && picker->compares) id = best;
    double chance = scorer->chance && id == best ? *scorer->chance : chance_of(scorer->kernels, scores, best, id);
    if (chance < p->p_min) return FR_DRAFT_GAIN_NONE;
    if (!p->chances) return FR_DRAFT_GAIN_MORE;
    p->chances[p->proposed] = (float)chance;
    return p->ends ? fr_draft_gain_judge(p->gains, p->chances, p->proposed + 1) : FR_DRAFT_GAIN_MORE;
}

bool fr_draft_choice_add(fr_proposal *p, const fr_scores *scores, const fr_scorer *scorer) {
    const fr_draft_view *view = p->view;
    int64_t best = best_id(scorer->kernels, scores), id = best;
    if (best < 0) {
        p->failure = fr_failure_keep(fr_fail(FR_NUMERIC, "%s: %s logits are not finite at position %zu", scorer->path,
                                             scorer->what, view->length - 1 + p->proposed));
        return false;
    }
    if (p->logits) write_logits(scores, scorer->vocab, p->logits + p->proposed * scorer->vocab);
    if (view->picker) {
        fr_past past = {.ids = view->ids, .length = view->length, .drafts = p->ids, .drafted = p->proposed};
        id = view->picker->pick(view->picker->sampler, scores, &past);
    }
    p->made = p->proposed + 1;
    fr_draft_gain_verdict verdict = id < 0 ? FR_DRAFT_GAIN_NONE : judge(p, scores, scorer, (int32_t)best, (int32_t)id);
    if (verdict == FR_DRAFT_GAIN_NONE) return false;
    p->ids[p->proposed++] = (int32_t)id;
    return verdict == FR_DRAFT_GAIN_MORE && p->proposed < p->count;
}
