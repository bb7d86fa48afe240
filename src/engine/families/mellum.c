/* Mellum 2: config.json of MellumForCausalLM, GGUF "mellum". Source: transformers 5.24, model mellum; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/mellum.py and src/models/mellum.cpp. GGUF has no key for weights that are
 * not normalized, no key for layers without a mixture, and no form of the MTP layer. The layers are those of Qwen3's
 * mixtures. Some layers slide and others are full, and these two kinds have different rotary positions. */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 98304,
              .hidden = 2304,
              .layers = 28,
              .context_limit = 131072,
              .eps = 1e-6F,
              .ropes = 2,
              .rope = {[FR_SLIDING] = {.neox = true, .theta = 1e4}, [FR_FULL] = {.neox = true, .theta = 5e5}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 4, .head_dim = 128, .window = 1024, .qk_norm = true},
              .ffn = {.width = 7168, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 8,
                          .width = 896,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .kinds = {.every = 1}};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *experts = fr_spec_experts(s);
    (void)mtp_layers;
    if (!experts || experts->norm_top_k) return fr_mixture_put_keys(s, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
}

static fr_status read_mtp(const fr_source *source, fr_model_spec *s) {
    const char *key = fr_json_spelling(source->text, "num_nextn_predict_layers", "num_mtp_layers");
    return source->gguf ? FR_OK : fr_config_mtp(source->text, key, 0, source->where, &s->mtp_layers);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture}, mtp = {.read = read_mtp};
static const fr_config_row others[] = {FR_PART(mixture), FR_PART(mtp), {0}};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

/* Reads rotary positions. If a GGUF file has no base for sliding layers, all layers have the same base. */
static fr_status rope(const fr_source *source, fr_model_spec *s) {
    if (source->gguf && !fr_gguf_find(source->gguf, ".rope.freq_base_swa"))
        s->trunk.rope[FR_SLIDING].theta = s->trunk.rope[FR_FULL].theta;
    return fr_rope_by_kind_in_part(source, s);
}

/* Makes the layers. A list may say whether the MTP layer has a mixture. If there is no list, it has one. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool dense = false, found;
    FR_TRY(fr_mixture_told_layers(source, s));
    FR_TRY(fr_layers_mark_kinds(source, s));
    if (s->mtp_layers)
        FR_TRY(fr_source_words(source, "mtp_mlp_layer_types", "dense", "sparse", s->mtp_layers, &dense, &found));
    if (dense) fr_mixture_dense_mtp(s);
    return fr_layers_mark_mtp(source, s, true);
}

const fr_family fr_family_mellum = {
    .architectures = (const char *const[]){"MellumForCausalLM", "mellum", NULL},
    .gguf = "mellum",
    .tokenizer = "gpt2",
    .pre = "mellum2",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_kind_keys, others},
    .rope = rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names},
                                       .mtp = fr_qwen_mtp_names,
                                       .mtp_prefixes = (const char *const[]){"mtp.", NULL},
                                       .mtp_in_folders = true,
                                       .extras = (const char *const[]){"mtp.*", NULL}}};
