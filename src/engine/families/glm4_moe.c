/* GLM-4.5, and later models with the same layers (4.5-Air, 4.6, 4.7): config.json of Glm4MoeForCausalLM, GGUF
 * "glm4moe". Source: the published checkpoints and transformers 5.17, model glm4_moe; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/glm.py; for the MTP layer see mtp_layer.h. The projections of queries, keys
 * and values have biases; the output projection has none. */
#include "base/error.h"
#include "src/engine/families/mtp_layer.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 151552,
                                                 .hidden = 4096,
                                                 .layers = 46,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .rope = {{.neox = true, .partial = 0.5}}},
                                       .layer = {.attention = {.heads = 96, .kv_heads = 8},
                                                 .ffn = {.width = 10944, .activation = FR_SILU},
                                                 .experts = {.count = 128,
                                                             .top_k = 8,
                                                             .width = 1408,
                                                             .activation = FR_SILU,
                                                             .scoring = FR_SCORING_SIGMOID,
                                                             .score_bias = true,
                                                             .norm_top_k = true,
                                                             .routed_scaling = 1.0F}},
                                       .mixture = {.shared = 1, .leading_dense = 1},
                                       .mtp_layers = 1};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.qk_norm, "use_qk_norm", NULL),
                                    {0}};
static const fr_config_row mtp[] = {FR_MTP("num_nextn_predict_layers"), {0}};

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_post_norm_names, fr_mixture_names},
                                       .mtp = fr_mtp_names};

/* Makes the layers. In GGUF, heads have norms if the file has the tensors of these norms. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    if (source->gguf) s->layer.attention.qk_norm = fr_source_layer_has(source, s, "attn_q_norm.weight");
    return fr_mixture_behind_leading(source, s);
}

const fr_family fr_family_glm4_moe = {.architectures = (const char *const[]){"Glm4MoeForCausalLM", "glm4moe", NULL},
                                      .gguf = "glm4moe",
                                      .tokenizer = "gpt2",
                                      .pre = "glm4",
                                      .finds_biases = true,
                                      .defaults = &defaults,
                                      .rows = {own, fr_size_keys, fr_head_keys, fr_mixture_rows, mtp},
                                      .rope = fr_rope_one_form,
                                      .shape = shape,
                                      .names = &names};
