/* The method `eagle3`, which drafts with EAGLE-3 for any target (eagle.h).
 *
 * In: pairs of a row of the target's aux_layers and a token. Out: the input of the drafter's layer; pairs.c does the
 * rest. */
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/draft/eagle.h"
#include "src/engine/layers/parts.h"

/* Computes a->x = fc(aux_layers) from the target's rows. Some drafters apply a norm to these rows first. */
static void fuse(const fr_team *team, const fr_pair_batch *b, const fr_activations *a, const fr_eagle *e) {
    size_t width = e->fc.cols, begin, end;
    fr_part_rows(team, b->count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *row = b->input + r * width;
        size_t norms = e->fc_norm_count, part = norms ? width / norms : 0;
        for (size_t i = 0; i < norms; i++)
            a->kernels->rmsnorm(row + i * part, b->pairs[r].known + i * part, e->fc_norms[i], part, e->trunk.spec.eps);
        if (norms == 0) memcpy(row, b->pairs[r].known, width * sizeof *row);
        fr_matrix_input_row(b->products, r, row, width);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, b->products, &e->fc,
                    &(fr_matrix_rows){a->x, e->trunk.spec.hidden, b->input, width, b->count});
    fr_publish_rows(team, NULL, 0);
}

/* Computes g, the input of the layer's residual stream. Also computes attention's input [embedding_norm(embedding) ;
 * hidden_norm(g)]. */
static void begin_pairs(const fr_team *team, const fr_pair_batch *b, fr_activations *a) {
    const fr_eagle *e = b->drafter->net;
    size_t hidden = e->trunk.spec.hidden, begin, end;
    float eps = e->trunk.spec.eps;
    fr_part_rows(team, b->count, &begin, &end);
    if (!b->chained) fuse(team, b, a, e);
    for (size_t r = begin; r < end; r++) {
        float *g = a->x + r * hidden, *embedding = b->input + 2 * r * hidden, *normed = embedding + hidden;
        if (b->chained) memcpy(g, b->pairs[r].known, hidden * sizeof *g);
        fr_eagle_embed(e, b->drafter->target, &b->pairs[r], embedding);
        a->kernels->rmsnorm(embedding, embedding, e->embedding_norm, hidden, eps);
        a->kernels->rmsnorm(normed, g, e->hidden_norm, hidden, eps);
        if (e->norm_before_residual) memcpy(g, normed, hidden * sizeof *g);
    }
    a->input = b->input;
}

static fr_status eagle3_load(fr_drafter *drafter) {
    fr_eagle_config config;
    fr_eagle *e = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("drafter", sizeof *e);
    drafter->net = e;
    FR_TRY(fr_eagle3_config_read(&config, &drafter->weights, drafter->target));
    FR_TRY(fr_eagle3_open(e, &config, drafter));
    drafter->aux_layers = config.aux_layers;
    e->pairs.what = "the EAGLE-3 drafter's";
    e->pairs.input_width = fr_larger(e->fc.cols, 2 * config.spec.trunk.hidden);
    e->pairs.begin = begin_pairs;
    return FR_OK;
}

static void eagle3_unload(fr_drafter *drafter) {
    if (drafter->net) fr_eagle_close(drafter->net);
    free(drafter->net);
}

const fr_draft_method fr_draft_eagle3 = {
    .name = "eagle3", .reads = fr_is_eagle3, .load = eagle3_load, .unload = eagle3_unload, FR_PAIRS_METHOD};
