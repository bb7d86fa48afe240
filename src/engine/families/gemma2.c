/* Gemma 2 and VaultGemma. Gemma 2: config.json of Gemma2ForCausalLM, GGUF "gemma2". VaultGemma: config.json of
 * VaultGemmaForCausalLM, which llama.cpp does not know. Source: transformers 5.24, models gemma2 and vaultgemma; for
 * GGUF github.com/ggml-org/llama.cpp, conversion/gemma.py and src/models/gemma2.cpp. Sliding and full layers alternate,
 * and share one rotary form. In Gemma 2, norms come before and after attention and feed-forward; in VaultGemma, they
 * come only before them. Published files store the norms' weights minus 1. Scores and logits have soft caps. */
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 256000,
              .hidden = 2304,
              .layers = 26,
              .context_limit = 8192,
              .eps = 1e-6F,
              .softcap = 30,
              .rope = {{.neox = true, .theta = 1e4}}},
    .layer =
        {.attention = {.heads = 8, .kv_heads = 4, .head_dim = 256, .window = 4096, .scale = 0.0625F, .softcap = 50},
         .ffn = {.width = 9216, .activation = FR_GELU}},
    .kinds = {.every = 2}};

static const fr_config_row own[] = {
    FR_ONLY("hidden_activation", "gelu_pytorch_tanh"),
    FR_WITHOUT("attention_bias"),
    FR_WITHOUT("use_bidirectional_attention"),
    FR_REAL(layer.attention.softcap, "attn_logit_softcapping", ".attn_logit_softcapping", 0, 1e6, .null_is_none = true),
    FR_REAL(trunk.softcap, "final_logit_softcapping", ".final_logit_softcapping", 0, 1e6, .null_is_none = true),
    FR_RSQRT(layer.attention.scale, "query_pre_attn_scalar", NULL, 1, 1 << 17),
    FR_SIZE(layer.attention.window, "sliding_window", ".attention.sliding_window", 1, 1 << 24),
    {0}};

const fr_family fr_family_gemma2 = {
    .architectures = (const char *const[]){"Gemma2ForCausalLM", "gemma2", NULL},
    .gguf = "gemma2",
    .tokenizer = "llama",
    .scaled_by_hidden = 46, /* number of layers of the 27B model, which scales scores by hidden / heads */
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .scales_embedding = true,
    .shape = fr_layers_by_kind,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_sandwich_norm_names, fr_ffn_names},
                                       .norms = FR_LESS_ONE}};

static const fr_tensor_name vault_norm_names[] = {
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "pre_feedforward_layernorm.weight", NULL, .norm = true),
    {0},
};

const fr_family fr_family_vault_gemma = {
    .architectures = (const char *const[]){"VaultGemmaForCausalLM", NULL},
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .scales_embedding = true,
    .shape = fr_layers_by_kind,
    .names =
        &(const fr_tensor_naming){.layer = {fr_attention_names, vault_norm_names, fr_ffn_names}, .norms = FR_LESS_ONE}};
