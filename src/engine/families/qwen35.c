/* Qwen3.5, and models of the same architecture (Qwen3.6, and the dense Qwen3.8): config.json of Qwen3_5ForCausalLM and
 * Qwen3_5MoeForCausalLM, and the text part of models with a vision tower (tower_qwen.c); GGUF "qwen35" and "qwen35moe".
 * Source: the published checkpoints and transformers 5.17, models qwen3_5 and qwen3_5_moe. For GGUF, and for how the
 * converter changes tensors: github.com/ggml-org/llama.cpp, conversion/qwen.py. Published files store the weights of
 * norms minus 1. The norm of DeltaNet's output is an exception. */
#include "base/error.h"
#include "src/engine/families/mtp_layer.h"
#include "src/engine/families/deltanet_config.h"
#include "src/engine/families/mixture.h"

static const fr_tensor_name input_names[] = {
    FR_MATRIX(fr_layer, deltanet.in_qkv, DELTA_CHANNELS, HIDDEN, "linear_attn.in_proj_qkv.weight", "attn_qkv.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, deltanet.in_z, DELTA_VALUES, HIDDEN, "linear_attn.in_proj_z.weight", "attn_gate.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, deltanet.in_b, DELTA_HEADS, HIDDEN, "linear_attn.in_proj_b.weight", "ssm_beta.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    FR_MATRIX(fr_layer, deltanet.in_a, DELTA_HEADS, HIDDEN, "linear_attn.in_proj_a.weight", "ssm_alpha.weight",
              .needs = FR_IF_DELTANET, .order = FR_ROWS_TILED),
    {0},
};

static const fr_tensor_naming names = {
    .layer = {fr_attention_names, input_names, fr_deltanet_names, fr_post_norm_names, fr_mixture_names},
    .mtp = fr_qwen_mtp_names,
    .mtp_prefixes = (const char *const[]){"mtp.", "model.mtp.", NULL},
    .norms = FR_LESS_ONE,
    .extras = (const char *const[]){"model.visual.*", "visual.*", NULL}}; /* the vision tower (src/engine/vision) */

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Without a key for it, a folder's tensors tell whether it has an MTP layer, as for llama.cpp's converter. */
static const fr_model_spec defaults = {
    .trunk = {.vocab = 248320,
              .hidden = 4096,
              .layers = 32,
              .context_limit = 32768,
              .eps = 1e-6F,
              .rope = {{.neox = true, .mrope_interleaved = true, .sections = {11, 11, 10}, .partial = 0.25}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 4, .head_dim = 256, .qk_norm = true, .output_gate = true},
              .deltanet = {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .conv_kernel = 4},
              .ffn = {.width = 12288, .activation = FR_SILU}},
    .mtp_layers = 1};

/* The defaults of models with mixtures, in which every layer has a mixture. */
static const fr_model_spec defaults_of_mixtures = {
    .trunk = {.vocab = 248320,
              .hidden = 2048,
              .layers = 40,
              .context_limit = 32768,
              .eps = 1e-6F,
              .rope = {{.neox = true, .mrope_interleaved = true, .sections = {11, 11, 10}, .partial = 0.25}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 2, .head_dim = 256, .qk_norm = true, .output_gate = true},
              .deltanet = {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .conv_kernel = 4},
              .ffn = {.width = 512, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .width = 512,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F,
                          .shared_gated = true}},
    .mixture = {.shared = 1, .shared_width = 512, .normalizes = true},
    .mtp_layers = 1};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    return fr_mixture_put_keys(s, where, w);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};

static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_WITHOUT("attention_bias"),
                                    FR_WITHOUT("mtp_use_dedicated_embeddings"),
                                    FR_WITH("attn_output_gate"),
                                    {0}};
static const fr_config_row sections[] = {FR_PART(fr_sections_part), {0}};
static const fr_config_row others[] = {FR_MTP("mtp_num_hidden_layers"), FR_PART(fr_deltanet_part), {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), {0}};

static fr_status alike_or_mixtures(const fr_source *source, fr_model_spec *s) {
    return s->layer.experts.count ? fr_mixture_behind_leading(source, s) : fr_layers_alike(source, s);
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    FR_TRY(fr_read_image_token(source, s));
    return fr_deltanet_layers(source, s, alike_or_mixtures);
}

const fr_family fr_family_qwen35 = {
    .architectures = (const char *const[]){"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration", "qwen35", NULL},
    .gguf = "qwen35",
    .tokenizer = "gpt2",
    .pre = "qwen35",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, sections, fr_head_keys, others},
    .rope = fr_rope_sections,
    .picture = "<|image_pad|>",
    .sees = true,
    .shape = shape,
    .names = &names};

const fr_family fr_family_qwen35_moe = {
    .architectures =
        (const char *const[]){"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration", "qwen35moe", NULL},
    .gguf = "qwen35moe",
    .tokenizer = "gpt2",
    .pre = "qwen35",
    .defaults = &defaults_of_mixtures,
    .rows = {own, fr_size_keys, sections, fr_head_keys, others, mixtures},
    .rope = fr_rope_sections,
    .picture = "<|image_pad|>",
    .sees = true,
    .shape = shape,
    .names = &names};
