/* EXAONE 3.0 and 3.5: config.json of ExaoneForCausalLM, GGUF "exaone". Source: transformers 5.24, model exaone, which
 * is Llama's with other names; for GGUF github.com/ggml-org/llama.cpp, conversion/exaone.py, which does not reorder the
 * rows of queries and keys. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 102400,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 4096,
              .eps = 1e-5F,
              .rope = {{.neox = true, .theta = 5e5}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 8}, .ffn = {.width = 14336, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_ONLY("activation_function", "silu"),
                                    FR_SIZE(trunk.layers, "num_layers", NULL, 1, FR_LAYERS_MAX),
                                    FR_REAL(trunk.eps, "layer_norm_epsilon", NULL, 0, 1),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "wte.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "ln_f.weight", "output_norm.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    {0}};

/* The names in published files. Files that transformers has saved have the usual names instead. */
#define THERE .needs = FR_IF_THERE
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "ln_1.weight", "attn_norm.weight", THERE),
    FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, "attn.attention.q_proj.weight", "attn_q.weight", THERE),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "attn.attention.k_proj.weight", "attn_k.weight", THERE),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "attn.attention.v_proj.weight", "attn_v.weight", THERE),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "attn.attention.out_proj.weight", "attn_output.weight", THERE),
    FR_VECTOR(fr_layer, attention.q_bias, QUERIES, "attn.attention.q_proj.bias", "attn_q.bias",
              .needs = FR_IF_THERE | FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, attention.k_bias, KEYS, "attn.attention.k_proj.bias", "attn_k.bias",
              .needs = FR_IF_THERE | FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, attention.v_bias, KEYS, "attn.attention.v_proj.bias", "attn_v.bias",
              .needs = FR_IF_THERE | FR_IF_QKV_BIAS),
    FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, "attn.attention.out_proj.bias", "attn_output.bias",
              .needs = FR_IF_THERE | FR_IF_O_BIAS),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "ln_2.weight", "ffn_norm.weight", THERE),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.c_fc_0.weight", "ffn_gate.weight", THERE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.c_fc_1.weight", "ffn_up.weight", THERE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.c_proj.weight", "ffn_down.weight", THERE),
    FR_VECTOR(fr_layer, ffn.gate_bias, FFN, "mlp.c_fc_0.bias", "ffn_gate.bias",
              .needs = FR_IF_THERE | FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.up_bias, FFN, "mlp.c_fc_1.bias", "ffn_up.bias", .needs = FR_IF_THERE | FR_IF_FFN_BIASED),
    FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, "mlp.c_proj.bias", "ffn_down.bias",
              .needs = FR_IF_THERE | FR_IF_FFN_BIASED),
    {0}};

const fr_family fr_family_exaone = {
    .architectures = (const char *const[]){"ExaoneForCausalLM", "exaone", NULL},
    .gguf = "exaone",
    .tokenizer = "gpt2",
    .pre = "exaone",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {layer_names, fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
