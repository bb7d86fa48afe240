/* scripted: for tests and timing. Proposes a known continuation, and a wrong id wherever it is told to.
 *
 * In: the ids that the target is known to say, and a rule (round, depth) -> right or wrong; perhaps another method's
 * state. Out: drafts that are accepted exactly as far as the rule says, so that rejection can be forced at every depth,
 * and measured acceptance rates can be replayed on a model of another size. The other method does its work first, and
 * its drafts are thrown away: a round then costs what that method's rounds cost. */
#include "src/draft/draft_scripted.h"

#include <stdlib.h>
#include <string.h>

#include "formats/error.h"

typedef struct scripted {
    fr_draft base;
    int32_t *script; /* the id at index i of the timeline */
    size_t count;
    int32_t vocab;
    fr_lab_accept_fn *accept;
    void *context;
    size_t round;
    fr_draft *inner;   /* whose work is done and thrown away; NULL: nobody's; */
    fr_proposal asked; /* of it */
} scripted;

fr_status fr_draft_script(const int32_t *ids, size_t count, size_t vocab, fr_lab_accept_fn *accept, void *context,
                          fr_draft *inner, fr_draft **draft) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return fr_fail(FR_INPUT, "id %d at index %zu of the script is outside the vocabulary of %zu", ids[i], i,
                           vocab);
    scripted *s = malloc(sizeof *s);
    int32_t *script = malloc((count + 1) * sizeof *script);
    if (!s || !script) {
        free(s);
        free(script);
        return fr_fail_memory("script", count * sizeof *script);
    }
    memcpy(script, ids, count * sizeof *script);
    *s = (scripted){.base = {.method = &fr_draft_scripted, .follows = inner && inner->follows},
                    .script = script,
                    .count = count,
                    .vocab = (int32_t)vocab,
                    .accept = accept,
                    .context = context,
                    .inner = inner};
    *draft = &s->base;
    return FR_OK;
}

static void propose_one(fr_proposal *p) {
    scripted *s = (scripted *)p->draft;
    size_t length = p->view->length;
    if (s->inner) p->failure = s->asked.failure;
    if (p->failure.status != FR_OK) return;
    if (p->view->picker) p->view->picker->forget(p->view->picker->sampler);
    for (; p->proposed < p->count && length + p->proposed < s->count; p->proposed++) {
        int32_t right = s->script[length + p->proposed];
        p->ids[p->proposed] = s->accept(s->context, s->round, p->proposed) ? right : (right + 1) % s->vocab;
    }
    s->round++;
}

static void scripted_propose(fr_proposal *first) {
    fr_proposal *inner = NULL;
    for (fr_proposal *p = first; p; p = p->next) {
        scripted *s = (scripted *)p->draft;
        if (!s->inner) continue;
        s->asked = *p;
        s->asked.draft = s->inner;
        s->asked.next = inner;
        inner = &s->asked;
    }
    fr_draft_propose_list(inner);
    for (fr_proposal *p = first; p; p = p->next) propose_one(p);
}

static fr_status scripted_follow(fr_draft *draft, const fr_draft_view *view) {
    scripted *s = (scripted *)draft;
    return s->inner->method->follow(s->inner, view);
}

static void scripted_begin(fr_draft *draft, const fr_draft_view *view) {
    fr_draft *inner = ((scripted *)draft)->inner;
    if (inner && inner->method->begin) inner->method->begin(inner, view);
}

/* To the other method, none of its drafts stood. */
static void scripted_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    fr_draft *inner = ((scripted *)draft)->inner;
    (void)accepted;
    if (inner && inner->method->commit) inner->method->commit(inner, view, proposed, 0);
}

static void scripted_close(fr_draft *draft) {
    scripted *s = (scripted *)draft;
    if (s->inner && s->inner->method->close) s->inner->method->close(s->inner);
    free(s->script);
    free(s);
}

const fr_draft_method fr_draft_scripted = {
    .name = "scripted",
    .propose = scripted_propose,
    .begin = scripted_begin,
    .follow = scripted_follow,
    .commit = scripted_commit,
    .close = scripted_close,
};
