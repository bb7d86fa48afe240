/* The method `eagle`, which drafts with EAGLE-1 (eagle.h).
 *
 * In: pairs of a hidden row of the target and a token. Out: the input of the drafter's layer; pairs.c does the rest. */
#include <stdlib.h>
#include <string.h>

#include "src/engine/draft/eagle.h"
#include "src/engine/layers/parts.h"

/* Computes the input of the residual stream, fc([embedding ; hidden]) + bias. If the layer has no input norm, attention
 * reads this input as it is. */
static void begin_pairs(const fr_team *team, const fr_pair_batch *b, fr_activations *a) {
    const fr_eagle *e = b->drafter->net;
    size_t hidden = e->trunk.spec.hidden, begin, end;
    fr_part_rows(team, b->count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *embedding = b->input + 2 * r * hidden;
        fr_eagle_embed(e, b->drafter->target, &b->pairs[r], embedding);
        memcpy(embedding + hidden, b->pairs[r].known, hidden * sizeof *embedding);
        fr_matrix_input_row(b->products, r, embedding, 2 * hidden);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, b->products, &e->fc, &(fr_matrix_rows){a->x, hidden, b->input, 2 * hidden, b->count});
    fr_publish_rows(team, NULL, 0);
    for (size_t r = begin; r < end && e->fc_bias; r++) a->kernels->add(a->x + r * hidden, e->fc_bias, hidden);
    a->input = e->trunk.layers->input_norm ? NULL : a->x;
}

static fr_status eagle_load(fr_drafter *drafter) {
    fr_eagle_config config;
    fr_eagle *e = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("drafter", sizeof *e);
    drafter->net = e;
    FR_TRY(fr_eagle1_config_read(&config, &drafter->weights, drafter->target));
    FR_TRY(fr_eagle1_open(e, &config, drafter));
    e->pairs.what = "the EAGLE drafter's";
    e->pairs.input_width = 2 * config.spec.trunk.hidden;
    e->pairs.begin = begin_pairs;
    return FR_OK;
}

static void eagle_unload(fr_drafter *drafter) {
    if (drafter->net) fr_eagle_close(drafter->net);
    free(drafter->net);
}

const fr_draft_method fr_draft_eagle = {
    .name = "eagle", .reads = fr_is_eagle, .load = eagle_load, .unload = eagle_unload, FR_PAIRS_METHOD};
