/* Mellum 2: config.json of MellumForCausalLM, GGUF "mellum". Source: transformers 5.24, model mellum; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/mellum.py and src/models/mellum.cpp, which has no key for weights that are
 * not normalized and none for layers without a mixture. Its layers are those of Qwen3's mixtures, with sliding and full
 * ones that have rotary positions of their own. The MTP layer of some folders is not read. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

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
    if (!experts) return fr_fail(FR_INPUT, "%s: GGUF has no key for a model without experts", where);
    if (experts->norm_top_k) return fr_mixture_put_keys(s, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};

/* Reads rotary positions. A GGUF file without a base for sliding layers has one base for all layers. */
static fr_status rope(const fr_source *source, fr_model_spec *s) {
    if (source->gguf && !fr_gguf_find(source->gguf, ".rope.freq_base_swa"))
        s->trunk.rope[FR_SLIDING].theta = s->trunk.rope[FR_FULL].theta;
    return fr_rope_by_kind_in_part(source, s);
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_mixture_told_layers(source, s));
    return fr_layers_mark_kinds(source, s);
}

const fr_family fr_family_mellum = {
    .architectures = (const char *const[]){"MellumForCausalLM", "mellum", NULL},
    .gguf = "mellum",
    .tokenizer = "gpt2",
    .pre = "mellum2",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_kind_keys, mixtures},
    .rope = rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names},
                                       .extras = (const char *const[]){"mtp.*", NULL}}};
