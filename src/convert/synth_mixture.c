/* Mixtures of experts, Qwen3's and GLM-4.5's with its MTP layer, of random weights: see synth.h.
 *
 * Sizes: the published config.json of Qwen/Qwen3-30B-A3B and zai-org/GLM-4.5-Air. The latter's MTP layer has copies of
 * the model's table and head, which files need not have and this one hasn't. */
#include "src/convert/synth.h"
#include "src/families/mixture.h"

typedef struct sizes {
    fr_uniform_config uniform;
    fr_mixture_config mixture;
} sizes;

static const sizes qwen3_30b = {
    .uniform = {.hidden = 2048,
                .heads = 32,
                .kv_heads = 4,
                .head_dim = 128,
                .ffn = 6144,
                .context_limit = FR_SYNTH_CONTEXT,
                .eps = 1e-6F,
                .rope = {.kind = FR_ROPE_DEFAULT, .dims = 128, .theta = 1e6, .partial = 1.0, .factor = 1.0}},
    .mixture = {.experts = {.count = 128,
                            .top_k = 8,
                            .width = 768,
                            .activation = FR_SILU,
                            .norm_top_k = true,
                            .routed_scaling = 1.0f}},
};

static const sizes glm_air = {
    .uniform = {.hidden = 4096,
                .heads = 96,
                .kv_heads = 8,
                .head_dim = 128,
                .ffn = 10944,
                .context_limit = FR_SYNTH_CONTEXT,
                .eps = 1e-5F,
                .attention_biased = true,
                .rope = {.kind = FR_ROPE_DEFAULT, .dims = 64, .theta = 1e6, .partial = 1.0, .factor = 1.0}},
    .mixture = {.experts = {.count = 128,
                            .top_k = 8,
                            .width = 1408,
                            .activation = FR_SILU,
                            .scoring = FR_SCORING_SIGMOID,
                            .score_bias = true,
                            .norm_top_k = true,
                            .routed_scaling = 1.0f},
                .shared = 1408,
                .leading_dense = 1},
};

static const char *const untied[] = {"output.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape qwen3_shapes[] = {{"qwen3-30b-a3b", "qwen3moe", 48, 151936, 1, &qwen3_30b, untied}, {0}};
static const fr_synth_shape glm_shapes[] = {{"glm-4.5-air", "glm4moe", 46, 151552, 1, &glm_air, untied}, {0}};

const fr_synth_tokenizer fr_synth_qwen_tokenizer = {
    .model = "gpt2",
    .pre = "qwen2",
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"},
    .byte_level = true,
    .turn_end = 2,
};

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    sizes s = *(const sizes *)order->shape->sizes;
    s.uniform.layers = order->layers;
    s.uniform.vocab = order->vocab;
    return fr_mixture_spec(&s.uniform, &s.mixture, spec);
}

/* Biases are small, and what corrects a choice smaller than scores. */
static const fr_synth_mean means[] = {{".bias", 0.01F}, {0}};

const fr_synth_family fr_synth_qwen3 = {
    .shapes = qwen3_shapes, .family = &fr_family_qwen3, .tokenizer = &fr_synth_qwen_tokenizer, .make_spec = make_spec};

const fr_synth_family fr_synth_glm4_moe = {.shapes = glm_shapes,
                                           .family = &fr_family_glm4_moe,
                                           .tokenizer = &fr_synth_glm_tokenizer,
                                           .means = means,
                                           .mtp_layers = 1,
                                           .make_spec = make_spec};
