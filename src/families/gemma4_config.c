/* Gemma 4's configuration: the hub's JSON, in both published spellings, to checked numbers. GGUF's: gemma4_gguf.c.
 *
 * In: config.json. Out: fr_gemma4_config. Keys left out take the defaults of transformers' Gemma 4
 * configuration, since published files leave them out. What would change the answer and is not built (biases, another
 * activation, bidirectional attention) is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/families/architecture.h"
#include "src/families/config_keys.h"
#include "src/families/gemma4.h"

#define SLIDING_PATTERN 6 /* without layer_types every sixth layer is full */

/* Where the defaults of Gemma4TextConfig and of Gemma4UnifiedTextConfig, the 12B's, part. */
typedef struct usual {
    int64_t window, context_limit, ple;
} usual;

static const usual of_text = {512, 131072, 256}, of_unified = {1024, 262144, 0};

static fr_status read_kind(const char *name, const char *where, fr_layer_kind *kind) {
    if (name && strcmp(name, "sliding_attention") == 0)
        *kind = FR_SLIDING;
    else if (name && strcmp(name, "full_attention") == 0)
        *kind = FR_FULL;
    else
        return fr_fail(FR_INPUT, "%s: layer type %s is not known (sliding_attention, full_attention)", where,
                       name ? name : "that is no string");
    return FR_OK;
}

/* layer_types, or the default pattern; the last layer is always full. */
static fr_status read_layer_kinds(const json_t *text, fr_gemma4_config *config, const char *where) {
    const json_t *types = json_object_get(text, "layer_types");
    bool given = types && !json_is_null(types);
    if (given && (!json_is_array(types) || json_array_size(types) != config->layers))
        return fr_fail(FR_INPUT, "%s: layer_types must be an array of num_hidden_layers = %zu names", where,
                       config->layers);
    for (size_t i = 0; i < config->layers; i++) {
        fr_layer_kind *kind = &config->layer[i].kind;
        *kind = (i + 1) % SLIDING_PATTERN ? FR_SLIDING : FR_FULL;
        if (given) FR_TRY(read_kind(json_string_value(json_array_get(types, i)), where, kind));
    }
    config->layer[config->layers - 1].kind = FR_FULL;
    return FR_OK;
}

/* One entry of per_layer_config on one layer. */
static fr_status override_layer(const json_t *entry, fr_gemma4_layer_config *layer, const char *where) {
    if (!json_is_object(entry)) return fr_fail(FR_INPUT, "%s: a per_layer_config entry is no object", where);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)entry, key, value) {
        if (strcmp(key, "head_dim") != 0 && strcmp(key, "num_key_value_heads") != 0)
            return fr_fail(FR_INPUT, "%s: per_layer_config has %s, expected head_dim or num_key_value_heads", where,
                           key);
    }
    FR_TRY(fr_json_size(entry, "head_dim", 2, 4096, (int64_t)layer->head_dim, where, &layer->head_dim));
    return fr_json_size(entry, "num_key_value_heads", 1, 4096, (int64_t)layer->kv_heads, where, &layer->kv_heads);
}

/* per_layer_config: {"5": {...}} by layer number, or by layer type. */
static fr_status read_per_layer(const json_t *table, fr_gemma4_config *config, const char *where) {
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)table, key, entry) {
        char *end;
        unsigned long index = strtoul(key, &end, 10);
        if (*key >= '0' && *key <= '9' && *end == '\0' && index < config->layers) {
            FR_TRY(override_layer(entry, &config->layer[index], where));
            continue;
        }
        fr_layer_kind kind;
        if (read_kind(key, where, &kind) != FR_OK)
            return fr_fail(FR_INPUT, "%s: per_layer_config key %s is neither a layer below %zu nor a layer type", where,
                           key, config->layers);
        for (size_t i = 0; i < config->layers; i++)
            if (config->layer[i].kind == kind) FR_TRY(override_layer(entry, &config->layer[i], where));
    }
    return FR_OK;
}

/* Head sizes of full layers: per_layer_config where there is one, else global_head_dim and
 * num_global_key_value_heads (which counts only with attention_k_eq_v). */
static fr_status read_head_shapes(const json_t *text, fr_gemma4_config *config, const char *where) {
    size_t head_dim, kv_heads, global_dim, global_kv;
    FR_TRY(fr_json_size(text, "head_dim", 2, 4096, 256, where, &head_dim));
    FR_TRY(fr_json_size(text, "num_key_value_heads", 1, 4096, 4, where, &kv_heads));
    FR_TRY(fr_json_size(text, "global_head_dim", 2, 4096, 512, where, &global_dim));
    FR_TRY(fr_json_size(text, "num_global_key_value_heads", 1, 4096, (int64_t)kv_heads, where, &global_kv));
    json_t *table;
    FR_TRY(fr_json_object(text, "per_layer_config", where, &table));
    for (size_t i = 0; i < config->layers; i++) {
        fr_gemma4_layer_config *layer = &config->layer[i];
        bool global = !table && layer->kind == FR_FULL;
        layer->head_dim = global ? global_dim : head_dim;
        layer->kv_heads = global && config->k_eq_v ? global_kv : kv_heads;
    }
    return table ? read_per_layer(table, config, where) : FR_OK;
}

static fr_status read_rope(const json_t *table, const char *kind_name, fr_gemma4_rope *rope, const char *where) {
    json_t *entry = NULL;
    if (table) FR_TRY(fr_json_object(table, kind_name, where, &entry));
    if (!entry) return FR_OK; /* the defaults stand */
    const char *type;
    FR_TRY(fr_json_text(entry, "rope_type", where, &type));
    if (!type || strcmp(type, "default") == 0)
        rope->proportional = false;
    else if (strcmp(type, "proportional") == 0)
        rope->proportional = true;
    else
        return fr_fail(FR_INPUT, "%s: rope_type %s of %s is not known (default, proportional)", where, type, kind_name);
    FR_TRY(fr_json_real(entry, "rope_theta", 1.0, 1e12, rope->theta, where, &rope->theta));
    FR_TRY(fr_json_real(entry, "partial_rotary_factor", 0.0, 1.0, 1.0, where, &rope->partial));
    return fr_json_real(entry, "factor", 1e-6, 1e6, 1.0, where, &rope->factor);
}

static fr_status read_ropes(const json_t *text, fr_gemma4_config *config, const char *where) {
    config->rope[FR_SLIDING] = (fr_gemma4_rope){.theta = 10000.0, .partial = 1.0, .factor = 1.0};
    config->rope[FR_FULL] = (fr_gemma4_rope){.proportional = true, .theta = 1000000.0, .partial = 0.25, .factor = 1.0};
    json_t *table;
    FR_TRY(fr_json_object(text, "rope_parameters", where, &table));
    FR_TRY(read_rope(table, "sliding_attention", &config->rope[FR_SLIDING], where));
    return read_rope(table, "full_attention", &config->rope[FR_FULL], where);
}

static fr_status read_experts(const json_t *text, fr_gemma4_config *config, const char *where) {
    bool enabled;
    FR_TRY(fr_json_bool(text, "enable_moe_block", false, where, &enabled));
    if (!enabled) return FR_OK;
    FR_TRY(fr_json_size(text, "num_experts", 1, 4096, FR_JSON_REQUIRED, where, &config->experts));
    FR_TRY(
        fr_json_size(text, "top_k_experts", 1, (int64_t)config->experts, FR_JSON_REQUIRED, where, &config->expert_top));
    return fr_json_size(text, "moe_intermediate_size", 1, 1 << 20, FR_JSON_REQUIRED, where, &config->expert_ffn);
}

/* KV sharing and feed-forward widths: the last num_kv_shared_layers borrow, and may be twice as wide. */
static fr_status read_sharing(const json_t *text, fr_gemma4_config *config, bool assistant, const char *where) {
    size_t shared, ffn;
    bool wide;
    FR_TRY(fr_json_size(text, "num_kv_shared_layers", 0, (int64_t)config->layers, 0, where, &shared));
    FR_TRY(fr_json_size(text, "intermediate_size", 1, 1 << 22, 9216, where, &ffn));
    FR_TRY(fr_json_bool(text, "use_double_wide_mlp", false, where, &wide));
    FR_TRY(fr_gemma4_config_share(config, shared, assistant, where));
    for (size_t i = 0; i < config->layers; i++) {
        fr_gemma4_layer_config *layer = &config->layer[i];
        layer->ffn = wide && !layer->owns_kv && !assistant ? 2 * ffn : ffn;
    }
    return FR_OK;
}

/* What this engine would compute wrongly if it went on. */
static fr_status refuse_unknown(const json_t *text, const char *where) {
    FR_TRY(fr_config_only(text, "hidden_activation", "gelu_pytorch_tanh", where));
    FR_TRY(fr_config_without(text, "attention_bias", where));
    return fr_config_only(text, "use_bidirectional_attention", "vision", where);
}

static fr_status read_all(fr_gemma4_config *config, const json_t *text, const usual *without, bool assistant,
                          const char *where) {
    double eps, softcap;
    FR_TRY(refuse_unknown(text, where));
    FR_TRY(fr_json_size(text, "vocab_size", 1, 1 << 24, 262144, where, &config->vocab));
    FR_TRY(fr_json_size(text, "hidden_size", 1, 1 << 17, 2304, where, &config->hidden));
    FR_TRY(fr_json_size(text, "num_hidden_layers", 1, 1024, 30, where, &config->layers));
    FR_TRY(fr_json_size(text, "num_attention_heads", 1, 4096, 8, where, &config->heads));
    FR_TRY(fr_json_size(text, "sliding_window", 1, 1 << 24, without->window, where, &config->window));
    FR_TRY(fr_json_size(text, "max_position_embeddings", 1, 1 << 24, without->context_limit, where,
                        &config->context_limit));
    FR_TRY(fr_json_size(text, "hidden_size_per_layer_input", 0, 1 << 16, without->ple, where, &config->ple));
    FR_TRY(fr_json_real(text, "rms_norm_eps", 0.0, 1.0, 1e-6, where, &eps));
    FR_TRY(fr_json_real(text, "final_logit_softcapping", 1e-3, 1e6, 0.0, where, &softcap));
    FR_TRY(fr_json_bool(text, "attention_k_eq_v", false, where, &config->k_eq_v));
    config->eps = (float)eps;
    config->softcap = (float)softcap;
    config->layer = calloc(config->layers, sizeof *config->layer);
    if (!config->layer) return fr_fail_memory("layer configuration", config->layers * sizeof *config->layer);
    FR_TRY(read_layer_kinds(text, config, where));
    FR_TRY(read_head_shapes(text, config, where));
    FR_TRY(read_ropes(text, config, where));
    FR_TRY(read_experts(text, config, where));
    FR_TRY(read_sharing(text, config, assistant, where));
    if (config->ple == 0) return FR_OK;
    size_t ple_vocab;
    FR_TRY(fr_json_size(text, "vocab_size_per_layer_input", 1, 1 << 24, 262144, where, &ple_vocab));
    if (ple_vocab != config->vocab)
        return fr_fail(FR_INPUT, "%s: vocab_size_per_layer_input %zu differs from vocab_size %zu", where, ple_vocab,
                       config->vocab);
    return FR_OK;
}

fr_status fr_gemma4_config_share(fr_gemma4_config *config, size_t shared, bool assistant, const char *where) {
    size_t owners = assistant ? 0 : config->layers - shared;
    config->assistant = assistant;
    if (!assistant && owners == 0)
        return fr_fail(FR_INPUT, "%s: %zu layers share a KV cache, which leaves none that owns one: this is a drafter",
                       where, shared);
    bool seen[FR_LAYER_KINDS] = {false};
    for (size_t i = 0; i < config->layers; i++) {
        fr_gemma4_layer_config *layer = &config->layer[i];
        layer->owns_kv = i < owners;
        if (layer->owns_kv)
            seen[layer->kind] = true;
        else if (!assistant && !seen[layer->kind])
            return fr_fail(FR_INPUT, "%s: layer %zu borrows a KV cache of its kind, but no earlier layer owns one",
                           where, i);
        if (layer->head_dim % 2) return fr_fail(FR_INPUT, "%s: head_dim %zu is odd", where, layer->head_dim);
        if (config->heads % layer->kv_heads)
            return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of %zu key/value heads", where,
                           config->heads, layer->kv_heads);
    }
    return FR_OK;
}

static fr_status from_json(fr_gemma4_config *config, const fr_weights *weights, bool assistant) {
    static const char where[] = "config.json";
    const json_t *root = weights->files->config;
    json_t *text;
    FR_TRY(fr_json_object(root, "text_config", where, &text));
    if (assistant && !text) return fr_fail(FR_INPUT, "%s: text_config is missing", where);
    FR_TRY(fr_config_head(text ? text : root, where, weights));
    const usual *without = fr_is_gemma4_unified(weights->files) ? &of_unified : &of_text;
    return read_all(config, text ? text : root, without, assistant, where);
}

fr_status fr_gemma4_config_read(fr_gemma4_config *config, fr_weights *weights, bool assistant) {
    if (weights->files->gguf) return fr_gemma4_config_from_gguf(config, weights, assistant);
    *config = (fr_gemma4_config){0};
    fr_status status = from_json(config, weights, assistant);
    if (status != FR_OK) fr_gemma4_config_free(config);
    return status;
}

void fr_gemma4_config_free(fr_gemma4_config *config) {
    free(config->layer);
    *config = (fr_gemma4_config){0};
}
