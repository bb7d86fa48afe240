/* Which matrices ranks have their shares of: see trunk.h. As the parts of a layer apply them: queries by heads, all
 * else by features. */
#include "src/layers/trunk.h"
#include "src/weights/partition.h"

static void share_features(fr_weights *weights, const fr_matrix *matrix) {
    fr_weights_share(weights, matrix, fr_split_features(matrix->features));
}

static void share_queries(fr_weights *weights, const fr_trunk *trunk, const fr_attention_spec *spec,
                          const fr_matrix *q) {
    if (!q->data || !spec->heads || spec->kv >= trunk->kv_count) return;
    size_t kv_heads = trunk->kv_shapes[spec->kv].heads;
    if (kv_heads) fr_weights_share(weights, q, fr_split_heads(spec->heads, kv_heads, q->features / spec->heads));
}

static void share_each(fr_weights *weights, const fr_matrix *matrices, size_t count) {
    for (size_t i = 0; i < count && matrices; i++) share_features(weights, &matrices[i]);
}

void fr_trunk_share(fr_trunk *trunk, fr_weights *weights) {
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        const fr_layer *layer = &trunk->layers[i];
        const fr_matrix *features[] = {&layer->attention.o, &layer->ffn.gate_up[0], &layer->ffn.gate_up[1],
                                       &layer->ffn.down, &layer->deltanet.out, &layer->short_conv.out};
        size_t experts = trunk->spec.layer[i].experts.count;
        share_queries(weights, trunk, &trunk->spec.layer[i].attention, &layer->attention.q);
        for (size_t m = 0; m < sizeof features / sizeof *features; m++) share_features(weights, features[m]);
        share_each(weights, layer->experts.gate, experts);
        share_each(weights, layer->experts.up, experts);
        share_each(weights, layer->experts.down, experts);
    }
    fr_weights_share_head(weights, &trunk->head, &trunk->embedding);
}
