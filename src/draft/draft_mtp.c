/* mtp: drafting with the Gemma 4 assistant.
 *
 * In: the last accepted id, the target's hidden row before it, the target's KV. Out: a chain of drafts.
 *
 * One step, for a timeline of L ids of which the target has run L - 1:
 *     x = pre([embedding of the id in the target's table ; hidden])          the first hidden is the target's, of L - 2
 *     x through the assistant's layers: queries only, rotary position L - 1 at every step, over the target's KV of
 *         positions 0 .. L - 2 (sliding layers: the last window + 1 of them)
 *     n = norm(x);  draft = argmax of the head over n;  next hidden = post(n)
 * The centroid head scores the clusters first, then only the head rows of the `top` best clusters' ids.
 * Source: transformers 5.17, gemma4_assistant; the window's width is as it computes it. */
#include <math.h>
#include <stdlib.h>

#include "formats/error.h"
#include "src/base/sizes.h"
#include "src/decoder/parts.h"
#include "src/draft/assistant_gemma4.h"

/* Nothing of a chain is kept, so that all is workspace. */
typedef struct mtp {
    const fr_drafter *drafter;
    fr_activations *activations;
    fr_row row;             /* the one that is run: it sees the target's K/V, and stands behind them */
    fr_kv *timelines[1];    /* the target's cache */
    float *input;           /* [2 * backbone]: embedding, hidden */
    float *scores;          /* [vocab], or [top * cluster_size] beside ids */
    float *centroid_scores; /* [clusters] */
    int32_t *chosen;        /* [top] */
    int32_t *scratch;       /* [clusters] */
    int32_t *ids;           /* [top * cluster_size] candidates, ascending within a cluster's order */
    float *tiles;           /* [threads, tiles_width(a)] scores of the whole tiles that a cluster lies in */
} mtp;

typedef struct mtp_draft {
    fr_draft base;
    mtp *workspace;
} mtp_draft;

/* A cluster may begin and end within a tile. */
static size_t tiles_width(const fr_assistant *a) {
    return a->trunk.head_sorted ? a->cluster_size + 2 * FR_FEATURE_UNIT : 0;
}

static void *mtp_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_assistant *a = drafter->net;
    size_t candidates = a->clusters ? a->top * a->cluster_size : a->trunk.spec.vocab;
    mtp state = {.drafter = drafter};
    mtp *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations activations, *activations_place = fr_arena_take(arena, 1, sizeof *activations_place);
    fr_activations_layout(&activations, &a->trunk, drafter->target->kernels, a->trunk.packed, arena, 1,
                          2 * drafter->target->trunk.spec.hidden, sizes->threads);
    state.input = fr_arena_take(arena, 2 * drafter->target->trunk.spec.hidden, sizeof(float));
    state.scores = fr_arena_take(arena, candidates, sizeof(float));
    state.centroid_scores = fr_arena_take(arena, a->clusters, sizeof(float));
    state.chosen = fr_arena_take(arena, a->top, sizeof(int32_t));
    state.scratch = fr_arena_take(arena, a->clusters, sizeof(int32_t));
    state.ids = fr_arena_take(arena, a->clusters ? candidates : 0, sizeof(int32_t));
    state.tiles = fr_arena_take(arena, sizes->threads * tiles_width(a), sizeof(float));
    if (!place || !activations_place) return NULL;
    *activations_place = activations;
    state.activations = activations_place;
    *place = state;
    return place;
}

static fr_draft *mtp_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    mtp_draft *place = fr_arena_take(arena, 1, sizeof *place);
    if (!place) return NULL;
    *place = (mtp_draft){.base.method = &fr_draft_mtp, .workspace = sizes->workspace};
    return &place->base;
}

/* Rows [first, first + cluster_size) of a head in clusters' order: it is read in whole tiles. */
static void score_sorted(const fr_team *team, const mtp *m, const fr_activations *activations, size_t first,
                         float *scores) {
    const fr_assistant *a = m->drafter->net;
    const fr_matrix *head = &a->trunk.head;
    size_t begin = first / FR_FEATURE_UNIT * FR_FEATURE_UNIT, last = first + a->cluster_size;
    size_t end = (last + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
    fr_matrix tiles = fr_matrix_features(head, begin, end < head->features ? end : head->features);
    float *all = m->tiles + team->index * tiles_width(a);
    fr_matrix_apply_part(team, &activations->workspace, &tiles, 0, tiles.features, all, 0, activations->normed, 0, 0,
                         1);
    for (size_t i = 0; i < a->cluster_size; i++) scores[i] = all[first - begin + i];
}

/* The ids that ordering has from `first` on. Their rows of the head lie side by side where it was packed in that
 * order. */
static void score_cluster(const fr_team *team, const mtp *m, const fr_activations *activations, size_t first,
                          float *scores) {
    const fr_assistant *a = m->drafter->net;
    const fr_matrix *head = &a->trunk.head;
    const int32_t *ids = a->ordering + first;
    size_t size = a->cluster_size;
    if (a->trunk.head_sorted)
        score_sorted(team, m, activations, first, scores);
    else if (head->type < FR_FLOAT_TYPES)
        activations->kernels->gather[head->type](scores, activations->normed, head->data, head->row_bytes, head->cols,
                                                 ids, size);
    else
        for (size_t i = 0; i < size; i++) {
            fr_matrix row = fr_matrix_features(head, (size_t)ids[i], (size_t)ids[i] + 1);
            fr_matrix_apply_part(team, &activations->workspace, &row, 0, 1, scores + i, 0, activations->normed, 0, 0,
                                 1);
        }
}

/* The head over the normed row: scores of all ids, or of the candidates. */
static void score(const fr_team *team, mtp *m, const fr_activations *activations) {
    const fr_assistant *a = m->drafter->net;
    const fr_kernels *k = activations->kernels;
    const fr_matrix *head = &a->trunk.head;
    size_t hidden = a->trunk.spec.hidden, size = a->cluster_size, begin, end;
    if (a->clusters == 0) {
        fr_matrix_apply(team, &activations->workspace, head, m->scores, 0, activations->normed, hidden, 1);
        return;
    }
    fr_matrix_apply(team, &activations->workspace, &a->centroids, m->centroid_scores, 0, activations->normed, hidden,
                    1);
    fr_team_sync(team);
    if (team->index == 0) k->topk(m->centroid_scores, a->clusters, a->top, m->chosen, m->scratch);
    fr_team_sync(team);
    fr_partition(a->top, 1, team->index, team->count, &begin, &end);
    for (size_t c = begin; c < end; c++) {
        size_t first = (size_t)m->chosen[c] * size;
        for (size_t i = 0; i < size; i++) m->ids[c * size + i] = a->ordering[first + i];
        score_cluster(team, m, activations, first, m->scores + c * size);
    }
}

/* One chained step by the whole team; input holds [embedding ; hidden] and gets the next hidden. */
static void step(void *context, const fr_team *team) {
    mtp *m = context;
    const fr_assistant *a = m->drafter->net;
    fr_activations activations = *m->activations;
    const fr_trunk_spec *c = &a->trunk.spec;
    size_t backbone = m->drafter->target->trunk.spec.hidden;
    const fr_workspace *w = &activations.workspace;
    fr_matrix_input_rows(team, w, m->input, 2 * backbone, 2 * backbone, 1);
    fr_matrix_apply(team, w, &a->pre, activations.x, c->hidden, m->input, 2 * backbone, 1);
    fr_team_sync(team);
    fr_layers_run(team, &activations);
    size_t begin, end;
    fr_rows_part(team, 1, &begin, &end);
    if (begin < end) {
        activations.kernels->rmsnorm(activations.normed, activations.x, a->trunk.norm, c->hidden, c->eps);
        fr_matrix_input_row(w, 0, activations.normed, c->hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, w, &a->post, m->input + backbone, backbone, activations.normed, c->hidden, 1);
    score(team, m, &activations);
}

/* The best candidate; of equal scores the lowest id. -1: a score is not finite. */
static int64_t best_candidate(const mtp *m) {
    const fr_assistant *a = m->drafter->net;
    const fr_kernels *k = m->activations->kernels;
    if (a->clusters == 0) return k->argmax(m->scores, a->trunk.spec.vocab);
    size_t count = a->top * a->cluster_size;
    int64_t at = k->argmax(m->scores, count);
    if (at < 0) return -1;
    int32_t best = m->ids[at];
    for (size_t i = (size_t)at + 1; i < count; i++)
        if (m->scores[i] == m->scores[at] && m->ids[i] < best) best = m->ids[i];
    return best;
}

/* The draft at depth d where the target's tokens are drawn; -1: every candidate is banned. */
static int64_t draw_candidate(const mtp *m, const fr_draft_view *view, const int32_t *drafts, size_t d) {
    const fr_assistant *a = m->drafter->net;
    fr_scores scores = {.logits = m->scores, .count = a->trunk.spec.vocab};
    if (a->clusters) scores = (fr_scores){.logits = m->scores, .ids = m->ids, .count = a->top * a->cluster_size};
    fr_past past = {.ids = view->ids, .length = view->length, .drafts = drafts, .drafted = d};
    return view->picker->pick(view->picker->sampler, &scores, &past);
}

static void write_logits(const mtp *m, float *logits) {
    const fr_assistant *a = m->drafter->net;
    size_t vocab = a->trunk.spec.vocab, count = a->top * a->cluster_size;
    for (size_t i = 0; i < vocab; i++) logits[i] = a->clusters ? -INFINITY : m->scores[i];
    for (size_t i = 0; i < count; i++) logits[m->ids[i]] = m->scores[i];
}

static fr_status mtp_propose(fr_draft *draft, const fr_draft_view *view, size_t count, int32_t *ids, size_t *proposed,
                             float *logits) {
    mtp *m = ((mtp_draft *)draft)->workspace;
    const fr_model *target = m->drafter->target;
    size_t hidden = target->trunk.spec.hidden;
    int32_t id = view->ids[view->length - 1], last = (int32_t)view->length - 1;
    *proposed = 0;
    m->timelines[0] = view->kv;
    m->row = (fr_row){.position = last - 1, .parent = -1, .place = {{last, last, last}}};
    m->activations->batch = (fr_batch){.rows = &m->row, .count = 1, .timelines = m->timelines};
    fr_rotations(&(fr_team){.count = 1}, m->activations);
    for (size_t i = 0; i < hidden; i++) m->input[hidden + i] = view->hidden[i];
    for (size_t d = 0; d < count; d++) {
        fr_model_embed(target, id, m->input);
        fr_pool_run(view->pool, step, m);
        int64_t best = best_candidate(m);
        if (best < 0)
            return fr_fail(FR_NUMERIC, "%s: the drafter's logits are not finite at position %zu",
                           m->drafter->files.path, view->length - 1 + d);
        if (logits) write_logits(m, logits + d * target->trunk.spec.vocab);
        if (view->picker) best = draw_candidate(m, view, ids, d);
        if (best < 0) break;
        id = ids[d] = (int32_t)best;
        *proposed = d + 1;
    }
    return FR_OK;
}

static fr_status mtp_load(fr_drafter *drafter) {
    fr_assistant *assistant = calloc(1, sizeof *assistant);
    if (!assistant) return fr_fail_memory("drafter", sizeof *assistant);
    drafter->net = assistant;
    FR_TRY(fr_assistant_open(assistant, drafter->target, &drafter->files, &drafter->weights));
    for (size_t i = 0; i < assistant->trunk.spec.layers; i++)
        drafter->lookback = fr_larger(drafter->lookback, assistant->trunk.spec.layer[i].attention.window);
    return FR_OK;
}

static void mtp_unload(fr_drafter *drafter) {
    if (drafter->net) fr_assistant_close(drafter->net);
    free(drafter->net);
}

/* The next proposal starts from the target's own rows: no begin and no commit. */
const fr_draft_method fr_draft_mtp = {
    .name = "mtp",
    .architectures = fr_gemma4_assistants,
    .load = mtp_load,
    .unload = mtp_unload,
    .workspace = mtp_workspace,
    .open = mtp_open,
    .propose = mtp_propose,
};
