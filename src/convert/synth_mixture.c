/* Mixtures of experts, Qwen3's and GLM-4.5's with its MTP layer, of random weights: see synth.h.
 *
 * Sizes: the published config.json of Qwen/Qwen3-30B-A3B and zai-org/GLM-4.5-Air. The latter's MTP layer has copies of
 * the model's table and head, which files need not have and this one hasn't. */
#include "src/convert/synth.h"

static const char *const untied[] = {"output.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape qwen3_shapes[] = {
    {"qwen3-30b-a3b", "qwen3moe", 48, 151936, 1,
     "{\"head_dim\": 128, \"norm_topk_prob\": true, \"rope_theta\": 1000000}", untied},
    {0},
};
static const fr_synth_shape glm_shapes[] = {
    {"glm-4.5-air", "glm4moe", 46, 151552, 1,
     "{\"head_dim\": 128, \"attention_bias\": true, \"first_k_dense_replace\": 1, \"rope_theta\": 1000000}", untied},
    {0},
};

const fr_synth_tokenizer fr_synth_qwen_tokenizer = {
    .model = "gpt2",
    .pre = "qwen2",
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"},
    .byte_level = true,
    .turn_end = 2,
};

/* Biases are small, and what corrects a choice smaller than scores. */
static const fr_synth_mean means[] = {{".bias", 0.01F}, {0}};

const fr_synth_family fr_synth_qwen3 = {
    .shapes = qwen3_shapes, .family = &fr_family_qwen3, .tokenizer = &fr_synth_qwen_tokenizer};

const fr_synth_family fr_synth_glm4_moe = {.shapes = glm_shapes,
                                           .family = &fr_family_glm4_moe,
                                           .tokenizer = &fr_synth_glm_tokenizer,
                                           .means = means,
                                           .mtp_layers = 1};
