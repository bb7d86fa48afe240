/* Qwen1.5-MoE and Qwen2-57B-A14B: config.json of Qwen2MoeForCausalLM, GGUF "qwen2moe". Source: the published
 * checkpoints and transformers 5.24, model qwen2_moe; for GGUF github.com/ggml-org/llama.cpp, conversion/qwen.py and
 * src/models/qwen2moe.cpp. GGUF has no keys for normalized router weights and for layers without a mixture. The shared
 * expert has a gate. The projections of queries, keys and values have biases; the output projection has none. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 2048, .layers = 24, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 16, .qkv_bias = true},
              .ffn = {.width = 5632, .activation = FR_SILU},
              .experts = {.count = 60,
                          .top_k = 4,
                          .width = 1408,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .routed_scaling = 1.0F,
                          .shared_gated = true}},
    .mixture = {.shared_width = 5632}};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (!fr_spec_experts(s)->norm_top_k) return fr_mixture_put_keys(s, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are normalized", where);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"), FR_PART(fr_window_part), FR_FLAG(layer.attention.qkv_bias, "qkv_bias", NULL), {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

/* Makes the layers. If there is a window but no list of kinds, every second layer has the window, beginning with the
 * first layer. Layers from number max_window_layers on never have it. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    const json_t *types = json_object_get(source->text, "layer_types");
    FR_TRY(fr_mixture_sparse_layers(source, s));
    if (source->gguf) return FR_OK;
    FR_TRY(fr_layers_mark_kinds(source, s));
    for (size_t i = 0; i < s->trunk.layers && (!types || json_is_null(types)); i++)
        s->trunk.layer[i].attention.window = i % 2 == 0 && i < s->kinds.first ? s->layer.attention.window : 0;
    return FR_OK;
}

const fr_family fr_family_qwen2_moe = {
    .architectures = (const char *const[]){"Qwen2MoeForCausalLM", "qwen2moe", NULL},
    .gguf = "qwen2moe",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};
