/* Ling 2.0 and Ring 2.0, and Sarvam's mixtures: config.json of BailingMoeV2ForCausalLM and SarvamMoEForCausalLM, GGUF
 * "bailingmoe2". Source of Ling: the published checkpoints and their modeling file (github.com/inclusionAI/Ling-V2;
 * transformers has no such model); for GGUF github.com/ggml-org/llama.cpp, conversion/bailingmoe.py. Queries, keys and
 * values are one projection in folders and in GGUF. In Ling, if a row uses several experts, the router's weights for
 * these experts are always normalized, and norm_topk_prob is ignored. GGUF's key for the width of the shared experts is
 * ignored. */
#include "base/error.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    {0},
};

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, "attention.query_key_value.weight",
             "attn_qkv.weight"),
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "attention.query_key_value.bias",
             "attn_qkv.bias", .needs = FR_IF_QKV_BIAS),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attention.dense.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "attention.dense.bias", "attn_output.bias", .needs = FR_IF_O_BIAS),
    FR_VECTOR(fr_layer, attention.q_norm, HEAD, "attention.query_layernorm.weight", "attn_q_norm.weight",
              .needs = FR_IF_NORMED_HEADS),
    FR_VECTOR(fr_layer, attention.k_norm, HEAD, "attention.key_layernorm.weight", "attn_k_norm.weight",
              .needs = FR_IF_NORMED_HEADS),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.gate.expert_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    {0},
};

static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "eh_proj.weight", "nextn.eh_proj.weight"),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "enorm.weight", "nextn.enorm.weight"),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "hnorm.weight", "nextn.hnorm.weight"),
    FR_VECTOR(fr_mtp_layer, norm, HIDDEN, "final_layernorm.weight", "layer_output_norm.weight"),
    {0},
};

static const fr_mixture_words words = {.count = "num_experts", .shared = "num_shared_experts"};

static const fr_model_spec defaults = {
    .trunk = {.vocab = 157184,
              .hidden = 2048,
              .layers = 20,
              .context_limit = 32768,
              .eps = 1e-6F,
              .rope = {{.neox = true, .theta = 6e5}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 4, .head_dim = 128, .qk_norm = true},
              .ffn = {.width = 5120, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .width = 512,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 8,
                          .top_groups = 4,
                          .routed_scaling = 1.0F}},
    .mixture = {.words = &words, .shared = 1, .shared_by_count = true, .leading_dense = 1, .normalizes = true}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_ONLY("score_function", "sigmoid"),
                                    FR_FLAG(layer.attention.qkv_bias, "use_qkv_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "use_bias", NULL),
                                    FR_FLAG(layer.attention.qk_norm, "use_qk_norm", NULL),
                                    {0}};
static const fr_config_row mtp[] = {FR_MTP("num_nextn_predict_layers"), {0}};

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    s->layer.experts.norm_top_k = s->layer.experts.top_k > 1;
    if (source->gguf) s->layer.attention.qk_norm = fr_source_layer_has(source, s, "attn_q_norm.weight");
    return fr_mixture_behind_leading(source, s);
}

const fr_family fr_family_bailing_moe = {
    .architectures = (const char *const[]){"BailingMoeV2ForCausalLM", "bailingmoe2", NULL},
    .gguf = "bailingmoe2",
    .tokenizer = "gpt2",
    .pre = "bailingmoe2",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, fr_mixture_rows, mtp},
    .rope = fr_rope_one_form,
    .shape = shape,
    .names = &(const fr_tensor_naming){
        .model = model_names, .layer = {layer_names, fr_pre_norm_names, fr_mixture_names}, .mtp = mtp_names}};

/* ---------------------------------------------------------------------------------------------------------- Sarvam */

/* Sarvam 30B. Source: transformers 5.24, model sarvam_moe. The layers are GLM-4.5's, and the tensors have the names of
 * Ling's. transformers renames num_experts, num_shared_experts and use_qkv_bias when it saves a folder, so both
 * spellings are read. The published modeling file leaves the weights of a row's experts unnormalized only if there is a
 * single expert. transformers leaves them unnormalized if norm_topk_prob is false. Models for which the two differ are
 * refused. The converter subtracts the mean of a router's corrections, which does not change the choice of experts.
 * GGUF files are read as Ling's. */
static const fr_model_spec sarvam_defaults = {
    .trunk = {.vocab = 262144,
              .hidden = 4096,
              .layers = 19,
              .context_limit = 131072,
              .eps = 1e-6F,
              .rope = {{.neox = true, .theta = 8e6}}},
    .layer = {.attention = {.heads = 64, .kv_heads = 4, .head_dim = 64, .qk_norm = true},
              .ffn = {.width = 8192, .activation = FR_SILU},
              .experts = {.count = 128,
                          .top_k = 6,
                          .width = 1024,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .norm_top_k = true,
                          .routed_scaling = 2.5F}},
    .mixture = {.words = &words, .shared = 1, .shared_by_count = true, .leading_dense = 1}};

static const fr_config_row sarvam_own[] = {FR_ONLY("hidden_act", "silu"),
                                           FR_ONLY("score_function", "sigmoid"),
                                           FR_WITH("norm_topk_prob"),
                                           FR_WITHOUT("use_bias"),
                                           FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                           FR_FLAG(layer.attention.qkv_bias, "use_qkv_bias", NULL),
                                           FR_FLAG(layer.attention.qk_norm, "use_qk_norm", NULL),
                                           {0}};

static fr_status sarvam_shape(const fr_source *source, fr_model_spec *s) {
    if (s->layer.experts.top_k > 1) return fr_mixture_behind_leading(source, s);
    return fr_fail(FR_UNBUILT, "%s: num_experts_per_tok 1 is not built for Sarvam", source->where);
}

const fr_family fr_family_sarvam_moe = {
    .architectures = (const char *const[]){"SarvamMoEForCausalLM", NULL},
    .gguf = "bailingmoe2",
    .tokenizer = "gpt2",
    .pre = "sarvam-moe",
    .counts_ids = true,
    .defaults = &sarvam_defaults,
    .rows = {sarvam_own, fr_size_keys, fr_head_keys, fr_mixture_rows},
    .rope = fr_rope_one_form,
    .shape = sarvam_shape,
    .names =
        &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_pre_norm_names, fr_mixture_names}}};
