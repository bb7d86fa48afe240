/* The families with DeepSeek-V3's layers: what their tensors are called. See deepseek.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py, conversion/deepseek.py. Its files have
 * k_b and v_b apart, k_b's matrices transposed; older ones have kv_b as it is published. */
#include "src/families/deepseek.h"

#include "base/error.h"
#include "src/families/mtp_layer.h"
#include "src/model/model.h"

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_MATRIX(fr_layer, q_a, Q_LORA, HIDDEN, "self_attn.q_a_proj.weight", "attn_q_a.weight", .needs = FR_IF_Q_LORA),
    FR_VECTOR(fr_layer, q_a_norm, Q_LORA, "self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight",
              .needs = FR_IF_Q_LORA),
    FR_MATRIX(fr_layer, q, HEAD_QUERIES, Q_INPUT, "self_attn.q_b_proj.weight", "attn_q_b.weight",
              .needs = FR_IF_Q_LORA),
    FR_MATRIX(fr_layer, q, HEAD_QUERIES, Q_INPUT, "self_attn.q_proj.weight", "attn_q.weight"),
    FR_MATRIX(fr_layer, kv_a, HEAD, HIDDEN, "self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight"),
    FR_VECTOR(fr_layer, kv_a_norm, LATENT, "self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight"),
    FR_NAMED(fr_layer, heads.k_b, FR_SLOT_HEADS, LATENT, NOPE, NULL, "attn_k_b.weight"),
    FR_NAMED(fr_layer, heads, FR_SLOT_KV_B, KV_B, LATENT, "self_attn.kv_b_proj.weight", "attn_kv_b.weight"),
    FR_NAMED(fr_layer, heads.v_b, FR_SLOT_HEADS, VALUE, LATENT, NULL, "attn_v_b.weight"),
    FR_MATRIX(fr_layer, o, HIDDEN, VALUES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    {0},
};

/* Frequencies that early checkpoints were saved with. */
static const char *const extras[] = {"*rotary_emb.inv_freq", NULL};

static const fr_tensor_naming names = {
    .model = fr_model_names, .layer = {layer_names, fr_mixture_names}, .mtp = fr_mtp_names, .extras = extras};

static fr_status deepseek_read(fr_model *model, fr_trunk_spec *spec) {
    fr_deepseek_config config;
    FR_TRY(fr_deepseek_config_read(&config, &model->weights));
    FR_TRY(fr_deepseek_spec(&config, spec));
    model->mtp_layers = fr_chained_there(&model->weights, spec, config.mtp_layers);
    return FR_OK;
}

static const char *const deepseek[] = {"DeepseekV3ForCausalLM", "deepseek2", NULL};

const fr_family fr_family_deepseek = {.architectures = deepseek,
                                      .gguf = "deepseek2",
                                      .tokenizer = "gpt2",
                                      .pre = "deepseek-v3",
                                      .counts_ids = true,
                                      .names = &names,
                                      .read = deepseek_read,
                                      .put_keys = fr_deepseek_put_keys};

static const char *const glm_flash[] = {"Glm4MoeLiteForCausalLM", NULL};

const fr_family fr_family_glm_flash = {.architectures = glm_flash,
                                       .gguf = "deepseek2",
                                       .tokenizer = "gpt2",
                                       .pre = "glm4",
                                       .counts_ids = true,
                                       .names = &names,
                                       .read = deepseek_read,
                                       .put_keys = fr_deepseek_put_keys};
