/* Phi-1, 1.5 and 2: config.json of PhiForCausalLM, GGUF "phi2". Source: transformers 5.24, model phi; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/phi.py. Attention and feed-forward of a layer read the same norm. By
 * default, half of each attention head is rotated. The LM head has a bias. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {.trunk = {.vocab = 51200,
                                                 .hidden = 2048,
                                                 .layers = 24,
                                                 .context_limit = 2048,
                                                 .eps = 1e-5F,
                                                 .layer_norm = true,
                                                 .norm_bias = true,
                                                 .head_bias = true,
                                                 .rope = {{.neox = true, .partial = 0.5}}},
                                       .layer = {.norms = FR_NORM_SHARED,
                                                 .attention = {.heads = 32, .qkv_bias = true, .o_bias = true},
                                                 .ffn = {.width = 8192, .activation = FR_GELU, .biased = true}}};

static const fr_config_row own[] = {FR_ACTIVATION("hidden_act"), FR_WITHOUT("qk_layernorm"), {0}};

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, head_bias, VOCAB, "lm_head.bias", "output.bias", .top = true),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "final_layernorm.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "final_layernorm.bias", "output_norm.bias"),
    {0}};
static const fr_tensor_name layer_names[] = {
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.dense.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "self_attn.dense.bias", "attn_output.bias"),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.fc1.weight", "ffn_up.weight"),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.fc1.bias", "ffn_up.bias"),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.fc2.weight", "ffn_down.weight"),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.fc2.bias", "ffn_down.bias"),
    {0}};

const fr_family fr_family_phi = {
    .architectures = (const char *const[]){"PhiForCausalLM", "phi2", NULL},
    .gguf = "phi2",
    .tokenizer = "gpt2",
    .pre = "gpt-2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_layer_norm_head_keys},
    .rope = fr_rope_one_form,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, fr_attention_names}}};
