/* Qwen2.5-VL: config.json of Qwen2_5_VLForConditionalGeneration, GGUF "qwen2vl". Source: transformers 5.24, model
 * qwen2_5_vl; for GGUF github.com/ggml-org/llama.cpp, conversion/qwenvl.py. The text model is Qwen2's, with rotary
 * positions along three axes; each axis has a range of angles. Older files have the text model's keys at the top of
 * config.json. Qwen2-VL has the same name in GGUF, but another vision tower, and is not supported. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 152064,
              .hidden = 8192,
              .layers = 80,
              .context_limit = 32768,
              .eps = 1e-5F,
              .rope = {{.neox = true, .sections = {16, 24, 24}, .theta = 1000000.0}}},
    .layer = {.attention = {.heads = 64, .kv_heads = 8, .qkv_bias = true},
              .ffn = {.width = 29568, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_PART(fr_window_part), {0}};
static const fr_config_row sections[] = {FR_PART(fr_sections_part), {0}};

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_read_image_token(source, s));
    return fr_layers_by_kind(source, s);
}

const fr_family fr_family_qwen2_vl = {
    .architectures = (const char *const[]){"Qwen2_5_VLForConditionalGeneration", "qwen2vl", NULL},
    .gguf = "qwen2vl",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .picture = "<|image_pad|>",
    .sees = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, sections, fr_head_keys},
    .rope = fr_rope_sections,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
                                       .extras = (const char *const[]){"visual.*", "model.visual.*", NULL}}};
