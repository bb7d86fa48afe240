/* mtp: drafting with the MTP layer of the target's own checkpoint, chained: see families/chained.h.
 *
 * In: the timeline, the target's hidden rows, as it runs them. Out: a chain of drafts.
 *
 * The layer's KV cache has a frontier of its own, the number of pairs that were made from the target's rows:
 *
 *     the layer run over new pairs, in one batch --> frontier moves with the target's (follow, propose)
 *     a chain's pairs stand behind it and are overwritten by the next real ones: rejecting costs nothing
 *
 * For a timeline of L ids of which the target has run L - 1, propose first makes the pairs up to L - 2, whose last one
 * gives the first draft, then chains.
 *
 * Sessions of an engine work in one workspace, one at a time; each has a table of the cache's pages, of which there are
 * enough for all: none is ever missing. */
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/decoder/parts.h"
#include "src/draft/draft.h"
#include "src/families/chained.h"

typedef struct workspace {
    const fr_drafter *drafter;
    const fr_chained *net;
    fr_kv kv; /* of no session: what theirs are laid out like, and the pages of all */
    fr_activations *activations; /* of the layer */
    fr_workspace products;       /* of eh_proj and the head */
    fr_row *rows;  /* of the largest batch */
    float *input;  /* [rows, 2 * hidden]: embedding, hidden row, each normed */
    float *normed; /* [hidden] the last pair's output: the next pair's hidden row in a chain */
    float *scores; /* [vocab] */
} workspace;

typedef struct chained {
    fr_draft base;
    workspace *work;
    fr_kv kv; /* one layer; its length is the frontier */
    fr_kv *timelines[1];
} chained;

/* One batch of pairs for the team: pair `first` on. */
typedef struct batch {
    chained *state;
    const fr_draft_view *view;
    const int32_t *ids;  /* token p + 1 of each pair p; NULL: as the timeline has them */
    const float *hidden; /* [count, hidden] */
    size_t first, count;
    bool head; /* scores of the last pair are wanted */
} batch;

static void embed(const workspace *w, const batch *b, size_t row, float *out) {
    const fr_model *target = w->drafter->target;
    size_t position = b->first + row + 1, hidden = target->trunk.spec.hidden;
    const float *input = b->ids ? NULL : fr_input_embedding(b->view->embeddings, position, hidden);
    int32_t id = b->ids ? b->ids[row] : b->view->ids[position];
    if (w->net->blank_first && position == 1)
        memset(out, 0, hidden * sizeof *out);
    else if (input)
        memcpy(out, input, hidden * sizeof *out);
    else if (w->net->embedding.data)
        fr_matrix_row(target->kernels, &w->net->embedding, (size_t)id, 1.0f, out);
    else
        fr_model_embed(target, id, out);
}

/* By the whole team: pairs through norms, eh_proj, layer; then norm and head of the last one. */
static void run_pairs(void *context, const fr_team *team) {
    const batch *b = context;
    const workspace *w = b->state->work;
    const fr_chained *net = w->net;
    const fr_kernels *k = w->drafter->target->kernels;
    fr_activations a = *w->activations;
    size_t hidden = w->drafter->target->trunk.spec.hidden, last = b->count - 1, begin, end;
    float eps = a.trunk->spec.eps;
    fr_rows_part(team, b->count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *embedding = w->input + 2 * r * hidden, *row = embedding + hidden;
        embed(w, b, r, embedding);
        k->rmsnorm(embedding, embedding, net->enorm, hidden, eps);
        k->rmsnorm(row, b->hidden + r * hidden, net->hnorm, hidden, eps);
        fr_matrix_input_row(&w->products, r, embedding, 2 * hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, &w->products, &net->eh_proj, a.x, hidden, w->input, 2 * hidden, b->count);
    fr_team_sync(team);
    a.batch = (fr_batch){.rows = w->rows, .count = b->count, .timelines = b->state->timelines};
    fr_rotations(team, &a);
    fr_layer_run(team, &a, &net->spec, &net->layer, a.trunk->spec.layers);
    if (!b->head) return;
    if (begin <= last && last < end) {
        k->rmsnorm(w->normed, a.x + last * hidden, net->norm, hidden, eps);
        fr_matrix_input_row(&w->products, 0, w->normed, hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, &w->products, &net->head, w->scores, 0, w->normed, hidden, 1);
}

/* Pair p lies at slot p and stands where token p + 1 does. */
static void run_batch(const batch *b) {
    fr_row *rows = b->state->work->rows;
    for (size_t r = 0; r < b->count; r++)
        rows[r] = (fr_row){.position = (int32_t)(b->first + r),
                              .parent = (int32_t)r - 1,
                              .place = b->view->places[b->first + r + 1]};
    fr_pool_run(b->view->pool, run_pairs, (void *)b);
}

/* Pairs from the frontier to `end`, of the target's rows; the frontier moves there. */
static fr_status make_pairs(chained *c, const fr_draft_view *view, size_t end, bool head) {
    size_t hidden = c->work->drafter->target->trunk.spec.hidden, first = c->kv.length;
    FR_TRY(fr_kv_claim(&c->kv, end - first));
    const float *last = view->hidden - (view->kv->length - end) * hidden; /* row of pair end - 1 */
    batch b = {.state = c,
               .view = view,
               .hidden = last - (end - 1 - first) * hidden,
               .first = first,
               .count = end - first,
               .head = head};
    run_batch(&b);
    fr_kv_commit(&c->kv, end);
    return FR_OK;
}

/* The pair of position p needs token p + 1, so the target's newest row may have to wait for its own. */
static fr_status chained_follow(fr_draft *draft, const fr_draft_view *view) {
    chained *c = (chained *)draft;
    size_t run = view->kv->length, end = run < view->length ? run : view->length - 1;
    if (c->kv.length > run) fr_kv_rewind(&c->kv, run);
    return end > c->kv.length ? make_pairs(c, view, end, false) : FR_OK;
}

/* The draft at depth d where the target's tokens are drawn; -1: every id is banned. */
static int64_t draw(const workspace *w, const fr_draft_view *view, const int32_t *drafts, size_t d) {
    fr_scores scores = {.logits = w->scores, .count = w->drafter->target->trunk.spec.vocab};
    fr_past past = {.ids = view->ids, .length = view->length, .drafts = drafts, .drafted = d};
    return view->picker->pick(view->picker->sampler, &scores, &past);
}

static fr_status chained_propose(fr_draft *draft, const fr_draft_view *view, size_t count, int32_t *ids,
                                 size_t *proposed, float *logits) {
    chained *c = (chained *)draft;
    const workspace *w = c->work;
    const fr_model *target = w->drafter->target;
    size_t vocab = target->trunk.spec.vocab;
    batch b = {.state = c, .view = view, .hidden = w->normed, .count = 1, .head = true};
    *proposed = 0;
    if (c->kv.length > view->length - 2) fr_kv_commit(&c->kv, view->length - 2); /* proposed before: once more */
    FR_TRY(make_pairs(c, view, view->length - 1, true));
    FR_TRY(fr_kv_claim(&c->kv, count - 1));
    for (size_t d = 0; d < count; d++) {
        if (d > 0) {
            b.ids = ids + d - 1;
            b.first = view->length - 2 + d;
            run_batch(&b);
        }
        int64_t best = target->kernels->argmax(w->scores, vocab);
        if (best < 0)
            return fr_fail(FR_NUMERIC, "%s: the MTP layer's logits are not finite at position %zu", target->files.path,
                           view->length - 1 + d);
        if (logits) memcpy(logits + d * vocab, w->scores, vocab * sizeof *logits);
        if (view->picker) best = draw(w, view, ids, d);
        if (best < 0) break;
        ids[d] = (int32_t)best;
        *proposed = d + 1;
    }
    return FR_OK;
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
    workspace state = {.drafter = drafter, .net = net};
    workspace *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations activations;
    lay_out_cache(&state.kv, arena, net, sizes);
    state.activations = fr_arena_take(arena, 1, sizeof *state.activations);
    fr_activations_layout(&activations, &target->trunk, target->kernels, net->packed, arena, sizes->rows, 0,
                          sizes->threads);
    fr_workspace_layout(&state.products, target->kernels, arena, net->packed, sizes->rows, 2 * hidden, sizes->threads);
    state.rows = fr_arena_take(arena, sizes->rows, sizeof *state.rows);
    state.input = fr_arena_take(arena, sizes->rows * 2 * hidden, sizeof(float));
    state.normed = fr_arena_take(arena, hidden, sizeof(float));
    state.scores = fr_arena_take(arena, target->trunk.spec.vocab, sizeof(float));
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
    place->timelines[0] = &place->kv;
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
