/* Phi-3.5-MoE: config.json of PhimoeForCausalLM, published as PhiMoEForCausalLM, GGUF "phimoe". Source: transformers
 * 5.24, model phimoe; for GGUF github.com/ggml-org/llama.cpp, conversion/phi.py and src/models/phimoe.cpp. llama.cpp
 * differs from transformers: its norms don't subtract the mean, and it normalizes the weights of the two experts. The
 * layers are Mixtral's with LayerNorm and biases. A row chooses two experts one after the other. Each has a softmax of
 * its own over the experts whose scores are near the best score (SparseMixer: Liu et al. 2024, arXiv:2409.12136). Only
 * LongRoPE's short factors are used, for texts of any length. Cosines and sines are multiplied by short_mscale, which
 * must be equal to long_mscale. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/rope_config.h"

/* Scores must be this near to the best one. GGUF has no key for this number, so a model with another number is not
 * written. */
#define NEARNESS 0.01F

static const fr_model_spec defaults = {.trunk = {.vocab = 32064,
                                                 .hidden = 4096,
                                                 .layers = 32,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .norm_bias = true,
                                                 .rope = {{.neox = true, .theta = 1e6}}},
                                       .layer = {.attention = {.heads = 32, .kv_heads = 8},
                                                 .ffn = {.width = 6400, .activation = FR_SILU},
                                                 .experts = {.count = 16,
                                                             .top_k = 2,
                                                             .activation = FR_SILU,
                                                             .scoring = FR_SCORING_SOFTMAX,
                                                             .one_by_one = true,
                                                             .nearness = NEARNESS,
                                                             .routed_scaling = 1}},
                                       .mixture = {.as_wide = true, .normalizes = true}};

/* Reads the mixture. For GGUF, also finds out from the tensors whether the head has a bias. */
static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_mixture_read(source, s));
    if (source->gguf) s->trunk.head_bias = fr_source_has(source, "output.bias");
    /* The published code always chooses two experts and ignores num_experts_per_tok. */
    s->layer.experts.top_k = 2;
    s->layer.experts.nearness *= 2;
    return s->layer.experts.count > 1 ? FR_OK : fr_fail(FR_INPUT, "%s: two experts are chosen of one", source->where);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_attention_spec *a = fr_spec_attention(s);
    (void)mtp_layers;
    if (fr_spec_experts(s)->nearness != 2 * NEARNESS)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for its router_jitter_noise", where);
    if (!a->qkv_bias || !s->head_bias)
        return fr_fail(FR_INPUT, "%s: readers of GGUF need biases of attention and of the head", where);
    fr_mixture_put_counts(s, w);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_REAL(layer.experts.nearness, "router_jitter_noise", NULL, 0, 1e6),
    FR_SIZE(layer.attention.window, "sliding_window", NULL, 1, 1 << 24),
    FR_SIZE(layer.attention.window, NULL, ".attention.sliding_window", 0, 1 << 24),
    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
    FR_FLAG(trunk.head_bias, "lm_head_bias", NULL),
    FR_REAL(trunk.eps, "rms_norm_eps", ".attention.layer_norm_rms_epsilon", 0, 1, .required = true),
    {0}};
static const fr_config_row last[] = {FR_PART(mixture), {0}};

static fr_status read_rope(const fr_source *source, fr_model_spec *s) {
    fr_rope_spec *rope = &s->trunk.rope[0];
    const json_t *parameters;
    const char *key;
    double near, far;
    FR_TRY(fr_rope_whole_heads(source, s));
    if (rope->kind == FR_ROPE_DEFAULT) return FR_OK;
    if (rope->kind != FR_ROPE_LONGROPE)
        return fr_fail(FR_UNBUILT, "%s: a rope_type other than default and longrope is not built", source->where);
    memcpy(rope->longrope[FR_ROPE_FAR], rope->longrope[FR_ROPE_NEAR], sizeof rope->longrope[FR_ROPE_FAR]);
    if (source->gguf) return FR_OK;
    FR_TRY(fr_rope_parameters(source->text, source->where, &parameters, &key));
    FR_TRY(fr_json_real(parameters, "short_mscale", 1e-6, 1e6, NAN, source->where, &near));
    FR_TRY(fr_json_real(parameters, "long_mscale", 1e-6, 1e6, NAN, source->where, &far));
    if (near != far)
        return fr_fail(FR_UNBUILT, "%s: short_mscale %g is not built where long_mscale is %g", source->where, near,
                       far);
    rope->attention_factor = (float)near;
    return FR_OK;
}

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, head_bias, VOCAB, "lm_head.bias", "output.bias", .top = true, .needs = FR_IF_HEAD_BIAS),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "norm.bias", "output_norm.bias"),
    {0},
};

const fr_family fr_family_phimoe = {
    .architectures = (const char *const[]){"PhimoeForCausalLM", "PhiMoEForCausalLM", "phimoe", NULL},
    .gguf = "phimoe",
    .tokenizer = "llama",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_normless_head_keys, last},
    .rope = read_rope,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){
        .model = model_names,
        .layer = {fr_attention_names, fr_pre_norm_names, fr_block_sparse_names, fr_mixture_names}}};
