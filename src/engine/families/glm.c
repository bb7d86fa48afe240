/* GLM-OCR's text model: config.json of GlmOcrForConditionalGeneration, GGUF "glm4". Dense GLM-4 (glm4.c) uses the same
 * name in GGUF. Source: the published checkpoint and transformers 5.17, model glm_ocr; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/glm.py; for the MTP layer see mtp_layer.h. If the converter writes the key
 * of rotary sections, it also writes the rows of queries and keys in neox order. */
#include "base/error.h"
#include "src/engine/families/mtp_layer.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 59392,
              .hidden = 1024,
              .layers = 16,
              .context_limit = 131072,
              .eps = 1e-5F,
              .rope = {{.sections = {8, 12, 12}}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 8}, .ffn = {.width = 4096, .activation = FR_SILU}}};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), {0}};
static const fr_config_row sections[] = {FR_PART(fr_sections_part), {0}};
static const fr_config_row mtp[] = {FR_MTP("num_nextn_predict_layers"), {0}};

const fr_tensor_name fr_glm_norm_names[] = {
    FR_VECTOR(fr_layer, post_attn_norm, HIDDEN, "post_self_attn_layernorm.weight", "post_attention_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "post_attention_layernorm.weight", "ffn_norm.weight"),
    FR_VECTOR(fr_layer, post_ffn_norm, HIDDEN, "post_mlp_layernorm.weight", "post_ffw_norm.weight"),
    {0},
};

static const fr_tensor_naming names = {.layer = {fr_attention_names, fr_glm_norm_names, fr_fused_ffn_names},
                                       .mtp = fr_mtp_names,
                                       .rotary_rows = FR_ROWS_TO_NEOX};

static bool gguf_neox(const fr_gguf *gguf) {
    return fr_gguf_find(gguf, ".rope.dimension_sections") != NULL;
}

static fr_status rope(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf || gguf_neox(source->gguf)) return fr_rope_sections(source, s);
    s->trunk.rope[0].neox = false;
    return fr_rope_one_form(source, s);
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_read_image_token(source, s));
    return fr_layers_alike(source, s);
}

const fr_family fr_family_glm = {.architectures = (const char *const[]){"GlmOcrForConditionalGeneration", "glm4", NULL},
                                 .gguf = "glm4",
                                 .tokenizer = "gpt2",
                                 .pre = "glm4",
                                 .finds_biases = true,
                                 .picture = "<|image|>",
                                 .sees = true,
                                 .defaults = &defaults,
                                 .rows = {own, fr_size_keys, sections, fr_head_keys, mtp},
                                 .rope = rope,
                                 .shape = shape,
                                 .names = &names,
                                 .gguf_neox = gguf_neox};
