/* Lists the shapes of which random weights are made (synth.h).
 *
 * In: a name, or an fr_synth_order. Out: for a name, the shape's row of the table below, which is in the order of the
 * help text. For an fr_synth_order, the spec that the family's own reader makes of the row's config.json.
 *
 * Sizes: the published config.json of google/gemma-4-E2B-it, -E4B-it, -26B-A4B-it, -31B-it and each one's assistant; of
 * zai-org/GLM-OCR, GLM-4.7-Flash and GLM-4.5-Air; deepseek-ai/DeepSeek-V3; meta-llama/Llama-3.2-1B and Llama-3.1-8B,
 * yuhuili/EAGLE3-LLaMA3.1-Instruct-8B; openai/gpt-oss-20b and -120b; google/gemma-2-2b, gemma-3-270m, -1b-pt and
 * -4b-pt; Qwen/Qwen2.5-0.5B, -1.5B and -7B, Qwen3-30B-A3B, Qwen3.5-0.8B, -4B and -9B, Qwen3.6-27B and -35B-A3B,
 * Qwen1.5-MoE-A2.7B, Qwen3-Next-80B-A3B; allenai/OLMo-2-1124-7B and Olmo-3-1025-7B, LGAI-EXAONE/EXAONE-4.0-1.2B,
 * CohereLabs/c4ai-command-r7b-12-2024, zai-org/GLM-4-9B-0414, baidu/ERNIE-4.5-0.3B-PT and -21B-A3B-PT,
 * LiquidAI/LFM2-1.2B, stabilityai/stablelm-2-1_6b, mistralai/Mixtral-8x7B-v0.1, deepseek-ai/DeepSeek-V2-Lite,
 * moonshotai/Kimi-K2-Instruct, moonshotai/Kimi-Linear-48B-A3B, inclusionAI/Ling-mini-2.0 and Ling-3.0-tiny,
 * MiniMaxAI/MiniMax-M2, allenai/OLMoE-1B-7B-0924, mistralai/Mistral-7B-v0.3 and Ministral-3-8B-Base-2512,
 * Qwen/Qwen3-8B, microsoft/phi-4, HuggingFaceTB/SmolLM3-3B, ibm-granite/granite-3.3-2b-base and -3.1-3b-a800m-base,
 * ByteDance-Seed/Seed-OSS-36B-Base, tencent/Hunyuan-7B-Instruct and -A13B-Instruct;
 * nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16; and transformers' defaults for sarvamai/sarvam-30b. gemma4-1b and its
 * assistant were never published: gemma4-1b is a dense model of 18 layers with the widths of E2B. */
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "base/word_list.h"
#include "src/convert/synth.h"
#include "src/engine/families/config.h"

/* The norm before the head of an MTP layer. Files may lack it, but published ones have it. */
#define MTP_NORM "nextn.shared_head_norm.weight"

#define GEMMA4    "\"final_logit_softcapping\": 30.0, "
#define ASSISTANT "\"sliding_window_pattern\": 4, \"hidden_size_per_layer_input\": 0, "
#define SMALL     ASSISTANT "\"hidden_size\": 256, \"num_attention_heads\": 4, \"intermediate_size\": 2048, "
#define LARGE                                                                                  \
    ASSISTANT "\"hidden_size\": 1024, \"intermediate_size\": 8192, \"sliding_window\": 1024, " \
              "\"attention_k_eq_v\": true, "
#define DRAFTS_35 "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"head_dim\": 128, \"rope_theta\": 1e7, "
#define LLAMA     "\"rope_theta\": 500000, \"rms_norm_eps\": 1e-5, \"num_key_value_heads\": 8, "
#define LLAMA3                                                                     \
    "\"rope_type\": \"llama3\", \"low_freq_factor\": 1, \"high_freq_factor\": 4, " \
    "\"original_max_position_embeddings\": 8192"
#define GPT_OSS                                                                            \
    "\"rope_theta\": 150000, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 32, " \
    "\"truncate\": false, \"original_max_position_embeddings\": 4096}"

enum {
    GEMMA_VOCAB = 262144,
    GPT_OSS_VOCAB = 201088,
    LLAMA_VOCAB = 128256,
    QWEN2_VOCAB = 151936,
    QWEN35_VOCAB = 248320
};

static const char *const head[] = {"output.weight", NULL};
static const char *const mtp_norm[] = {MTP_NORM, NULL};
static const char *const head_and_norm[] = {"output.weight", MTP_NORM, NULL};
static const char *const own_head[] = {"output.weight", "nextn.embed_tokens.weight", "nextn.shared_head_head.weight",
                                       MTP_NORM, NULL};
static const char *const latent[] = {"output.weight", "attn_q_b.weight", "attn_k_b.weight", MTP_NORM, NULL};
static const char *const head_and_qkv[] = {"output.weight", "attn_qkv.weight", NULL};
static const char *const gate_up[] = {"ffn_gate_up_exps.weight", NULL};
static const char *const experts[] = {
    "output.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight", MTP_NORM, NULL};

/* All shapes. An order (fr_synth_order) adds further numbers to a shape's config. sliding_window_pattern n means that
 * one layer in n has full attention. Gemma 4's published files have a list named layer_types in place of this
 * number. */
static const fr_synth_shape shapes[] = {
    {"gemma4-e2b", &fr_synth_gemma4, 35, GEMMA_VOCAB,
     "{" GEMMA4 "\"hidden_size\": 1536, \"num_key_value_heads\": 1, \"intermediate_size\": 6144, "
     "\"sliding_window_pattern\": 5, \"num_kv_shared_layers\": 20, \"use_double_wide_mlp\": true}",
     NULL},
    {"gemma4-e4b", &fr_synth_gemma4, 42, GEMMA_VOCAB,
     "{" GEMMA4 "\"hidden_size\": 2560, \"num_key_value_heads\": 2, \"intermediate_size\": 10240, "
     "\"sliding_window_pattern\": 6, \"num_kv_shared_layers\": 18}",
     NULL},
    {"gemma4-26b-a4b", &fr_synth_gemma4, 30, GEMMA_VOCAB,
     "{" GEMMA4 "\"hidden_size\": 2816, \"num_attention_heads\": 16, \"num_key_value_heads\": 8, "
     "\"num_global_key_value_heads\": 2, \"attention_k_eq_v\": true, \"intermediate_size\": 2112, "
     "\"sliding_window\": 1024, \"sliding_window_pattern\": 6, \"hidden_size_per_layer_input\": 0, "
     "\"enable_moe_block\": true, \"num_experts\": 128, \"top_k_experts\": 8, \"moe_intermediate_size\": 704}",
     gate_up},
    {"gemma4-31b", &fr_synth_gemma4, 60, GEMMA_VOCAB,
     "{" GEMMA4 "\"hidden_size\": 5376, \"num_attention_heads\": 32, \"num_key_value_heads\": 16, "
     "\"num_global_key_value_heads\": 4, \"attention_k_eq_v\": true, \"intermediate_size\": 21504, "
     "\"sliding_window\": 1024, \"sliding_window_pattern\": 6, \"hidden_size_per_layer_input\": 0}",
     NULL},
    {"gemma4-1b", &fr_synth_gemma4, 18, GEMMA_VOCAB,
     "{" GEMMA4 "\"hidden_size\": 1536, \"num_key_value_heads\": 2, \"intermediate_size\": 6144, "
     "\"sliding_window_pattern\": 6, \"hidden_size_per_layer_input\": 0}",
     NULL},

    {"gemma4-e2b-assistant", &fr_synth_gemma4_centroids, 4, GEMMA_VOCAB,
     "{" SMALL "\"num_key_value_heads\": 1, \"backbone_hidden_size\": 1536}", NULL},
    {"gemma4-e4b-assistant", &fr_synth_gemma4_centroids, 4, GEMMA_VOCAB,
     "{" SMALL "\"num_key_value_heads\": 2, \"backbone_hidden_size\": 2560}", NULL},
    {"gemma4-26b-a4b-assistant", &fr_synth_gemma4_assistant, 4, GEMMA_VOCAB,
     "{" LARGE "\"num_attention_heads\": 16, \"num_key_value_heads\": 8, \"num_global_key_value_heads\": 2, "
     "\"backbone_hidden_size\": 2816}",
     NULL},
    {"gemma4-31b-assistant", &fr_synth_gemma4_assistant, 4, GEMMA_VOCAB,
     "{" LARGE "\"num_attention_heads\": 32, \"num_key_value_heads\": 16, \"num_global_key_value_heads\": 4, "
     "\"backbone_hidden_size\": 5376}",
     NULL},
    {"gemma4-1b-assistant", &fr_synth_gemma4_centroids, 4, GEMMA_VOCAB,
     "{" SMALL "\"num_key_value_heads\": 2, \"backbone_hidden_size\": 1536}", NULL},
    {"gemma4-e2b-assistant-plain", &fr_synth_gemma4_assistant, 4, GEMMA_VOCAB,
     "{" SMALL "\"num_key_value_heads\": 1, \"backbone_hidden_size\": 1536}", NULL},
    {"gemma4-e4b-assistant-plain", &fr_synth_gemma4_assistant, 4, GEMMA_VOCAB,
     "{" SMALL "\"num_key_value_heads\": 2, \"backbone_hidden_size\": 2560}", NULL},

    {"glm-ocr", &fr_synth_glm, 16, 59392,
     "{\"hidden_size\": 1536, \"intermediate_size\": 4608, \"head_dim\": 128, "
     "\"rope_scaling\": {\"type\": \"default\", \"mrope_section\": [16, 24, 24]}}",
     own_head},
    {"deepseek-v3", &fr_synth_deepseek, 61, 129280,
     "{\"first_k_dense_replace\": 3, \"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 40, "
     "\"beta_fast\": 32, \"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, "
     "\"original_max_position_embeddings\": 4096}}",
     latent},
    {"glm-4.7-flash", &fr_synth_glm_flash, 47, 154880, "{\"first_k_dense_replace\": 1, \"rope_theta\": 1000000}",
     latent},
    {"glm-4.5-air", &fr_synth_glm4_moe, 46, 151552,
     "{\"head_dim\": 128, \"attention_bias\": true, \"first_k_dense_replace\": 1, \"rope_theta\": 1000000}",
     head_and_norm},

    {"deepseek-v2-lite", &fr_synth_deepseek_v2, 27, 102400,
     "{\"hidden_size\": 2048, \"intermediate_size\": 10944, \"num_attention_heads\": 16, \"q_lora_rank\": null, "
     "\"moe_intermediate_size\": 1408, \"first_k_dense_replace\": 1, \"rope_scaling\": {\"type\": \"yarn\", "
     "\"factor\": 40, \"mscale\": 0.707, \"mscale_all_dim\": 0.707, \"original_max_position_embeddings\": 4096}}",
     latent},
    {"kimi-k2", &fr_synth_kimi, 61, 163840,
     "{\"num_attention_heads\": 64, \"n_routed_experts\": 384, \"n_group\": 1, \"topk_group\": 1, "
     "\"routed_scaling_factor\": 2.827, \"first_k_dense_replace\": 1, \"num_nextn_predict_layers\": 0, "
     "\"rope_theta\": 50000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 32, \"beta_fast\": 1, "
     "\"beta_slow\": 1, \"mscale\": 1.0, \"mscale_all_dim\": 1.0, \"original_max_position_embeddings\": 4096}}",
     latent},
    {"kimi-linear-48b-a3b", &fr_synth_kimi_linear, 27, 163840, "{}", latent},
    {"ernie-4.5-21b-a3b", &fr_synth_ernie45_moe, 28, 103424, "{}", NULL},
    {"ling-mini-2.0", &fr_synth_bailing_moe, 20, 157184,
     "{\"first_k_dense_replace\": 1, \"partial_rotary_factor\": 0.5, \"routed_scaling_factor\": 2.5}", head},
    {"sarvam-30b", &fr_synth_sarvam_moe, 19, 262144, "{}", head},
    {"ling-3.0-tiny", &fr_synth_bailing_hybrid, 24, 157184,
     "{\"hidden_size\": 1536, \"num_attention_heads\": 16, \"intermediate_size\": 4608, \"q_lora_rank\": 256, "
     "\"num_experts\": 128, \"moe_intermediate_size\": 512, \"first_k_dense_replace\": 1}",
     latent},
    {"minimax-m2", &fr_synth_minimax_m2, 62, 200064, "{\"rotary_dim\": 64}", head},
    {"mixtral-8x7b", &fr_synth_mixtral, 32, 32000, "{}", head},
    {"olmoe-1b-7b", &fr_synth_olmoe, 16, 50304, "{}", head},

    {"llama3.2-1b", &fr_synth_llama, 16, LLAMA_VOCAB,
     "{" LLAMA "\"hidden_size\": 2048, \"intermediate_size\": 8192, \"rope_scaling\": {" LLAMA3 ", \"factor\": 32}}",
     NULL},
    {"llama3.1-8b", &fr_synth_llama, 32, LLAMA_VOCAB,
     "{" LLAMA "\"intermediate_size\": 14336, \"rope_scaling\": {" LLAMA3 ", \"factor\": 8}}", head},
    {"llama3.1-8b-eagle3", &fr_synth_eagle3, 32, LLAMA_VOCAB,
     "{" LLAMA "\"intermediate_size\": 14336, \"hidden_act\": \"silu\"}", NULL},

    {"gpt-oss-20b", &fr_synth_gpt_oss, 24, GPT_OSS_VOCAB, "{" GPT_OSS ", \"num_local_experts\": 32}", head},
    {"gpt-oss-120b", &fr_synth_gpt_oss, 36, GPT_OSS_VOCAB, "{" GPT_OSS "}", head},

    {"gemma2-2b", &fr_synth_gemma2, 26, 256000, "{}", NULL},
    {"gemma3-270m", &fr_synth_gemma3, 18, GEMMA_VOCAB,
     "{\"hidden_size\": 640, \"intermediate_size\": 2048, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, "
     "\"sliding_window\": 512}",
     NULL},
    {"gemma3-1b", &fr_synth_gemma3, 26, GEMMA_VOCAB,
     "{\"hidden_size\": 1152, \"intermediate_size\": 6912, \"num_attention_heads\": 4, \"num_key_value_heads\": 1, "
     "\"sliding_window\": 512}",
     NULL},
    {"gemma3-4b", &fr_synth_gemma3, 34, GEMMA_VOCAB + 64,
     "{\"hidden_size\": 2560, \"intermediate_size\": 10240, \"sliding_window\": 1024, "
     "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}}",
     NULL},

    {"qwen2.5-0.5b", &fr_synth_qwen2, 24, QWEN2_VOCAB,
     "{\"hidden_size\": 896, \"intermediate_size\": 4864, \"num_attention_heads\": 14, \"num_key_value_heads\": 2, "
     "\"rope_theta\": 1000000.0}",
     NULL},
    {"qwen2.5-1.5b", &fr_synth_qwen2, 28, QWEN2_VOCAB,
     "{\"hidden_size\": 1536, \"intermediate_size\": 8960, \"num_attention_heads\": 12, \"num_key_value_heads\": 2, "
     "\"rope_theta\": 1000000.0}",
     NULL},
    {"qwen2.5-7b", &fr_synth_qwen2, 28, QWEN2_VOCAB + 128,
     "{\"hidden_size\": 3584, \"intermediate_size\": 18944, \"num_attention_heads\": 28, \"num_key_value_heads\": 4, "
     "\"rope_theta\": 1000000.0}",
     head},
    {"qwen3-8b", &fr_synth_qwen3, 36, QWEN2_VOCAB,
     "{\"intermediate_size\": 12288, \"num_key_value_heads\": 8, \"rope_theta\": 1000000}", head},
    {"mistral-7b", &fr_synth_mistral, 32, 32768,
     "{\"sliding_window\": null, \"rms_norm_eps\": 1e-5, \"rope_theta\": 1000000}", head},
    {"ministral3-8b", &fr_synth_mistral3, 34, 131072, "{}", head},
    {"phi4", &fr_synth_phi3, 40, 100352,
     "{\"hidden_size\": 5120, \"intermediate_size\": 17920, \"num_attention_heads\": 40, "
     "\"num_key_value_heads\": 10, \"rope_theta\": 250000}",
     head_and_qkv},
    {"smollm3-3b", &fr_synth_smollm3, 36, LLAMA_VOCAB, "{\"rope_theta\": 5000000}", NULL},
    {"granite3.3-2b", &fr_synth_granite, 40, 49159,
     "{\"hidden_size\": 2048, \"intermediate_size\": 8192, \"num_key_value_heads\": 8, \"rope_theta\": 1e7, "
     "\"rms_norm_eps\": 1e-5, \"attention_multiplier\": 0.015625, \"embedding_multiplier\": 12, "
     "\"residual_multiplier\": 0.22, \"logits_scaling\": 8}",
     NULL},
    {"granite3.1-3b-a800m", &fr_synth_granite_moe, 32, 49155,
     "{\"hidden_size\": 1536, \"intermediate_size\": 512, \"num_attention_heads\": 24, \"num_key_value_heads\": 8, "
     "\"num_local_experts\": 40, \"num_experts_per_tok\": 8, \"rope_theta\": 1e7, \"attention_multiplier\": 0.015625, "
     "\"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, \"logits_scaling\": 6}",
     NULL},
    {"seed-oss-36b", &fr_synth_seed_oss, 64, 155136, "{\"hidden_size\": 5120, \"rope_theta\": 1e7}", head},
    {"hunyuan-7b", &fr_synth_hunyuan, 32, 128167,
     "{\"head_dim\": 128, \"intermediate_size\": 14336, \"num_key_value_heads\": 8, "
     "\"rope_scaling\": {\"type\": \"dynamic\", \"alpha\": 1000}}",
     NULL},
    {"hunyuan-a13b", &fr_synth_hunyuan_moe, 32, 128167,
     "{\"head_dim\": 128, \"intermediate_size\": 3072, \"num_key_value_heads\": 8, \"num_experts\": 64, "
     "\"moe_topk\": 8, \"num_shared_expert\": 1, \"moe_intermediate_size\": 3072, "
     "\"rope_scaling\": {\"type\": \"dynamic\", \"alpha\": 1000}}",
     NULL},
    {"qwen1.5-moe-a2.7b", &fr_synth_qwen2_moe, 24, QWEN2_VOCAB, "{\"rope_theta\": 1000000}", head},
    {"qwen3-next-80b-a3b", &fr_synth_qwen3_next, 48, QWEN2_VOCAB, "{\"rope_theta\": 1e7}", head_and_norm},
    {"qwen3-30b-a3b", &fr_synth_qwen3_moe, 48, QWEN2_VOCAB,
     "{\"head_dim\": 128, \"norm_topk_prob\": true, \"rope_theta\": 1000000}", head_and_norm},
    {"qwen3.5-0.8b", &fr_synth_qwen35, 24, QWEN35_VOCAB,
     "{\"hidden_size\": 1024, \"num_attention_heads\": 8, \"num_key_value_heads\": 2, "
     "\"intermediate_size\": 3584, \"linear_num_value_heads\": 16, \"rope_theta\": 1e7}",
     mtp_norm},
    {"qwen3.5-4b", &fr_synth_qwen35, 32, QWEN35_VOCAB,
     "{\"hidden_size\": 2560, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 9216, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}",
     mtp_norm},
    {"qwen3.5-9b", &fr_synth_qwen35, 32, QWEN35_VOCAB,
     "{\"hidden_size\": 4096, \"num_attention_heads\": 16, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 12288, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}",
     head_and_norm},
    {"qwen3.5-4b-dflash", &fr_synth_dflash, 32, QWEN35_VOCAB,
     "{" DRAFTS_35 "\"hidden_size\": 2560, \"intermediate_size\": 9728}", NULL},
    {"qwen3.5-4b-dflash2", &fr_synth_dflash2, 32, QWEN35_VOCAB,
     "{" DRAFTS_35 "\"hidden_size\": 2560, \"intermediate_size\": 9728}", NULL},
    {"qwen3.5-4b-dspark", &fr_synth_dspark, 32, QWEN35_VOCAB,
     "{" DRAFTS_35 "\"hidden_size\": 2560, \"intermediate_size\": 9728}", NULL},
    {"qwen3.5-9b-dflash", &fr_synth_dflash, 32, QWEN35_VOCAB,
     "{" DRAFTS_35 "\"hidden_size\": 4096, \"intermediate_size\": 12288}", NULL},
    {"qwen3.6-27b", &fr_synth_qwen35, 64, QWEN35_VOCAB,
     "{\"hidden_size\": 5120, \"num_attention_heads\": 24, \"num_key_value_heads\": 4, "
     "\"intermediate_size\": 17408, \"linear_num_value_heads\": 48, \"rope_theta\": 1e7}",
     head_and_norm},
    {"qwen3.6-35b-a3b", &fr_synth_qwen35_moe, 40, QWEN35_VOCAB,
     "{\"hidden_size\": 2048, \"num_attention_heads\": 16, \"num_key_value_heads\": 2, "
     "\"shared_expert_intermediate_size\": 512, \"linear_num_value_heads\": 32, \"rope_theta\": 1e7}",
     experts},

    {"nemotron3-nano-4b", &fr_synth_nemotron_h, 42, 131072,
     "{\"hybrid_override_pattern\": \"M-M-M-MM-M-M*-M-M*-M-M-M*-M-M-MM*-MMM-M-M-\", \"hidden_size\": 3136, "
     "\"intermediate_size\": 12544, \"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, "
     "\"mamba_num_heads\": 96, \"mamba_head_dim\": 80, \"ssm_state_size\": 128, \"n_groups\": 8}",
     head},
    {"olmo2-7b", &fr_synth_olmo2, 32, 100352, "{\"rope_theta\": 500000, \"rms_norm_eps\": 1e-6}", head},
    {"olmo3-7b", &fr_synth_olmo3, 32, 100278,
     "{\"rms_norm_eps\": 1e-6, \"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 8.0, "
     "\"original_max_position_embeddings\": 8192}}",
     head},
    {"exaone4-1.2b", &fr_synth_exaone4, 30, 102400,
     "{\"hidden_size\": 2048, \"intermediate_size\": 4096, \"num_key_value_heads\": 8, \"head_dim\": 64, "
     "\"sliding_window\": null, \"rope_theta\": 1000000, \"rope_scaling\": {" LLAMA3 ", \"factor\": 16}}",
     NULL},
    {"command-r7b", &fr_synth_cohere2, 32, 256000,
     "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, "
     "\"num_key_value_heads\": 8, \"rope_theta\": 50000, \"logit_scale\": 0.25}",
     NULL},
    {"glm4-9b", &fr_synth_glm4, 40, 151552, "{\"attention_bias\": false, \"rms_norm_eps\": 1e-5}", head},
    {"ernie4.5-0.3b", &fr_synth_ernie45, 18, 103424, "{}", NULL},
    {"lfm2-1.2b", &fr_synth_lfm2, 16, 65536,
     "{\"hidden_size\": 2048, \"block_ff_dim\": 12288, \"full_attn_idxs\": [2, 5, 8, 10, 12, 14]}", NULL},
    {"stablelm2-1.6b", &fr_synth_stablelm, 24, 100352,
     "{\"hidden_size\": 2048, \"intermediate_size\": 5632, \"use_qkv_bias\": true}", head},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

const char *fr_synth_shape_word(size_t index) {
    return index < SHAPES ? shapes[index].name : NULL;
}

fr_status fr_synth_find(const char *name, const fr_synth_shape **shape) {
    for (size_t i = 0; i < SHAPES; i++) {
        *shape = &shapes[i];
        if (strcmp(shapes[i].name, name) == 0) return FR_OK;
    }
    return fr_fail(FR_USAGE, "there is no shape %.40s; known: %s", name, fr_list_words(fr_synth_shape_word).text);
}

/* ----------------------------------------------------------------------------------------------------------- a spec */

/* Completes a config.json. If the shape has mixtures, at least one layer gets a mixture. */
static bool complete(const fr_synth_order *order, json_t *config) {
    static const char leading[] = "first_k_dense_replace";
    bool (*own)(const fr_synth_order *, json_t *) = order->shape->family->complete;
    size_t dense = (size_t)json_integer_value(json_object_get(config, leading));
    return fr_synth_set(config, "vocab_size", order->vocab) &&
           fr_synth_set(config, "num_hidden_layers", order->layers) &&
           fr_synth_set(config, "max_position_embeddings", FR_SYNTH_CONTEXT) &&
           (!dense || fr_synth_set(config, leading, fr_smaller(dense, order->layers - 1))) &&
           (!own || own(order, config));
}

fr_status fr_synth_read(const fr_synth_order *order, fr_synth_model *model) {
    const fr_synth_shape *shape = order->shape;
    FR_TRY(fr_json_parse(shape->config, strlen(shape->config), shape->name, &model->config));
    if (!complete(order, model->config)) return fr_fail_memory("a shape", 0);
    const fr_source source = {.root = model->config,
                              .text = model->config,
                              .where = shape->name,
                              .drafter = shape->family->add_drafter != NULL};
    fr_model_spec whole = {0};
    fr_status status = fr_family_read(shape->family->family, &source, &whole);
    model->spec = whole.trunk;
    return status;
}
