/* dots.llm1 and Solar Open: config.json of Dots1ForCausalLM and SolarOpenForCausalLM, GGUF "dots1". (llama.cpp writes
 * Solar Open as "glm4moe".) Source: transformers 5.24, models dots1 and solar_open; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/dots1.py. The routers are those of DeepSeek-V3. */
#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec dots1 = {
    .trunk =
        {.vocab = 152064, .hidden = 4608, .layers = 62, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .qk_norm = true},
              .ffn = {.width = 10944, .activation = FR_SILU},
              .experts = {.count = 128,
                          .top_k = 6,
                          .width = 1408,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .routed_scaling = 1}}};

/* Reads the window, which the layers after the first max_window_layers layers have. In contrast to Qwen's
 * configurations, no key has to turn the window on. */
static fr_status read_window(const fr_source *source, fr_model_spec *s) {
    size_t *window = &s->layer.attention.window;
    s->kinds.first = FR_LAYERS_MAX;
    if (source->gguf) return FR_OK;
    if (!json_is_null(json_object_get(source->text, "sliding_window")))
        FR_TRY(fr_json_size(source->text, "sliding_window", 1, 1 << 24, 4096, source->where, window));
    return fr_json_size(source->text, "max_window_layers", 0, 1 << 24, 62, source->where, &s->kinds.first);
}

static fr_status put_window(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    return fr_window_part.put(s, mtp_layers, where, w);
}

static fr_status dots1_shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_mixture_behind_leading(source, s));
    return fr_layers_mark_kinds(source, s);
}

static const fr_config_part window = {.read = read_window, .put = put_window};
static const fr_config_row dots1_own[] = {FR_ONLY("hidden_act", "silu"),
                                          FR_PART(window),
                                          FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                          FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                          {0}};

const fr_family fr_family_dots1 = {
    .architectures = (const char *const[]){"Dots1ForCausalLM", "dots1", NULL},
    .gguf = "dots1",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .finds_biases = true,
    .defaults = &dots1,
    .rows = {dots1_own, fr_size_keys, fr_head_keys, fr_mixture_rows},
    .rope = fr_rope_whole_heads,
    .shape = dots1_shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};

/* ------------------------------------------------------------------------------------------------------- Solar Open */

static const fr_model_spec solar = {.trunk = {.vocab = 196608,
                                              .hidden = 4096,
                                              .layers = 48,
                                              .context_limit = 131072,
                                              .eps = 1e-5F,
                                              .rope = {{.neox = true, .theta = 1e6}}},
                                    .layer = {.attention = {.heads = 64, .kv_heads = 8, .head_dim = 128},
                                              .ffn = {.width = 1, .activation = FR_SILU},
                                              .experts = {.count = 128,
                                                          .top_k = 8,
                                                          .width = 1280,
                                                          .activation = FR_SILU,
                                                          .scoring = FR_SCORING_SIGMOID,
                                                          .score_bias = true,
                                                          .norm_top_k = true,
                                                          .routed_scaling = 1}},
                                    .mixture = {.shared = 1}};

static const fr_config_row solar_own[] = {
    FR_ONLY("hidden_act", "silu"), FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL), {0}};

const fr_family fr_family_solar_open = {
    .architectures = (const char *const[]){"SolarOpenForCausalLM", NULL},
    .defaults = &solar,
    .rows = {solar_own, fr_size_keys, fr_head_keys, fr_mixture_rows},
    .rope = fr_rope_one_form,
    .shape = fr_mixture_behind_leading,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_mixture_names}}};
