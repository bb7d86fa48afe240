/* MiMo-7B: config.json of MiMoForCausalLM. Source: modeling_mimo.py in the published checkpoints. It is a Qwen2 with an
 * MTP layer, which transformers 5.17 and llama.cpp don't support. The input of the MTP layer begins with the hidden
 * row, and the embedding follows. */
#include "src/engine/families/mtp_layer.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .qkv_bias = true},
              .ffn = {.width = 22016, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_PART(fr_window_part), {0}},
                           mtp[] = {FR_MTP("num_nextn_predict_layers"), {0}};

static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "input_proj.weight", NULL),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "token_layernorm.weight", NULL),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "hidden_layernorm.weight", NULL),
    FR_VECTOR(fr_mtp_layer, norm, HIDDEN, "final_layernorm.weight", NULL),
    {0},
};

const fr_family fr_family_mimo = {
    .architectures = (const char *const[]){"MiMoForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mtp},
    .rope = fr_rope_whole_heads,
    .shape = fr_layers_by_kind,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .mtp = mtp_names,
                                       .mtp_prefixes = (const char *const[]){"model.mtp_layers.0.", NULL},
                                       .mtp_flat = true,
                                       .mtp_hidden_first = true}};
