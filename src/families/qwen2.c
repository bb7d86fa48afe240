/* Qwen2, Qwen2.5: config.json of Qwen2ForCausalLM, GGUF "qwen2". Source: transformers 5.17, model qwen2; of GGUF
 * github.com/ggml-org/llama.cpp, conversion/qwen.py. Biases of queries, keys and values, none of the output. */
#include "base/error.h"
#include "src/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 151936, .hidden = 4096, .layers = 32, .context_limit = 32768, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .qkv_bias = true}, .ffn = {.width = 22016, .activation = FR_SILU}}};

static fr_status put_window(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].attention.window) return fr_fail(FR_INPUT, "%s: GGUF has no key for its window", where);
    return FR_OK;
}

static const fr_config_part window_in_gguf = {.put = put_window};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_PART(window_in_gguf), {0}};

/* The layers from max_window_layers on slide, if any do; in GGUF none. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    size_t full, *window = &s->layer.attention.window;
    bool slide = false;
    FR_TRY(fr_json_bool(source->text, "use_sliding_window", false, source->where, &slide));
    FR_TRY(fr_json_size(source->text, "max_window_layers", 0, 1 << 24, 28, source->where, &full));
    if (json_is_null(json_object_get(source->text, "sliding_window"))) slide = false;
    if (slide) FR_TRY(fr_json_size(source->text, "sliding_window", 1, 1 << 24, 4096, source->where, window));
    return fr_layers_by_kind(source, s, (fr_kind_pattern){.first = slide ? full : s->trunk.layers});
}

const fr_family fr_family_qwen2 = {
    .architectures = (const char *const[]){"Qwen2ForCausalLM", "qwen2", NULL},
    .gguf = "qwen2",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_one_form,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}}};
