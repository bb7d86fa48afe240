/* The method `ngram`, which drafts without a model. If the last ids of the text occurred before, the text is likely to
 * continue as it did there.
 *
 * In: the ids of the timeline. Out: the ids that followed an earlier occurrence of the text's last ids. The longest
 * suffix that occurred before is used, at its latest known place. If the drafts reach the end of the text, they
 * continue with the first drafts. So a text that repeats itself is drafted again and again. If fewer ids match than
 * `shortest`, there are no drafts. Source: prompt lookup decoding (Saxena 2023), with a suffix automaton instead of a
 * search.
 *
 * If `gains` is given, each draft gets a probability: of the past matches of its length, the share in which the next id
 * was right. This share is learned from every id of an answer, including ids that were not drafted. The chain ends
 * before a draft that is worth less than its row. If drafts that take steps are expected to gain more, there is no
 * chain. A draft with d drafts before it counts as a match that is longer by d. */
#include <string.h>

#include "src/engine/draft/draft.h"
#include "src/engine/draft/suffix_index.h"

/* The fewest ids that must match. If another method could draft instead, more ids must match. */
#define SHORTEST       3
#define SHORTEST_FIRST 8

/* Matches that are longer than this count as equally long. Then the latest known place where this many ids match is
 * used. */
#define LONGEST 32

#define FADE  (1.0 / 256) /* each new match lowers the counts of its bin by this share, so old matches count less */
#define PRIOR 8.0         /* a guessed probability counts as much as this number of matches */

/* Matches are sorted into bins by their lengths. at_least: length of the shortest match in each bin. guesses: estimates
 * of how often the id after such a match is right. */
enum { BINS = 9 };
static const size_t at_least[BINS] = {SHORTEST, 4, 5, 6, SHORTEST_FIRST, 12, 16, 24, LONGEST};
static const double guesses[BINS] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95};

typedef struct ngram {
    fr_draft base;
    fr_suffix_index index;
    int32_t *text; /* the ids in the index */
    size_t shortest;
    struct {
        double hits, tries; /* tries: number of past matches in this bin; hits: number of these matches whose next id
                             * was right; older matches count less */
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

/* Counts the match in its bin. Also counts a hit if `id` is the id that followed the earlier occurrence. */
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

/* Learns from the new ids of an answer, and adds them to the index. */
static void add_new(ngram *n, const fr_draft_view *view) {
    while (n->index.count < view->length) {
        int32_t id = view->ids[n->index.count];
        learn(n, id);
        add(n, id);
    }
}

/* Adds a prompt's ids to the index. If the prompt does not continue the text in the index, the index is emptied
 * first. */
static void ngram_begin(fr_draft *draft, const fr_draft_view *view) {
    ngram *n = (ngram *)draft;
    size_t known = n->index.count;
    bool follows = known && known <= view->length && memcmp(n->text, view->ids, known * sizeof *n->text) == 0;
    if (!follows) fr_suffix_reset(&n->index);
    while (n->index.count < view->length) add(n, view->ids[n->index.count]);
}

/* Finds the number of drafts that gains the most. *gain is the expected number of accepted tokens, minus the number of
 * tokens that could be made in the time of the drafts' rows. Also writes the drafts' probabilities. */
static size_t worthy(const ngram *n, const fr_proposal *p, double *gain) {
    size_t count = 0;
    double all_stand = 1;
    for (*gain = 0; count < p->most_found; count++) {
        size_t bin = bin_of(n->index.match + count);
        double stands = n->bins[bin].hits / n->bins[bin].tries;
        if (p->chances) p->chances[count] = (float)stands;
        all_stand *= stands;
        if (all_stand < p->gains->found[count]) break;
        *gain += all_stand - p->gains->found[count];
    }
    return count;
}

/* Returns how many of the ids that followed the earlier occurrence are proposed. */
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
    if (p->logits) return; /* this method has no scores */
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
