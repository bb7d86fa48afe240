/* The method `own`, which drafts with a method of the caller (fr_proposer of forerun.h).
 *
 * In: the timeline, and the proposal of the session's other method. Out: the drafts that the caller's functions make
 * from that proposal, after checks. The other method works as it would alone. If some of its drafts were not passed on,
 * it is told that they were rejected. */
#include "src/engine/draft/draft_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

typedef struct own {
    fr_draft base;
    fr_proposer method;
    size_t vocab;
    float *chances;                 /* [FR_STEP_MAX, vocab] the drafts' distributions; NULL: distributions are not
                                     * compared */
    fr_draft *inner;                /* the state of the session's other method, which works together with the
                                     * caller's */
    fr_proposal asked;              /* the request to the session's other method */
    int32_t suggested[FR_STEP_MAX]; /* the ids that the session's other method proposed */
    size_t handed_on;               /* the last proposal begins with this many drafts that the session's other method
                                     * proposed */
} own;

fr_status fr_draft_own(const fr_proposer *method, size_t vocab, bool compares, fr_draft *inner, fr_draft **draft) {
    own *s = malloc(sizeof *s);
    float *chances = compares ? malloc(FR_STEP_MAX * vocab * sizeof *chances) : NULL;
    if (!s || (compares && !chances)) {
        free(s);
        free(chances);
        return fr_fail_memory("a method of the caller's", FR_STEP_MAX * vocab * sizeof *chances);
    }
    *s = (own){.base = {.method = &fr_draft_own_method, .follows = inner->follows, .lags = inner->lags},
               .method = *method,
               .vocab = vocab,
               .chances = chances,
               .inner = inner};
    *draft = &s->base;
    return FR_OK;
}

const fr_draft *fr_draft_inner(const fr_draft *draft) {
    while (draft->method == &fr_draft_own_method) draft = ((const own *)draft)->inner;
    return draft;
}

static fr_status check_ids(const own *s, const fr_proposal *p, size_t count) {
    if (count > p->count)
        return fr_fail(FR_USAGE, "the caller's method proposed %zu drafts where at most %zu were wanted", count,
                       p->count);
    for (size_t i = 0; i < count; i++)
        if (p->ids[i] < 0 || (size_t)p->ids[i] >= s->vocab)
            return fr_fail(FR_USAGE, "draft %zu of the caller's method is id %d, outside the vocabulary of %zu", i,
                           (int)p->ids[i], s->vocab);
    return FR_OK;
}

/* Checks the distribution of the draft at this depth (s->chances), and gives the sum of its values. */
static fr_status check_chances(const own *s, const fr_proposal *p, size_t depth, double *sum) {
    const float *chances = s->chances + depth * s->vocab;
    *sum = 0;
    for (size_t i = 0; i < s->vocab; i++) {
        if (!(chances[i] >= 0 && isfinite(chances[i])))
            return fr_fail(FR_USAGE, "draft %zu of the caller's method: the chance of id %zu is %g", depth, i,
                           (double)chances[i]);
        *sum += (double)chances[i];
    }
    if (chances[p->ids[depth]] > 0) return FR_OK;
    return fr_fail(FR_USAGE, "draft %zu of the caller's method is id %d, which it gives no chance", depth,
                   (int)p->ids[depth]);
}

/* Gives the distributions of the drafts to the sampler. told: the caller's method has given distributions, and these
 * are used. Otherwise the sampler keeps the distributions of the first s->handed_on drafts, which the session's other
 * method has given to it. The caller's method proposes these drafts unchanged. */
static fr_status tell_chances(own *s, const fr_proposal *p, size_t count, bool told) {
    const fr_token_picker *picker = p->view->picker;
    if (!picker) return FR_OK;
    picker->keep(picker->sampler, told ? 0 : s->handed_on);
    for (size_t i = 0; told && i < count; i++) {
        double sum;
        FR_TRY(check_chances(s, p, i, &sum));
        picker->tell(picker->sampler, i, s->chances + i * s->vocab, sum);
    }
    return FR_OK;
}

static fr_status ask(own *s, fr_proposal *p) {
    bool asks = s->chances && p->view->picker && p->view->picker->compares;
    fr_drafting drafting = {.ids = p->view->ids,
                            .length = p->view->length,
                            .count = p->count,
                            .least = p->p_min,
                            .suggested = s->suggested,
                            .suggestions = s->asked.proposed,
                            .drafts = p->ids,
                            .chances = asks ? s->chances : NULL,
                            .odds = p->chances};
    FR_TRY(fr_failure_raise(&s->asked.failure));
    if (asks) memset(s->chances, 0, p->count * s->vocab * sizeof *s->chances);
    size_t count = s->method.propose(s->method.context, &drafting), most = fr_smaller(count, s->asked.proposed);
    FR_TRY(check_ids(s, p, count));
    for (size_t i = 0; drafting.tells_odds && p->chances && i < count; i++)
        if (!(p->chances[i] >= 0 && p->chances[i] <= 1))
            return fr_fail(FR_USAGE, "draft %zu of the caller's method: its odds are %g, not 0 to 1", i,
                           (double)p->chances[i]);
    while (s->handed_on < most && p->ids[s->handed_on] == s->suggested[s->handed_on]) s->handed_on++;
    FR_TRY(tell_chances(s, p, count, asks && drafting.tells_chances));
    p->proposed = count;
    p->made = drafting.tells_odds && p->chances ? count : 0;
    return FR_OK;
}

static void own_propose(fr_proposal *first) {
    fr_proposal *inner = NULL;
    for (fr_proposal *p = first; p; p = p->next) {
        own *s = (own *)p->draft;
        s->asked = *p;
        s->asked.draft = s->inner;
        s->asked.ids = s->suggested;
        /* chances, gains and ends are cleared so that the session's other method does not leave out drafts. The
         * caller's method decides which drafts are used */
        s->asked.chances = NULL;
        s->asked.gains = NULL;
        s->asked.ends = false;
        s->asked.next = inner;
        s->handed_on = 0;
        inner = &s->asked;
    }
    fr_draft_propose_list(inner);
    for (fr_proposal *p = first; p; p = p->next) p->failure = fr_failure_keep(ask((own *)p->draft, p));
}

static fr_status own_follow(fr_draft *draft, const fr_draft_view *view) {
    own *s = (own *)draft;
    return s->inner->method->follow(s->inner, view);
}

static void own_cut(fr_draft *draft, const fr_draft_view *view) {
    fr_draft *inner = ((own *)draft)->inner;
    if (inner->method->cut) inner->method->cut(inner, view);
}

static void own_begin(fr_draft *draft, const fr_draft_view *view) {
    fr_draft *inner = ((own *)draft)->inner;
    if (inner->method->begin) inner->method->begin(inner, view);
}

static void own_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    own *s = (own *)draft;
    if (s->inner->method->commit) {
        size_t suggested = proposed ? s->asked.proposed : 0;
        s->inner->method->commit(s->inner, view, suggested, fr_smaller(accepted, s->handed_on));
    }
    if (s->method.commit) s->method.commit(s->method.context, view->ids, view->length, proposed, accepted);
}

static void own_close(fr_draft *draft) {
    own *s = (own *)draft;
    if (s->inner->method->close) s->inner->method->close(s->inner);
    if (s->method.close) s->method.close(s->method.context);
    free(s->chances);
    free(s);
}

const fr_draft_method fr_draft_own_method = {
    .name = "own",
    .propose = own_propose,
    .cut = own_cut,
    .begin = own_begin,
    .follow = own_follow,
    .commit = own_commit,
    .close = own_close,
};
