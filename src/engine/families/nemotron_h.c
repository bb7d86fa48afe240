/* Nemotron-H, Nemotron Nano 2 and Nemotron 3: config.json of NemotronHForCausalLM, GGUF "nemotron_h", or
 * "nemotron_h_moe" for models with mixtures. Source: the published checkpoints and transformers 5.24, model nemotron_h;
 * for GGUF github.com/ggml-org/llama.cpp, conversion/nemotron.py and src/models/nemotron-h.cpp. A layer is a norm and
 * one part after it. The part is Mamba-2, attention without rotary positions, a feed-forward without a gate, or a
 * mixture of such feed-forwards. In config.json, a letter or a word for each layer names the part. In GGUF, the part
 * follows from the layer's number of key/value heads and from the width of its feed-forward.
 *
 * As in transformers, time steps have a lower limit. GGUF has no key for it. All published models have the same limit,
 * so this limit is used for GGUF. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mamba_config.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

#define STEP_MIN 0.001F

static const char ffn_key[] = ".feed_forward_length";

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 131072, .hidden = 4096, .layers = 4, .context_limit = 4096, .eps = 1e-5F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32, .kv_heads = 8, .head_dim = 128, .no_rope = true},
              .mamba = {.groups = 8,
                        .heads = 128,
                        .state_dim = 128,
                        .head_dim = 64,
                        .conv_kernel = 4,
                        .conv_bias = true,
                        .step_min = STEP_MIN,
                        .step_max = INFINITY},
              .ffn = {.width = 21504, .activation = FR_RELU2},
              .experts = {.count = 8,
                          .top_k = 2,
                          .width = 7688,
                          .activation = FR_RELU2,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 1,
                          .top_groups = 1,
                          .norm_top_k = true,
                          .routed_scaling = 1.0F,
                          .ungated = true}}};

/* ------------------------------------------------------------------------------------------------------------ kinds */

typedef enum kind { MAMBA, ATTENTION, FEED_FORWARD, MIXTURE, KINDS, UNKNOWN = KINDS } kind;

/* The letter and the words by which config.json names each kind of layer. The word that transformers 5 writes comes
 * before the word of earlier versions. */
static const struct {
    char letter;
    const char *words[2];
} spellings[KINDS] = {[MAMBA] = {'M', {"linear_attention", "mamba"}},
                      [ATTENTION] = {'*', {"full_attention", "attention"}},
                      [FEED_FORWARD] = {'-', {"mlp", "mlp"}},
                      [MIXTURE] = {'E', {"moe", "moe"}}};

static kind kind_of(char letter, const char *word) {
    kind k = MAMBA;
    while (k < KINDS && (word ? strcmp(word, spellings[k].words[0]) != 0 && strcmp(word, spellings[k].words[1]) != 0
                              : letter != spellings[k].letter))
        k++;
    return k;
}

/* Gives the list of the layers' kinds, which is an array of words or a text of letters. If there are both, the array is
 * used, as in transformers. */
static const json_t *list_of(const fr_source *source, const char **key) {
    static const char *const keys[] = {"layers_block_type", "layer_types", "hybrid_override_pattern"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *list = json_object_get(source->text, *key = keys[i]);
        if (list && !json_is_null(list)) return list;
    }
    return NULL;
}

/* Reads a list of kinds, which is an array of words or a text of letters. Stores the kinds in `kinds` and their number,
 * at most FR_LAYERS_MAX, in *count. */
static fr_status read_kinds(const fr_source *source, const char *key, const json_t *list, kind *kinds, size_t *count) {
    const char *letters = json_string_value(list);
    *count = letters ? strlen(letters) : json_array_size(list);
    if (*count < 1 || *count > FR_LAYERS_MAX)
        return fr_fail(FR_INPUT, "%s: %s is no list of 1 to %d layers", source->where, key, FR_LAYERS_MAX);
    for (size_t i = 0; i < *count; i++) {
        const char *word = letters ? NULL : json_string_value(json_array_get(list, i));
        kinds[i] = letters || word ? kind_of(letters ? letters[i] : 0, word) : UNKNOWN;
        if (kinds[i] != UNKNOWN) continue;
        if (letters)
            return fr_fail(FR_UNBUILT, "%s: %s has '%.1s' for layer %zu, expected M, *, - or E", source->where, key,
                           letters + i, i);
        return fr_fail(FR_UNBUILT, "%s: %s has \"%.40s\" for layer %zu, expected mamba, attention, mlp or moe",
                       source->where, key, word ? word : "", i);
    }
    return FR_OK;
}

static fr_status kinds_from_json(const fr_source *source, kind *kinds, size_t *count) {
    static const kind usual[] = {MAMBA, MIXTURE, ATTENTION, FEED_FORWARD};
    const char *key;
    const json_t *list = list_of(source, &key);
    if (list) return read_kinds(source, key, list, kinds, count);
    memcpy(kinds, usual, sizeof usual);
    *count = sizeof usual / sizeof *usual;
    return FR_OK;
}

/* Reads the number of MTP layers. It is 1 if the file has one MTP layer that is attention and then a mixture. In all
 * other cases it is 0, because MTP layers of other forms are ignored. (transformers ignores all MTP layers.) As in
 * transformers, the key with letters is read only if the key with words is missing or has the usual words. */
static fr_status read_mtp(const fr_source *source, fr_model_spec *s) {
    static const char *const keys[] = {"mtp_layers_block_type", "mtp_hybrid_override_pattern"};
    kind kinds[FR_LAYERS_MAX] = {ATTENTION, MIXTURE};
    size_t count = 2, layers;
    if (source->gguf) return fr_config_gguf_mtp(source->gguf, &s->trunk.layers, &s->mtp_layers);
    FR_TRY(fr_json_size(source->text, "num_nextn_predict_layers", 0, 64, 0, source->where, &layers));
    for (size_t i = 0; i < 2 && layers && count == 2 && kinds[0] == ATTENTION && kinds[1] == MIXTURE; i++) {
        const json_t *list = json_object_get(source->text, keys[i]);
        if (list && !json_is_null(list)) FR_TRY(read_kinds(source, keys[i], list, kinds, &count));
    }
    s->mtp_layers = layers == 1 && count == 2 && kinds[0] == ATTENTION && kinds[1] == MIXTURE;
    return FR_OK;
}

/* Reads the kinds of layers from GGUF. If a layer has a width of a feed-forward, it is a feed-forward, or in files with
 * experts a mixture. If a layer has key/value heads, it is attention. All other layers are Mamba-2. */
static fr_status kinds_from_gguf(const fr_source *source, const fr_model_spec *s, kind *kinds) {
    int64_t heads[FR_LAYERS_MAX], widths[FR_LAYERS_MAX];
    size_t layers = s->trunk.layers + s->mtp_layers;
    bool mixtures = fr_gguf_find(source->gguf, ".expert_count") != NULL;
    FR_TRY(fr_mamba_gguf_kv_heads(source, layers, heads));
    FR_TRY(fr_gguf_ints(source->gguf, ffn_key, 0, 1 << 22, FR_GGUF_REQUIRED, layers, widths));
    for (size_t i = 0; i < layers; i++)
        kinds[i] = widths[i] ? mixtures ? MIXTURE : FEED_FORWARD : heads[i] ? ATTENTION : MAMBA;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- keys */

static fr_status read_layers(const fr_source *source, fr_model_spec *s) {
    kind kinds[FR_LAYERS_MAX];
    if (source->gguf)
        return fr_gguf_size(source->gguf, ".block_count", 1, FR_LAYERS_MAX, FR_GGUF_REQUIRED, &s->trunk.layers);
    return kinds_from_json(source, kinds, &s->trunk.layers);
}

static fr_status put_layers(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)where;
    fr_gguf_put_u32(w, ".block_count", (uint32_t)(s->layers + mtp_layers));
    fr_gguf_put_array(w, ffn_key, FR_GGUF_I32, s->layers + mtp_layers);
    for (size_t i = 0; i < s->layers + mtp_layers; i++) {
        const fr_layer_spec *layer = fr_spec_layer(s, i);
        fr_gguf_add_u32(w, (uint32_t)(layer->experts.count ? layer->experts.width : layer->ffn.width));
    }
    return FR_OK;
}

/* Reads Mamba-2's keys, some of which have another spelling in older files. */
static fr_status read_mamba(const fr_source *source, fr_model_spec *s) {
    fr_mamba_spec *m = &s->layer.mamba;
    const json_t *text = source->text;
    const char *where = source->where;
    double least;
    if (source->gguf) return fr_mamba_check(source, s, true);
    FR_TRY(fr_json_size(text, fr_json_spelling(text, "mamba_n_groups", "n_groups"), 1, 4096, (int64_t)m->groups, where,
                        &m->groups));
    FR_TRY(fr_json_size(text, fr_json_spelling(text, "mamba_d_conv", "conv_kernel"), 1, FR_CONV_KERNEL_MAX,
                        (int64_t)m->conv_kernel, where, &m->conv_kernel));
    FR_TRY(fr_json_bool(text, fr_json_spelling(text, "mamba_conv_bias", "use_conv_bias"), m->conv_bias, where,
                        &m->conv_bias));
    FR_TRY(fr_json_real(text, fr_json_spelling(text, "mamba_dt_min", "time_step_min"), 0, 1e6, (double)m->step_min,
                        where, &least));
    m->step_min = (float)least;
    FR_TRY(fr_mamba_head_dim(source, "mamba_head_dim", 0, s));
    return fr_mamba_check(source, s, true);
}

static fr_status put_mamba(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    if (fr_spec_layer(s, s->layers)->mamba.step_min == STEP_MIN) return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no key for its time_step_min", where);
}

/* Reads the width of heads, which has another name in older files. */
static fr_status read_head_dim(const fr_source *source, fr_model_spec *s) {
    size_t *head_dim = &s->layer.attention.head_dim;
    if (source->gguf) return FR_OK;
    return fr_json_size(source->text, fr_json_spelling(source->text, "head_dim", "attention_head_dim"), 2, 4096,
                        (int64_t)*head_dim, source->where, head_dim);
}

/* Reads the mixture. A GGUF file of a model without experts has none of a mixture's keys. */
static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    fr_experts_spec *e = &s->layer.experts;
    size_t *shared = &s->mixture.shared;
    if (source->gguf && !fr_gguf_find(source->gguf, ".expert_count")) {
        *e = (fr_experts_spec){0};
        return FR_OK;
    }
    s->mixture.shared = 1;
    FR_TRY(fr_mixture_read(source, s));
    if (source->gguf) {
        FR_TRY(fr_gguf_size(source->gguf, ".expert_shared_feed_forward_length", 0, 1 << 22, 0, shared));
        return fr_gguf_size(source->gguf, ".moe_latent_size", 0, 1 << 17, 0, &e->latent);
    }
    FR_TRY(fr_json_size(source->text, "moe_shared_expert_intermediate_size", 1, 1 << 22, 7688, source->where, shared));
    return fr_json_size(source->text, "moe_latent_size", 1, 1 << 17, 0, source->where, &e->latent);
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    size_t shared = 0;
    (void)mtp_layers;
    if (!e) return FR_OK;
    for (size_t i = 0; i < s->layers; i++) {
        if (!s->layer[i].experts.count && s->layer[i].ffn.width)
            return fr_fail(FR_INPUT, "%s: GGUF has no key for feed-forwards beside mixtures", where);
        if (s->layer[i].experts.count) shared = s->layer[i].ffn.width;
    }
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)e->width);
    fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)shared);
    fr_gguf_put_u32(w, ".expert_shared_count", 1);
    fr_gguf_put_bool(w, ".expert_weights_norm", e->norm_top_k);
    fr_gguf_put_f32(w, ".expert_weights_scale", e->routed_scaling);
    fr_gguf_put_u32(w, ".expert_group_count", (uint32_t)e->groups);
    fr_gguf_put_u32(w, ".expert_group_used_count", (uint32_t)e->top_groups);
    if (e->latent) fr_gguf_put_u32(w, ".moe_latent_size", (uint32_t)e->latent);
    return FR_OK;
}

static const fr_config_part layers = {.read = read_layers, .put = put_layers},
                            mamba = {.read = read_mamba, .put = put_mamba}, head_dim = {.read = read_head_dim},
                            mixture = {.read = read_mixture, .put = put_mixture},
                            mtp = {.read = read_mtp, .put = fr_mtp_put};

static const fr_config_row sizes[] = {
    FR_ONLY("mlp_hidden_act", "relu2"),
    FR_ONLY("mamba_hidden_act", "silu"),
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_PART(layers),
    FR_PART(mtp),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", NULL, 1, 1 << 22),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    FR_REAL(trunk.eps, "layer_norm_epsilon", ".attention.layer_norm_epsilon", 0, 1, .required = true),
    FR_REAL(trunk.eps, NULL, ".attention.layer_norm_rms_epsilon", 0, 1),
    FR_SIZE(layer.attention.head_dim, NULL, ".attention.key_length", 2, 4096, .per_head = true),
    FR_PART(head_dim),
    FR_SAME(layer.attention.head_dim, ".attention.value_length"),
    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
    {0}};

static const fr_config_row states[] = {
    FR_MAMBA_ROWS("mamba_num_heads", "n_groups", "ssm_state_size", "conv_kernel", "use_conv_bias", "use_bias"),
    FR_PART(fr_mamba_part),
    FR_PART(mamba),
    FR_PART(mixture),
    FR_PART(fr_mamba_kv_heads_part),
    {0}};

/* ----------------------------------------------------------------------------------------------------------- layers */

/* Reads the width of feed-forwards from GGUF. All feed-forwards have the same width. */
static fr_status read_width(const fr_source *source, fr_model_spec *s) {
    int64_t widths[FR_LAYERS_MAX];
    FR_TRY(fr_gguf_ints(source->gguf, ffn_key, 0, 1 << 22, FR_GGUF_REQUIRED, s->trunk.layers + s->mtp_layers, widths));
    s->layer.ffn.width = 0;
    for (size_t i = 0; i < s->trunk.layers; i++) {
        size_t width = (size_t)widths[i];
        if (width && s->layer.ffn.width && width != s->layer.ffn.width)
            return fr_fail(FR_UNBUILT, "%s: key %s%s: layers of other widths are not built", source->where,
                           source->gguf->architecture, ffn_key);
        if (width) s->layer.ffn.width = width;
    }
    s->trunk.ffn_width = s->layer.ffn.width;
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    static const fr_mixer mixers[] = {[MAMBA] = FR_MIXER_MAMBA,
                                      [ATTENTION] = FR_MIXER_ATTENTION,
                                      [FEED_FORWARD] = FR_MIXER_NONE,
                                      [MIXTURE] = FR_MIXER_NONE};
    kind kinds[FR_LAYERS_MAX];
    size_t count = s->trunk.layers, mixing = 0;
    FR_TRY(source->gguf ? kinds_from_gguf(source, s, kinds) : kinds_from_json(source, kinds, &count));
    if (source->gguf) FR_TRY(read_width(source, s));
    if (source->gguf) s->layer.ffn.biased = fr_source_layer_has(source, s, "ffn_up.bias");
    const fr_experts_spec experts = s->layer.experts;
    if (experts.count) FR_TRY(fr_mixture_check(s, source->where));
    s->layer.experts = (fr_experts_spec){0};
    FR_TRY(fr_layers_alike(source, s));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_layer_spec *layer = &s->trunk.layer[i];
        fr_mamba_set_mixer(layer, mixers[kinds[i]]);
        mixing += layer->mixer != FR_MIXER_NONE;
        if (kinds[i] != FEED_FORWARD) layer->ffn.width = kinds[i] == MIXTURE ? s->mixture.shared : 0;
        if (kinds[i] == MIXTURE) layer->experts = experts;
    }
    if (!experts.count) s->mtp_layers = 0;
    s->trunk.mtp.experts = experts;
    s->trunk.mtp.ffn.width = s->mixture.shared;
    if (mixing) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: no layer has Mamba-2 or attention: such a model is not built", source->where);
}

static fr_status no_rope(const fr_source *source, fr_model_spec *s) {
    (void)source;
    s->trunk.rope[0].dims = s->layer.attention.head_dim / 2 * 2;
    s->trunk.rope[0].sections[0] = s->trunk.rope[0].dims / 2;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embeddings.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embeddings.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm_f.weight", "output_norm.weight"),
    {0},
};

/* The tensors in the files decide whether attention has biases. transformers never makes biases here, even if
 * config.json asks for them. */
#define ATTENDS .needs = FR_IF_ATTENTION
#define ATTENTION_NAMES(below)                                                                                         \
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, QUERIES, HIDDEN, NULL, "attn_qkv.weight", ATTENDS),                   \
        FR_MATRIX(fr_layer, attention.q, QUERIES, HIDDEN, below "mixer.q_proj.weight", "attn_q.weight", ATTENDS),      \
        FR_MATRIX(fr_layer, attention.k, KEYS, HIDDEN, below "mixer.k_proj.weight", "attn_k.weight", ATTENDS),         \
        FR_MATRIX(fr_layer, attention.v, KEYS, HIDDEN, below "mixer.v_proj.weight", "attn_v.weight", ATTENDS),         \
        FR_MATRIX(fr_layer, attention.o, HIDDEN, QUERIES, below "mixer.o_proj.weight", "attn_output.weight", ATTENDS), \
        FR_VECTOR(fr_layer, attention.q_bias, QUERIES, below "mixer.q_proj.bias", "attn_q.bias",                       \
                  .needs = FR_IF_ATTENTION | FR_IF_THERE),                                                             \
        FR_VECTOR(fr_layer, attention.k_bias, KEYS, below "mixer.k_proj.bias", "attn_k.bias",                          \
                  .needs = FR_IF_ATTENTION | FR_IF_THERE),                                                             \
        FR_VECTOR(fr_layer, attention.v_bias, KEYS, below "mixer.v_proj.bias", "attn_v.bias",                          \
                  .needs = FR_IF_ATTENTION | FR_IF_THERE),                                                             \
        FR_VECTOR(fr_layer, attention.o_bias, HIDDEN, below "mixer.o_proj.bias", "attn_output.bias",                   \
                  .needs = FR_IF_ATTENTION | FR_IF_THERE)

static const fr_tensor_name attention_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "norm.weight", "attn_norm.weight", .needs = FR_IF_INPUT_NORM),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "norm.weight", "attn_norm.weight", .needs = FR_IF_FFN_NORM),
    ATTENTION_NAMES(""),
    {0},
};

/* Experts have no gate, so `up` takes the gate's place. In published files, each matrix of each expert is a separate
 * tensor. In files that transformers has saved since version 5, one tensor has the matrices of all experts. */
#define SHARED "mixer.shared_experts."
#define FEED_NAMES(below)                                                                                        \
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, below "mixer.up_proj.weight", "ffn_up.weight",              \
              .needs = FR_IF_DENSE),                                                                             \
        FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, below "mixer.down_proj.weight", "ffn_down.weight",            \
                  .needs = FR_IF_DENSE),                                                                         \
        FR_VECTOR(fr_layer, ffn.gate_bias, FFN, below "mixer.up_proj.bias", "ffn_up.bias",                       \
                  .needs = FR_IF_DENSE | FR_IF_FFN_BIASED),                                                      \
        FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, below "mixer.down_proj.bias", "ffn_down.bias",                \
                  .needs = FR_IF_DENSE | FR_IF_FFN_BIASED),                                                      \
        FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, below "mixer.gate.weight", "ffn_gate_inp.weight",   \
                  .needs = FR_IF_EXPERTS),                                                                       \
        FR_VECTOR(fr_layer, experts.router_bias, EXPERTS, below "mixer.gate.e_score_correction_bias",            \
                  "exp_probs_b.bias", .needs = FR_IF_EXPERTS),                                                   \
        FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, LATENT_EXPERTS, below "mixer.experts.up_proj",            \
                   "ffn_up_exps.weight", .needs = FR_IF_EXPERTS),                                                \
        FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, LATENT_EXPERTS, below "mixer.experts.*.up_proj.weight",   \
                   "ffn_up_exps.weight", .needs = FR_IF_EXPERTS),                                                \
        FR_EXPERTS(fr_layer, experts.down, LATENT_EXPERTS, EXPERT_FFN, below "mixer.experts.down_proj",          \
                   "ffn_down_exps.weight", .needs = FR_IF_EXPERTS),                                              \
        FR_EXPERTS(fr_layer, experts.down, LATENT_EXPERTS, EXPERT_FFN, below "mixer.experts.*.down_proj.weight", \
                   "ffn_down_exps.weight", .needs = FR_IF_EXPERTS),                                              \
        FR_MATRIX(fr_layer, experts.latent_in, LATENT_EXPERTS, HIDDEN, below "mixer.fc1_latent_proj.weight",     \
                  "ffn_latent_down.weight", .needs = FR_IF_EXPERTS, .also = FR_ALSO_LATENT),                     \
        FR_MATRIX(fr_layer, experts.latent_out, HIDDEN, LATENT_EXPERTS, below "mixer.fc2_latent_proj.weight",    \
                  "ffn_latent_up.weight", .needs = FR_IF_EXPERTS, .also = FR_ALSO_LATENT),                       \
        FR_VECTOR(fr_layer, experts.latent_in_bias, LATENT_EXPERTS, below "mixer.fc1_latent_proj.bias", NULL,    \
                  .needs = FR_IF_EXPERTS | FR_IF_FFN_BIASED, .also = FR_ALSO_LATENT),                            \
        FR_VECTOR(fr_layer, experts.latent_out_bias, HIDDEN, below "mixer.fc2_latent_proj.bias", NULL,           \
                  .needs = FR_IF_EXPERTS | FR_IF_FFN_BIASED, .also = FR_ALSO_LATENT),                            \
        FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, below SHARED "up_proj.weight", "ffn_up_shexp.weight",   \
                  .needs = FR_IF_SHARED),                                                                        \
        FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, below SHARED "down_proj.weight", "ffn_down_shexp.weight",     \
                  .needs = FR_IF_SHARED),                                                                        \
        FR_VECTOR(fr_layer, ffn.gate_bias, FFN, below SHARED "up_proj.bias", NULL,                               \
                  .needs = FR_IF_SHARED | FR_IF_FFN_BIASED),                                                     \
        FR_VECTOR(fr_layer, ffn.down_bias, HIDDEN, below SHARED "down_proj.bias", NULL,                          \
                  .needs = FR_IF_SHARED | FR_IF_FFN_BIASED)

static const fr_tensor_name feed_names[] = {FEED_NAMES(""), {0}};

/* The MTP layer. Its attention and its mixture are two layers in published files, and one layer in GGUF. */
static const fr_tensor_name mtp_attention_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "layers.0.norm.weight", "attn_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "layers.1.norm.weight", "post_attention_norm.weight"),
    ATTENTION_NAMES("layers.0."),
    {0},
};
static const fr_tensor_name mtp_feed_names[] = {FEED_NAMES("layers.1."), {0}};
static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, "layers.0.eh_proj.weight", "nextn.eh_proj.weight"),
    FR_TABLE(fr_mtp_layer, embedding, VOCAB, HIDDEN, NULL, "nextn.embed_tokens.weight", .needs = FR_IF_THERE),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "layers.0.enorm.weight", "nextn.enorm.weight"),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "layers.0.hnorm.weight", "nextn.hnorm.weight"),
    FR_MATRIX(fr_mtp_layer, head, VOCAB, HIDDEN, NULL, "nextn.shared_head_head.weight", .needs = FR_IF_THERE),
    FR_VECTOR(fr_mtp_layer, norm, HIDDEN, "layers.1.final_layernorm.weight", "nextn.shared_head_norm.weight"),
    {0},
};

static const char *gguf_of(const fr_trunk_spec *spec) {
    return fr_spec_experts(spec) ? "nemotron_h_moe" : "nemotron_h";
}

const fr_family fr_family_nemotron_h = {
    .architectures = (const char *const[]){"NemotronHForCausalLM", "nemotron_h", "nemotron_h_moe", NULL},
    .gguf = "nemotron_h",
    .gguf_of = gguf_of,
    .tokenizer = "gpt2",
    .pre = "pixtral",
    .counts_ids = true,
    .defaults = &defaults,
    .rows = {sizes, states},
    .rope = no_rope,
    .shape = shape,
    .names = &(const fr_tensor_naming){.model = model_names,
                                       .layer = {attention_names, fr_mamba_mixer_names, feed_names},
                                       .mtp = mtp_names,
                                       .mtp_layer = {mtp_attention_names, mtp_feed_names},
                                       .mtp_prefixes = (const char *const[]){"mtp.", NULL},
                                       .mtp_flat = true,
                                       .extras = (const char *const[]){"mtp.*", NULL}}};
