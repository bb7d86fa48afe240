/* Per-layer embeddings: each layer gets an embedding of the row's token, in addition to the stream. See parts.h.
 *
 * Source: transformers 5.17, models gemma3n and gemma4. */
#include <math.h>

#include "src/engine/layers/parts.h"

/* Computes features [from, to) of projection(embedding), for the rows from `first` on. All products here are small, so
 * each rank computes them completely. */
static void project(const fr_team *team, const fr_activations *a, size_t first, size_t from, size_t to) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t width = s->layers * s->ple_width;
    fr_workspace workspace = fr_workspace_from(&a->workspace, first);
    fr_matrix_apply_share(team, &workspace, &a->trunk->ple_projection, from, to,
                          &(fr_matrix_rows){a->token + first * width, width, a->x + first * s->hidden, s->hidden,
                                            a->batch.count - first});
}

/* Computes (norm(projection(embedding) / sqrt(hidden)) + table[id] * sqrt(width)) / sqrt(2), for the first `layers`
 * layers. width is the number of values for each layer. A picture's row has no id of its own, so the padding id's row
 * of the table is used for it. */
static void finish_row(const fr_activations *a, size_t row, size_t layers) {
    const fr_trunk_spec *s = &a->trunk->spec;
    const fr_kernels *k = a->kernels;
    size_t each = s->ple_width, at = row * s->layers * each;
    float *token = a->token + at, *table = a->ple_table + at;
    const fr_row *of = &a->batch.rows[row];
    size_t id = of->embedding ? s->ple_pad : (size_t)of->id;
    fr_matrix_row(k, &a->trunk->ple_table, id, (float)sqrt((double)each), table);
    k->scale(token, layers * each, (float)(1.0 / sqrt((double)s->hidden)));
    for (size_t l = 0; l < layers; l++)
        k->rmsnorm(token + l * each, token + l * each, a->trunk->ple_norm, each, s->eps);
    k->add(token, table, layers * each);
    k->scale(token, layers * each, (float)sqrt(0.5));
}

/* Some rows are run only for their K/V. These rows stop after the last layer that owns K/V, so only the embeddings of
 * the layers up to there are computed for them. */
void fr_ple_inputs(const fr_team *team, const fr_activations *a) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t width = s->layers * s->ple_width, owners = a->trunk->owners, begin, end;
    size_t owned = (owners * s->ple_width + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
    if (owned > width) owned = width;
    fr_publish_own_input(team, &a->workspace, a->x, s->hidden, s->hidden, a->batch.count);
    project(team, a, 0, 0, owned);
    project(team, a, a->keep, owned, width);
    fr_team_sync(team);
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) finish_row(a, r, r < a->keep ? owners : s->layers);
}

void fr_ple_branch(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t index) {
    const fr_trunk_spec *s = &a->trunk->spec;
    const fr_kernels *k = a->kernels;
    const fr_workspace *w = &a->workspace;
    size_t hidden = s->hidden, rows = a->batch.count, begin, end;
    fr_team_sync(team);
    fr_matrix_apply_whole(team, w, &layer->ple.gate, &(fr_matrix_rows){a->gate, a->ffn_width, a->x, hidden, rows});
    fr_partition(layer->ple.gate.features, FR_FEATURE_UNIT, team->index, team->count, &begin, &end);
    for (size_t r = 0; r < rows; r++) {
        float *gate = a->gate + r * a->ffn_width + begin;
        k->gelu_mul(gate, gate, a->token + (r * s->layers + index) * s->ple_width + begin, end - begin);
    }
    fr_publish_own_input(team, w, a->gate, a->ffn_width, s->ple_width, rows);
    fr_matrix_apply_whole(team, w, &layer->ple.out, &(fr_matrix_rows){a->out, hidden, a->gate, a->ffn_width, rows});
    fr_team_sync(team);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = a->x + r * hidden, *out = a->out + r * hidden;
        k->rmsnorm(out, out, layer->ple.norm, hidden, s->eps);
        k->add(x, out, hidden);
        if (layer->scalar) k->scale(x, hidden, *layer->scalar);
    }
}
