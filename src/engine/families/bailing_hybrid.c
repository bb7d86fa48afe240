/* Ling 3.0: config.json of BailingMoeV3ForCausalLM (as published) and BailingHybridForCausalLM (as transformers names
 * it), GGUF "bailingmoe3". Source: transformers 5.24, model bailing_hybrid; for the MTP layer and GGUF
 * github.com/ggml-org/llama.cpp, conversion/bailingmoe3.py and src/models/bailingmoe3.cpp. The layers form groups. The
 * last layer of each group has latent attention, whose heads are rotated and have gates. All other layers have Kimi
 * Delta Attention (arXiv:2510.26692), whose decays and gates are each computed by a single product. All layers except
 * the first ones have DeepSeek's mixture. The MTP layer has latent attention and a mixture. */
#include "base/error.h"
#include "src/engine/families/kda_config.h"
#include "src/engine/families/latent_config.h"
#include "src/engine/families/mamba_config.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

#define LATENT_EPS 1e-6F /* eps of the norms of both latents, for which rms_norm_eps is ignored */

static const fr_model_spec defaults = {
    .trunk = {.vocab = 157184,
              .hidden = 2560,
              .layers = 42,
              .context_limit = 262144,
              .eps = 1e-6F,
              .rope = {{.dims = 64, .theta = 6e6}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 32, .latent = 512},
              .mla = {.nope = 128, .value_dim = 128, .eps = LATENT_EPS, .gated = true},
              .deltanet = {.key_dim = 128, .conv_kernel = 4, .by_key = true, .lower_bound = -5},
              .ffn = {.width = 6144, .activation = FR_SILU},
              .experts = {.count = 512,
                          .top_k = 8,
                          .width = 768,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 8,
                          .top_groups = 4,
                          .norm_top_k = true,
                          .routed_scaling = 2.5F}},
    .mixture = {.shared = 1, .leading_dense = 2},
    .mtp_layers = 1};

static const fr_model_spec gguf_defaults = {.trunk = {.rope = {{.theta = 10000}}},
                                            .layer = {.mixer = FR_MIXER_MLA,
                                                      .mla = {.eps = LATENT_EPS, .gated = true},
                                                      .deltanet = {.by_key = true},
                                                      .ffn = {.activation = FR_SILU},
                                                      .experts = {.activation = FR_SILU,
                                                                  .scoring = FR_SCORING_SIGMOID,
                                                                  .score_bias = true,
                                                                  .routed_scaling = 1.0F}},
                                            .mixture = {.shared = 1}};

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Reads the sizes of Kimi Delta Attention. A config.json that transformers has saved has keys that begin with
 * `linear_`, and its head_dim then has another meaning. */
static fr_status delta_from_json(const fr_source *source, fr_deltanet_spec *d) {
    const struct {
        const char *published, *saved;
        int64_t high;
        size_t *size;
    } keys[] = {{"num_attention_heads", "linear_num_heads", 4096, &d->value_heads},
                {"head_dim", "linear_head_dim", 4096, &d->key_dim},
                {"short_conv_kernel_size", "linear_conv_kernel_dim", FR_CONV_KERNEL_MAX, &d->conv_kernel}};
    double bound;
    bool bounded;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t high = keys[i].high;
        size_t *size = keys[i].size;
        FR_TRY(fr_json_size(source->text, keys[i].published, 1, high, (int64_t)*size, source->where, size));
        FR_TRY(fr_json_size(source->text, keys[i].saved, 1, high, (int64_t)*size, source->where, size));
    }
    FR_TRY(fr_json_bool(source->text, "kda_safe_gate", true, source->where, &bounded));
    FR_TRY(fr_json_real(source->text, "kda_lower_bound", -1e6, -1e-6, (double)d->lower_bound, source->where, &bound));
    d->lower_bound = bounded ? (float)bound : 0;
    return FR_OK;
}

static fr_status delta_from_gguf(const fr_gguf *gguf, fr_deltanet_spec *d) {
    double bound;
    bool bounded;
    FR_TRY(fr_gguf_size(gguf, ".ssm.conv_kernel", 1, FR_CONV_KERNEL_MAX, FR_GGUF_REQUIRED, &d->conv_kernel));
    FR_TRY(fr_gguf_size(gguf, ".kda.head_dim", 1, 4096, FR_GGUF_REQUIRED, &d->key_dim));
    FR_TRY(fr_gguf_bool(gguf, ".kda.safe_gate", true, &bounded));
    FR_TRY(fr_gguf_real(gguf, ".kda.gate_lower_bound", -1e6, 0, 0, &bound));
    d->lower_bound = bounded ? (float)bound : 0;
    if (!bounded || bound < 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s.kda.gate_lower_bound: a number below 0 is needed", gguf->path,
                   gguf->architecture);
}

static fr_status read_delta(const fr_source *source, fr_model_spec *s) {
    fr_deltanet_spec *d = &s->layer.deltanet;
    d->value_heads = s->layer.attention.heads;
    FR_TRY(source->gguf ? delta_from_gguf(source->gguf, d) : delta_from_json(source, d));
    d->key_heads = d->value_heads;
    d->value_dim = d->key_dim;
    return FR_OK;
}

static fr_status put_delta(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_deltanet_spec *d;
    (void)mtp_layers;
    FR_TRY(fr_kda_put(s, where, w, &d));
    if (d->lower_bound >= 0) return fr_fail(FR_INPUT, "%s: readers of GGUF need kda_safe_gate true", where);
    fr_gguf_put_bool(w, ".kda.safe_gate", true);
    fr_gguf_put_f32(w, ".kda.gate_lower_bound", d->lower_bound);
    return FR_OK;
}

/* Checks a list of limits for the experts' activations. Such limits aren't supported, so the list must not set any. The
 * key may be null, and each entry of the list may be null or 0, which means that there is no limit. */
static fr_status check_limits(const fr_source *source, const char *key) {
    const json_t *limits = json_object_get(source->text, key), *limit;
    size_t i;
    if (limits && !json_is_null(limits) && !json_is_array(limits))
        return fr_fail(FR_INPUT, "%s: %s is no list", source->where, key);
    json_array_foreach (limits, i, limit)
        if (!json_is_null(limit) && !(json_is_number(limit) && json_number_value(limit) == 0))
            return fr_fail(FR_UNBUILT, "%s: %s with a limit is not built", source->where, key);
    return FR_OK;
}

/* Reads the mixture, and the width of a shared expert. If there is no key for this width, a shared expert is as wide as
 * the other experts. */
static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    size_t width = 0;
    s->mixture.shared_by_count = !source->gguf; /* this family does not have the key shared_expert_intermediate_size */
    FR_TRY(fr_kda_mixture(source, s));
    if (source->gguf) return FR_OK;
    FR_TRY(check_limits(source, "expert_swiglu_limit_list"));
    FR_TRY(check_limits(source, "share_expert_swiglu_limit_list"));
    FR_TRY(fr_json_size(source->text, "moe_shared_expert_intermediate_size", 1, 1 << 22,
                        (int64_t)s->layer.experts.width, source->where, &width));
    s->mixture.shared = s->mixture.shared / s->layer.experts.width * width;
    return FR_OK;
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    FR_TRY(fr_mixture_rows[0].part->put(s, mtp_layers, where, w));
    fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)s->mtp.ffn.width);
    return FR_OK;
}

static const fr_config_part delta = {.read = read_delta, .put = put_delta},
                            mixture = {.read = read_mixture, .put = put_mixture};

static const fr_config_row own[] = {
    FR_ONLY("hidden_act", "silu"),
    FR_ONLY("score_function", "sigmoid"),
    FR_ONLY("topk_method", "noaux_tc"),
    FR_ONLY("gated_attention_proj_granularity_type", "head_wise"),
    FR_WITH("moe_router_enable_expert_bias"),
    FR_WITH("no_kda_lora"),
    FR_WITH("rope_interleave"),
    FR_WITHOUT("use_mla_nope"),
    FR_WITHOUT("mtp_use_kda"),
    FR_WITHOUT("attention_bias"),
    FR_WITHOUT("use_qkv_bias"),
    FR_WITHOUT("use_bias"),
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.context_limit, "model_max_length", NULL, 1, 1 << 24),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    FR_NUMBER(FR_ROW_SIZE, mtp_layers, "num_mtp_layers", NULL, 0, 64),
    FR_MTP("num_nextn_predict_layers"),
    {0}};
static const fr_config_row parts[] = {FR_PART(delta), FR_PART(mixture), FR_PART(fr_mamba_kv_heads_part), {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool attends[FR_LAYERS_MAX], found = true;
    size_t group;
    if (!source->gguf) {
        FR_TRY(fr_json_size(source->text, "layer_group_size", 1, FR_LAYERS_MAX, 6, source->where, &group));
        FR_TRY(fr_source_words(source, "layer_types", "full_attention", "linear_attention", s->trunk.layers, attends,
                               &found));
        for (size_t i = 0; i < s->trunk.layers && !found; i++) attends[i] = (i + 1) % group == 0;
    }
    return fr_kda_layers(source, s, attends, fr_mixture_told_layers);
}

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "word_embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    {0},
};

#define ATTN "attention."
static const fr_tensor_name delta_names[] = {
    FR_KDA_NAMES(ATTN, FR_LOG_OF),
    FR_MATRIX(fr_layer, deltanet.in_a, DELTA_VALUES, HIDDEN, ATTN "f_proj.weight", "ssm_f_a.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.in_z, DELTA_VALUES, HIDDEN, ATTN "g_proj.weight", "ssm_g_a.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.out, HIDDEN, DELTA_VALUES, ATTN "dense.weight", "attn_output.weight", FR_IS_KDA),
    FR_MATRIX(fr_layer, deltanet.out, HIDDEN, DELTA_VALUES, ATTN "o_proj.weight", "attn_output.weight", FR_IS_KDA),
    {0},
};

static const fr_tensor_name router_names[] = {
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "mlp.gate.expert_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    {0},
};

static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "eh_proj.weight", "nextn.eh_proj.weight"),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "enorm.weight", "nextn.enorm.weight"),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "hnorm.weight", "nextn.hnorm.weight"),
    FR_VECTOR(fr_mtp_layer, norm, HIDDEN, "final_layernorm.weight", "layer_output_norm.weight"),
    {0},
};

const fr_family fr_family_bailing_hybrid = {
    .architectures = (const char *const[]){"BailingMoeV3ForCausalLM", "BailingHybridForCausalLM", "bailingmoe3", NULL},
    .gguf = "bailingmoe3",
    .tokenizer = "gpt2",
    .pre = "bailingmoe2",
    .counts_ids = true,
    .defaults = &defaults,
    .gguf_defaults = &gguf_defaults,
    .rows = {own, fr_latent_keys, parts},
    .rope = fr_rope_of_latents,
    .scaling_in_rows = true,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {delta_names, fr_gated_latent_names, router_names, fr_mixture_names},
                                       .mtp = mtp_names}};
