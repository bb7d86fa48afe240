/* The table of kinds of text encoders, and the functions that read their configurations (encoder_kinds.h).
 *
 * Sources: transformers 5.24, models bert, roberta, xlm_roberta, distilbert, mpnet, nomic_bert, gte,
 * jina_embeddings_v3, modernbert and gemma3; the configurations that nomic-embed-text and gte-multilingual publish with
 * code of their own; for GGUF github.com/ggml-org/llama.cpp, conversion/bert.py and src/models. */
#include "src/engine/encoder/encoder_kinds.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/config_keys.h"

enum { WIDTH_MAX = 1 << 20, CONTEXT_MAX = 1 << 24 };

/* ------------------------------------------------------------------------------------------------------ config.json */

/* Reads a size from the first of several keys that exists. keys: the names of the keys, with blanks between them. */
static fr_status read_size(const json_t *c, const char *where, const char *keys, int64_t low, int64_t fallback,
                           size_t *value) {
    char key[64];
    for (const char *at = keys; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        const json_t *member = json_object_get(c, key);
        if (member && !json_is_null(member))
            return fr_json_size(c, key, low, CONTEXT_MAX, FR_JSON_REQUIRED, where, value);
        at += length;
    }
    *value = (size_t)fallback;
    return FR_OK;
}

static fr_status read_real(const json_t *c, const char *where, const char *key, const char *other, double low,
                           double high, double fallback, double *value) {
    const json_t *member = json_object_get(c, key);
    bool there = member && !json_is_null(member);
    return fr_json_real(c, there || !other ? key : other, low, high, fallback, where, value);
}

static fr_status read_eps(const json_t *c, const char *where, const char *key, const char *other, double fallback,
                          fr_encoder_spec *s) {
    double eps;
    FR_TRY(read_real(c, where, key, other, 0, 1, fallback, &eps));
    s->eps = (float)eps;
    return FR_OK;
}

static fr_status read_activation(const json_t *c, const char *where, const char *key, const char *usual,
                                 fr_encoder_activation *activation) {
    static const struct {
        const char *name;
        fr_encoder_activation activation;
    } known[] = {{"gelu", FR_ENCODER_GELU},
                 {"gelu_python", FR_ENCODER_GELU},
                 {"gelu_new", FR_ENCODER_GELU_TANH},
                 {"gelu_fast", FR_ENCODER_GELU_TANH},
                 {"gelu_pytorch_tanh", FR_ENCODER_GELU_TANH},
                 {"gelu_python_tanh", FR_ENCODER_GELU_TANH},
                 {"silu", FR_ENCODER_SILU},
                 {"swish", FR_ENCODER_SILU},
                 {"relu", FR_ENCODER_RELU},
                 {"tanh", FR_ENCODER_TANH},
                 {"linear", FR_ENCODER_IDENTITY}};
    const char *name;
    FR_TRY(fr_json_text(c, key, where, &name));
    if (!name) name = usual;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            *activation = known[i].activation;
            return FR_OK;
        }
    return fr_fail(FR_UNBUILT, "%s: %s \"%.60s\" is not built yet", where, key, name);
}

/* Refuses keys whose value changes the computation. Null, false, 0, and an empty object or list change nothing; every
 * other value does. */
static fr_status refuse_keys(const json_t *c, const char *where, const char *const *keys) {
    for (; *keys; keys++) {
        const json_t *value = json_object_get(c, *keys);
        bool empty = !value || json_is_null(value) || json_is_false(value) ||
                     (json_is_integer(value) && json_integer_value(value) == 0) ||
                     (json_is_object(value) && json_object_size(value) == 0) ||
                     (json_is_array(value) && json_array_size(value) == 0);
        if (!empty) return fr_fail(FR_UNBUILT, "%s: %s with this value is not built yet", where, *keys);
    }
    return FR_OK;
}

/* Keys that change the computation in every kind of encoder. They stand for a decoder, factors of maximal update
 * parametrization, experts, adapters, or other forms of scores and norms. */
static const char *const common[] = {"is_decoder",
                                     "is_causal",
                                     "add_cross_attention",
                                     "is_encoder_decoder",
                                     "pruned_heads",
                                     "lora_adaptations",
                                     "cross_attention_hidden_size",
                                     "tie_encoder_decoder",
                                     "num_memory_tokens",
                                     "use_mup",
                                     "alibi",
                                     "use_alibi",
                                     "use_qk_norm",
                                     "use_rms_norm",
                                     "attn_logit_softcapping",
                                     "logn_attention_scale",
                                     NULL};

static fr_status refuse_common(const json_t *c, const char *where) {
    FR_TRY(refuse_keys(c, where, common));
    return fr_config_only(c, "position_embedding_type", "absolute", where);
}

/* Checks that positions are learned and that the layers are those of transformers. Models that bring code of their own,
 * such as Jina's, may have the same model_type. */
static fr_status check_learned(const json_t *c, const char *where) {
    static const char *const refused[] = {"rope_scaling",   "rope_parameters", "rotary_value",
                                          "sliding_window", "num_experts",     NULL};
    json_t *code;
    FR_TRY(refuse_common(c, where));
    FR_TRY(refuse_keys(c, where, refused));
    FR_TRY(fr_json_object(c, "auto_map", where, &code));
    return json_object_get(code, "AutoModel")
               ? fr_fail(FR_UNBUILT, "%s: auto_map names code of the model's own, which is not built", where)
               : FR_OK;
}

/* Counts the labels of a classifier: the entries of id2label. If there is no id2label, the number is num_labels. */
static fr_status read_labels(const json_t *c, const char *where, fr_encoder_spec *s) {
    const char *name = json_string_value(json_array_get(json_object_get(c, "architectures"), 0));
    size_t length = name ? strlen(name) : 0;
    static const char classifier[] = "ForSequenceClassification";
    json_t *labels;
    if (length < sizeof classifier || strcmp(name + length - (sizeof classifier - 1), classifier) != 0) return FR_OK;
    FR_TRY(fr_json_object(c, "id2label", where, &labels));
    if (labels && json_object_size(labels))
        s->labels = json_object_size(labels);
    else
        FR_TRY(fr_json_size(c, "num_labels", 1, 4096, 2, where, &s->labels));
    if (s->labels > 4096) return fr_fail(FR_INPUT, "%s: a classifier of %zu labels", where, s->labels);
    s->head_activation = FR_ENCODER_TANH;
    s->head_bias = s->label_bias = true;
    return FR_OK;
}

/* Checks the sizes that were read, and computes the sizes that follow from them. */
static fr_status finish(const char *where, fr_encoder_spec *s) {
    if (s->hidden < 1 || s->hidden > WIDTH_MAX || s->ffn < 1 || s->ffn > WIDTH_MAX || s->vocab < 1)
        return fr_fail(FR_INPUT, "%s: a width of %zu, a feed-forward of %zu and %zu tokens", where, s->hidden, s->ffn,
                       s->vocab);
    if (s->layers > FR_ENCODER_LAYERS_MAX)
        return fr_fail(FR_INPUT, "%s: %zu layers, and at most %d are read", where, s->layers, FR_ENCODER_LAYERS_MAX);
    if (s->heads < 1 || s->heads > 4096 || (!s->head_dim && s->hidden % s->heads))
        return fr_fail(FR_INPUT, "%s: a width of %zu is not divided evenly among %zu heads", where, s->hidden,
                       s->heads);
    if (!s->head_dim) s->head_dim = s->hidden / s->heads;
    if (!s->kv_heads) s->kv_heads = s->heads;
    if (s->kv_heads > s->heads || s->heads % s->kv_heads || s->head_dim > 1024)
        return fr_fail(FR_INPUT, "%s: %zu heads of %zu and %zu key/value heads", where, s->heads, s->head_dim,
                       s->kv_heads);
    if (s->rope_dims > s->head_dim || s->rope_dims % 2)
        return fr_fail(FR_INPUT, "%s: %zu values of a head of %zu are rotated", where, s->rope_dims, s->head_dim);
    if (s->positions && s->positions <= s->position_first)
        return fr_fail(FR_INPUT, "%s: %zu positions, and the first token has number %zu", where, s->positions,
                       s->position_first);
    if (s->positions) s->context = s->positions - s->position_first;
    if (s->context < 1 || s->context > CONTEXT_MAX)
        return fr_fail(FR_INPUT, "%s: texts of %zu tokens", where, s->context);
    if (s->scale == 0) s->scale = (float)(1.0 / sqrt((double)s->head_dim));
    if (s->embedding_scale == 0) s->embedding_scale = 1.0F;
    return FR_OK;
}

/* --------------------------------------------------------------------------------- BERT, RoBERTa, MPNet, DistilBERT */

static void set_bert(fr_encoder_spec *s) {
    s->pad = -1;
    s->embedding_norm = s->norm_bias = s->qkv_bias = s->o_bias = s->up_bias = s->down_bias = true;
}

static fr_status read_bert_sizes(const json_t *c, const char *where, int64_t vocab, int64_t positions,
                                 fr_encoder_spec *s) {
    FR_TRY(check_learned(c, where));
    FR_TRY(read_size(c, where, "vocab_size", 1, vocab, &s->vocab));
    FR_TRY(read_size(c, where, "hidden_size", 1, 768, &s->hidden));
    FR_TRY(read_size(c, where, "num_hidden_layers", 0, 12, &s->layers));
    FR_TRY(read_size(c, where, "num_attention_heads", 1, 12, &s->heads));
    FR_TRY(read_size(c, where, "intermediate_size", 1, 3072, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings", 1, positions, &s->positions));
    FR_TRY(read_size(c, where, "head_dim", 1, 0, &s->head_dim));
    FR_TRY(read_eps(c, where, "layer_norm_eps", NULL, 1e-12, s));
    FR_TRY(read_activation(c, where, "hidden_act", "gelu", &s->activation));
    /* The embeddings of ELECTRA and ALBERT have another width than the layers. */
    const json_t *width = json_object_get(c, "embedding_size");
    if (width && json_is_integer(width) && (size_t)json_integer_value(width) != s->hidden)
        return fr_fail(FR_UNBUILT, "%s: embedding_size with this value is not built yet", where);
    return read_labels(c, where, s);
}

static fr_status read_bert(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    (void)weights;
    set_bert(s);
    FR_TRY(read_bert_sizes(c, where, 30522, 512, s));
    return read_size(c, where, "type_vocab_size", 0, 2, &s->types);
}

/* Reads how RoBERTa counts positions. A text's first position is one more than the position of padding tokens, and
 * padding tokens within a text are not counted. */
static fr_status read_roberta(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    int64_t pad;
    (void)weights;
    set_bert(s);
    FR_TRY(read_bert_sizes(c, where, 50265, 512, s));
    FR_TRY(read_size(c, where, "type_vocab_size", 0, 2, &s->types));
    FR_TRY(fr_json_int(c, "pad_token_id", 0, INT32_MAX - 1, 1, where, &pad));
    s->pad = (int32_t)pad;
    s->position_first = (size_t)pad + 1;
    return FR_OK;
}

/* Reads MPNet's sizes. MPNet's code always computes 32 buckets, even if its table of distances is longer or shorter,
 * and always takes token 1 for padding. */
static fr_status read_mpnet(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    (void)weights;
    set_bert(s);
    FR_TRY(read_bert_sizes(c, where, 30527, 512, s));
    FR_TRY(read_size(c, where, "relative_attention_num_buckets", 1, 32, &s->buckets));
    if (s->buckets != 32)
        return fr_fail(FR_UNBUILT, "%s: relative_attention_num_buckets %zu is not built yet: 32 is", where, s->buckets);
    s->pad = 1;
    s->position_first = 2;
    return FR_OK;
}

static fr_status read_distilbert(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    (void)weights;
    set_bert(s);
    FR_TRY(check_learned(c, where));
    FR_TRY(read_size(c, where, "vocab_size", 1, 30522, &s->vocab));
    FR_TRY(read_size(c, where, "dim hidden_size", 1, 768, &s->hidden));
    FR_TRY(read_size(c, where, "n_layers num_hidden_layers", 0, 6, &s->layers));
    FR_TRY(read_size(c, where, "n_heads num_attention_heads", 1, 12, &s->heads));
    FR_TRY(read_size(c, where, "hidden_dim intermediate_size", 1, 3072, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings", 1, 512, &s->positions));
    FR_TRY(read_activation(c, where, "activation", "gelu", &s->activation));
    s->eps = 1e-12F;
    FR_TRY(read_labels(c, where, s));
    s->head_activation = FR_ENCODER_RELU;
    return FR_OK;
}

/* --------------------------------------------------------------------------------------- NomicBERT, GTE, ModernBERT */

/* Reads the base of rotary positions from rope_parameters or from a key of its own. If there is the older rope_scaling,
 * callers refuse it. */
static fr_status read_rope(const json_t *c, const char *where, const char *part, const char *key, double fallback,
                           double *theta, double *factor) {
    json_t *parameters, *inner = NULL;
    const char *type;
    FR_TRY(fr_json_object(c, "rope_parameters", where, &parameters));
    if (part) FR_TRY(fr_json_object(parameters, part, where, &inner));
    const json_t *from = part ? inner : parameters;
    *factor = 1;
    FR_TRY(fr_json_text(from, "rope_type", where, &type));
    if (!type) FR_TRY(fr_json_text(from, "type", where, &type));
    if (type && strcmp(type, "linear") == 0)
        FR_TRY(fr_json_real(from, "factor", 1e-3, 1e6, NAN, where, factor));
    else if (type && strcmp(type, "default") != 0)
        return fr_fail(FR_UNBUILT, "%s: rope_type \"%.60s\" is not built yet for encoders", where, type);
    FR_TRY(fr_json_real(from, "partial_rotary_factor", 1, 1, 1, where, theta));
    const json_t *own = json_object_get(from, "rope_theta");
    if (own && !json_is_null(own)) return fr_json_real(from, "rope_theta", 1e-3, 1e12, NAN, where, theta);
    return fr_json_real(c, key, 1e-3, 1e12, fallback, where, theta);
}

/* Refuses the keys that change what the code published with nomic-embed-text computes. */
static fr_status refuse_nomic(const json_t *c, const char *where) {
    static const char *const refused[] = {"causal",
                                          "prenorm",
                                          "parallel_block",
                                          "rotary_emb_scale_base",
                                          "moe_normalize_expert_weights",
                                          "num_shared_experts",
                                          "expert_choice_router",
                                          "scale_attn_by_inverse_layer_idx",
                                          "rope_scaling",
                                          "shared_mlp",
                                          "rotary_emb_interleaved",
                                          NULL};
    double fraction;
    bool scales;
    FR_TRY(refuse_keys(c, where, refused));
    FR_TRY(fr_json_real(c, "rotary_emb_fraction", 0, 1, 1, where, &fraction));
    FR_TRY(fr_json_bool(c, "scale_attn_weights", true, where, &scales));
    if (fraction != 1.0) return fr_fail(FR_UNBUILT, "%s: rotary_emb_fraction %g is not built yet", where, fraction);
    return scales ? FR_OK : fr_fail(FR_UNBUILT, "%s: scale_attn_weights false is not built yet", where);
}

/* Reads the biases and the mixtures of nomic-embed-text-v2-moe, in which feed-forwards have no gate. */
static fr_status read_nomic_mixtures(const json_t *c, const char *where, fr_encoder_spec *s) {
    static const char *const plain_only[] = {"mlp_fc1_bias", "mlp_fc2_bias", "moe_every_n_layers", "num_experts", NULL};
    if (s->gated) FR_TRY(refuse_keys(c, where, plain_only));
    FR_TRY(fr_json_bool(c, "qkv_proj_bias", false, where, &s->qkv_bias));
    s->o_bias = s->qkv_bias;
    FR_TRY(fr_json_bool(c, "mlp_fc1_bias", false, where, &s->up_bias));
    FR_TRY(fr_json_bool(c, "mlp_fc2_bias", false, where, &s->down_bias));
    FR_TRY(read_size(c, where, "moe_every_n_layers", 0, 0, &s->expert_every));
    if (!s->expert_every) return FR_OK;
    FR_TRY(fr_json_size(c, "num_experts", 1, FR_ENCODER_EXPERTS_MAX, FR_JSON_REQUIRED, where, &s->experts));
    return fr_json_size(c, "moe_top_k", 1, (int64_t)s->experts, 1, where, &s->experts_used);
}

static fr_status read_nomic(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    const char *activation;
    size_t trained;
    (void)weights;
    s->pad = -1;
    s->embedding_norm = s->norm_bias = s->gated = true;
    FR_TRY(refuse_common(c, where));
    FR_TRY(refuse_nomic(c, where));
    FR_TRY(read_size(c, where, "vocab_size", 1, 30528, &s->vocab));
    FR_TRY(read_size(c, where, "hidden_size n_embd", 1, 768, &s->hidden));
    FR_TRY(read_size(c, where, "num_hidden_layers n_layer", 0, 12, &s->layers));
    FR_TRY(read_size(c, where, "num_attention_heads n_head", 1, 12, &s->heads));
    FR_TRY(read_size(c, where, "head_dim", 1, 0, &s->head_dim));
    FR_TRY(read_size(c, where, "intermediate_size n_inner", 1, 3072, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings n_positions", 1, 2048, &s->context));
    FR_TRY(read_size(c, where, "type_vocab_size", 0, 2, &s->types));
    FR_TRY(read_eps(c, where, "layer_norm_eps", "layer_norm_epsilon", 1e-12, s));
    FR_TRY(read_rope(c, where, NULL, json_object_get(c, "rotary_emb_base") ? "rotary_emb_base" : "rope_theta", 1000,
                     &s->theta[0], &s->rope_factor[0]));
    /* If there is a scaling factor, the model's code changes the base of the rotation for texts that are longer than
     * the trained positions. So the context ends at the trained positions. */
    const json_t *scaling = json_object_get(c, "rotary_scaling_factor");
    FR_TRY(read_size(c, where, "max_trained_positions", 1, (int64_t)s->context, &trained));
    if (scaling && !json_is_null(scaling) && trained < s->context) s->context = trained;
    FR_TRY(fr_json_text(c, "activation_function", where, &activation));
    if (activation && strcmp(activation, "swiglu") == 0)
        s->activation = FR_ENCODER_SILU;
    else if (activation && strcmp(activation, "geglu") == 0)
        s->activation = FR_ENCODER_GELU;
    else if (activation && strcmp(activation, "gelu") == 0)
        s->gated = false;
    else if (activation)
        return fr_fail(FR_UNBUILT, "%s: activation_function \"%.60s\" is not built yet", where, activation);
    else
        FR_TRY(read_activation(c, where, "hidden_act", "silu", &s->activation));
    s->rope_dims = s->head_dim ? s->head_dim : s->heads ? s->hidden / s->heads : 0;
    FR_TRY(read_nomic_mixtures(c, where, s));
    return read_labels(c, where, s);
}

/* The values of keys that are missing in the configuration of an encoder with rotated heads. */
typedef struct rotary_defaults {
    int64_t vocab, hidden, layers, heads, ffn, context;
    double eps, theta;
} rotary_defaults;

/* Reads the sizes and the rotary positions of an encoder that rotates all values of each head. */
static fr_status read_rotary_sizes(const json_t *c, const char *where, const rotary_defaults *d, fr_encoder_spec *s) {
    static const char *const refused[] = {"rope_scaling", "num_experts", NULL};
    FR_TRY(refuse_keys(c, where, common));
    FR_TRY(refuse_keys(c, where, refused));
    FR_TRY(read_size(c, where, "vocab_size", 1, d->vocab, &s->vocab));
    FR_TRY(read_size(c, where, "hidden_size", 1, d->hidden, &s->hidden));
    FR_TRY(read_size(c, where, "num_hidden_layers", 0, d->layers, &s->layers));
    FR_TRY(read_size(c, where, "num_attention_heads", 1, d->heads, &s->heads));
    FR_TRY(read_size(c, where, "intermediate_size", 1, d->ffn, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings", 1, d->context, &s->context));
    FR_TRY(read_size(c, where, "type_vocab_size", 0, 1, &s->types));
    FR_TRY(read_eps(c, where, "layer_norm_eps", NULL, d->eps, s));
    FR_TRY(read_activation(c, where, "hidden_act", "gelu", &s->activation));
    FR_TRY(read_rope(c, where, NULL, "rope_theta", d->theta, &s->theta[0], &s->rope_factor[0]));
    s->rope_dims = s->heads ? s->hidden / s->heads : 0;
    return read_labels(c, where, s);
}

/* Reads the configuration of GTE's encoder, or of gte-multilingual, whose model_type is "new" and which brings code of
 * its own. */
static fr_status read_gte(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    static const rotary_defaults gte = {250048, 768, 12, 12, 3072, 8192, 1e-12, 160000};
    (void)weights;
    s->pad = -1;
    s->embedding_norm = s->norm_bias = s->qkv_bias = s->o_bias = s->down_bias = s->gated = true;
    const json_t *type = json_object_get(c, "position_embedding_type");
    if (type && !json_is_null(type)) FR_TRY(fr_config_only(c, "position_embedding_type", "rope", where));
    FR_TRY(fr_config_only(c, "layer_norm_type", "layer_norm", where));
    return read_rotary_sizes(c, where, &gte, s);
}

/* Reads Jina's embeddings v3 in the form of transformers. It has RoBERTa's layers with rotary positions. The adapters
 * of the model's own code are not in this form. */
static fr_status read_jina_v3(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    static const rotary_defaults jina_v3 = {250002, 1024, 24, 16, 4096, 8194, 1e-5, 20000};
    (void)weights;
    set_bert(s);
    return read_rotary_sizes(c, where, &jina_v3, s);
}

/* Reads which layers are local, from a list with a word for each layer. If there is no list, one layer in each `every`
 * is global, beginning with layer number `first`. */
static fr_status read_reaches(const json_t *c, const char *where, size_t every, size_t first, fr_encoder_spec *s) {
    const json_t *list = json_object_get(c, "layer_types");
    if (list && !json_is_null(list) && json_array_size(list) != s->layers)
        return fr_fail(FR_INPUT, "%s: layer_types must have %zu words, one for each layer", where, s->layers);
    for (size_t i = 0; i < s->layers && i < FR_ENCODER_LAYERS_MAX; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        bool local = word ? strcmp(word, "sliding_attention") == 0 : (i + every - first) % every != 0;
        if (word && !local && strcmp(word, "full_attention") != 0)
            return fr_fail(FR_UNBUILT, "%s: layer_types \"%.60s\" is not built yet", where, word);
        if (list && json_is_array(list) && !word)
            return fr_fail(FR_INPUT, "%s: layer_types[%zu] is not a word", where, i);
        s->local[i] = local ? FR_ENCODER_LOCAL : FR_ENCODER_GLOBAL;
    }
    return FR_OK;
}

static fr_status read_modernbert(const json_t *c, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    static const char *const refused[] = {"rope_scaling", "num_experts", NULL};
    size_t local, every;
    const char *pooling;
    bool biased;
    (void)weights;
    s->pad = -1;
    s->embedding_norm = s->pre_norm = s->first_bare = s->gated = true;
    FR_TRY(refuse_common(c, where));
    FR_TRY(refuse_keys(c, where, refused));
    FR_TRY(read_size(c, where, "vocab_size", 1, 50368, &s->vocab));
    FR_TRY(read_size(c, where, "hidden_size", 1, 768, &s->hidden));
    FR_TRY(read_size(c, where, "num_hidden_layers", 0, 22, &s->layers));
    FR_TRY(read_size(c, where, "num_attention_heads", 1, 12, &s->heads));
    FR_TRY(read_size(c, where, "intermediate_size", 1, 1152, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings", 1, 8192, &s->context));
    FR_TRY(read_size(c, where, "local_attention", 0, 128, &local));
    FR_TRY(read_size(c, where, "global_attn_every_n_layers", 1, 3, &every));
    FR_TRY(read_eps(c, where, "norm_eps", NULL, 1e-5, s));
    FR_TRY(read_activation(c, where, "hidden_activation", "gelu", &s->activation));
    FR_TRY(fr_json_bool(c, "norm_bias", false, where, &s->norm_bias));
    FR_TRY(fr_json_bool(c, "attention_bias", false, where, &s->qkv_bias));
    FR_TRY(fr_json_bool(c, "mlp_bias", false, where, &biased));
    if (biased) return fr_fail(FR_UNBUILT, "%s: mlp_bias true is not built yet", where);
    s->o_bias = s->qkv_bias;
    s->reach = local / 2;
    FR_TRY(read_reaches(c, where, every, 0, s));
    FR_TRY(read_rope(c, where, "full_attention", "global_rope_theta", 160000, &s->theta[FR_ENCODER_GLOBAL],
                     &s->rope_factor[FR_ENCODER_GLOBAL]));
    FR_TRY(read_rope(c, where, "sliding_attention", "local_rope_theta", 10000, &s->theta[FR_ENCODER_LOCAL],
                     &s->rope_factor[FR_ENCODER_LOCAL]));
    s->rope_dims = s->heads ? s->hidden / s->heads : 0;
    FR_TRY(read_labels(c, where, s));
    FR_TRY(fr_json_text(c, "classifier_pooling", where, &pooling));
    s->label_mean = pooling && strcmp(pooling, "mean") == 0;
    if (pooling && !s->label_mean && strcmp(pooling, "cls") != 0)
        return fr_fail(FR_UNBUILT, "%s: classifier_pooling \"%.60s\" is not built yet", where, pooling);
    s->head_norm = s->labels > 0;
    FR_TRY(fr_json_bool(c, "classifier_bias", false, where, &s->head_bias));
    return read_activation(c, where, "classifier_activation", "gelu", &s->head_activation);
}

/* Reads EmbeddingGemma's layers. They are Gemma 3's layers, but a row also sees the rows after it. In sliding layers,
 * half of the window is before a row and half after it. */
static fr_status read_gemma(const json_t *root, const char *where, const fr_weights *weights, fr_encoder_spec *s) {
    static const char *const refused[] = {"rope_scaling", "num_experts", "attention_bias", NULL};
    size_t window, every;
    double scalar;
    json_t *text;
    (void)weights;
    FR_TRY(fr_json_object(root, "text_config", where, &text));
    const json_t *c = text ? text : root;
    s->pad = -1;
    s->pre_norm = s->rms = s->branch_norms = s->qk_norm = s->gated = true;
    s->norm_values = FR_LESS_ONE;
    FR_TRY(refuse_keys(c, where, common));
    FR_TRY(refuse_keys(c, where, refused));
    FR_TRY(read_size(c, where, "vocab_size", 1, 262208, &s->vocab));
    FR_TRY(read_size(c, where, "hidden_size", 1, 2304, &s->hidden));
    FR_TRY(read_size(c, where, "num_hidden_layers", 0, 26, &s->layers));
    FR_TRY(read_size(c, where, "num_attention_heads", 1, 8, &s->heads));
    FR_TRY(read_size(c, where, "num_key_value_heads", 1, 4, &s->kv_heads));
    FR_TRY(read_size(c, where, "head_dim", 1, 256, &s->head_dim));
    FR_TRY(read_size(c, where, "intermediate_size", 1, 9216, &s->ffn));
    FR_TRY(read_size(c, where, "max_position_embeddings", 1, 131072, &s->context));
    FR_TRY(read_size(c, where, "sliding_window", 0, 4096, &window));
    FR_TRY(read_size(c, where, "_sliding_window_pattern sliding_window_pattern", 1, 6, &every));
    FR_TRY(read_eps(c, where, "rms_norm_eps", NULL, 1e-6, s));
    FR_TRY(read_activation(c, where, "hidden_activation", "gelu_pytorch_tanh", &s->activation));
    FR_TRY(fr_json_real(c, "query_pre_attn_scalar", 1e-3, 1e6, 256, where, &scalar));
    s->scale = (float)(1.0 / sqrt(scalar));
    s->embedding_scale = (float)sqrt((double)s->hidden);
    s->reach = window / 2;
    FR_TRY(read_reaches(c, where, every, every - 1, s));
    FR_TRY(read_rope(c, where, "full_attention", "rope_theta", 1e6, &s->theta[FR_ENCODER_GLOBAL],
                     &s->rope_factor[FR_ENCODER_GLOBAL]));
    FR_TRY(read_rope(c, where, "sliding_attention", "rope_local_base_freq", 1e4, &s->theta[FR_ENCODER_LOCAL],
                     &s->rope_factor[FR_ENCODER_LOCAL]));
    s->rope_dims = s->head_dim;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static bool gguf_has(const fr_weights *weights, const char *name) {
    return fr_weights_has(weights, "", name);
}

/* Refuses keys of llama.cpp that would change the computation. Also refuses a rotation of only a part of a head. */
static fr_status refuse_gguf(const fr_gguf *g, const fr_encoder_spec *s) {
    static const struct {
        const char *key;
        double built; /* the only value that is supported; a missing key means this value too */
    } keys[] = {{".expert_count", 0},           {".attention.max_alibi_bias", 0}, {".attention.clamp_kqv", 0},
                {".attn_logit_softcapping", 0}, {".embedding_scale", 0},          {".residual_scale", 0},
                {".attention.scale", 0},        {".rope.scaling.factor", 1}};
    double value;
    size_t size, head = s->head_dim ? s->head_dim : s->hidden / s->heads;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double built = s->alibi && strcmp(keys[i].key, ".attention.max_alibi_bias") == 0 ? 8 : keys[i].built;
        if (strcmp(keys[i].key, ".expert_count") == 0) built = (double)s->experts;
        FR_TRY(fr_gguf_real(g, keys[i].key, -1e9, 1e9, built, &value));
        if (value != built)
            return fr_fail(FR_UNBUILT, "%s: %s %g is not built for encoders", g->path, keys[i].key + 1, value);
    }
    static const char *const sizes[] = {".attention.value_length", ".rope.dimension_count"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        FR_TRY(fr_gguf_size(g, sizes[i], 0, WIDTH_MAX, (int64_t)head, &size));
        if (size != head)
            return fr_fail(FR_UNBUILT, "%s: %s %zu is not built for heads of %zu", g->path, sizes[i] + 1, size, head);
    }
    fr_text scaling;
    FR_TRY(fr_gguf_text(g, ".rope.scaling.type", &scaling));
    if (scaling.bytes && !(scaling.length == 4 && memcmp(scaling.bytes, "none", 4) == 0))
        return fr_fail(FR_UNBUILT, "%s: rope.scaling.type is not built for encoders", g->path);
    return FR_OK;
}

/* Reads the sizes that all kinds have. Which parts the layers have is read from the tensors of the first layer. */
static fr_status read_gguf(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    int64_t causal;
    double eps;
    s->pad = -1;
    FR_TRY(fr_gguf_int(g, ".attention.causal", 0, 1, 0, &causal));
    if (causal) return fr_fail(FR_UNBUILT, "%s: attention.causal true is not built for encoders", g->path);
    FR_TRY(fr_gguf_size(g, ".embedding_length", 1, WIDTH_MAX, FR_GGUF_REQUIRED, &s->hidden));
    FR_TRY(fr_gguf_size(g, ".block_count", 0, FR_ENCODER_LAYERS_MAX, FR_GGUF_REQUIRED, &s->layers));
    FR_TRY(fr_gguf_size(g, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &s->heads));
    FR_TRY(fr_gguf_size(g, ".attention.head_count_kv", 1, 4096, (int64_t)s->heads, &s->kv_heads));
    FR_TRY(fr_gguf_size(g, ".attention.key_length", 0, 1024, 0, &s->head_dim));
    FR_TRY(fr_gguf_size(g, ".feed_forward_length", 1, WIDTH_MAX, FR_GGUF_REQUIRED, &s->ffn));
    FR_TRY(fr_gguf_size(g, ".context_length", 1, CONTEXT_MAX, FR_GGUF_REQUIRED, &s->context));
    FR_TRY(fr_gguf_real(g, s->rms ? ".attention.layer_norm_rms_epsilon" : ".attention.layer_norm_epsilon", 0, 1, NAN,
                        &eps));
    FR_TRY(refuse_gguf(g, s));
    FR_TRY(fr_config_vocabulary(w->files, s->hidden, &s->vocab));
    s->eps = (float)eps;
    s->embedding_norm = gguf_has(w, "token_embd_norm.weight");
    s->norm_bias = gguf_has(w, "token_embd_norm.bias");
    s->qkv_bias = gguf_has(w, "blk.0.attn_q.bias") || gguf_has(w, "blk.0.attn_qkv.bias");
    s->o_bias = gguf_has(w, "blk.0.attn_output.bias");
    s->up_bias = gguf_has(w, "blk.0.ffn_up.bias");
    s->down_bias = gguf_has(w, "blk.0.ffn_down.bias");
    return FR_OK;
}

/* Reads the sizes of two tables, for token types and for positions, and the size of the classifier. */
static fr_status read_gguf_tables(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    const fr_tensor *types = fr_tensors_find(&w->files->tensors, "token_types.weight");
    const fr_tensor *positions = fr_tensors_find(&w->files->tensors, "position_embd.weight");
    const fr_tensor *label = fr_tensors_find(&w->files->tensors, "cls.output.weight");
    if (types && types->dims == 2) s->types = types->shape[0] < 256 ? (size_t)types->shape[0] : 0;
    if (types && !s->types) return fr_fail(FR_INPUT, "%s: tensor token_types.weight is no table", g->path);
    if (positions && positions->dims == 2) s->positions = (size_t)positions->shape[0];
    /* llama.cpp's converter leaves out the pooler of BERT's classifiers. Without the pooler the scores are not the
     * model's, so such a classifier is not read. */
    if (!label || !gguf_has(w, "cls.weight")) return FR_OK;
    s->labels = label->dims == 2 ? (size_t)label->shape[0] : 1;
    if (s->labels > 4096) return fr_fail(FR_INPUT, "%s: a classifier of %zu labels", g->path, s->labels);
    s->label_bias = gguf_has(w, "cls.output.bias");
    s->head_bias = gguf_has(w, "cls.bias");
    s->head_activation = FR_ENCODER_TANH;
    return FR_OK;
}

static fr_status read_gguf_bert(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_tables(g, w, s));
    return s->positions ? FR_OK : fr_fail(FR_INPUT, "%s: tensor position_embd.weight is missing", g->path);
}

/* Reads an encoder of Jina's embeddings v2. It is BERT with two changes. It has no positions; instead, scores fall with
 * the distance (ALiBi). Its feed-forward has a gate, which is in a tensor of its own or in the first half of ffn_up. */
static fr_status read_gguf_jina(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    s->alibi = true;
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_tables(g, w, s));
    static const char *const refused[] = {"blk.0.attn_q_norm.weight", "blk.0.attn_norm_2.weight", "blk.0.ffn_up.bias"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (gguf_has(w, refused[i]))
            return fr_fail(FR_UNBUILT, "%s: tensor %s of Jina's code models is not built", g->path, refused[i]);
    s->positions = 0;
    s->gated = true;
    return FR_OK;
}

static fr_status read_gguf_nomic(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_tables(g, w, s));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base", 1e-3, 1e12, 10000, &s->theta[0]));
    s->positions = 0;
    s->gated = true;
    s->activation = FR_ENCODER_SILU;
    s->rope_dims = s->head_dim ? s->head_dim : s->hidden / s->heads;
    return FR_OK;
}

static fr_status read_gguf_jina_v3(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_tables(g, w, s));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base", 1e-3, 1e12, 10000, &s->theta[0]));
    s->positions = 0;
    s->rope_dims = s->head_dim ? s->head_dim : s->hidden / s->heads;
    return FR_OK;
}

/* Reads nomic-embed-text-v2-moe. It has Jina v3's layers, and some of these are mixtures. */
static fr_status read_gguf_nomic_moe(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    FR_TRY(fr_gguf_size(g, ".expert_count", 1, FR_ENCODER_EXPERTS_MAX, FR_GGUF_REQUIRED, &s->experts));
    FR_TRY(fr_gguf_size(g, ".expert_used_count", 1, (int64_t)s->experts, FR_GGUF_REQUIRED, &s->experts_used));
    FR_TRY(fr_gguf_size(g, ".moe_every_n_layers", 1, FR_ENCODER_LAYERS_MAX, FR_GGUF_REQUIRED, &s->expert_every));
    return read_gguf_jina_v3(g, w, s);
}

/* Reads which layers are local. A file may have an array with a flag for each layer. If there is no array, one layer in
 * each `every` is global: the first of them if `first`, otherwise the last. */
static fr_status read_gguf_reaches(const fr_gguf *g, int64_t every, bool first, fr_encoder_spec *s) {
    char key[96];
    size_t window;
    snprintf(key, sizeof key, "%.40s.attention.sliding_window_pattern", g->architecture);
    const fr_gguf_value *list = fr_gguf_find(g, key);
    FR_TRY(fr_gguf_size(g, ".attention.sliding_window", 0, CONTEXT_MAX, FR_GGUF_REQUIRED, &window));
    s->reach = window / 2;
    bool flags = list && list->type == FR_GGUF_ARRAY && list->element == FR_GGUF_BOOL;
    if (flags && list->count < s->layers)
        return fr_fail(FR_INPUT, "%s: %s has %llu flags for %zu layers", g->path, key, (unsigned long long)list->count,
                       s->layers);
    if (!flags) FR_TRY(fr_gguf_int(g, ".attention.sliding_window_pattern", 1, 1024, every, &every));
    for (size_t i = 0; i < s->layers; i++) {
        bool local = flags ? list->data[i] != 0 : (first ? i : i + 1) % (size_t)every != 0;
        s->local[i] = local ? FR_ENCODER_LOCAL : FR_ENCODER_GLOBAL;
    }
    return FR_OK;
}

static fr_status read_gguf_modernbert(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    fr_text activation;
    int64_t pooling;
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_tables(g, w, s));
    FR_TRY(read_gguf_reaches(g, 3, true, s));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base", 1e-3, 1e12, 160000, &s->theta[FR_ENCODER_GLOBAL]));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base_swa", 1e-3, 1e12, 10000, &s->theta[FR_ENCODER_LOCAL]));
    FR_TRY(fr_gguf_text(g, ".hidden_activation", &activation));
    if (activation.length == 4 && memcmp(activation.bytes, "silu", 4) == 0)
        s->activation = FR_ENCODER_SILU;
    else if (activation.bytes && !(activation.length == 4 && memcmp(activation.bytes, "gelu", 4) == 0))
        return fr_fail(FR_UNBUILT, "%s: hidden_activation with this value is not built yet", g->path);
    s->pre_norm = s->gated = true;
    s->first_bare = !gguf_has(w, "blk.0.attn_norm.weight");
    s->rope_dims = s->head_dim ? s->head_dim : s->hidden / s->heads;
    FR_TRY(fr_gguf_int(g, ".classifier.pooling_type", 0, 4, 1, &pooling));
    s->label_mean = pooling == 1;
    s->head_norm = s->labels > 0 && gguf_has(w, "cls.norm.weight");
    s->head_activation = FR_ENCODER_GELU;
    return FR_OK;
}

static fr_status read_gguf_gemma(const fr_gguf *g, const fr_weights *w, fr_encoder_spec *s) {
    s->rms = true;
    FR_TRY(read_gguf(g, w, s));
    FR_TRY(read_gguf_reaches(g, 6, false, s));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base", 1e-3, 1e12, 1e6, &s->theta[FR_ENCODER_GLOBAL]));
    FR_TRY(fr_gguf_real(g, ".rope.freq_base_swa", 1e-3, 1e12, 1e4, &s->theta[FR_ENCODER_LOCAL]));
    s->pre_norm = s->branch_norms = s->qk_norm = s->gated = true;
    s->activation = FR_ENCODER_GELU_TANH;
    s->embedding_scale = (float)sqrt((double)s->hidden);
    s->rope_dims = s->head_dim ? s->head_dim : s->hidden / s->heads;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

#define BERT_LAYER                                                                                    \
    .q = "attention.self.query", .k = "attention.self.key", .v = "attention.self.value",              \
    .o = "attention.output.dense", .norm1 = "attention.output.LayerNorm", .up = "intermediate.dense", \
    .down = "output.dense", .norm2 = "output.LayerNorm"
#define BERT_TABLES                                                                       \
    .words = "embeddings.word_embeddings", .positions = "embeddings.position_embeddings", \
    .types = "embeddings.token_type_embeddings", .embedding_norm = "embeddings.LayerNorm"

static const char *const bert_prefixes[] = {"", "bert.", "model.", NULL};
static const char *const roberta_prefixes[] = {"", "roberta.", "model.", NULL};
static const char *const mpnet_prefixes[] = {"", "mpnet.", "model.", NULL};
static const char *const distilbert_prefixes[] = {"", "distilbert.", "model.", NULL};
static const char *const nomic_prefixes[] = {"", "nomic_bert.", "bert.", "model.", NULL};
static const char *const gte_prefixes[] = {"", "gte.", "new.", "model.", NULL};
static const char *const modernbert_prefixes[] = {"", "model.", NULL};
static const char *const gemma_prefixes[] = {"", "model.", "model.language_model.", "language_model.model.", NULL};

static const fr_encoder_names bert_names[] = {{.prefixes = bert_prefixes,
                                               BERT_TABLES,
                                               .layer = "encoder.layer.",
                                               BERT_LAYER,
                                               .head_dense = "pooler.dense",
                                               .head_label = "classifier"},
                                              {.words = NULL}};
static const fr_encoder_names roberta_names[] = {{.prefixes = roberta_prefixes,
                                                  BERT_TABLES,
                                                  .layer = "encoder.layer.",
                                                  BERT_LAYER,
                                                  .head_dense = "classifier.dense",
                                                  .head_label = "classifier.out_proj"},
                                                 {.words = NULL}};
static const fr_encoder_names mpnet_names[] = {{.prefixes = mpnet_prefixes,
                                                BERT_TABLES,
                                                .layer = "encoder.layer.",
                                                .q = "attention.attn.q",
                                                .k = "attention.attn.k",
                                                .v = "attention.attn.v",
                                                .o = "attention.attn.o",
                                                .norm1 = "attention.LayerNorm",
                                                .up = "intermediate.dense",
                                                .down = "output.dense",
                                                .norm2 = "output.LayerNorm",
                                                .head_dense = "classifier.dense",
                                                .head_label = "classifier.out_proj"},
                                               {.words = NULL}};
static const fr_encoder_names distilbert_names[] = {{.prefixes = distilbert_prefixes,
                                                     BERT_TABLES,
                                                     .layer = "transformer.layer.",
                                                     .q = "attention.q_lin",
                                                     .k = "attention.k_lin",
                                                     .v = "attention.v_lin",
                                                     .o = "attention.out_lin",
                                                     .norm1 = "sa_layer_norm",
                                                     .up = "ffn.lin1",
                                                     .down = "ffn.lin2",
                                                     .norm2 = "output_layer_norm",
                                                     .head_dense = "pre_classifier",
                                                     .head_label = "classifier"},
                                                    {.words = NULL}};

/* The names that transformers writes, and the names in the code that was used before transformers had this encoder. The
 * names of the layers show which of the two a file has. */
static const fr_encoder_names nomic_names[] = {{.prefixes = nomic_prefixes,
                                                .words = "embeddings.word_embeddings",
                                                .types = "embeddings.token_type_embeddings",
                                                .embedding_norm = "embeddings.LayerNorm",
                                                .layer = "layers.",
                                                .q = "self_attn.q_proj",
                                                .k = "self_attn.k_proj",
                                                .v = "self_attn.v_proj",
                                                .o = "self_attn.o_proj",
                                                .norm1 = "post_attention_layernorm",
                                                .gate = "mlp.gate_proj",
                                                .up = "mlp.up_proj",
                                                .down = "mlp.down_proj",
                                                .norm2 = "post_mlp_layernorm",
                                                .head_dense = "pooler.dense",
                                                .head_label = "classifier"},
                                               {.prefixes = nomic_prefixes,
                                                .words = "embeddings.word_embeddings",
                                                .types = "embeddings.token_type_embeddings",
                                                .embedding_norm = "emb_ln",
                                                .layer = "encoder.layers.",
                                                .qkv = "attn.Wqkv",
                                                .o = "attn.out_proj",
                                                .norm1 = "norm1",
                                                .gate = "mlp.fc12",
                                                .up = "mlp.fc11",
                                                .up_alone = "mlp.fc1",
                                                .down = "mlp.fc2",
                                                .router = "mlp.router.layer",
                                                .expert_up = "mlp.experts.mlp.w1",
                                                .expert_down = "mlp.experts.mlp.w2",
                                                .expert_bias = "mlp.experts.bias",
                                                .experts_flat = true,
                                                .norm2 = "norm2",
                                                .head_dense = "pooler.dense",
                                                .head_label = "classifier"},
                                               {.words = NULL}};
static const fr_encoder_names jina_v3_names[] = {{.prefixes = roberta_prefixes,
                                                  .words = "embeddings.word_embeddings",
                                                  .types = "embeddings.token_type_embeddings",
                                                  .embedding_norm = "embeddings.LayerNorm",
                                                  .layer = "layers.",
                                                  .q = "self_attn.q_proj",
                                                  .k = "self_attn.k_proj",
                                                  .v = "self_attn.v_proj",
                                                  .o = "self_attn.o_proj",
                                                  .norm1 = "post_attention_layernorm",
                                                  .up = "mlp.fc1",
                                                  .down = "mlp.fc2",
                                                  .norm2 = "post_mlp_layernorm",
                                                  .head_dense = "classifier.dense",
                                                  .head_label = "classifier.out_proj"},
                                                 {.prefixes = roberta_prefixes,
                                                  .words = "embeddings.word_embeddings",
                                                  .types = "embeddings.token_type_embeddings",
                                                  .embedding_norm = "emb_ln",
                                                  .layer = "encoder.layers.",
                                                  .qkv = "mixer.Wqkv",
                                                  .o = "mixer.out_proj",
                                                  .norm1 = "norm1",
                                                  .up = "mlp.fc1",
                                                  .down = "mlp.fc2",
                                                  .norm2 = "norm2",
                                                  .head_dense = "classifier.dense",
                                                  .head_label = "classifier.out_proj"},
                                                 {.words = NULL}};
static const fr_encoder_names gte_names[] = {{.prefixes = gte_prefixes,
                                              .words = "embeddings.word_embeddings",
                                              .types = "embeddings.token_type_embeddings",
                                              .embedding_norm = "embeddings.LayerNorm",
                                              .layer = "layers.",
                                              .q = "self_attn.q_proj",
                                              .k = "self_attn.k_proj",
                                              .v = "self_attn.v_proj",
                                              .o = "self_attn.o_proj",
                                              .norm1 = "post_attention_layernorm",
                                              .gate = "mlp.gate_proj",
                                              .up = "mlp.up_proj",
                                              .down = "mlp.down_proj",
                                              .norm2 = "post_mlp_layernorm",
                                              .head_dense = "pooler.dense",
                                              .head_label = "classifier"},
                                             {.prefixes = gte_prefixes,
                                              .words = "embeddings.word_embeddings",
                                              .types = "embeddings.token_type_embeddings",
                                              .embedding_norm = "embeddings.LayerNorm",
                                              .layer = "encoder.layer.",
                                              .qkv = "attention.qkv_proj",
                                              .o = "attention.o_proj",
                                              .norm1 = "attn_ln",
                                              .gate_up = "mlp.up_gate_proj",
                                              .up_first = true,
                                              .down = "mlp.down_proj",
                                              .norm2 = "mlp_ln",
                                              .head_dense = "pooler.dense",
                                              .head_label = "classifier"},
                                             {.words = NULL}};
static const fr_encoder_names modernbert_names[] = {{.prefixes = modernbert_prefixes,
                                                     .words = "embeddings.tok_embeddings",
                                                     .embedding_norm = "embeddings.norm",
                                                     .final_norm = "final_norm",
                                                     .layer = "layers.",
                                                     .qkv = "attn.Wqkv",
                                                     .o = "attn.Wo",
                                                     .norm1 = "attn_norm",
                                                     .gate_up = "mlp.Wi",
                                                     .down = "mlp.Wo",
                                                     .norm2 = "mlp_norm",
                                                     .head_dense = "head.dense",
                                                     .head_norm = "head.norm",
                                                     .head_label = "classifier"},
                                                    {.words = NULL}};
static const fr_encoder_names gemma_names[] = {{.prefixes = gemma_prefixes,
                                                .words = "embed_tokens",
                                                .final_norm = "norm",
                                                .layer = "layers.",
                                                .q = "self_attn.q_proj",
                                                .k = "self_attn.k_proj",
                                                .v = "self_attn.v_proj",
                                                .o = "self_attn.o_proj",
                                                .q_norm = "self_attn.q_norm",
                                                .k_norm = "self_attn.k_norm",
                                                .norm1 = "input_layernorm",
                                                .post1 = "post_attention_layernorm",
                                                .norm2 = "pre_feedforward_layernorm",
                                                .post2 = "post_feedforward_layernorm",
                                                .gate = "mlp.gate_proj",
                                                .up = "mlp.up_proj",
                                                .down = "mlp.down_proj"},
                                               {.words = NULL}};

/* The names in llama.cpp's files. One table is for encoders with norms after the branches, the other for encoders with
 * norms before the branches. */
static const fr_encoder_names gguf_after[] = {{.words = "token_embd",
                                               .positions = "position_embd",
                                               .types = "token_types",
                                               .embedding_norm = "token_embd_norm",
                                               .layer = "blk.",
                                               .q = "attn_q",
                                               .k = "attn_k",
                                               .v = "attn_v",
                                               .qkv = "attn_qkv",
                                               .o = "attn_output",
                                               .norm1 = "attn_output_norm",
                                               .gate = "ffn_gate",
                                               .up = "ffn_up",
                                               .up_alone = "ffn_up",
                                               .down = "ffn_down",
                                               .router = "ffn_gate_inp",
                                               .expert_up = "ffn_up_exps.weight",
                                               .expert_down = "ffn_down_exps.weight",
                                               .norm2 = "layer_output_norm",
                                               .head_dense = "cls",
                                               .head_label = "cls.output"},
                                              {.words = NULL}};
static const fr_encoder_names gguf_jina[] = {{.words = "token_embd",
                                              .types = "token_types",
                                              .embedding_norm = "token_embd_norm",
                                              .layer = "blk.",
                                              .q = "attn_q",
                                              .k = "attn_k",
                                              .v = "attn_v",
                                              .qkv = "attn_qkv",
                                              .o = "attn_output",
                                              .norm1 = "attn_output_norm",
                                              .gate = "ffn_gate",
                                              .up = "ffn_up",
                                              .gate_up = "ffn_up",
                                              .down = "ffn_down",
                                              .norm2 = "layer_output_norm",
                                              .head_dense = "cls",
                                              .head_label = "cls.output"},
                                             {.words = NULL}};
static const fr_encoder_names gguf_modernbert[] = {{.words = "token_embd",
                                                    .embedding_norm = "token_embd_norm",
                                                    .final_norm = "output_norm",
                                                    .layer = "blk.",
                                                    .qkv = "attn_qkv",
                                                    .o = "attn_output",
                                                    .norm1 = "attn_norm",
                                                    .gate_up = "ffn_up",
                                                    .down = "ffn_down",
                                                    .norm2 = "ffn_norm",
                                                    .head_dense = "cls",
                                                    .head_norm = "cls.norm",
                                                    .head_label = "cls.output"},
                                                   {.words = NULL}};
static const fr_encoder_names gguf_gemma[] = {{.words = "token_embd",
                                               .final_norm = "output_norm",
                                               .layer = "blk.",
                                               .q = "attn_q",
                                               .k = "attn_k",
                                               .v = "attn_v",
                                               .o = "attn_output",
                                               .q_norm = "attn_q_norm",
                                               .k_norm = "attn_k_norm",
                                               .norm1 = "attn_norm",
                                               .post1 = "post_attention_norm",
                                               .norm2 = "ffn_norm",
                                               .post2 = "post_ffw_norm",
                                               .gate = "ffn_gate",
                                               .up = "ffn_up",
                                               .down = "ffn_down"},
                                              {.words = NULL}};

/* ------------------------------------------------------------------------------------------------------------ kinds */

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const fr_encoder_kind kinds[] = {
    {.name = "BERT",
     .model_types = WORDS("bert"),
     .gguf = WORDS("bert"),
     .read = read_bert,
     .read_gguf = read_gguf_bert,
     .gguf_names = gguf_after,
     .names = bert_names},
    {.name = "RoBERTa",
     .model_types = WORDS("roberta", "xlm-roberta", "camembert"),
     .gguf = WORDS("bert"),
     .read = read_roberta,
     .gguf_names = gguf_after,
     .names = roberta_names},
    {.name = "MPNet", .model_types = WORDS("mpnet"), .gguf = WORDS(""), .read = read_mpnet, .names = mpnet_names},
    {.name = "DistilBERT",
     .model_types = WORDS("distilbert"),
     .gguf = WORDS("bert"),
     .read = read_distilbert,
     .gguf_names = gguf_after,
     .names = distilbert_names},
    {.name = "NomicBERT",
     .model_types = WORDS("nomic_bert"),
     .gguf = WORDS("nomic-bert"),
     .read = read_nomic,
     .read_gguf = read_gguf_nomic,
     .gguf_names = gguf_after,
     .names = nomic_names},
    {.name = "NomicBERT with mixtures",
     .model_types = WORDS(""),
     .gguf = WORDS("nomic-bert-moe"),
     .read_gguf = read_gguf_nomic_moe,
     .gguf_names = gguf_after},
    {.name = "JinaBERT",
     .model_types = WORDS(""),
     .gguf = WORDS("jina-bert-v2"),
     .read_gguf = read_gguf_jina,
     .gguf_names = gguf_jina},
    {.name = "JinaBERT v3",
     .model_types = WORDS("jina_embeddings_v3"),
     .gguf = WORDS("jina-bert-v3"),
     .read = read_jina_v3,
     .read_gguf = read_gguf_jina_v3,
     .gguf_names = gguf_after,
     .names = jina_v3_names},
    {.name = "GTE", .model_types = WORDS("gte", "new"), .gguf = WORDS(""), .read = read_gte, .names = gte_names},
    {.name = "ModernBERT",
     .model_types = WORDS("modernbert"),
     .gguf = WORDS("modern-bert"),
     .read = read_modernbert,
     .read_gguf = read_gguf_modernbert,
     .gguf_names = gguf_modernbert,
     .names = modernbert_names},
    {.name = "EmbeddingGemma",
     .model_types = WORDS("gemma3_text", "gemma3"),
     .gguf = WORDS("gemma-embedding"),
     .read = read_gemma,
     .read_gguf = read_gguf_gemma,
     .gguf_names = gguf_gemma,
     .names = gemma_names}};

/* Architectures of files whose config.json has no model_type. The beginning of the architecture's name gives the
 * model_type. */
static const struct {
    const char *begins, *model_type;
} architectures[] = {{"BertFor", "bert"},
                     {"BertModel", "bert"},
                     {"RobertaFor", "roberta"},
                     {"RobertaModel", "roberta"},
                     {"XLMRobertaFor", "xlm-roberta"},
                     {"XLMRobertaModel", "xlm-roberta"},
                     {"CamembertFor", "camembert"},
                     {"CamembertModel", "camembert"},
                     {"MPNet", "mpnet"},
                     {"DistilBert", "distilbert"},
                     {"NomicBert", "nomic_bert"},
                     {"JinaEmbeddingsV3", "jina_embeddings_v3"},
                     {"Gte", "gte"},
                     {"NewModel", "new"},
                     {"NewFor", "new"},
                     {"ModernBert", "modernbert"}};

const fr_encoder_kind *fr_encoder_kind_of(const fr_checkpoint *files) {
    const char *word =
        files->gguf ? files->gguf->architecture : json_string_value(json_object_get(files->config, "model_type"));
    if (!files->gguf && (!word || !*word)) {
        const char *name = json_string_value(json_array_get(json_object_get(files->config, "architectures"), 0));
        for (size_t i = 0; name && i < sizeof architectures / sizeof *architectures && !word; i++)
            if (strncmp(name, architectures[i].begins, strlen(architectures[i].begins)) == 0)
                word = architectures[i].model_type;
    }
    if (!word || !*word) return NULL;
    const json_t *text = json_object_get(files->config, "text_config");
    const json_t *sees = json_object_get(text ? text : files->config, "use_bidirectional_attention");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const fr_encoder_kind *kind = &kinds[i];
        if (files->gguf ? !kind->read_gguf || !fr_architecture_in(kind->gguf, word)
                        : !fr_architecture_in(kind->model_types, word))
            continue;
        /* Gemma 3 is an encoder only if its rows also see later rows. */
        return kind->read == read_gemma && !files->gguf && !json_is_true(sees) ? NULL : kind;
    }
    return NULL;
}

bool fr_encoder_is(const fr_checkpoint *files) {
    return fr_encoder_kind_of(files) != NULL;
}

fr_status fr_encoder_read(const fr_weights *weights, fr_encoder_spec *spec) {
    const fr_checkpoint *files = weights->files;
    const fr_encoder_kind *kind = fr_encoder_kind_of(files);
    const char *where = files->gguf ? files->gguf->path : "config.json";
    *spec = (fr_encoder_spec){.kind = kind, .pad = -1, .rope_factor = {1, 1}};
    FR_TRY(files->gguf ? kind->read_gguf(files->gguf, weights, spec) : kind->read(files->config, where, weights, spec));
    return finish(where, spec);
}
