/* OLMo 2 and OLMo 3: config.json of Olmo2ForCausalLM and Olmo3ForCausalLM; both have the GGUF architecture "olmo2".
 * Source: transformers 5.17, models olmo2 and olmo3; for GGUF github.com/ggml-org/llama.cpp, conversion/olmo.py and
 * src/models/olmo2.cpp. Norms come only after attention and feed-forward. One norm covers the queries of all heads, and
 * another norm the keys. In OLMo 3, three sliding layers are followed by a full one, and only full layers have scaled
 * rotary positions. */
#include "src/engine/families/family.h"

#define ATTENTION .heads = 32, .qk_norm = true, .qk_norm_wide = true
#define SIZES     .vocab = 50304, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-5F

static const fr_model_spec olmo2_defaults = {
    .trunk = {SIZES, .rope = {{.neox = true}}},
    .layer = {.norms = FR_NORMS_BEHIND, .attention = {ATTENTION}, .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_model_spec olmo3_defaults = {
    .trunk = {SIZES, .ropes = FR_LAYER_KINDS,
              .rope = {[FR_SLIDING] = {.neox = true, .theta = 5e5}, [FR_FULL] = {.neox = true, .theta = 5e5}}},
    .layer = {.norms = FR_NORMS_BEHIND,
              .attention = {ATTENTION, .window = 4096},
              .ffn = {.width = 11008, .activation = FR_SILU}},
    .kinds = {.every = 4}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_behind_norm_names, fr_ffn_names}};

/* Reads rotary positions. If GGUF has no key for the base of sliding layers, they use the base of full layers. */
static fr_status rope(const fr_source *source, fr_model_spec *s) {
    if (source->gguf && !fr_gguf_find(source->gguf, ".rope.freq_base_swa"))
        s->trunk.rope[FR_SLIDING].theta = s->trunk.rope[FR_FULL].theta;
    return fr_rope_by_kind(source, s);
}

const fr_family fr_family_olmo2 = {.architectures = (const char *const[]){"Olmo2ForCausalLM", NULL},
                                   .gguf = "olmo2",
                                   .tokenizer = "gpt2",
                                   .pre = "dbrx",
                                   .defaults = &olmo2_defaults,
                                   .rows = {own, fr_size_keys, fr_head_keys},
                                   .rope = fr_rope_whole_heads,
                                   .names = &names};

const fr_family fr_family_olmo3 = {.architectures = (const char *const[]){"Olmo3ForCausalLM", "olmo2", NULL},
                                   .gguf = "olmo2",
                                   .tokenizer = "gpt2",
                                   .pre = "dbrx",
                                   .finds_biases = true,
                                   .defaults = &olmo3_defaults,
                                   .rows = {own, fr_size_keys, fr_kind_keys},
                                   .rope = rope,
                                   .shape = fr_layers_by_kind,
                                   .names = &names};
