/* Gemma 4 text models and their assistants, of random weights: see synth.h.
 *
 * Sizes: the published config.json of google/gemma-4-E2B-it, -E4B-it, -26B-A4B-it and -31B-it, and of the assistant of
 * each. No published size are gemma4-1b, the widths of E2B in a dense model of 18 layers, and its assistant. Keys and
 * names are export_gemma4.c's, but layers that borrow their KV have no projections for it, which nothing would read. */
#include <stdlib.h>

#include "formats/error.h"
#include "src/convert/quantize.h"
#include "src/convert/synth.h"
#include "src/families/gemma4.h"

enum { VOCAB = 262144, CLUSTER = 128, CLUSTERS_SCORED = 32 };

/* A target, or an assistant: its layers all borrow, and the last of its four is full. */
typedef struct sizes {
    size_t hidden, heads;
    size_t kv_heads[FR_LAYER_KINDS]; /* of sliding layers, of full ones */
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
                   moe_26b_assistant = {1024, 16, {8, 2}, 8192, 1024, 4, .backbone = 2816},
                   dense_31b_assistant = {1024, 32, {16, 4}, 8192, 1024, 4, .backbone = 5376},
                   dense_1b_assistant = {256, 4, {2, 2}, 2048, 512, 4, .backbone = 1536};

/* A head with centroids has one for so many ids. The plain ones are what llama.cpp's converter makes of the same. */
static const fr_synth_shape shapes[] = {
    {"gemma4-e2b", "gemma4", 35, VOCAB, 1, &e2b},
    {"gemma4-e4b", "gemma4", 42, VOCAB, 1, &e4b},
    {"gemma4-26b-a4b", "gemma4", 30, VOCAB, 1, &moe_26b},
    {"gemma4-31b", "gemma4", 60, VOCAB, 1, &dense_31b},
    {"gemma4-1b", "gemma4", 18, VOCAB, 1, &dense_1b},
    {"gemma4-e2b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &e2b_assistant},
    {"gemma4-e4b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &e4b_assistant},
    {"gemma4-26b-a4b-assistant", "gemma4-assistant", 4, VOCAB, 1, &moe_26b_assistant},
    {"gemma4-31b-assistant", "gemma4-assistant", 4, VOCAB, 1, &dense_31b_assistant},
    {"gemma4-1b-assistant", "gemma4_assistant", 4, VOCAB, CLUSTER, &dense_1b_assistant},
    {"gemma4-e2b-assistant-plain", "gemma4-assistant", 4, VOCAB, 1, &e2b_assistant},
    {"gemma4-e4b-assistant-plain", "gemma4-assistant", 4, VOCAB, 1, &e4b_assistant},
    {0},
};

static const size_t head_dims[FR_LAYER_KINDS] = {[FR_SLIDING] = 256, [FR_FULL] = 512};

static fr_status make_config(const fr_synth_order *order, fr_gemma4_config *config) {
    const sizes *s = order->shape->sizes;
    *config = (fr_gemma4_config){
        .vocab = order->vocab,
        .hidden = s->hidden,
        .layers = order->layers,
        .heads = s->heads,
        .window = s->window,
        .context_limit = FR_SYNTH_CONTEXT,
        .ple = s->ple,
        .experts = s->experts.count,
        .expert_top = s->experts.top,
        .expert_ffn = s->experts.ffn,
        .eps = 1e-6F,
        .softcap = s->backbone ? 0.0F : 30.0F,
        .k_eq_v = s->k_eq_v,
        .rope = {[FR_SLIDING] = {.theta = 1e4}, [FR_FULL] = {.theta = 1e6}},
        .layer = calloc(order->layers, sizeof *config->layer),
    };
    if (!config->layer) return fr_fail_memory("layers", order->layers * sizeof *config->layer);
    for (size_t i = 0; i < order->layers; i++) {
        fr_layer_kind kind = (i + 1) % s->every == 0 || i + 1 == order->layers ? FR_FULL : FR_SLIDING;
        bool owns = i < s->owners;
        config->layer[i] = (fr_gemma4_layer_config){.kind = kind,
                                                    .head_dim = head_dims[kind],
                                                    .kv_heads = s->kv_heads[kind],
                                                    .owns_kv = owns,
                                                    .ffn = s->wide && !owns ? 2 * s->ffn : s->ffn};
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

typedef struct model {
    fr_gemma4_config config;
    size_t backbone, clusters;
} model;

/* What the full layers' frequencies are divided by: a quarter of the angles turn. */
static void walk_rope_factors(fr_synth *s) {
    enum { ANGLES = 256 };
    float factors[ANGLES];
    for (size_t i = 0; i < ANGLES; i++) factors[i] = i < ANGLES / 4 ? 1.0F : 1e30F;
    fr_synth_given(s, "rope_freqs.weight", FR_F32, ANGLES, factors);
}

static void walk_attention(fr_synth *s, const fr_gemma4_config *c, int i) {
    const fr_gemma4_layer_config *layer = &c->layer[i];
    size_t n = layer->head_dim, q_width = c->heads * n, kv_width = layer->kv_heads * n;
    fr_synth_matrix(s, i, "attn_q.weight", q_width, c->hidden);
    fr_synth_vector(s, i, "attn_q_norm.weight", n, 0.25F);
    if (layer->owns_kv) {
        fr_synth_matrix(s, i, "attn_k.weight", kv_width, c->hidden);
        fr_synth_vector(s, i, "attn_k_norm.weight", n, 0.25F);
        if (!c->k_eq_v || layer->kind == FR_SLIDING) fr_synth_matrix(s, i, "attn_v.weight", kv_width, c->hidden);
    }
    fr_synth_matrix(s, i, "attn_output.weight", c->hidden, q_width);
}

static void walk_experts(fr_synth *s, const fr_gemma4_config *c, int i) {
    fr_synth_float_matrix(s, i, "ffn_gate_inp.weight", FR_F32, c->experts, c->hidden);
    fr_synth_vector(s, i, "ffn_gate_inp.scale", c->hidden, 1);
    fr_synth_vector(s, i, "pre_ffw_norm_2.weight", c->hidden, 1);
    fr_synth_stack(s, i, "ffn_gate_up_exps.weight", c->experts, 2 * c->expert_ffn, c->hidden);
    fr_synth_stack(s, i, "ffn_down_exps.weight", c->experts, c->hidden, c->expert_ffn);
    fr_synth_vector(s, i, "ffn_down_exps.scale", c->experts, 1);
    fr_synth_vector(s, i, "post_ffw_norm_1.weight", c->hidden, 1);
    fr_synth_vector(s, i, "post_ffw_norm_2.weight", c->hidden, 1);
}

static void walk_layer(fr_synth *s, const fr_gemma4_config *c, int i) {
    size_t ffn = c->layer[i].ffn;
    fr_synth_vector(s, i, "attn_norm.weight", c->hidden, 1);
    walk_attention(s, c, i);
    fr_synth_vector(s, i, "post_attention_norm.weight", c->hidden, 1);
    fr_synth_vector(s, i, "ffn_norm.weight", c->hidden, 1);
    fr_synth_matrix(s, i, "ffn_gate.weight", ffn, c->hidden);
    fr_synth_matrix(s, i, "ffn_up.weight", ffn, c->hidden);
    fr_synth_matrix(s, i, "ffn_down.weight", c->hidden, ffn);
    if (c->experts) walk_experts(s, c, i);
    fr_synth_vector(s, i, "post_ffw_norm.weight", c->hidden, 1);
    fr_synth_vector(s, i, "layer_output_scale.weight", 1, 0.7F);
    if (c->ple == 0) return;
    fr_synth_matrix(s, i, "inp_gate.weight", c->ple, c->hidden);
    fr_synth_matrix(s, i, "proj.weight", c->hidden, c->ple);
    fr_synth_vector(s, i, "post_norm.weight", c->hidden, 1);
}

static void walk_per_layer_tables(fr_synth *s, const fr_gemma4_config *c) {
    fr_synth_matrix(s, -1, "per_layer_token_embd.weight", c->vocab, c->ple * c->layers);
    fr_synth_float_matrix(s, -1, "per_layer_model_proj.weight", FR_F16, c->ple * c->layers, c->hidden);
    fr_synth_vector(s, -1, "per_layer_proj_norm.weight", c->ple, 1);
}

/* The ids, strewn over the clusters: the factor is a prime above every vocabulary, so each id comes once. */
static void walk_ordering(fr_synth *s, size_t vocab) {
    const uint64_t prime = 2654435761;
    int32_t *ids = calloc(vocab, sizeof *ids);
    for (size_t i = 0; ids && i < vocab; i++) ids[i] = (int32_t)(i * prime % vocab);
    fr_synth_given(s, "mtp.token_ordering.weight", FR_I32, vocab, ids);
    free(ids);
}

static void walk_assistant(fr_synth *s, const model *m) {
    size_t hidden = m->config.hidden;
    const char *pre = m->clusters ? "mtp.pre_projection.weight" : "nextn.pre_projection.weight",
               *post = m->clusters ? "mtp.post_projection.weight" : "nextn.post_projection.weight";
    fr_synth_matrix(s, -1, pre, hidden, 2 * m->backbone);
    fr_synth_matrix(s, -1, post, m->backbone, hidden);
    if (m->clusters == 0) return;
    fr_synth_float_matrix(s, -1, "mtp.centroids.weight", FR_F16, m->clusters, hidden);
    walk_ordering(s, m->config.vocab);
}

static void walk(fr_synth *s, const void *whole) {
    const model *m = whole;
    const fr_gemma4_config *c = &m->config;
    fr_synth_matrix(s, -1, "token_embd.weight", c->vocab, c->hidden);
    fr_synth_vector(s, -1, "output_norm.weight", c->hidden, 1);
    walk_rope_factors(s);
    if (c->ple) walk_per_layer_tables(s, c);
    if (m->backbone) walk_assistant(s, m);
    for (int i = 0; i < (int)c->layers; i++) walk_layer(s, c, i);
}

/* ------------------------------------------------------------------------------------------------------------ whole */

static fr_status write_model(const fr_synth_order *order, fr_gguf_writer *writer, fr_synth *synth) {
    static const fr_synth_tokenizer tokenizer = {
        .model = "gemma4",
        .special = {"<pad>", "<eos>", "<bos>", "<unk>"},
        .begins = true,
        .begin = 2,
        .end = 1,
        .unknown = 3,
    };
    const sizes *s = order->shape->sizes;
    model m = {.backbone = s->backbone, .clusters = order->shape->vocab_unit > 1 ? order->vocab / CLUSTER : 0};
    FR_TRY(make_config(order, &m.config));
    size_t top = m.clusters < CLUSTERS_SCORED ? m.clusters : CLUSTERS_SCORED;
    fr_export_config(&m.config, m.backbone, m.clusters, top, writer);
    fr_synth_put_tokenizer(&tokenizer, order->vocab, writer);
    fr_status status = fr_synth_tensors(synth, walk, &m);
    fr_gemma4_config_free(&m.config);
    return status;
}

const fr_synth_family fr_synth_gemma4 = {.shapes = shapes, .write = write_model};
