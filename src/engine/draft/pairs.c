/* Drafts by pairs: see pairs.h.
 *
 * The frontier of the layers' cache (drafter_cache.h) is the number of pairs that were made from the target's rows. Let
 * a timeline have L ids, of which the target has run L - 1. A proposal first makes the pairs up to position L - 2. The
 * last of these pairs gives the first draft. Each further draft takes one more pair.
 *
 * Sessions of an engine work in one workspace. Sessions that propose together are run together: first all new pairs of
 * all sessions, then one pair for each session whose chain goes on. Each session has its own table of the cache's
 * pages, and there are enough pages for all. If a page is missing nevertheless, the session drafts nothing until its
 * next prompt. */
#include "src/engine/draft/pairs.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/draft/draft_choice.h"
#include "src/engine/draft/drafter_cache.h"
#include "src/engine/draft/learned_head.h"
#include "src/engine/layers/parts.h"

typedef struct workspace {
    const fr_drafter *drafter;
    const fr_pair_net *net;
    /* this cache has the layout of the sessions' caches, and the pages of all of them; no session uses it as its own */
    fr_kv kv;
    fr_activations *activations; /* memory for running the layer */
    fr_workspace products;       /* memory for the products at the beginning of pairs, and for the head */
    size_t most;                 /* most rows of a batch */
    fr_row *rows;                /* [most] the rows of the batch */
    fr_pair *pairs;              /* [most] the pair of each row */
    float *input;                /* [most, input_width] inputs of the products at the beginning of pairs */
    struct span *spans;          /* [sessions] the spans that are run together */
    fr_kv **timelines;           /* [sessions] for each span, the cache of its session */
    float *left;                 /* [sessions, hidden] the layer's output for each session's last pair */
    /* [sessions, hidden] the rows of `left` after the norm; the same array as `left` if pairs pass normed rows on */
    float *normed;
    float *scores; /* [sessions, candidates] the scores for each session's last pair */
    fr_learned_head learned;
} workspace;

typedef struct state {
    fr_draft base;
    workspace *work;
    fr_drafter_cache cache; /* the cache of the drafter's layers */
    fr_learned_ids learned;
} state;

/* A span: consecutive pairs of one session that are run together. */
typedef struct span {
    state *of;
    const fr_draft_view *view;
    fr_proposal *proposal; /* the proposal for which the last pair makes a draft; NULL: there is none */
    const int32_t *ids;    /* for each pair p, the token at position p + 1; NULL: the tokens are the timeline's ids */
    fr_followed_rows rows; /* the values from which pairs are made: the target's rows, or within a chain the output of
                            * the pair before */
    size_t at;             /* index in the batch of the first pair's row */
} span;

/* A batch: the spans [from, to), which the team runs together. The rows of a span have the span's index as their
 * timeline. */
typedef struct batch {
    const workspace *work;
    fr_pair_batch pairs;
    size_t from, to;
    bool head; /* scores of each span's last pair are wanted */
} batch;

/* head_of gives the matrix that scores drafts. ids_of gives the ids that the rows of this matrix score, if the head
 * does not learn ids. */
static const fr_matrix *head_of(const workspace *w) {
    if (w->learned.whole) return &w->learned.matrix;
    return w->drafter->head.ids ? &w->drafter->head.matrix : w->net->head;
}

static const int32_t *ids_of(const workspace *w) {
    return w->drafter->head.ids ? w->drafter->head.ids : w->net->candidates;
}

static size_t candidates(const workspace *w) {
    return head_of(w)->features;
}

/* Counts the pairs at the beginning of the batch of which only keys and values are needed. These are all pairs of the
 * first span except its last one. If no scores are wanted, they are all pairs of the batch. */
static size_t only_stored(const batch *b) {
    return b->head ? b->work->spans[b->from].rows.count - 1 : b->pairs.count;
}

/* Copies the output row of each span's last pair to `left`, and applies the norm of the head to it. x: the rows after
 * the layers; each is complete for the thread that owns it. */
static void leave(const fr_team *team, const batch *b, const float *x) {
    const workspace *w = b->work;
    size_t hidden = w->net->trunk->spec.hidden, stored = only_stored(b), begin, end;
    fr_part_rows(team, b->pairs.count - stored, &begin, &end);
    for (size_t i = b->from; i < b->to; i++) {
        size_t last = w->spans[i].at + w->spans[i].rows.count - 1 - stored;
        const float *row = x + last * hidden;
        float *normed = w->normed + i * hidden;
        if (last < begin || last >= end) continue;
        if (!w->net->carries_norm) memcpy(w->left + i * hidden, row, hidden * sizeof *row);
        if (w->net->norm)
            w->activations->kernels->rmsnorm(normed, row, w->net->norm, hidden, w->net->trunk->spec.eps);
        else
            memcpy(normed, row, hidden * sizeof *row);
        fr_matrix_input_row(&w->products, i - b->from, normed, hidden);
    }
}

/* Applies the head to each span's last pair. */
static void score(const fr_team *team, const batch *b, const float *x) {
    const workspace *w = b->work;
    size_t hidden = w->net->trunk->spec.hidden, count = candidates(w), begin, end;
    leave(team, b, x);
    fr_team_sync(team);
    fr_matrix_apply(
        team, &w->products, head_of(w),
        &(fr_matrix_rows){w->scores + b->from * count, count, w->normed + b->from * hidden, hidden, b->to - b->from});
    if (w->net->softcap == 0.0f) return;
    fr_part_features(team, candidates(w), &begin, &end);
    for (size_t i = b->from; i < b->to; i++)
        w->activations->kernels->softcap(w->scores + i * count + begin, end - begin, w->net->softcap);
}

/* Runs pairs with the whole team: their beginning and the layers, and for each span's last pair the norm and the head.
 * Pairs at the beginning of the batch that give no draft are run only until their keys and values are stored. */
static void run_pairs(void *context, const fr_team *team) {
    const batch *b = context;
    const workspace *w = b->work;
    fr_activations a = *w->activations;
    w->net->begin(team, &b->pairs, &a);
    a.batch = (fr_batch){.rows = w->rows, .count = b->pairs.count, .timelines = w->timelines};
    a.keep = only_stored(b);
    fr_rotations(team, &a);
    for (size_t i = 0; i < w->net->layers; i++) {
        fr_layer_run(team, &a, &w->net->spec[i], &w->net->layer[i], w->net->number + i);
        a.input = NULL;
    }
    if (b->head) score(team, b, a.x);
}

static fr_pair pair_of(const workspace *w, const span *s, size_t index) {
    size_t position = s->rows.first + index, width = fr_spec_picture_width(&w->drafter->target->trunk.spec);
    return (fr_pair){.position = position,
                     .id = s->ids ? s->ids[index] : s->view->ids[position + 1],
                     .embedding = s->ids ? NULL : fr_input_embedding(s->view->embeddings, position + 1, width),
                     .known = fr_followed_row(&s->rows, index)};
}

/* Places a span's rows in the batch, after `rows` rows of other spans. Gives the new number of rows. */
static size_t place_span(workspace *w, size_t number, size_t rows) {
    span *s = &w->spans[number];
    w->timelines[number] = &s->of->cache.kv;
    s->at = rows;
    for (size_t i = 0; i < s->rows.count; i++, rows++) {
        w->pairs[rows] = pair_of(w, s, i);
        w->rows[rows] = (fr_row){.timeline = (int32_t)number,
                                 .position = (int32_t)(s->rows.first + i),
                                 .parent = i ? (int32_t)rows - 1 : -1,
                                 .rope_position = s->view->rope_positions[s->rows.first + i + w->net->behind]};
    }
    return rows;
}

/* Runs the first `count` spans. If they have more rows than a batch can have, several batches are run. */
static void run_spans(workspace *w, size_t count, bool chained, bool head) {
    fr_pair_batch pairs = {
        .drafter = w->drafter, .pairs = w->pairs, .chained = chained, .products = &w->products, .input = w->input};
    for (batch b = {.work = w, .pairs = pairs, .head = head}; b.to < count;) {
        b.from = b.to;
        b.pairs.count = 0;
        while (b.to < count && b.pairs.count + w->spans[b.to].rows.count <= w->most)
            b.pairs.count = place_span(w, b.to++, b.pairs.count);
        fr_pool_run_some(w->spans[b.from].view->pool, w, b.pairs.count, run_pairs, &b);
    }
}

/* Makes a span of a session's pairs from the frontier to `end`, which are made from the target's rows. Claims pages for
 * these pairs and for `more` pairs after them. Returns false if there are not enough pages. */
static bool make_span(state *c, const fr_draft_view *view, size_t end, size_t more, span *s) {
    *s = (span){.of = c, .view = view};
    return fr_drafter_cache_take(&c->cache, view, end, more, &s->rows);
}

void fr_pairs_cut(fr_draft *draft, const fr_draft_view *view) {
    fr_drafter_cache_cut(&((state *)draft)->cache, view);
}

/* Makes the pairs for which all values are known. The pair of position p needs the token at position p + 1, so the pair
 * of the target's newest row may have to wait. */
fr_status fr_pairs_follow(fr_draft *draft, const fr_draft_view *view) {
    state *c = (state *)draft;
    size_t run = view->kv->length, end = run < view->length ? run : view->length - 1;
    fr_pairs_cut(draft, view);
    if (end <= c->cache.kv.length || fr_drafter_cache_keep(&c->cache, view, end)) return FR_OK;
    if (!make_span(c, view, end, 0, c->work->spans)) return FR_OK;
    run_spans(c->work, 1, false, false);
    fr_drafter_cache_advance(&c->cache, end);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- propose */

/* Adds a draft to a proposal by the scores of the proposal's last pair. Returns true if the proposal's chain goes
 * on. */
static bool take_draft(workspace *w, fr_proposal *p, float *logits) {
    fr_scores scores = {.logits = logits, .ids = ids_of(w), .count = candidates(w)};
    if (w->learned.whole) scores = fr_learned_head_scores(&w->learned, &((state *)p->draft)->learned, logits);
    const fr_model *target = w->drafter->target;
    const fr_scorer scorer = {target->kernels, target->trunk.spec.vocab, fr_drafter_path(w->drafter), w->net->what,
                              NULL};
    return fr_draft_choice_add(p, &scores, &scorer);
}

/* Adds a draft to the proposal of each of the first `count` spans. Returns the number of chains that go on. The next
 * pairs of these chains become the first spans. */
static size_t take_drafts(workspace *w, size_t count) {
    size_t going = 0, hidden = w->net->trunk->spec.hidden;
    for (size_t i = 0; i < count; i++) {
        fr_proposal *p = w->spans[i].proposal;
        if (!take_draft(w, p, w->scores + i * candidates(w))) continue;
        w->spans[going++] =
            (span){.of = w->spans[i].of,
                   .view = p->view,
                   .proposal = p,
                   .ids = p->ids + p->proposed - 1,
                   .rows = {.first = p->view->length - 2 + p->proposed, .count = 1, .rest = w->left + i * hidden}};
    }
    return going;
}

/* Makes a span of a session's new pairs, and claims pages for them and for the pairs of the session's chain. Returns
 * false if there are not enough pages; the session then drafts nothing. */
static bool begin_chain(fr_proposal *p, span *s) {
    state *c = (state *)p->draft;
    size_t end = p->view->length - 1;
    /* The last pair runs again, because its output is needed. */
    if (c->cache.kv.length >= end) fr_drafter_cache_advance(&c->cache, end - 1);
    if (!make_span(c, p->view, end, p->count - 1, s)) return false;
    s->proposal = p;
    fr_learned_ids_follow(&c->learned, &c->work->learned, p->view);
    return true;
}

void fr_pairs_propose(fr_proposal *first) {
    workspace *w = ((state *)first->draft)->work;
    size_t going = 0;
    for (fr_proposal *p = first; p; p = p->next) going += begin_chain(p, &w->spans[going]);
    fr_learned_head_gather(&w->learned);
    run_spans(w, going, false, true);
    for (size_t i = 0; i < going; i++) fr_drafter_cache_advance(&w->spans[i].of->cache, w->spans[i].view->length - 1);
    while ((going = take_drafts(w, going))) run_spans(w, going, true, true);
}

/* ------------------------------------------------------------------------------------------------------------- open */

static void lay_out_pages(fr_kv *kv, fr_arena *arena, const fr_pair_net *net, const fr_draft_sizes *sizes) {
    const fr_kv_shape first = fr_attention_kv_shape(&net->spec->attention);
    fr_drafter_cache_lay_out_pages(kv, arena, net->layers == 1 ? &first : net->trunk->kv_shapes, net->layers, sizes);
}

/* Takes the memory in which pairs are run, and the arrays with a row for each session. */
static void take_rows(workspace *w, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_pair_net *net = w->net;
    size_t hidden = net->trunk->spec.hidden;
    w->rows = fr_arena_take(arena, sizes->rows, sizeof *w->rows);
    w->pairs = fr_arena_take(arena, sizes->rows, sizeof *w->pairs);
    w->input = fr_arena_take(arena, sizes->rows * net->input_width, sizeof(float));
    w->spans = fr_arena_take(arena, sizes->sessions, sizeof *w->spans);
    w->timelines = fr_arena_take(arena, sizes->sessions, sizeof(fr_kv *));
    w->normed = fr_arena_take(arena, sizes->sessions * hidden, sizeof(float));
    w->left = net->carries_norm ? w->normed : fr_arena_take(arena, sizes->sessions * hidden, sizeof(float));
    fr_learned_head_layout(&w->learned, arena, w->drafter, sizes);
    size_t scores = w->learned.whole ? fr_learned_head_width(&w->learned) : candidates(w);
    w->scores = fr_arena_take(arena, sizes->sessions * scores, sizeof(float));
}

void *fr_pairs_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_kernels *kernels = drafter->target->kernels;
    const fr_pair_net *net = drafter->net;
    workspace work = {.drafter = drafter, .net = net, .most = sizes->rows};
    workspace *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations activations;
    lay_out_pages(&work.kv, arena, net, sizes);
    work.activations = fr_arena_take(arena, 1, sizeof *work.activations);
    fr_activations_layout(&activations, net->trunk, kernels, net->packed, arena, sizes->rows,
                          net->layer->attention.q.cols, sizes->threads);
    activations.reads_ahead = drafter->weights.exceed;
    fr_workspace_layout(&work.products, kernels, arena, net->packed, net->trunk->rotations, sizes->rows,
                        fr_larger(net->input_width, net->trunk->spec.hidden));
    take_rows(&work, arena, sizes);
    if (!place || arena->overflow) return NULL;
    *work.activations = activations;
    *place = work;
    return place;
}

fr_draft *fr_pairs_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    workspace *work = sizes->workspace;
    const fr_pair_net *net = drafter->net;
    fr_kv measured;
    if (!work) lay_out_pages(&measured, &(fr_arena){0}, net, sizes);
    state opened = {.base = {.method = drafter->method, .follows = true}, .work = work};
    state *place = fr_arena_take(arena, 1, sizeof *place);
    fr_drafter_cache_lay_out(&opened.cache, arena, work ? &work->kv : &measured, drafter, sizes);
    fr_learned_ids_layout(&opened.learned, arena, drafter, sizes);
    if (!place || arena->overflow) return NULL;
    *place = opened;
    return &place->base;
}

void fr_pairs_fork(fr_draft *fork, const fr_draft *draft) {
    fr_drafter_cache_fork(&((state *)fork)->cache, &((const state *)draft)->cache);
}

void fr_pairs_close(fr_draft *draft) {
    state *c = (state *)draft;
    fr_learned_ids_forget(&c->learned, &c->work->learned);
    fr_kv_reset(&c->cache.kv);
}

const fr_matrix *fr_pairs_head(const fr_drafter *drafter) {
    const fr_pair_net *net = drafter->net;
    return net->candidates ? NULL : net->head;
}

fr_kv *fr_pairs_kv(fr_draft *draft) {
    return &((state *)draft)->cache.kv;
}

const fr_kv *fr_pairs_workspace_kv(const void *work) {
    return &((const workspace *)work)->kv;
}
