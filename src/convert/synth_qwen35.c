/* Qwen3.5 and Qwen3.6 with their MTP layer, dense and of experts, of random weights: see synth.h.
 *
 * Sizes: the published config.json of Qwen/Qwen3.5-0.8B, -4B, -9B, Qwen3.6-27B and Qwen3.6-35B-A3B. */
#include "src/convert/synth.h"

enum { VOCAB = 248320 };

static const char *const tied[] = {FR_SYNTH_MTP_NORM, NULL};
static const char *const untied[] = {"output.weight", FR_SYNTH_MTP_NORM, NULL};
static const char *const mixture[] = {"output.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight",
                                      "ffn_down_exps.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape shapes[] = {
    {"qwen3.5-0.8b", "qwen35", 24, VOCAB, 1,
     "{\"hidden_size\": 1024, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
     "\"intermediate_size\": 3584, \"linear_num_value_heads\": 16, \"rope_theta\": 1e7}", tied},
    {"qwen3.5-4b", "qwen35", 32, VOCAB, 1,
     "{\"hidden_size\": 2560, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 9216, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}", tied},
    {"qwen3.5-9b", "qwen35", 32, VOCAB, 1,
     "{\"hidden_size\": 4096, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 12288, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}", untied},
    {"qwen3.6-27b", "qwen35", 64, VOCAB, 1,
     "{\"hidden_size\": 5120, \"num_attention_heads\": 24, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 17408, \"linear_num_value_heads\": 48, \"rope_theta\": 1e7}", untied},
    {0},
};
static const fr_synth_shape mixtures[] = {
    {"qwen3.6-35b-a3b", "qwen35moe", 40, VOCAB, 1,
     "{\"hidden_size\": 2048, \"num_attention_heads\": 16, \"num_key_value_heads\": 2, "
     "\"shared_expert_intermediate_size\": 512, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}", mixture},
    {0},
};

static const fr_synth_tokenizer tokenizer = {
    .model = "gpt2",
    .pre = "qwen35",
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>"},
    .byte_level = true,
    .end = 2,
    .turn_end = 2,
    .padding = 0,
};

/* A state forgets by a quarter or so from one position to the next. */
static const fr_synth_mean means[] = {{"ssm_a", -1.0f}, {"ssm_dt.bias", -1.0f}, {0}};

const fr_synth_family fr_synth_qwen35 = {.shapes = shapes,
                                         .family = &fr_family_qwen35,
                                         .tokenizer = &tokenizer,
                                         .means = means,
                                         .mtp_layers = 1};

const fr_synth_family fr_synth_qwen35_moe = {.shapes = mixtures,
                                             .family = &fr_family_qwen35_moe,
                                             .tokenizer = &tokenizer,
                                             .means = means,
                                             .mtp_layers = 1};
