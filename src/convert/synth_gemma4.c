/* Makes Gemma 4 text models and their assistants of random weights (synth.h).
 *
 * In: an order, and a config.json of shapes.c. Out: the fields of the config.json that depend on the number of layers,
 * and an assistant's own keys and tensors. Some layers read the keys and values of earlier layers; such layers get no
 * projections of keys and values. */
#include <stdlib.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/convert/synth.h"
#include "src/engine/draft/assistant_gemma4.h"

enum { CLUSTER = 128, CLUSTERS_SCORED = 32 };

static size_t number(const json_t *config, const char *key) {
    return (size_t)json_integer_value(json_object_get(config, key));
}

static json_t *layer_types(size_t layers, size_t every) {
    json_t *types = json_array();
    for (size_t i = 1; i <= layers; i++) {
        bool full = i % every == 0 || i == layers;
        json_array_append_new(types, json_string(full ? "full_attention" : "sliding_attention"));
    }
    return types;
}

/* Completes a config.json. As many first layers as in the published model have a cache of their own; all others read
 * the cache of an earlier layer. An assistant's config has no field for that number, because none of its layers has a
 * cache of its own. */
static bool complete(const fr_synth_order *order, json_t *config) {
    static const char shared[] = "num_kv_shared_layers";
    size_t owners = order->shape->layers - number(config, shared);
    return fr_synth_set(config, shared, order->layers - fr_smaller(owners, order->layers)) &&
           fr_synth_set(config, "vocab_size_per_layer_input", order->vocab) &&
           json_object_set_new(config, "layer_types",
                               layer_types(order->layers, number(config, "sliding_window_pattern"))) == 0;
}

/* ------------------------------------------------------------------------------------------------------- assistants */

/* Adds the ordering: a tensor of ids in which each cluster's ids stand together. The id at each place is the place
 * times a prime, modulo the size of the vocabulary, so the ids are scattered over the clusters. The prime is above the
 * size of every vocabulary, so each id occurs once. */
static fr_status add_ordering(fr_synth_model *model, const char *name) {
    const uint64_t prime = 2654435761;
    size_t vocab = model->spec.vocab;
    int32_t *ids = model->ids = calloc(vocab, sizeof *ids);
    if (!ids) return fr_fail_memory("token ordering", vocab * sizeof *ids);
    for (size_t i = 0; i < vocab; i++) ids[i] = (int32_t)(i * prime % vocab);
    return fr_outputs_add_values(&model->outputs, name, FR_I32, vocab, model->ids);
}

static fr_status add_assistant(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    size_t hidden = model->spec.hidden, backbone = number(model->config, "backbone_hidden_size");
    fr_assistant a = {.trunk.spec = model->spec, .post.features = backbone};
    if (order->shape->family->vocab_unit > 1) a.clusters = order->vocab / CLUSTER;
    a.top = a.clusters < CLUSTERS_SCORED ? a.clusters : CLUSTERS_SCORED;
    FR_TRY(fr_assistant_put_keys(&a, order->shape->name, writer));
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "pre_projection.weight"), hidden, 2 * backbone));
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "post_projection.weight"), backbone, hidden));
    if (a.clusters == 0) return FR_OK;
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "masked_embedding.centroids.weight"), a.clusters, hidden));
    return add_ordering(model, fr_assistant_name(&a, "masked_embedding.token_ordering"));
}

/* --------------------------------------------------------------------------------------------------------- families */

static const fr_synth_tokenizer tokenizer = {
    .special = {"<pad>", "<eos>", "<bos>", "<unk>"},
    .begins = true,
    .begin = 2,
    .end = 1,
    .unknown = 3,
};

static const fr_synth_mean means[] = {
    {"attn_q_norm.weight", 0.25F}, {"attn_k_norm.weight", 0.25F}, {"layer_output_scale.weight", 0.7F}, {0}};

/* fr_synth_gemma4_centroids has one centroid for every CLUSTER ids. fr_synth_gemma4_assistant has no centroids;
 * llama.cpp's converter writes such assistants. */
const fr_synth_family fr_synth_gemma4 = {&fr_family_gemma4, &tokenizer, means, .complete = complete},
                      fr_synth_gemma4_assistant = {&fr_family_gemma4,
                                                   &tokenizer,
                                                   means,
                                                   .complete = complete,
                                                   .add_drafter = add_assistant,
                                                   .architecture = "gemma4-assistant"},
                      fr_synth_gemma4_centroids = {&fr_family_gemma4,
                                                   &tokenizer,
                                                   means,
                                                   .complete = complete,
                                                   .add_drafter = add_assistant,
                                                   .architecture = "gemma4_assistant",
                                                   .vocab_unit = CLUSTER};
