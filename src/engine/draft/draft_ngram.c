/* ngram: drafting without a model. Where the end of the text stood before, the text is likely to go on as it did there.
 *
 * In: the ids of the timeline. Out: the ids that followed the longest suffix that stood before (the latest place known
 * of it); past the end of the text the drafts themselves go on, so that a text that runs in a circle is drafted around
 * it. No drafts where fewer ids match than `shortest`. Source: prompt lookup decoding (Saxena 2023), with a suffix
 * automaton where that searches.
 *
 * Where drafts have gains, what counts is how often the id behind a match of so many stood, which every id of an
 * answer tells, drafted or not: the chain ends where a draft is worth less than its row, and stays away where drafts
 * that take steps are expected to gain more. A draft behind d others has a match longer by d. */
#include <string.h>

#include "src/engine/draft/draft.h"
#include "src/engine/draft/suffix_index.h"

/* Ids that must match. Beside another method, which would have to stay silent, more of them. */
#define SHORTEST       3
#define SHORTEST_FIRST 8

/* Longer matches are not told apart: of places that agree this far back, the latest known counts. */
#define LONGEST 32

#define FADE  (1.0 / 256) /* of what a bin knows, a try */
#define PRIOR 8.0         /* tries that a guess is worth */

/* Matches of a bin have so many ids or more; how often what followed is guessed to follow again. */
enum { BINS = 9 };
static const size_t at_least[BINS] = {SHORTEST, 4, 5, 6, SHORTEST_FIRST, 12, 16, 24, LONGEST};
static const double guesses[BINS] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95};

typedef struct ngram {
    fr_draft base;
    fr_suffix_index index;
    int32_t *text; /* what the index was told */
    size_t shortest;
    struct {
        double hits, tries; /* both fading */
    } bins[BINS];
} ngram;

static fr_draft *ngram_new(const fr_draft_method *method, fr_arena *arena, size_t context, size_t shortest) {
    ngram state = {.base = {.method = method, .finds = true, .only_finds = true}, .shortest = shortest};
    for (size_t i = 0; i < BINS; i++) {
        state.bins[i].hits = PRIOR * guesses[i];
        state.bins[i].tries = PRIOR;
    }
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

static size_t bin_of(size_t match) {
    size_t bin = 0;
    while (bin + 1 < BINS && match >= at_least[bin + 1]) bin++;
    return bin;
}

/* Whether an id is what followed the match before it. */
static void learn(ngram *n, int32_t id) {
    if (n->index.match < SHORTEST) return;
    size_t bin = bin_of(n->index.match);
    n->bins[bin].hits += (n->text[n->index.end] == id) - FADE * n->bins[bin].hits;
    n->bins[bin].tries += 1 - FADE * n->bins[bin].tries;
}

static void add(ngram *n, int32_t id) {
    n->text[n->index.count] = id;
    fr_suffix_add(&n->index, id);
}

/* Of an answer. */
static void add_new(ngram *n, const fr_draft_view *view) {
    while (n->index.count < view->length) {
        int32_t id = view->ids[n->index.count];
        learn(n, id);
        add(n, id);
    }
}

/* A prompt may follow what the index knows, or a part of it, or be another text. */
static void ngram_begin(fr_draft *draft, const fr_draft_view *view) {
    ngram *n = (ngram *)draft;
    size_t known = n->index.count;
    bool follows = known && known <= view->length && memcmp(n->text, view->ids, known * sizeof *n->text) == 0;
    if (!follows) fr_suffix_reset(&n->index);
    while (n->index.count < view->length) add(n, view->ids[n->index.count]);
}

/* How many drafts gain most, and what beyond the time of their rows. */
static size_t worthy(const ngram *n, const fr_proposal *p, double *gain) {
    size_t count = 0;
    double all_stand = 1;
    for (*gain = 0; count < p->most_found; count++) {
        size_t bin = bin_of(n->index.match + count);
        all_stand *= n->bins[bin].hits / n->bins[bin].tries;
        if (all_stand < p->gains->found[count]) break;
        *gain += all_stand - p->gains->found[count];
    }
    return count;
}

/* How many of the ids that followed the match are proposed. */
static size_t how_many(const ngram *n, fr_proposal *p) {
    double gain;
    if (!p->gains) return n->index.match < n->shortest ? 0 : p->count;
    if (n->index.match < SHORTEST) return 0;
    size_t count = worthy(n, p, &gain);
    p->found = count > 0 && gain > fr_draft_gain_expected(p->gains, p->count);
    return p->found ? count : 0;
}

static void propose_one(fr_proposal *p) {
    ngram *n = (ngram *)p->draft;
    const fr_draft_view *view = p->view;
    if (p->logits) return; /* it has no scores to give */
    add_new(n, view);
    size_t count = how_many(n, p);
    for (size_t from = n->index.end; p->proposed < count; from++, p->proposed++)
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
