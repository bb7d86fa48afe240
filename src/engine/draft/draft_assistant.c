/* The method `mtp` with a Gemma 4 assistant as drafter.
 *
 * In: the last accepted id of each timeline, the target's hidden row before this id, the target's keys and values. Out:
 * a chain of drafts for each timeline.
 *
 * A step has one row for each timeline whose chain goes on. Let a timeline have L ids. If the target has run the first
 * L - 1 of these ids, a step computes
 *     x = pre([embedding of the id in the target's table ; hidden])      the first hidden is the target's row of L - 2
 *     x through the assistant's layers: queries only, rotary position L - 1 at every step, over the target's keys and
 *         values of positions 0 .. L - 2 (sliding layers: the last window + 1 of them)
 *     n = norm(x);  draft = argmax of the head over n;  next hidden = post(n)
 * A head with centroids first scores the clusters. Then only the head rows for the ids of the `top` best clusters are
 * computed. Source: transformers 5.17, gemma4_assistant; the width of the window is as that code computes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "src/engine/draft/draft_choice.h"
#include "src/engine/layers/parts.h"

/* The memory of all chains. Nothing in this memory is kept between proposals. There is room for a row of each session
 * of the engine. In a step, the first rows are those of the chains that still go on. */
typedef struct mtp {
    const fr_drafter *drafter;
    fr_activations *activations;
    fr_proposal **going; /* [sessions] the proposals whose chains still go on */
    fr_row *rows;        /* [sessions] one row for each chain, at the position after the target's keys and values, which
                          * the row reads */
    fr_kv **timelines;   /* [sessions] the target's cache for each entry of `rows` */
    float *input;        /* [sessions, 2 * backbone] embedding and hidden row of each chain */
    /* [sessions, vocab] the scores of all ids; if there are centroids, [sessions, top * cluster_size] the scores of
     * `ids` */
    float *scores;
    float *centroid_scores; /* [sessions, clusters] scores of the clusters */
    int32_t *chosen;        /* [sessions, top] the best clusters of each row */
    int32_t *scratch;       /* [sessions, clusters] memory for finding the best clusters */
    /* [sessions, top * cluster_size] the ids that are scored, cluster by cluster; the ids of a cluster are in ascending
     * order */
    int32_t *ids;
    float *tiles; /* [threads, tiles_width(a)] the scores of all ids of the tiles in which a cluster lies */
} mtp;

typedef struct assistant_draft {
    fr_draft base;
    mtp *workspace;
} assistant_draft;

/* Gives the width of the tiles in which a cluster lies. A cluster may begin and end within a tile, so the width
 * includes one more FR_FEATURE_UNIT at each end. */
static size_t tiles_width(const fr_assistant *a) {
    return a->trunk.head_sorted ? a->cluster_size + 2 * FR_FEATURE_UNIT : 0;
}

/* Gives the number of ids that a step scores for each row. */
static size_t candidates(const fr_assistant *a) {
    return a->clusters ? a->top * a->cluster_size : a->trunk.spec.vocab;
}

static void *assistant_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_assistant *a = drafter->net;
    size_t rows = sizes->sessions, backbone = drafter->target->trunk.spec.hidden;
    mtp state = {.drafter = drafter};
    mtp *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations activations, *activations_place = fr_arena_take(arena, 1, sizeof *activations_place);
    fr_activations_layout(&activations, &a->trunk, drafter->target->kernels, a->trunk.packed, arena, rows, 2 * backbone,
                          sizes->threads);
    state.going = fr_arena_take(arena, rows, sizeof(fr_proposal *));
    state.rows = fr_arena_take(arena, rows, sizeof *state.rows);
    state.timelines = fr_arena_take(arena, rows, sizeof(fr_kv *));
    state.input = fr_arena_take(arena, rows * 2 * backbone, sizeof(float));
    state.scores = fr_arena_take(arena, rows * candidates(a), sizeof(float));
    state.centroid_scores = fr_arena_take(arena, rows * a->clusters, sizeof(float));
    state.chosen = fr_arena_take(arena, rows * a->top, sizeof(int32_t));
    state.scratch = fr_arena_take(arena, rows * a->clusters, sizeof(int32_t));
    state.ids = fr_arena_take(arena, a->clusters ? rows * candidates(a) : 0, sizeof(int32_t));
    state.tiles = fr_arena_take(arena, sizes->threads * tiles_width(a), sizeof(float));
    if (!place || !activations_place) return NULL;
    *activations_place = activations;
    state.activations = activations_place;
    *place = state;
    return place;
}

static fr_draft *assistant_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    assistant_draft *place = fr_arena_take(arena, 1, sizeof *place);
    if (!place) return NULL;
    *place = (assistant_draft){.base.method = &fr_draft_assistant, .workspace = sizes->workspace};
    return &place->base;
}

/* Scores the ids of one cluster for row r. The head's rows are in the clusters' order, so the cluster's rows are rows
 * [first, first + cluster_size) of the head. The head is read in whole tiles. */
static void score_sorted(const fr_team *team, const mtp *m, const fr_activations *activations, size_t r, size_t first,
                         float *scores) {
    const fr_assistant *a = m->drafter->net;
    const fr_matrix *head = &a->trunk.head;
    size_t begin = first / FR_FEATURE_UNIT * FR_FEATURE_UNIT, last = first + a->cluster_size;
    size_t end = (last + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
    fr_matrix tiles = fr_matrix_features(head, begin, end < head->features ? end : head->features);
    float *all = m->tiles + team->index * tiles_width(a);
    fr_workspace workspace = fr_workspace_from(&activations->workspace, r);
    fr_matrix_apply_part(&workspace, &tiles, 0, tiles.features,
                         &(fr_matrix_rows){all, 0, activations->normed + r * a->trunk.spec.hidden, 0, 1});
    for (size_t i = 0; i < a->cluster_size; i++) scores[i] = all[first - begin + i];
}

/* Scores the ids of one cluster for row r. The cluster's ids begin at ordering[first]. In a packed head the rows may be
 * in the clusters' order; then the rows of a cluster follow each other. */
static void score_cluster(const fr_team *team, const mtp *m, const fr_activations *activations, size_t r, size_t first,
                          float *scores) {
    const fr_assistant *a = m->drafter->net;
    const fr_matrix *head = &a->trunk.head;
    const int32_t *ids = a->ordering + first;
    const float *normed = activations->normed + r * a->trunk.spec.hidden;
    fr_workspace workspace = fr_workspace_from(&activations->workspace, r);
    size_t size = a->cluster_size;
    if (a->trunk.head_sorted)
        score_sorted(team, m, activations, r, first, scores);
    else if (head->type < FR_FLOAT_TYPES)
        activations->kernels->gather[head->type](
            &(fr_gather){scores, normed, head->data, head->row_bytes, head->cols, ids, size});
    else
        for (size_t i = 0; i < size; i++) {
            fr_matrix row = fr_matrix_features(head, (size_t)ids[i], (size_t)ids[i] + 1);
            fr_matrix_apply_part(&workspace, &row, 0, 1, &(fr_matrix_rows){scores + i, 0, normed, 0, 1});
        }
}

/* Computes the scores of the normed rows: the scores of all ids, or only of the ids in each row's best clusters. */
static void score(const fr_team *team, mtp *m, const fr_activations *activations) {
    const fr_assistant *a = m->drafter->net;
    const fr_kernels *k = activations->kernels;
    const fr_matrix *head = &a->trunk.head;
    size_t hidden = a->trunk.spec.hidden, rows = activations->batch.count, size = a->cluster_size, begin, end;
    if (a->clusters == 0) {
        fr_matrix_apply(team, &activations->workspace, head,
                        &(fr_matrix_rows){m->scores, head->features, activations->normed, hidden, rows});
        return;
    }
    fr_matrix_apply(team, &activations->workspace, &a->centroids,
                    &(fr_matrix_rows){m->centroid_scores, a->clusters, activations->normed, hidden, rows});
    fr_publish_rows(team, NULL, 0);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++)
        k->topk(m->centroid_scores + r * a->clusters, a->clusters, a->top, m->chosen + r * a->top,
                m->scratch + r * a->clusters);
    fr_team_sync(team);
    fr_part_pairs(team, rows * a->top, &begin, &end);
    for (size_t c = begin; c < end; c++) {
        size_t first = (size_t)m->chosen[c] * size;
        for (size_t i = 0; i < size; i++) m->ids[c * size + i] = a->ordering[first + i];
        score_cluster(team, m, activations, c / a->top, first, m->scores + c * size);
    }
}

/* Runs one step of all chains on the whole team. Before the step, each row of `input` has [embedding ; hidden]; after
 * the step it has the next hidden row. */
static void step(void *context, const fr_team *team) {
    mtp *m = context;
    const fr_assistant *a = m->drafter->net;
    fr_activations activations = *m->activations;
    const fr_trunk_spec *c = &a->trunk.spec;
    size_t backbone = m->drafter->target->trunk.spec.hidden, rows = activations.batch.count;
    const fr_workspace *w = &activations.workspace;
    fr_matrix_input_rows(team, w, NULL, m->input, 2 * backbone, 2 * backbone, rows);
    fr_matrix_apply(team, w, &a->pre, &(fr_matrix_rows){activations.x, c->hidden, m->input, 2 * backbone, rows});
    fr_publish_rows(team, NULL, 0);
    fr_layers_run(team, &activations);
    size_t begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *normed = activations.normed + r * c->hidden;
        activations.kernels->rmsnorm(normed, activations.x + r * c->hidden, a->trunk.norm, c->hidden, c->eps);
        fr_matrix_input_row(w, r, normed, c->hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, w, &a->post,
                    &(fr_matrix_rows){m->input + backbone, 2 * backbone, activations.normed, c->hidden, rows});
    score(team, m, &activations);
}

static fr_scores scores_of(const mtp *m, size_t r) {
    const fr_assistant *a = m->drafter->net;
    size_t count = candidates(a);
    return (fr_scores){.logits = m->scores + r * count, .ids = a->clusters ? m->ids + r * count : NULL, .count = count};
}

/* Adds the next draft to row r's proposal. Returns true if the proposal's chain goes on. */
static bool take_draft(const mtp *m, size_t r) {
    const fr_scores scores = scores_of(m, r);
    const fr_model *target = m->drafter->target;
    const fr_scorer scorer = {target->kernels, target->trunk.spec.vocab, m->drafter->files.path, "the drafter's", NULL};
    return fr_draft_choice_add(m->going[r], &scores, &scorer);
}

/* Adds a draft to each proposal of a step. Returns the number of chains that go on, and moves the rows of these chains
 * to the front. */
static size_t take_drafts(mtp *m) {
    size_t rows = m->activations->batch.count, going = 0, hidden = m->drafter->target->trunk.spec.hidden;
    for (size_t r = 0; r < rows; r++) {
        if (!take_draft(m, r)) continue;
        if (going < r) {
            m->going[going] = m->going[r];
            m->rows[going] = m->rows[r];
            memcpy(m->input + (2 * going + 1) * hidden, m->input + (2 * r + 1) * hidden, hidden * sizeof *m->input);
        }
        going++;
    }
    return going;
}

static void set_rows(mtp *m, size_t rows) {
    m->activations->batch = (fr_batch){.rows = m->rows, .count = rows, .timelines = m->timelines};
    fr_rotations(&(fr_team){.count = 1}, m->activations);
}

static void begin_chains(mtp *m, fr_proposal *first) {
    size_t rows = 0, hidden = m->drafter->target->trunk.spec.hidden;
    for (fr_proposal *p = first; p; p = p->next, rows++) {
        int32_t last = (int32_t)p->view->length - 1;
        m->going[rows] = p;
        m->timelines[rows] = p->view->kv;
        m->rows[rows] = (fr_row){
            .timeline = (int32_t)rows, .position = last - 1, .parent = -1, .rope_position = {{last, last, last}}};
        memcpy(m->input + (2 * rows + 1) * hidden, p->view->hidden, hidden * sizeof *m->input);
    }
    set_rows(m, rows);
}

/* Looks up the embedding of the id with which each chain continues. */
static void embed_rows(mtp *m) {
    const fr_model *target = m->drafter->target;
    for (size_t r = 0; r < m->activations->batch.count; r++) {
        const fr_proposal *p = m->going[r];
        int32_t id = p->proposed ? p->ids[p->proposed - 1] : p->view->ids[p->view->length - 1];
        fr_model_embed(target, id, m->input + 2 * r * target->trunk.spec.hidden);
    }
}

static void assistant_propose(fr_proposal *first) {
    mtp *m = ((assistant_draft *)first->draft)->workspace;
    begin_chains(m, first);
    while (m->activations->batch.count) {
        size_t rows = m->activations->batch.count;
        embed_rows(m);
        fr_pool_run_some(first->view->pool, m, rows, step, m);
        size_t going = take_drafts(m);
        if (going < rows) set_rows(m, going);
    }
}

static fr_status assistant_load(fr_drafter *drafter) {
    fr_assistant *assistant = calloc(1, sizeof *assistant);
    if (!assistant) return fr_fail_memory("drafter", sizeof *assistant);
    drafter->net = assistant;
    FR_TRY(fr_assistant_open(assistant, drafter->target, &drafter->files, &drafter->weights));
    for (size_t i = 0; i < assistant->trunk.spec.layers; i++)
        drafter->lookback = fr_larger(drafter->lookback, assistant->trunk.spec.layer[i].attention.window);
    return FR_OK;
}

static bool assistant_borrows(const fr_drafter *drafter, size_t kv) {
    const fr_assistant *assistant = drafter->net;
    for (size_t i = 0; i < assistant->trunk.spec.layers; i++)
        if (assistant->trunk.spec.layer[i].attention.kv == kv) return true;
    return false;
}

static void assistant_unload(fr_drafter *drafter) {
    if (drafter->net) fr_assistant_close(drafter->net);
    free(drafter->net);
}

/* Every proposal starts from the target's own rows, so the method needs neither begin nor commit. */
const fr_draft_method fr_draft_assistant = {
    .name = "mtp",
    .reads = fr_is_assistant,
    .load = assistant_load,
    .unload = assistant_unload,
    .borrows = assistant_borrows,
    .workspace = assistant_workspace,
    .open = assistant_open,
    .propose = assistant_propose,
};
