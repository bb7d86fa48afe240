/* Gemma 4 text models and their assistants, of random weights: see synth.h.
 *
 * Sizes: the published config.json of google/gemma-4-E2B-it, -E4B-it, -26B-A4B-it and -31B-it, and of the assistant of
 * each. No published size are gemma4-1b, the widths of E2B in a dense model of 18 layers, and its assistant. Layers
 * that borrow their KV have no projections for it, which nothing would read. */
#include <stdlib.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/convert/synth.h"
#include "src/draft/assistant_gemma4.h"

enum { VOCAB = 262144, CLUSTER = 128, CLUSTERS_SCORED = 32 };

/* A target, or an assistant: its layers all borrow, and the last of its four is full. */
typedef struct sizes {
    size_t hidden, heads;
    size_t kv_heads[FR_LAYER_KINDS]; /* of sliding layers, of full ones with k_eq_v */
    size_t ffn, window;
    size_t every;  /* each such layer is full, and the last */
    size_t owners; /* layers with a KV cache of their own; those behind them borrow */
    size_t ple;
    bool wide;   /* borrowers have a feed-forward of twice the width */
    bool k_eq_v; /* full layers take their values from the keys */
    struct {
        size_t count, top, ffn;
    } experts;
    size_t backbone; /* width of an assistant's target; 0: it is a target */
} sizes;

static const sizes e2b = {1536, 8, {1, 1}, 6144, 512, 5, .owners = 15, .ple = 256, .wide = true},
                   e4b = {2560, 8, {2, 2}, 10240, 512, 6, .owners = 24, .ple = 256},
                   moe_26b = {2816, 16, {8, 2}, 2112, 1024, 6, .owners = 30, .k_eq_v = true, .experts = {128, 8, 704}},
                   dense_31b = {5376, 32, {16, 4}, 21504, 1024, 6, .owners = 60, .k_eq_v = true},
                   dense_1b = {1536, 8, {2, 2}, 6144, 512, 6, .owners = 18};

static const sizes e2b_assistant = {256, 4, {1, 1}, 2048, 512, 4, .backbone = 1536},
                   e4b_assistant = {256, 4, {2, 2}, 2048, 512, 4, .backbone = 2560},
                   moe_26b_assistant = {1024, 16, {8, 2}, 8192, 1024, 4, .k_eq_v = true, .backbone = 2816},
                   dense_31b_assistant = {1024, 32, {16, 4}, 8192, 1024, 4, .k_eq_v = true, .backbone = 5376},
                   dense_1b_assistant = {256, 4, {2, 2}, 2048, 512, 4, .backbone = 1536};

static const char *const moe_has[] = {"ffn_gate_up_exps.weight", NULL};

static const fr_synth_shape shapes[] = {
    {"gemma4-e2b", "gemma4", 35, VOCAB, 1, &e2b, NULL},
    {"gemma4-e4b", "gemma4", 42, VOCAB, 1, &e4b, NULL},
    {"gemma4-26b-a4b", "gemma4", 30, VOCAB, 1, &moe_26b, moe_has},
    {"gemma4-31b", "gemma4", 60, VOCAB, 1, &dense_31b, NULL},
    {"gemma4-1b", "gemma4", 18, VOCAB, 1, &dense_1b, NULL},
    {0},
};

/* A head with centroids has one for so many ids. The plain ones are what llama.cpp's converter makes of the same. */
static const fr_synth_shape assistants[] = {
    {"gemma4-e2b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &e2b_assistant, NULL},
    {"gemma4-e4b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &e4b_assistant, NULL},
    {"gemma4-26b-a4b-assistant", "gemma4-assistant", 4, VOCAB, 1, &moe_26b_assistant, NULL},
    {"gemma4-31b-assistant", "gemma4-assistant", 4, VOCAB, 1, &dense_31b_assistant, NULL},
    {"gemma4-1b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &dense_1b_assistant, NULL},
    {"gemma4-e2b-assistant-plain", "gemma4-assistant", 4, VOCAB, 1, &e2b_assistant, NULL},
    {"gemma4-e4b-assistant-plain", "gemma4-assistant", 4, VOCAB, 1, &e4b_assistant, NULL},
    {0},
};

static json_t *layer_types(const fr_synth_order *order, size_t every) {
    json_t *types = json_array();
    for (size_t i = 1; i <= order->layers; i++) {
        bool full = i % every == 0 || i == order->layers;
        json_array_append_new(types, json_string(full ? "full_attention" : "sliding_attention"));
    }
    return types;
}

static json_int_t integer(size_t n) {
    return (json_int_t)n;
}

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    const sizes *s = order->shape->sizes;
    size_t shared = s->backbone ? 0 : order->layers - fr_smaller(s->owners, order->layers);
    json_t *config = json_pack(
        "{sI sI sI sI sI sI sI sI sI sb sb sb sI sI sI sf so}", "hidden_size", integer(s->hidden),
        "num_attention_heads", integer(s->heads), "num_key_value_heads", integer(s->kv_heads[FR_SLIDING]),
        "num_global_key_value_heads", integer(s->kv_heads[FR_FULL]), "intermediate_size", integer(s->ffn),
        "sliding_window", integer(s->window), "hidden_size_per_layer_input", integer(s->ple),
        "vocab_size_per_layer_input", integer(order->vocab), "num_kv_shared_layers", integer(shared),
        "use_double_wide_mlp", s->wide, "attention_k_eq_v", s->k_eq_v, "enable_moe_block", s->experts.count > 0,
        "num_experts", integer(s->experts.count), "top_k_experts", integer(s->experts.top), "moe_intermediate_size",
        integer(s->experts.ffn), "final_logit_softcapping", s->backbone ? 0.0 : 30.0, "layer_types",
        layer_types(order, s->every));
    if (!config) return fr_fail_memory("a shape", 0);
    return fr_synth_read(&fr_family_gemma4, order, s->backbone > 0, config, spec);
}

/* ------------------------------------------------------------------------------------------------------- assistants */

/* The ids, strewn over the clusters: the factor is a prime above every vocabulary, so each id comes once. */
static fr_status add_ordering(fr_synth_model *model, const char *name) {
    const uint64_t prime = 2654435761;
    size_t vocab = model->spec.vocab;
    int32_t *ids = model->ids = calloc(vocab, sizeof *ids);
    if (!ids) return fr_fail_memory("token ordering", vocab * sizeof *ids);
    for (size_t i = 0; i < vocab; i++) ids[i] = (int32_t)(i * prime % vocab);
    return fr_outputs_add_values(&model->outputs, name, FR_I32, vocab, model->ids);
}

static fr_status add_assistant(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    const sizes *s = order->shape->sizes;
    fr_assistant a = {.trunk.spec = model->spec, .post.features = s->backbone};
    if (order->shape->vocab_unit > 1) a.clusters = order->vocab / CLUSTER;
    a.top = a.clusters < CLUSTERS_SCORED ? a.clusters : CLUSTERS_SCORED;
    FR_TRY(fr_assistant_put_keys(&a, order->shape->name, writer));
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "pre_projection.weight"), s->hidden, 2 * s->backbone));
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "post_projection.weight"), s->backbone, s->hidden));
    if (a.clusters == 0) return FR_OK;
    FR_TRY(fr_synth_add_matrix(model, fr_assistant_name(&a, "masked_embedding.centroids.weight"), a.clusters,
                               s->hidden));
    return add_ordering(model, fr_assistant_name(&a, "masked_embedding.token_ordering"));
}

/* ------------------------------------------------------------------------------------------------------------ whole */

static const fr_synth_tokenizer tokenizer = {
    .model = "gemma4",
    .special = {"<pad>", "<eos>", "<bos>", "<unk>"},
    .begins = true,
    .begin = 2,
    .end = 1,
    .unknown = 3,
};

static const fr_synth_mean means[] = {
    {"attn_q_norm.weight", 0.25F}, {"attn_k_norm.weight", 0.25F}, {"layer_output_scale.weight", 0.7F}, {0}};

const fr_synth_family fr_synth_gemma4 = {.shapes = shapes,
                                         .family = &fr_family_gemma4,
                                         .tokenizer = &tokenizer,
                                         .means = means,
                                         .make_spec = make_spec};

const fr_synth_family fr_synth_gemma4_assistant = {.shapes = assistants,
                                                   .family = &fr_family_gemma4,
                                                   .tokenizer = &tokenizer,
                                                   .means = means,
                                                   .make_spec = make_spec,
                                                   .add_drafter = add_assistant};
