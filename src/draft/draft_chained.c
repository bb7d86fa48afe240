/* mtp: drafting with the MTP layer of the target's own checkpoint, chained: see families/chained.h.
 *
 * In: timelines, the target's hidden rows, as it runs them. Out: a chain of drafts each.
 *
 * The layer's KV cache has a frontier of its own, the number of pairs that were made from the target's rows:
 *
 *     the layer run over new pairs, in one batch --> frontier moves with the target's (follow, propose)
 *     a chain's pairs stand behind it and are overwritten by the next real ones: rejecting costs nothing
 *
 * For a timeline of L ids of which the target has run L - 1, propose first makes the pairs up to L - 2, whose last one
 * gives the first draft, then chains.
 *
 * Sessions of an engine work in one workspace, and those that propose together are run together: first all new pairs of
 * each, side by side, then a pair of each whose chain goes on. Each has a table of the cache's pages, of which there
 * are enough for all: none is ever missing. */
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/decoder/parts.h"
#include "src/draft/draft.h"
#include "src/families/chained.h"

typedef struct workspace {
    const fr_drafter *drafter;
    const fr_chained *net;
    fr_kv kv;                    /* of no session: what theirs are laid out like, and the pages of all */
    fr_activations *activations; /* of the layer */
    fr_workspace products;       /* of eh_proj and the head */
    size_t most;                 /* rows of the largest batch */
    fr_row *rows;                /* [most] */
    float *input;                /* [most, 2 * hidden]: embedding, hidden row, each normed */
    struct span *spans;          /* [sessions] those that are run together; of each, */
    fr_kv **timelines;           /* [sessions] the layer's cache, */
    float *normed;               /* [sessions, hidden] the last pair's output: the next pair's hidden row in a chain, */
    float *scores;               /* [sessions, vocab] and its scores */
} workspace;

typedef struct chained {
    fr_draft base;
    workspace *work;
    fr_kv kv; /* one layer; its length is the frontier */
} chained;

/* Pairs of one session that are run together: pair `first` on. */
typedef struct span {
    chained *state;
    const fr_draft_view *view;
    fr_proposal *proposal; /* that their last one has a draft for; NULL: none */
    const int32_t *ids;    /* token p + 1 of each pair p; NULL: as the timeline has them */
    const float *hidden;   /* [count, hidden] */
    size_t first, count;
    size_t at; /* row of the first one in its batch */
} span;

/* Spans [from, to) for the team, whose rows have their numbers for timelines. */
typedef struct batch {
    const workspace *work;
    size_t from, to, rows;
    bool head; /* scores of each span's last pair are wanted */
} batch;

static void embed(const workspace *w, const span *s, size_t pair, float *out) {
    const fr_model *target = w->drafter->target;
    size_t position = s->first + pair + 1, hidden = target->trunk.spec.hidden;
    const float *input = s->ids ? NULL : fr_input_embedding(s->view->embeddings, position, hidden);
    int32_t id = s->ids ? s->ids[pair] : s->view->ids[position];
    if (w->net->blank_first && position == 1)
        memset(out, 0, hidden * sizeof *out);
    else if (input)
        memcpy(out, input, hidden * sizeof *out);
    else if (w->net->embedding.data)
        fr_matrix_row(target->kernels, &w->net->embedding, (size_t)id, 1.0f, out);
    else
        fr_model_embed(target, id, out);
}

/* The thread's own rows of eh_proj's input. */
static void make_input(const fr_team *team, const batch *b) {
    const workspace *w = b->work;
    const fr_chained *net = w->net;
    const fr_kernels *k = w->drafter->target->kernels;
    size_t hidden = w->drafter->target->trunk.spec.hidden, begin, end;
    float eps = w->activations->trunk->spec.eps;
    fr_rows_part(team, b->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const span *s = &w->spans[w->rows[r].timeline];
        float *embedding = w->input + 2 * r * hidden, *row = embedding + hidden;
        embed(w, s, r - s->at, embedding);
        k->rmsnorm(embedding, embedding, net->enorm, hidden, eps);
        k->rmsnorm(row, s->hidden + (r - s->at) * hidden, net->hnorm, hidden, eps);
        fr_matrix_input_row(&w->products, r, embedding, 2 * hidden);
    }
}

/* Norm and head of each span's last pair; x: the rows behind the layer, each of which its owner has whole. */
static void score(const fr_team *team, const batch *b, const float *x) {
    const workspace *w = b->work;
    const fr_kernels *k = w->drafter->target->kernels;
    size_t hidden = w->drafter->target->trunk.spec.hidden, vocab = w->drafter->target->trunk.spec.vocab, begin, end;
    fr_rows_part(team, b->rows, &begin, &end);
    for (size_t i = b->from; i < b->to; i++) {
        size_t last = w->spans[i].at + w->spans[i].count - 1;
        float *normed = w->normed + i * hidden;
        if (last < begin || last >= end) continue;
        k->rmsnorm(normed, x + last * hidden, w->net->norm, hidden, w->activations->trunk->spec.eps);
        fr_matrix_input_row(&w->products, i - b->from, normed, hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, &w->products, &w->net->head, w->scores + b->from * vocab, vocab, w->normed + b->from * hidden,
                    hidden, b->to - b->from);
}

/* By the whole team: pairs through norms, eh_proj, layer; then norm and head of each span's last one. */
static void run_pairs(void *context, const fr_team *team) {
    const batch *b = context;
    const workspace *w = b->work;
    fr_activations a = *w->activations;
    size_t hidden = w->drafter->target->trunk.spec.hidden;
    make_input(team, b);
    fr_team_sync(team);
    fr_matrix_apply(team, &w->products, &w->net->eh_proj, a.x, hidden, w->input, 2 * hidden, b->rows);
    fr_team_sync(team);
    a.batch = (fr_batch){.rows = w->rows, .count = b->rows, .timelines = w->timelines};
    fr_rotations(team, &a);
    fr_layer_run(team, &a, &w->net->spec, &w->net->layer, a.trunk->spec.layers);
    if (b->head) score(team, b, a.x);
}

/* A span's rows, behind `rows` others; gives how many there are then. Pair p lies at slot p and stands where token
 * p + 1 does. */
static size_t place_span(workspace *w, size_t number, size_t rows) {
    span *s = &w->spans[number];
    w->timelines[number] = &s->state->kv;
    s->at = rows;
    for (size_t i = 0; i < s->count; i++, rows++)
        w->rows[rows] = (fr_row){.timeline = (int32_t)number,
                                 .position = (int32_t)(s->first + i),
                                 .parent = i ? (int32_t)rows - 1 : -1,
                                 .place = s->view->places[s->first + i + 1]};
    return rows;
}

/* The first `count` spans, in as many batches as their rows need. */
static void run_spans(workspace *w, size_t count, bool head) {
    for (batch b = {.work = w, .head = head}; b.to < count;) {
        b.from = b.to;
        b.rows = 0;
        while (b.to < count && b.rows + w->spans[b.to].count <= w->most) b.rows = place_span(w, b.to++, b.rows);
        fr_pool_run(w->spans[b.from].view->pool, run_pairs, &b);
    }
}

/* Pairs from the frontier to `end`, of the target's rows, and room for `more` behind them. */
static fr_status make_span(chained *c, const fr_draft_view *view, size_t end, size_t more, span *s) {
    size_t hidden = c->work->drafter->target->trunk.spec.hidden, first = c->kv.length;
    const float *last = view->hidden - (view->kv->length - end) * hidden; /* row of pair end - 1 */
    FR_TRY(fr_kv_claim(&c->kv, end - first + more));
    *s = (span){
        .state = c, .view = view, .hidden = last - (end - 1 - first) * hidden, .first = first, .count = end - first};
    return FR_OK;
}

/* The pair of position p needs token p + 1, so the target's newest row may have to wait for its own. */
static fr_status chained_follow(fr_draft *draft, const fr_draft_view *view) {
    chained *c = (chained *)draft;
    size_t run = view->kv->length, end = run < view->length ? run : view->length - 1;
    if (c->kv.length > run) fr_kv_rewind(&c->kv, run);
    if (end <= c->kv.length) return FR_OK;
    FR_TRY(make_span(c, view, end, 0, c->work->spans));
    run_spans(c->work, 1, false);
    fr_kv_commit(&c->kv, end);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- propose */

/* The next draft where the target's tokens are drawn; -1: every id is banned. */
static int64_t draw(const fr_proposal *p, const float *logits, size_t vocab) {
    const fr_draft_view *view = p->view;
    fr_scores scores = {.logits = logits, .count = vocab};
    fr_past past = {.ids = view->ids, .length = view->length, .drafts = p->ids, .drafted = p->proposed};
    return view->picker->pick(view->picker->sampler, &scores, &past);
}

/* The next draft of a proposal, from the scores of its last pair; whether its chain goes on. */
static bool take_draft(const workspace *w, fr_proposal *p, const float *scores) {
    const fr_model *target = w->drafter->target;
    size_t vocab = target->trunk.spec.vocab;
    int64_t best = target->kernels->argmax(scores, vocab);
    if (best < 0) {
        p->failure = fr_failure_keep(fr_fail(FR_NUMERIC, "%s: the MTP layer's logits are not finite at position %zu",
                                             target->files.path, p->view->length - 1 + p->proposed));
        return false;
    }
    if (p->logits) memcpy(p->logits + p->proposed * vocab, scores, vocab * sizeof *scores);
    if (p->view->picker) best = draw(p, scores, vocab);
    if (best < 0) return false;
    p->ids[p->proposed++] = (int32_t)best;
    return p->proposed < p->count;
}

/* Hands out what the first `count` spans give; gives how many chains go on, whose next pairs are then the first
 * spans. */
static size_t take_drafts(workspace *w, size_t count) {
    size_t going = 0, hidden = w->drafter->target->trunk.spec.hidden, vocab = w->drafter->target->trunk.spec.vocab;
    for (size_t i = 0; i < count; i++) {
        fr_proposal *p = w->spans[i].proposal;
        if (!take_draft(w, p, w->scores + i * vocab)) continue;
        w->spans[going++] = (span){.state = w->spans[i].state,
                                   .view = p->view,
                                   .proposal = p,
                                   .ids = p->ids + p->proposed - 1,
                                   .hidden = w->normed + i * hidden,
                                   .first = p->view->length - 2 + p->proposed,
                                   .count = 1};
    }
    return going;
}

/* A session's new pairs, and room for those of its chain. */
static fr_status begin_chain(fr_proposal *p, span *s) {
    chained *c = (chained *)p->draft;
    size_t end = p->view->length - 1;
    if (c->kv.length >= end) fr_kv_commit(&c->kv, end - 1); /* proposed before: once more */
    FR_TRY(make_span(c, p->view, end, p->count - 1, s));
    s->proposal = p;
    return FR_OK;
}

static void chained_propose(fr_proposal *first) {
    workspace *w = ((chained *)first->draft)->work;
    size_t going = 0;
    for (fr_proposal *p = first; p; p = p->next) {
        p->failure = fr_failure_keep(begin_chain(p, &w->spans[going]));
        going += p->failure.status == FR_OK;
    }
    run_spans(w, going, true);
    for (size_t i = 0; i < going; i++) fr_kv_commit(&w->spans[i].state->kv, w->spans[i].view->length - 1);
    while ((going = take_drafts(w, going))) run_spans(w, going, true);
}

/* ------------------------------------------------------------------------------------------------------------- open */

/* Pages that a session may have beside one for each of the target's: where a chain stands behind the last position,
 * where the frontiers lie in different pages, of which others hold one, and where its text leaves another's. */
enum { OWN_PAGES = 4 };

static void lay_out_cache(fr_kv *kv, fr_arena *arena, const fr_chained *net, const fr_draft_sizes *sizes) {
    const fr_attention_spec *attention = &net->spec.attention;
    const fr_kv_shape shape = {attention->kv_heads, attention->head_dim, attention->window};
    size_t context = sizes->context + FR_STEP_MAX;
    size_t pages = sizes->pages + OWN_PAGES * sizes->sessions;
    fr_kv_layout(kv, arena, &shape, 1, sizes->kv_types,
                 (fr_kv_sizes){.context = context, .batch = context, .timelines = sizes->sessions, .pages = pages});
}

static void *chained_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_model *target = drafter->target;
    const fr_chained *net = drafter->net;
    size_t hidden = target->trunk.spec.hidden;
    workspace state = {.drafter = drafter, .net = net, .most = sizes->rows};
    workspace *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations activations;
    lay_out_cache(&state.kv, arena, net, sizes);
    state.activations = fr_arena_take(arena, 1, sizeof *state.activations);
    fr_activations_layout(&activations, &target->trunk, target->kernels, net->packed, arena, sizes->rows, 0,
                          sizes->threads);
    fr_workspace_layout(&state.products, target->kernels, arena, net->packed, sizes->rows, 2 * hidden, sizes->threads);
    state.rows = fr_arena_take(arena, sizes->rows, sizeof *state.rows);
    state.input = fr_arena_take(arena, sizes->rows * 2 * hidden, sizeof(float));
    state.spans = fr_arena_take(arena, sizes->sessions, sizeof *state.spans);
    state.timelines = fr_arena_take(arena, sizes->sessions, sizeof(fr_kv *));
    state.normed = fr_arena_take(arena, sizes->sessions * hidden, sizeof(float));
    state.scores = fr_arena_take(arena, sizes->sessions * target->trunk.spec.vocab, sizeof(float));
    if (!place || arena->overflow) return NULL;
    *state.activations = activations;
    *place = state;
    return place;
}

static fr_draft *chained_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    workspace *work = sizes->workspace;
    fr_kv measured;
    if (!work) lay_out_cache(&measured, &(fr_arena){0}, drafter->net, sizes);
    chained state = {.base = {.method = &fr_draft_chained, .follows = true}, .work = work};
    chained *place = fr_arena_take(arena, 1, sizeof *place);
    fr_kv_layout_fork(&state.kv, arena, work ? &work->kv : &measured);
    if (!place || arena->overflow) return NULL;
    *place = state;
    return &place->base;
}

static void chained_fork(fr_draft *fork, const fr_draft *draft) {
    fr_kv_fork(&((chained *)fork)->kv, &((const chained *)draft)->kv);
}

static void chained_close(fr_draft *draft) {
    fr_kv_reset(&((chained *)draft)->kv);
}

static fr_kv *chained_kv(fr_draft *draft) {
    return &((chained *)draft)->kv;
}

static const fr_kv *chained_workspace_kv(const void *work) {
    return &((const workspace *)work)->kv;
}

/* The layer behind the model's own, with what it has beside a layer's tensors. */
static fr_status chained_load(fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    const fr_trunk *trunk = &target->trunk;
    const fr_naming *names = target->family->names;
    fr_chained *net = calloc(1, sizeof *net);
    if (!net) return fr_fail_memory("MTP layer", sizeof *net);
    drafter->net = net;
    net->spec = trunk->spec.layer[trunk->spec.layers - 1];
    net->spec.attention.kv = 0;
    fr_binding b = fr_binding_layer(&drafter->weights, &trunk->spec, &net->spec, trunk->spec.layers);
    FR_TRY(fr_names_bind(&b, names->layer, &net->layer));
    FR_TRY(fr_names_bind(&b, names->chained, net));
    if (!net->head.data) net->head = trunk->head;
    net->packed = drafter->weights.has_packed || target->weights.has_packed;
    return FR_OK;
}

static void chained_unload(fr_drafter *drafter) {
    fr_chained *net = drafter->net;
    if (net) fr_layer_close(&net->layer);
    free(net);
}

static const char *const architectures[] = {NULL}; /* it lies in its target's files, not in files of its own */

const fr_draft_method fr_draft_chained = {
    .name = "mtp",
    .architectures = architectures,
    .load = chained_load,
    .unload = chained_unload,
    .workspace = chained_workspace,
    .open = chained_open,
    .fork = chained_fork,
    .propose = chained_propose,
    .follow = chained_follow,
    .kv = chained_kv,
    .workspace_kv = chained_workspace_kv,
    .close = chained_close,
};
