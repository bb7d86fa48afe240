/* GLM-4.5: what its layers are, and what its tensors are called. See glm4_moe.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py. */
#include "src/families/glm4_moe.h"

#include "base/error.h"
#include "src/families/mtp_layer.h"
#include "src/model/model.h"

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_FUSED_QKV(QUERIES),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight"),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight"),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_FUSED_QKV_BIAS,
    FR_VECTOR(fr_layer, q_bias, QUERIES, "self_attn.q_proj.bias", "attn_q.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, k_bias, KEYS, "self_attn.k_proj.bias", "attn_k.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, v_bias, KEYS, "self_attn.v_proj.bias", "attn_v.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, q_norm, HEAD, "self_attn.q_norm.weight", "attn_q_norm.weight", .needs = FR_IF_NORMED_HEADS),
    FR_VECTOR(fr_layer, k_norm, HEAD, "self_attn.k_norm.weight", "attn_k_norm.weight", .needs = FR_IF_NORMED_HEADS),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    {0},
};

static const char *const extras[] = {NULL};

static const fr_tensor_naming names = {
    .model = fr_model_names, .layer = {layer_names, fr_mixture_names}, .mtp = fr_mtp_names, .extras = extras};

static fr_status read(fr_model *model, fr_trunk_spec *spec) {
    fr_glm4_moe_config config;
    FR_TRY(fr_glm4_moe_config_read(&config, &model->weights));
    FR_TRY(fr_mixture_spec(&config.uniform, &config.mixture, spec));
    model->mtp_layers = fr_chained_there(&model->weights, spec, config.mtp_layers);
    return FR_OK;
}

static const char *const architectures[] = {"Glm4MoeForCausalLM", "glm4moe", NULL};

const fr_family fr_family_glm4_moe = {.architectures = architectures,
                                      .gguf = "glm4moe",
                                      .tokenizer = "gpt2",
                                      .pre = "glm4",
                                      .names = &names,
                                      .read = read,
                                      .put_keys = fr_glm4_moe_put_keys};
