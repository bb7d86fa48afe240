/* Qwen3-VL, dense and mixtures: config.json of Qwen3VLForConditionalGeneration and Qwen3VLMoeForConditionalGeneration,
 * GGUF "qwen3vl" and "qwen3vlmoe". Source: transformers 5.24, models qwen3_vl and qwen3_vl_moe; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/qwen3vl.py. The text model is Qwen3's, with rotary positions along three
 * axes that alternate. At a picture's tokens, the first layers add a row to their output (deepstack); the vision tower
 * makes these rows. Published mixtures store the experts' matrices transposed. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mixture.h"

static const fr_model_spec defaults = {
    .trunk = {.vocab = 151936,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 128000,
              .eps = 1e-6F,
              .rope = {{.neox = true, .mrope_interleaved = true, .sections = {24, 20, 20}, .theta = 500000.0}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 32, .head_dim = 128, .qk_norm = true},
              .ffn = {.width = 22016, .activation = FR_SILU}}};

static const fr_model_spec defaults_of_mixtures = {
    .trunk = {.vocab = 151936,
              .hidden = 2048,
              .layers = 24,
              .context_limit = 128000,
              .eps = 1e-6F,
              .rope = {{.neox = true, .mrope_interleaved = true, .sections = {24, 20, 20}, .theta = 500000.0}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 16, .qk_norm = true},
              .ffn = {.width = 5632, .activation = FR_SILU},
              .experts = {.count = 60,
                          .top_k = 4,
                          .width = 1408,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.normalizes = true}};

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Counts the text model's layers that add a row of the picture to their output. config.json lists the layers of the
 * vision tower from which these rows are made. */
static fr_status read_deepstack(const fr_source *source, fr_model_spec *s) {
    const json_t *layers, *vision = json_object_get(source->root, "vision_config");
    layers = json_object_get(vision, "deepstack_visual_indexes");
    if (source->gguf || !vision) return FR_OK;
    s->trunk.deepstack = layers ? json_array_size(layers) : 3;
    if (s->trunk.deepstack <= s->trunk.layers) return FR_OK;
    return fr_fail(FR_INPUT, "%s: deepstack_visual_indexes has %zu layers, the text model only %zu", source->where,
                   s->trunk.deepstack, s->trunk.layers);
}

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    {0}};
static const fr_config_row sections[] = {
    FR_PART(fr_sections_part), FR_SIZE(trunk.deepstack, NULL, ".n_deepstack_layers", 0, 16), {0}};

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_read_image_token(source, s));
    FR_TRY(read_deepstack(source, s));
    return fr_layers_alike(source, s);
}

/* --------------------------------------------------------------------------------------------------------- mixtures */

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (fr_spec_attention(s)->qkv_bias) return fr_fail(FR_INPUT, "%s: GGUF has no name for biases", where);
    return fr_mixture_put_keys(s, where, w);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

/* Returns true if a tensor of the first layer's experts has the dimensions [number of experts, rows, cols]. */
static bool has_shape(const fr_source *source, const char *name, size_t rows, size_t cols) {
    static const char *const prefixes[] = {"model.language_model.", "model."};
    char full[128];
    for (size_t i = 0; i < 2; i++) {
        snprintf(full, sizeof full, "%slayers.0.mlp.experts.%s", prefixes[i], name);
        const fr_tensor *tensor = fr_tensors_find(&source->weights->files->tensors, full);
        if (tensor) return tensor->dims == 3 && tensor->shape[1] == rows && tensor->shape[2] == cols;
    }
    return false;
}

/* Returns true if the files store stacked matrices of experts transposed. Published files do; transformers since
 * version 5 does not. Two tensors are checked, because a square matrix has the same shape in both forms, and at most
 * one of the two tensors is square. */
static bool stores_columns(const fr_source *source, const fr_model_spec *s) {
    size_t width = s->layer.experts.width, hidden = s->trunk.hidden;
    return source->weights && !source->gguf && has_shape(source, "gate_up_proj", hidden, 2 * width) &&
           has_shape(source, "down_proj", width, hidden);
}

static fr_status shape_of_mixtures(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_read_image_token(source, s));
    FR_TRY(read_deepstack(source, s));
    s->layer.experts.turned = stores_columns(source, s);
    return fr_mixture_sparse_layers(source, s);
}

/* Names for folders whose stacked matrices are transposed. GGUF files never have them transposed. The GGUF names are
 * those under which `forerun quantize` writes these tensors, after transposing them. */
static const fr_tensor_name turned[] = {
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "mlp.experts.gate_up_proj", NULL,
             .needs = FR_IF_EXPERTS | FR_IF_TURNED, .layout = FR_LAYOUT_HALVES),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight",
               .needs = FR_IF_EXPERTS | FR_IF_TURNED),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight",
               .needs = FR_IF_EXPERTS | FR_IF_TURNED),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "mlp.experts.down_proj", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS | FR_IF_TURNED, .layout = FR_LAYOUT_HALVES),
    {0},
};

static const char *const tower[] = {"model.visual.*", "visual.*", NULL}; /* src/engine/vision/tower_qwen.c reads these
                                                                          * tensors */

const fr_family fr_family_qwen3_vl = {
    .architectures = (const char *const[]){"Qwen3VLForConditionalGeneration", "qwen3vl", NULL},
    .gguf = "qwen3vl",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .finds_biases = true,
    .picture = "<|image_pad|>",
    .sees = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, sections, fr_head_keys},
    .rope = fr_rope_sections,
    .shape = shape,
    .names =
        &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}, .extras = tower}};

const fr_family fr_family_qwen3_vl_moe = {
    .architectures = (const char *const[]){"Qwen3VLMoeForConditionalGeneration", "qwen3vlmoe", NULL},
    .gguf = "qwen3vlmoe",
    .tokenizer = "gpt2",
    .pre = "qwen2",
    .picture = "<|image_pad|>",
    .sees = true,
    .defaults = &defaults_of_mixtures,
    .rows = {own, fr_size_keys, sections, fr_head_keys, mixtures},
    .rope = fr_rope_sections,
    .shape = shape_of_mixtures,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, turned, fr_mixture_names},
                                       .extras = tower}};
