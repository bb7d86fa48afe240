/* Kimi Linear: config.json of KimiLinearForCausalLM, GGUF "kimi-linear". Source: the published checkpoint and
 * transformers 5.24, model kimi_linear; for GGUF github.com/ggml-org/llama.cpp, conversion/kimi_linear.py and
 * src/models/kimi-linear.cpp. Most layers have Kimi Delta Attention (arXiv:2510.26692). The other layers have latent
 * attention whose heads aren't rotated. All layers except the first ones have DeepSeek's mixture. In GGUF, layers of
 * Kimi Delta Attention have 0 key/value heads, and as many heads as the layers with attention. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/kda_config.h"
#include "src/engine/families/latent_config.h"
#include "src/engine/families/mamba_config.h"
#include "src/engine/families/mixture.h"

#define LATENT_EPS 1e-6F /* eps of the norms of both latents, for which rms_norm_eps is ignored */

static const fr_model_spec defaults = {
    .trunk = {.vocab = 163840,
              .hidden = 2304,
              .layers = 27,
              .context_limit = 1048576,
              .eps = 1e-5F,
              .rope = {{.dims = 64, .theta = 10000}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 32, .latent = 512, .no_rope = true},
              .mla = {.nope = 128, .value_dim = 128, .eps = LATENT_EPS},
              .deltanet = {.value_heads = 32, .key_dim = 128, .conv_kernel = 4, .by_key = true},
              .ffn = {.width = 9216, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .width = 1024,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 1,
                          .top_groups = 1,
                          .norm_top_k = true,
                          .routed_scaling = 2.446F}},
    .mixture = {.shared = 1, .leading_dense = 1}};

/* The defaults for keys that a GGUF file lacks. GGUF has no key for normalizing the routers' weights; they are always
 * normalized. */
static const fr_model_spec gguf_defaults = {.trunk = {.rope = {{.theta = 10000}}},
                                            .layer = {.mixer = FR_MIXER_MLA,
                                                      .attention = {.no_rope = true},
                                                      .mla = {.eps = LATENT_EPS},
                                                      .deltanet = {.by_key = true},
                                                      .ffn = {.activation = FR_SILU},
                                                      .experts = {.activation = FR_SILU,
                                                                  .scoring = FR_SCORING_SIGMOID,
                                                                  .score_bias = true,
                                                                  .norm_top_k = true,
                                                                  .routed_scaling = 1.0F}},
                                            .mixture = {.shared = 1}};

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Reads the sizes of Kimi Delta Attention. They are in linear_attn_config, or in separate keys if transformers has
 * saved the file. */
static fr_status read_delta(const fr_source *source, fr_model_spec *s) {
    fr_deltanet_spec *d = &s->layer.deltanet;
    const json_t *parts = json_object_get(source->text, "linear_attn_config");
    const struct {
        const char *json, *nested, *gguf;
        int64_t high;
        size_t *size;
    } keys[] = {
        {"linear_num_heads", "num_heads", NULL, 4096, &d->value_heads},
        {"linear_head_dim", "head_dim", ".kda.head_dim", 4096, &d->key_dim},
        {"linear_conv_kernel_dim", "short_conv_kernel_size", ".ssm.conv_kernel", FR_CONV_KERNEL_MAX, &d->conv_kernel}};
    if (parts && !json_is_null(parts) && !json_is_object(parts))
        return fr_fail(FR_INPUT, "%s: linear_attn_config is no object", source->where);
    d->value_heads = source->gguf ? s->layer.attention.heads : d->value_heads;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (source->gguf && keys[i].gguf)
            FR_TRY(fr_gguf_size(source->gguf, keys[i].gguf, 1, keys[i].high, FR_GGUF_REQUIRED, keys[i].size));
        if (source->gguf) continue;
        FR_TRY(fr_json_size(source->text, keys[i].json, 1, keys[i].high, (int64_t)*keys[i].size, source->where,
                            keys[i].size));
        FR_TRY(
            fr_json_size(parts, keys[i].nested, 1, keys[i].high, (int64_t)*keys[i].size, source->where, keys[i].size));
    }
    d->key_heads = d->value_heads;
    d->value_dim = d->key_dim;
    return FR_OK;
}

static fr_status put_delta(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_deltanet_spec *d;
    (void)mtp_layers;
    return fr_kda_put(s, where, w, &d);
}

/* Writes the keys of a mixture. Refuses models for which GGUF has no keys: routers whose weights are not normalized,
 * groups of experts, and models without mixtures. */
static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    if (!e) return fr_fail(FR_INPUT, "%s: GGUF has no key for a model without mixtures", where);
    if (!e->norm_top_k)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for a mixture whose weights are not normalized", where);
    if (e->groups > 1) return fr_fail(FR_INPUT, "%s: GGUF has no key for groups of experts", where);
    return fr_mixture_rows[0].part->put(s, mtp_layers, where, w);
}

static const fr_config_part delta = {.read = read_delta, .put = put_delta},
                            mixture = {.read = fr_kda_mixture, .put = put_mixture};

/* This table has no row for moe_layer_freq. transformers ignores this key, but the published modeling file reads it. So
 * read_dense checks that its value is 1. */
static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_ONLY("moe_router_activation_func", "sigmoid"),
    FR_WITH("mla_use_nope"),
    FR_WITHOUT("attention_bias"),
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "model_max_length", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", NULL, 1, 1 << 24),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    {0}};
static const fr_config_row parts[] = {FR_PART(delta), FR_PART(mixture), FR_PART(fr_mamba_kv_heads_part), {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

/* Marks the layers in a list of linear_attn_config. The list has the numbers of layers, counted from 1. */
static fr_status mark(const fr_source *source, const json_t *list, size_t layers, bool *marks) {
    const json_t *number;
    size_t i;
    if (!json_is_array(list)) return fr_fail(FR_INPUT, "%s: linear_attn_config has no lists of layers", source->where);
    json_array_foreach (list, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : 0;
        if (layer < 1 || (size_t)layer > layers)
            return fr_fail(FR_INPUT, "%s: linear_attn_config has something that is no number of %zu layers",
                           source->where, layers);
        marks[layer - 1] = true;
    }
    return FR_OK;
}

/* Reads which layers have attention. If config.json has no list, attention is in layer 4, counted from 0, and in every
 * fourth layer after it, as in transformers. */
static fr_status kinds_from_json(const fr_source *source, const fr_model_spec *s, bool *attends) {
    const json_t *lists = json_object_get(source->text, "linear_attn_config");
    const json_t *full = json_object_get(lists, "full_attn_layers"), *kda = json_object_get(lists, "kda_layers");
    bool found, recurs[FR_LAYERS_MAX] = {false};
    size_t layers = s->trunk.layers;
    FR_TRY(fr_source_words(source, "layer_types", "full_attention", "linear_attention", layers, attends, &found));
    if (found) return FR_OK;
    for (size_t i = 0; i < layers; i++) attends[i] = !(full && kda) && i && i % 4 == 0;
    if (!full || !kda) return FR_OK;
    FR_TRY(mark(source, full, layers, attends));
    FR_TRY(mark(source, kda, layers, recurs));
    for (size_t i = 0; i < layers; i++)
        if (attends[i] == recurs[i])
            return fr_fail(FR_INPUT, "%s: linear_attn_config has layer %zu in %s of its lists", source->where, i + 1,
                           recurs[i] ? "both" : "none");
    return FR_OK;
}

/* Reads which layers have no mixture. A list of words has precedence over the number of leading layers. */
static fr_status read_dense(const fr_source *source, fr_model_spec *s, bool *dense) {
    bool found = false;
    int64_t every;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_int(source->text, "moe_layer_freq", 1, 1024, 1, source->where, &every));
    FR_TRY(fr_source_words(source, "mlp_layer_types", "dense", "sparse", s->trunk.layers, dense, &found));
    if (found) s->mixture.leading_dense = 0;
    if (found || every == 1) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: moe_layer_freq %lld is not built (1 is)", source->where, (long long)every);
}

static fr_status make_layers(const fr_source *source, fr_model_spec *s) {
    bool dense[FR_LAYERS_MAX] = {false};
    FR_TRY(read_dense(source, s, dense));
    return fr_mixture_layers(source, s, dense);
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool attends[FR_LAYERS_MAX];
    if (!source->gguf) FR_TRY(kinds_from_json(source, s, attends));
    return fr_kda_layers(source, s, attends, make_layers);
}

/* Heads aren't rotated, even if config.json has keys of rotary positions. */
static fr_status no_rope(const fr_source *source, fr_model_spec *s) {
    fr_rope_spec *rope = &s->trunk.rope[0];
    (void)source;
    rope->sections[0] = rope->dims / 2;
    s->layer.attention.scale = fr_rsqrt(s->layer.mla.nope + rope->dims);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

#define ATTN "self_attn."
static const fr_tensor_name delta_names[] = {
    FR_KDA_NAMES(ATTN, FR_LOG_OF_MINUS),
    FR_MATRIX(fr_layer, deltanet.low_a, DELTA_HEAD, HIDDEN, ATTN "f_a_proj.weight", "ssm_f_a.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.in_a, DELTA_VALUES, DELTA_HEAD, ATTN "f_b_proj.weight", "ssm_f_b.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.low_z, DELTA_HEAD, HIDDEN, ATTN "g_a_proj.weight", "ssm_g_a.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.in_z, DELTA_VALUES, DELTA_HEAD, ATTN "g_b_proj.weight", "ssm_g_b.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.out, HIDDEN, DELTA_VALUES, ATTN "o_proj.weight", "attn_output.weight", FR_IS_KDA),
    {0},
};

/* transformers saves the feed-forward of dense layers with the name of mixtures. Published files have it below mlp. */
#define SPARSE "block_sparse_moe."
#define SHARED SPARSE "shared_experts."
static const fr_tensor_name shared_names[] = {
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, SPARSE "gate_proj.weight", "ffn_gate.weight",
              .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, SPARSE "up_proj.weight", "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, SPARSE "down_proj.weight", "ffn_down.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight", .needs = FR_IF_DENSE),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, SPARSE "gate.e_score_correction_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, SHARED "gate_proj.weight", "ffn_gate_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, SHARED "up_proj.weight", "ffn_up_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, SHARED "down_proj.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    {0},
};

const fr_family fr_family_kimi_linear = {
    .architectures = (const char *const[]){"KimiLinearForCausalLM", "kimi-linear", NULL},
    .gguf = "kimi-linear",
    .tokenizer = "gpt2",
    .pre = "kimi-k2",
    .counts_ids = true,
    .defaults = &defaults,
    .gguf_defaults = &gguf_defaults,
    .rows = {own, fr_latent_keys, parts},
    .rope = no_rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){
        .layer = {fr_latent_names, delta_names, shared_names, fr_block_sparse_names, fr_mixture_names}}};
