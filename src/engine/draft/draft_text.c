/* The variant of the method `draft` for a smaller model whose ids mean something else than the target's.
 *
 * In: the ids of the timeline. Out: the target's ids for the text with which the model continues. fr_draft_model drafts
 * on a second timeline, which has the model's own ids (same_text.h). The text of these drafts is tokenized for the
 * target. The target verifies the resulting ids like any others. The model takes its likeliest id at any temperature,
 * because it gives scores for its own ids and not for the target's. If there is no memory for a text, nothing is
 * drafted. */
#include "src/engine/draft/draft.h"

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/same_text.h"
#include "src/engine/vision/picture.h"

typedef struct state {
    fr_draft base;
    fr_draft *inner; /* the state of the model's method */
    fr_same_text text;
    fr_draft_view view;        /* the view of the model's timeline */
    fr_proposal asked;         /* the request to the model */
    int32_t said[FR_STEP_MAX]; /* the ids that the model proposed */
    size_t length;             /* length of the model's timeline when the ids `said` were proposed */
} state;

/* Gives the view of the model's timeline, and records that the method has seen all of this timeline. */
static const fr_draft_view *show(state *s, const fr_draft_view *view) {
    s->view = (fr_draft_view){.ids = s->text.ids,
                              .length = s->text.count,
                              .seen = s->text.stands,
                              .embeddings = &fr_no_input_embeddings,
                              .pool = view->pool,
                              .defers = view->defers};
    s->text.stands = s->text.count;
    return &s->view;
}

static bool follow(state *s, const fr_draft_view *view) {
    return fr_same_text_follow(&s->text, view->ids, view->length, view->seen) && s->text.count > 1;
}

static void text_cut(fr_draft *draft, const fr_draft_view *view) {
    state *s = (state *)draft;
    fr_same_text_cut(&s->text, view->length ? view->seen : 0);
    s->inner->method->cut(s->inner, show(s, view));
}

static void text_begin(fr_draft *draft, const fr_draft_view *view) {
    state *s = (state *)draft;
    text_cut(draft, view);
    if (!view->defers && follow(s, view)) s->inner->method->begin(s->inner, show(s, view));
}

/* -------------------------------------------------------------------------------------------------------- proposals */

/* Estimates from the text so far how many of the model's ids are needed for as much text as `count` of the target's ids
 * have. */
static size_t in_other_ids(const fr_same_text *text, size_t count) {
    size_t from = text->known - text->origin, to = text->count - text->begin;
    return fr_smaller((count * to + from / 2) / fr_larger(from, 1) + 1, FR_STEP_MAX - 1);
}

static bool ask(fr_proposal *p) {
    state *s = (state *)p->draft;
    s->asked = (fr_proposal){0};
    if (p->logits || !follow(s, p->view)) return false; /* the model doesn't give scores for the target's ids */
    s->length = s->text.count;
    s->asked = (fr_proposal){.draft = s->inner,
                             .view = show(s, p->view),
                             .count = in_other_ids(&s->text, p->count),
                             .p_min = p->p_min,
                             .ids = s->said};
    return true;
}

static void text_propose(fr_proposal *first) {
    fr_proposal *asked = NULL;
    for (fr_proposal *p = first; p; p = p->next) {
        fr_proposal *inner = &((state *)p->draft)->asked;
        if (!ask(p)) continue;
        inner->next = asked;
        asked = inner;
    }
    fr_draft_propose_list(asked);
    for (fr_proposal *p = first; p; p = p->next) {
        state *s = (state *)p->draft;
        p->failure = s->asked.failure;
        p->proposed = fr_same_text_back(&s->text, s->said, s->asked.proposed, p->ids, p->count);
    }
}

/* Reports to the model's method how many of its drafts are now in the text. The method keeps the rows of these drafts
 * that it has run. */
static void text_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    state *s = (state *)draft;
    size_t stood = 0, said = s->asked.proposed;
    (void)accepted;
    if (proposed == 0 || !follow(s, view) || s->text.stands < s->length) return;
    while (stood < said && s->length + stood < s->text.count && s->text.ids[s->length + stood] == s->said[stood])
        stood++;
    s->inner->method->commit(s->inner, show(s, view), said, stood);
}

/* ------------------------------------------------------------------------------------------------------------- open */

/* Gives sizes for the timeline's text in the model's ids. The model may need more ids for the text than the target. */
static fr_draft_sizes other_sizes(const fr_draft_sizes *sizes) {
    fr_draft_sizes other = *sizes;
    other.context = fr_same_text_room(sizes->context);
    other.pages = sizes->pages + sizes->pages / 2 + sizes->sessions;
    return other;
}

/* Makes the model's workspace for its own vocabulary, with room for the longer timeline. */
static void *text_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    fr_drafter own = *drafter;
    fr_draft_sizes other = other_sizes(sizes);
    own.target = drafter->net;
    return fr_draft_model.workspace(&own, arena, &other);
}

static fr_draft *text_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_model *model = drafter->net;
    fr_draft_sizes other = other_sizes(sizes);
    state opened = {.base = {.method = &fr_draft_text, .lags = true}};
    state *place = fr_arena_take(arena, 1, sizeof *place);
    fr_same_text_layout(&opened.text, arena, drafter->target->tokenizer, model->tokenizer, sizes->context);
    opened.inner = fr_draft_model.open(drafter, arena, &other);
    if (!place || !opened.inner || arena->overflow) return NULL;
    *place = opened;
    return &place->base;
}

static void text_fork(fr_draft *fork, const fr_draft *draft) {
    state *s = (state *)fork;
    const state *of = (const state *)draft;
    fr_same_text_become(&s->text, &of->text);
    s->length = of->length;
    s->asked.proposed = 0;
    s->inner->method->fork(s->inner, of->inner);
}

static fr_kv *text_kv(fr_draft *draft) {
    fr_draft *inner = ((state *)draft)->inner;
    return inner->method->kv(inner);
}

static void text_close(fr_draft *draft) {
    fr_draft *inner = ((state *)draft)->inner;
    inner->method->close(inner);
}

static void text_unload(fr_drafter *drafter) {
    fr_draft_model.unload(drafter);
}

const fr_draft_method fr_draft_text = {
    .name = "draft",
    .unload = text_unload,
    .workspace = text_workspace,
    .open = text_open,
    .fork = text_fork,
    .propose = text_propose,
    .cut = text_cut,
    .begin = text_begin,
    .commit = text_commit,
    .kv = text_kv,
    .close = text_close,
};
