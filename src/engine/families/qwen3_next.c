/* Qwen3-Next: config.json of Qwen3NextForCausalLM, GGUF "qwen3next". Source: the published checkpoints and transformers
 * 5.17, model qwen3_next. For GGUF, and for how the converter changes tensors: github.com/ggml-org/llama.cpp,
 * conversion/qwen.py and src/models/qwen3next.cpp. GGUF has no key for router weights that are not normalized, and no
 * key for layers without a mixture. The layers are like those of Qwen3.5's mixtures, but the inputs of DeltaNet come
 * from two projections, which are stored key head by key head. GGUF divides the first of these projections, except in
 * older files. No key says whether there is an MTP layer. */
#include "base/error.h"
#include "src/engine/families/deltanet_config.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

static const fr_tensor_name input_names[] = {
    FR_NAMED(fr_layer, deltanet.in_qkvz, FR_SLOT_QKVZ, DELTA_QKVZ, HIDDEN, "linear_attn.in_proj_qkvz.weight",
             "ssm_in.weight", .needs = FR_IF_DELTANET | FR_IF_FUSED),
    FR_MATRIX(fr_layer, deltanet.in_qkv, DELTA_CHANNELS, HIDDEN, NULL, "attn_qkv.weight",
              .needs = FR_IF_DELTANET | FR_IF_PARTED),
    FR_MATRIX(fr_layer, deltanet.in_z, DELTA_VALUES, HIDDEN, NULL, "attn_gate.weight",
              .needs = FR_IF_DELTANET | FR_IF_PARTED),
    FR_MATRIX(fr_layer, deltanet.in_ba, DELTA_BA, HIDDEN, "linear_attn.in_proj_ba.weight", "ssm_ba.weight",
              .needs = FR_IF_DELTANET),
    {0},
};

static const fr_tensor_naming names = {
    .layer = {fr_attention_names, input_names, fr_deltanet_names, fr_post_norm_names, fr_mixture_names},
    .mtp = fr_qwen_mtp_names,
    .mtp_prefixes = (const char *const[]){"mtp.", "model.mtp.", NULL},
    .norms = FR_LESS_ONE,
    .untiled = true};

static const fr_model_spec defaults = {
    .trunk = {.vocab = 151936,
              .hidden = 2048,
              .layers = 48,
              .context_limit = 32768,
              .eps = 1e-6F,
              .rope = {{.neox = true, .partial = 0.25}}},
    .layer = {.attention = {.heads = 16, .kv_heads = 2, .head_dim = 256, .qk_norm = true, .output_gate = true},
              .deltanet = {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .conv_kernel = 4},
              .ffn = {.width = 5632, .activation = FR_SILU},
              .experts = {.count = 512,
                          .top_k = 10,
                          .width = 512,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F,
                          .shared_gated = true}},
    .mixture = {.shared = 1, .shared_width = 512},
    .mtp_layers = 1};

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    if (fr_spec_experts(s)->norm_top_k) return fr_mixture_put_keys(s, where, w);
    return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), {0}};
static const fr_config_row others[] = {
    FR_MTP("mtp_num_hidden_layers"), FR_PART(fr_deltanet_part), FR_PART(mixture), {0}};

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    s->layer.deltanet.tiled = false;
    s->layer.deltanet.fused = source->gguf ? fr_source_has(source, "blk.0.ssm_in.weight") : source->weights != NULL;
    return fr_deltanet_layers(source, s, fr_mixture_sparse_layers);
}

const fr_family fr_family_qwen3_next = {.architectures =
                                            (const char *const[]){"Qwen3NextForCausalLM", "qwen3next", NULL},
                                        .gguf = "qwen3next",
                                        .tokenizer = "gpt2",
                                        .pre = "qwen2",
                                        .defaults = &defaults,
                                        .rows = {own, fr_size_keys, fr_head_keys, others},
                                        .rope = fr_rope_one_form,
                                        .shape = shape,
                                        .names = &names};
