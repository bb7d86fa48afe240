/* The Llama family: what its layers are, and what its tensors are called. See llama.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py; there the rows of queries and keys
 * stand in another order (conversion/llama.py). */
#include "src/families/llama.h"

#include "base/error.h"
#include "src/model/model.h"

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_FUSED_QKV(QUERIES),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight", .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", .order = FR_ROWS_TO_PAIRS),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight"),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_FUSED_QKV_BIAS,
    FR_VECTOR(fr_layer, q_bias, QUERIES, "self_attn.q_proj.bias", "attn_q.bias", .needs = FR_IF_QKV_BIAS,
              .order = FR_ROWS_TO_PAIRS),
    FR_VECTOR(fr_layer, k_bias, KEYS, "self_attn.k_proj.bias", "attn_k.bias", .needs = FR_IF_QKV_BIAS,
              .order = FR_ROWS_TO_PAIRS),
    FR_VECTOR(fr_layer, v_bias, KEYS, "self_attn.v_proj.bias", "attn_v.bias", .needs = FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, o_bias, HIDDEN, "self_attn.o_proj.bias", "attn_output.bias", .needs = FR_IF_O_BIAS),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    FR_MATRIX(fr_layer, gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight"),
    FR_MATRIX(fr_layer, gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, gate_bias, FFN, "mlp.gate_proj.bias", "ffn_gate.bias", .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, up_bias, FFN, "mlp.up_proj.bias", "ffn_up.bias", .needs = FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, down_bias, HIDDEN, "mlp.down_proj.bias", "ffn_down.bias", .needs = FR_IF_FFN_BIASED),
    {0},
};

/* Frequencies that early checkpoints were saved with. */
static const char *const extras[] = {"*rotary_emb.inv_freq", NULL};

static const fr_tensor_naming names = {.model = fr_model_names, .layer = {layer_names}, .extras = extras};

static fr_status llama_read(fr_model *model, fr_trunk_spec *spec) {
    fr_uniform_config config;
    FR_TRY(fr_llama_config_read(&config, &model->weights));
    return fr_uniform_spec(&config, spec);
}

static const char *const architectures[] = {"LlamaForCausalLM", "llama", NULL};

const fr_family fr_family_llama = {.architectures = architectures,
                                   .gguf = "llama",
                                   .tokenizer = "gpt2",
                                   .pre = "llama-bpe",
                                   .counts_ids = true,
                                   .names = &names,
                                   .read = llama_read,
                                   .put_keys = fr_llama_put_keys,
                                   .put_rope_factors = fr_llama_put_rope_factors};
