/* LFM2 and LFM2.5, dense and mixtures: config.json of Lfm2ForCausalLM and Lfm2MoeForCausalLM, GGUF "lfm2" and
 * "lfm2moe". Source: the published checkpoints and transformers 5.24, models lfm2 and lfm2_moe; for GGUF
 * github.com/ggml-org/llama.cpp, conversion/lfm2.py and src/models/lfm2.cpp. A layer has either attention or a short
 * convolution. In GGUF, layers with a convolution have 0 key/value heads. */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mixture.h"

static const char kv_key[] = ".attention.head_count_kv";

static const fr_model_spec defaults = {.trunk = {.vocab = 65536,
                                                 .hidden = 2560,
                                                 .layers = 32,
                                                 .context_limit = 128000,
                                                 .eps = 1e-5F,
                                                 .rope = {{.neox = true, .theta = 1e6}}},
                                       .layer = {.attention = {.heads = 32, .kv_heads = 8, .qk_norm = true},
                                                 .short_conv = {.conv_kernel = 3},
                                                 .ffn = {.width = 12288, .activation = FR_SILU}}};

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Reads the feed-forward's width from config.json. If config.json says that its number must be adjusted, the width is
 * two thirds of this number, multiplied by a factor and rounded up to a multiple of another number. If the factor is
 * null, the width is two thirds of the number and is not rounded up. If config.json does not ask for this adjustment,
 * the number is the width. */
static fr_status read_width(const fr_source *source, fr_model_spec *s) {
    const json_t *text = source->text;
    const char *where = source->where;
    size_t *width = &s->layer.ffn.width, multiple;
    const json_t *multiplies = json_object_get(text, "block_ffn_dim_multiplier");
    bool adjusts;
    double factor;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_size(text, "block_ff_dim", 1, 1 << 22, (int64_t)*width, where, width));
    FR_TRY(fr_json_bool(text, "block_auto_adjust_ff_dim", true, where, &adjusts));
    FR_TRY(fr_json_real(text, "block_ffn_dim_multiplier", 1e-3, 1e3, 1.0, where, &factor));
    FR_TRY(fr_json_size(text, "block_multiple_of", 1, 1 << 22, 256, where, &multiple));
    if (!adjusts) return FR_OK;
    *width = (size_t)(factor * (double)(2 * *width / 3));
    if (multiplies && json_is_null(multiplies)) return FR_OK;
    *width = (*width + multiple - 1) / multiple * multiple;
    return FR_OK;
}

/* Reads the number of key/value heads. In GGUF it is 0 for layers without attention. */
static fr_status read_kv_heads(const fr_source *source, fr_model_spec *s) {
    int64_t numbers[FR_LAYERS_MAX];
    size_t *most = &s->layer.attention.kv_heads;
    if (!source->gguf)
        return fr_json_size(source->text, "num_key_value_heads", 1, 4096, (int64_t)*most, source->where, most);
    FR_TRY(fr_gguf_ints(source->gguf, kv_key, 0, 4096, FR_GGUF_REQUIRED, s->trunk.layers, numbers));
    for (size_t i = *most = 0; i < s->trunk.layers; i++)
        if (numbers[i]) *most = (size_t)numbers[i];
    if (*most) return FR_OK;
    return fr_fail(FR_INPUT, "%s: key %s%s: no layer has attention", source->where, source->gguf->architecture, kv_key);
}

static fr_status put_kv_heads(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    fr_gguf_put_array(w, kv_key, FR_GGUF_I32, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_u32(w, (uint32_t)s->layer[i].attention.kv_heads);
    return FR_OK;
}

static const fr_config_part width = {.read = read_width}, kv_heads = {.read = read_kv_heads, .put = put_kv_heads};

static const fr_config_row sizes[] = {
    FR_WITHOUT("conv_bias"),
    FR_NONE(".attention.sliding_window"), /* only LFM2.5's audio tokenizer has this key */
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    FR_SIZE(layer.short_conv.conv_kernel, "conv_L_cache", ".shortconv.l_cache", 2, FR_CONV_KERNEL_MAX,
            .required = true),
    FR_PART(kv_heads),
    {0}};

static const fr_config_row widths[] = {FR_PART(width), {0}};
static const fr_config_row eps[] = {FR_REAL(trunk.eps, "norm_eps", NULL, 0, 1), {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

static fr_status kinds_from_json(const fr_source *source, const fr_model_spec *s, bool *attends) {
    const json_t *types = json_object_get(source->text, "layer_types"), *number;
    const json_t *listed = json_object_get(source->text, "full_attn_idxs");
    bool has_types = types && !json_is_null(types), has_list = listed && !json_is_null(listed);
    size_t i;
    if (has_types ? json_array_size(types) != s->trunk.layers : has_list && !json_is_array(listed))
        return fr_fail(FR_INPUT, "%s: %s is no array of layers", source->where,
                       has_types ? "layer_types" : "full_attn_idxs");
    for (i = 0; i < s->trunk.layers; i++) {
        const char *word = has_types ? json_string_value(json_array_get(types, i)) : NULL;
        attends[i] = word ? strcmp(word, "full_attention") == 0 : !has_list;
        if (has_types && !attends[i] && (!word || strcmp(word, "conv") != 0))
            return fr_fail(FR_UNBUILT, "%s: layer_types has \"%.40s\" for layer %zu, expected conv or full_attention",
                           source->where, word ? word : "", i);
    }
    json_array_foreach (has_types || !has_list ? NULL : listed, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : -1;
        if (layer < 0 || (size_t)layer >= s->trunk.layers)
            return fr_fail(FR_INPUT, "%s: full_attn_idxs has something that is no layer's number", source->where);
        attends[layer] = true;
    }
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    int64_t heads[FR_LAYERS_MAX];
    bool attends[FR_LAYERS_MAX];
    if (!source->gguf)
        FR_TRY(kinds_from_json(source, s, attends));
    else
        FR_TRY(fr_gguf_ints(source->gguf, kv_key, 0, 4096, FR_GGUF_REQUIRED, s->trunk.layers, heads));
    FR_TRY(s->layer.experts.count ? fr_mixture_behind_leading(source, s) : fr_layers_alike(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_layer_spec *layer = &s->trunk.layer[i];
        if (source->gguf ? heads[i] != 0 : attends[i]) continue;
        layer->mixer = FR_MIXER_SHORT_CONV;
        layer->attention = (fr_attention_spec){0};
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

/* The names of the tensors outside of the layers. Older files have another name for the final norm. */
static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "embedding_norm.weight", "token_embd_norm.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, NULL, "output_norm.weight"),
    {0},
};

#define ATTENTION .needs = FR_IF_ATTENTION
#define CONV      .needs = FR_IF_SHORT_CONV
static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "operator_norm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "ffn_norm.weight", "ffn_norm.weight"),
    FR_FUSED_QKV(QUERIES, ATTENTION),
    FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight", ATTENTION),
    FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", ATTENTION),
    FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight", ATTENTION),
    FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, "self_attn.out_proj.weight", "attn_output.weight", ATTENTION),
    FR_VECTOR(fr_layer, attention.q_norm, HEAD, "self_attn.q_layernorm.weight", "attn_q_norm.weight", ATTENTION),
    FR_VECTOR(fr_layer, attention.k_norm, HEAD, "self_attn.k_layernorm.weight", "attn_k_norm.weight", ATTENTION),
    FR_NAMED(fr_layer, short_conv.in, FR_SLOT_THIRDS, HIDDEN, HIDDEN, "conv.in_proj.weight", "shortconv.in_proj.weight",
             CONV),
    FR_NAMED(fr_layer, short_conv.conv, FR_SLOT_CONV, HIDDEN, CONV_KERNEL, "conv.conv.weight", "shortconv.conv.weight",
             CONV),
    FR_MATRIX(fr_layer, short_conv.out, HIDDEN, HIDDEN, "conv.out_proj.weight", "shortconv.out_proj.weight", CONV),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, "feed_forward.w1.weight", "ffn_gate.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, "feed_forward.w3.weight", "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, "feed_forward.w2.weight", "ffn_down.weight", .needs = FR_IF_DENSE),
    {0},
};

#define MIXED .needs = FR_IF_EXPERTS
static const fr_tensor_name expert_names[] = {
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, "feed_forward.gate.weight", "ffn_gate_inp.weight", MIXED),
    FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, "feed_forward.expert_bias", "exp_probs_b.bias",
              .needs = FR_IF_CORRECTED),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "feed_forward.experts.gate_up_proj",
             NULL, MIXED),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, "feed_forward.experts.*.w1.weight", "ffn_gate_exps.weight",
               MIXED),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, "feed_forward.experts.*.w3.weight", "ffn_up_exps.weight",
               MIXED),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "feed_forward.experts.down_proj", "ffn_down_exps.weight",
               MIXED),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, "feed_forward.experts.*.w2.weight", "ffn_down_exps.weight",
               MIXED),
    {0},
};

const fr_family fr_family_lfm2 = {.architectures =
                                      (const char *const[]){"Lfm2ForCausalLM", "LFM2ForCausalLM", "lfm2", NULL},
                                  .gguf = "lfm2",
                                  .tokenizer = "gpt2",
                                  .pre = "lfm2",
                                  .counts_ids = true,
                                  .defaults = &defaults,
                                  .rows = {sizes, widths, fr_head_keys, eps},
                                  .rope = fr_rope_whole_heads,
                                  .shape = shape,
                                  .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names}}};

/* --------------------------------------------------------------------------------------------------------- mixtures */

static const fr_model_spec mixtures = {.trunk = {.vocab = 65536,
                                                 .hidden = 2048,
                                                 .layers = 32,
                                                 .context_limit = 128000,
                                                 .eps = 1e-5F,
                                                 .rope = {{.neox = true, .theta = 1e6}}},
                                       .layer = {.attention = {.heads = 32, .kv_heads = 8, .qk_norm = true},
                                                 .short_conv = {.conv_kernel = 3},
                                                 .ffn = {.width = 7168, .activation = FR_SILU},
                                                 .experts = {.count = 32,
                                                             .top_k = 4,
                                                             .width = 1792,
                                                             .activation = FR_SILU,
                                                             .scoring = FR_SCORING_SIGMOID,
                                                             .score_bias = true,
                                                             .norm_top_k = true,
                                                             .norm_added = 1e-6F,
                                                             .routed_scaling = 1}},
                                       .mixture = {.leading_dense = 2}};

static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    size_t *leading = &s->mixture.leading_dense;
    FR_TRY(fr_mixture_read(source, s));
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_size(source->text, "num_dense_layers", 0, FR_LAYERS_MAX, 2, source->where, leading));
    return fr_json_bool(source->text, "use_expert_bias", true, source->where, &s->layer.experts.score_bias);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    size_t leading;
    (void)mtp_layers;
    FR_TRY(fr_mixture_first(s, where, &leading));
    if (!e->score_bias || !e->norm_top_k || e->routed_scaling != 1)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for its routers", where);
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)e->width);
    fr_gguf_put_u32(w, ".leading_dense_block_count", (uint32_t)leading);
    fr_gguf_put_u32(w, ".expert_gating_func", 2);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_mixture};
static const fr_config_row mixture_keys[] = {FR_PART(mixture), {0}};

const fr_family fr_family_lfm2_moe = {
    .architectures = (const char *const[]){"Lfm2MoeForCausalLM", "lfm2moe", NULL},
    .gguf = "lfm2moe",
    .tokenizer = "gpt2",
    .pre = "lfm2",
    .counts_ids = true,
    .defaults = &mixtures,
    .rows = {sizes, fr_head_keys, eps, mixture_keys},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names, .layer = {layer_names, expert_names}}};
