/* SmolLM3: config.json of SmolLM3ForCausalLM, GGUF "smollm3". Source: the published checkpoint and transformers 5.17,
 * model smollm3; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py and src/models/smollm3.cpp. SmolLM3 is
 * like Llama, but some layers have no rotary positions. In GGUF these are every fourth layer, and no layer slides. In
 * folders, the layers without rotary positions may slide. */
#include "base/error.h"
#include "src/engine/families/family.h"

enum { EVERY_IN_GGUF = 4 };

static const fr_model_spec defaults = {
    .trunk = {.vocab = 128256,
              .hidden = 2048,
              .layers = 36,
              .context_limit = 32768,
              .eps = 1e-6F,
              .rope = {{.neox = true, .theta = 2e6}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 4}, .ffn = {.width = 11008, .activation = FR_SILU}},
    .kinds = {.every = 1}};

/* Reads which layers have rotary positions. */
static fr_status read_uses_rope(const fr_source *source, size_t layers, bool *uses_rope) {
    const json_t *list = json_object_get(source->text, "no_rope_layers");
    int64_t every = EVERY_IN_GGUF;
    if (!source->gguf)
        FR_TRY(fr_json_int(source->text, "no_rope_layer_interval", 1, FR_LAYERS_MAX, every, source->where, &every));
    if (source->gguf || !list || json_is_null(list)) {
        for (size_t i = 0; i < layers; i++) uses_rope[i] = (i + 1) % (size_t)every != 0;
        return FR_OK;
    }
    for (size_t i = 0; i < layers; i++) {
        const json_t *flag = json_array_get(list, i);
        if (!json_is_integer(flag) && !json_is_boolean(flag))
            return fr_fail(FR_INPUT, "%s: no_rope_layers has no number for layer %zu", source->where, i);
        uses_rope[i] = json_is_true(flag) || json_integer_value(flag) != 0;
    }
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool uses_rope[FR_LAYERS_MAX], slide = false, told = false;
    FR_TRY(read_uses_rope(source, s->trunk.layers, uses_rope));
    if (!source->gguf) FR_TRY(fr_json_bool(source->text, "use_sliding_window", false, source->where, &slide));
    if (!source->gguf) told = json_is_array(json_object_get(source->text, "layer_types"));
    FR_TRY(fr_layers_by_kind(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        a->no_rope = !uses_rope[i];
        if (slide && !told && !uses_rope[i]) a->window = s->layer.attention.window;
    }
    return FR_OK;
}

static fr_status check_uses_rope(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].attention.no_rope != ((i + 1) % EVERY_IN_GGUF == 0))
            return fr_fail(FR_INPUT,
                           "%s: GGUF has no key for the layers that have rotary positions, and layer %zu "
                           "differs from what its readers assume",
                           where, i);
    return FR_OK;
}

static const fr_config_part uses_rope_part = {.put = check_uses_rope};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_PART(fr_window_of_all_part),
                                    FR_PART(uses_rope_part),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

const fr_family fr_family_smollm3 = {
    .architectures = (const char *const[]){"SmolLM3ForCausalLM", "smollm3", NULL},
    .gguf = "smollm3",
    .tokenizer = "gpt2",
    .pre = "smaug-bpe",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .rotary_rows = FR_ROWS_TO_PAIRS}};
