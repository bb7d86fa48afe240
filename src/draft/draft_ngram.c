/* ngram: drafting without a model. Where the end of the text stood before, the text is likely to go on as it did there.
 *
 * In: the ids of the timeline. Out: the ids that followed the longest suffix that stood before (the latest place known
 * of it); past the end of the text the drafts themselves go on, so that a text that runs in a circle is drafted around
 * it. No drafts where fewer ids match than `shortest`. Source: prompt lookup decoding (Saxena 2023), with a suffix
 * automaton where that searches. */
#include <string.h>

#include "src/draft/draft.h"
#include "src/draft/suffix_index.h"

/* Ids that must match. Beside another method, which would have to stay silent, more of them. */
#define SHORTEST       3
#define SHORTEST_FIRST 8

/* Longer matches are not told apart: of places that agree this far back, the latest known counts. */
#define LONGEST 32

typedef struct ngram {
    fr_draft base;
    fr_suffix_index index;
    int32_t *text; /* what the index was told */
    size_t shortest;
} ngram;

static fr_draft *ngram_new(const fr_draft_method *method, fr_arena *arena, size_t context, size_t shortest) {
    ngram state = {.base.method = method, .shortest = shortest};
    ngram *place = fr_arena_take(arena, 1, sizeof *place);
    fr_suffix_layout(&state.index, arena, context, LONGEST);
    state.text = fr_arena_take(arena, context, sizeof *state.text);
    if (!place) return NULL;
    *place = state;
    return &place->base;
}

static fr_draft *ngram_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    return ngram_new(&fr_draft_ngram, arena, sizes->context, SHORTEST);
}

static fr_draft *ngram_open_first(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    return ngram_new(&fr_draft_ngram_first, arena, sizes->context, SHORTEST_FIRST);
}

static void add_new(ngram *n, const fr_draft_view *view) {
    for (size_t i = n->index.count; i < view->length; i++) {
        fr_suffix_add(&n->index, view->ids[i]);
        n->text[i] = view->ids[i];
    }
}

/* A prompt may follow what the index knows, or a part of it, or be another text. */
static void ngram_begin(fr_draft *draft, const fr_draft_view *view) {
    ngram *n = (ngram *)draft;
    size_t known = n->index.count;
    bool follows = known && known <= view->length && memcmp(n->text, view->ids, known * sizeof *n->text) == 0;
    if (!follows) fr_suffix_reset(&n->index);
    add_new(n, view);
}

static void propose_one(fr_proposal *p) {
    ngram *n = (ngram *)p->draft;
    const fr_draft_view *view = p->view;
    if (p->logits) return; /* it has no scores to give */
    add_new(n, view);
    if (n->index.match < n->shortest) return;
    for (size_t from = n->index.end; p->proposed < p->count; from++, p->proposed++)
        p->ids[p->proposed] = from < view->length ? view->ids[from] : p->ids[from - view->length];
}

static void ngram_propose(fr_proposal *first) {
    for (fr_proposal *p = first; p; p = p->next) propose_one(p);
}

static void ngram_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    (void)proposed;
    (void)accepted;
    add_new((ngram *)draft, view);
}

const fr_draft_method fr_draft_ngram = {
    .name = "ngram",
    .open = ngram_open,
    .propose = ngram_propose,
    .begin = ngram_begin,
    .commit = ngram_commit,
};

const fr_draft_method fr_draft_ngram_first = {
    .name = "ngram",
    .open = ngram_open_first,
    .propose = ngram_propose,
    .begin = ngram_begin,
    .commit = ngram_commit,
};
