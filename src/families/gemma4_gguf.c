/* Gemma 4's configuration from GGUF metadata, of targets and of drafters, and back.
 *
 * In: a GGUF file as llama.cpp's converter writes it (architectures "gemma4", "gemma4-assistant"), or a drafter as
 * AtomicChat's fork ("gemma4_assistant") and ik_llama.cpp ("gemma4_mtp") do. Out: the fr_gemma4_config that the
 * published folder gives. What metadata leave out is read off the tensors: the vocabulary, the rotary factor, and
 * whether full layers take their values from the key projection. And a spec as the keys of the former. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/gemma4.h"

/* What the converter writes for an angle that stands still; its table's other entries are 1. */
#define STANDING 1e29f

/* One number for all layers where the file may have an array of them. */
static fr_status read_heads(const fr_gguf *gguf, fr_gemma4_config *config, int64_t *numbers) {
    FR_TRY(fr_gguf_ints(gguf, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, config->layers, numbers));
    config->heads = (size_t)numbers[0];
    for (size_t i = 1; i < config->layers; i++)
        if (numbers[i] != numbers[0])
            return fr_fail(FR_UNBUILT, "%s: layers with %lld and %lld attention heads are not built", gguf->path,
                           (long long)numbers[0], (long long)numbers[i]);
    return FR_OK;
}

/* A head's size in each kind of layer; keys, values and rotary dimensions must agree. */
static fr_status read_head_dims(const fr_gguf *gguf, size_t dims[FR_LAYER_KINDS]) {
    static const struct {
        const char *key, *value, *rotary;
    } keys[FR_LAYER_KINDS] = {
        [FR_FULL] = {".attention.key_length", ".attention.value_length", ".rope.dimension_count"},
        [FR_SLIDING] = {".attention.key_length_swa", ".attention.value_length_swa", ".rope.dimension_count_swa"},
    };
    static const fr_layer_kind order[] = {FR_FULL, FR_SLIDING};
    int64_t fallback = FR_GGUF_REQUIRED;
    for (size_t i = 0; i < FR_LAYER_KINDS; i++) {
        fr_layer_kind kind = order[i];
        size_t value, rotary;
        FR_TRY(fr_gguf_size(gguf, keys[kind].key, 2, 4096, fallback, &dims[kind]));
        fallback = (int64_t)dims[kind];
        FR_TRY(fr_gguf_size(gguf, keys[kind].value, 2, 4096, fallback, &value));
        FR_TRY(fr_gguf_size(gguf, keys[kind].rotary, 2, 4096, fallback, &rotary));
        if (value != dims[kind] || rotary != dims[kind])
            return fr_fail(FR_UNBUILT,
                           "%s: keys of %zu, values of %zu and rotary positions of %zu are not built: all "
                           "must be the same",
                           gguf->path, dims[kind], value, rotary);
    }
    return FR_OK;
}

static fr_status read_layers(const fr_gguf *gguf, fr_gemma4_config *config, int64_t *numbers) {
    size_t n = config->layers, dims[FR_LAYER_KINDS];
    FR_TRY(read_head_dims(gguf, dims));
    FR_TRY(fr_gguf_ints(gguf, ".attention.sliding_window_pattern", 0, 1, FR_GGUF_REQUIRED, n, numbers));
    for (size_t i = 0; i < n; i++) {
        config->layer[i].kind = numbers[i] ? FR_SLIDING : FR_FULL;
        config->layer[i].head_dim = dims[config->layer[i].kind];
    }
    FR_TRY(fr_gguf_ints(gguf, ".attention.head_count_kv", 1, 4096, FR_GGUF_REQUIRED, n, numbers));
    for (size_t i = 0; i < n; i++) config->layer[i].kv_heads = (size_t)numbers[i];
    FR_TRY(fr_gguf_ints(gguf, ".feed_forward_length", 1, 1 << 22, FR_GGUF_REQUIRED, n, numbers));
    for (size_t i = 0; i < n; i++) config->layer[i].ffn = (size_t)numbers[i];
    return FR_OK;
}

/* rope_freqs.weight divides the full layers' frequencies: ones, then angles that stand still. */
static fr_status read_rope_table(fr_gemma4_config *config, fr_weights *weights, size_t angles) {
    const float *table;
    FR_TRY(fr_bind_vector(weights, "", "rope_freqs.weight", angles, &table));
    size_t turning = 0;
    while (turning < angles && table[turning] == 1.0f) turning++;
    for (size_t i = turning; i < angles; i++)
        if (table[i] < STANDING)
            return fr_fail(FR_INPUT, "%s: tensor rope_freqs.weight has %g at index %zu, expected ones, then 1e30",
                           weights->files->path, (double)table[i], i);
    /* half an angle more, so that no rounding of the quotient loses one */
    config->rope[FR_FULL].partial = turning < angles ? ((double)turning + 0.5) / (double)angles : 1.0;
    return FR_OK;
}

static fr_status read_ropes(fr_gemma4_config *config, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    fr_gemma4_rope *sliding = &config->rope[FR_SLIDING], *full = &config->rope[FR_FULL];
    double scaling;
    size_t i = 0;
    *sliding = (fr_gemma4_rope){.partial = 1.0, .factor = 1.0};
    *full = (fr_gemma4_rope){.proportional = true, .partial = 0.25, .factor = 1.0};
    FR_TRY(fr_gguf_real(gguf, ".rope.freq_base", 1.0, 1e12, NAN, &full->theta));
    FR_TRY(fr_gguf_real(gguf, ".rope.freq_base_swa", 1.0, 1e12, 10000.0, &sliding->theta));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.factor", 1.0, 1.0, 1.0, &scaling));
    while (i < config->layers && config->layer[i].kind != FR_FULL) i++;
    if (i == config->layers) return FR_OK;
    if (fr_weights_has(weights, "", "rope_freqs.weight"))
        return read_rope_table(config, weights, config->layer[i].head_dim / 2);
    fr_notes_add(&weights->notes,
                 "%s has no rope_freqs.weight: a quarter of the full layers' angles turn, as published",
                 weights->files->path);
    return FR_OK;
}

static fr_status read_experts(const fr_gguf *gguf, fr_gemma4_config *config) {
    FR_TRY(fr_gguf_size(gguf, ".expert_count", 0, 4096, 0, &config->experts));
    if (config->experts == 0) return FR_OK;
    FR_TRY(
        fr_gguf_size(gguf, ".expert_used_count", 1, (int64_t)config->experts, FR_GGUF_REQUIRED, &config->expert_top));
    return fr_gguf_size(gguf, ".expert_feed_forward_length", 1, 1 << 20, FR_GGUF_REQUIRED, &config->expert_ffn);
}

/* The vocabulary is as long as the embedding; a key and the list of tokens, if they are there, must agree. */
static fr_status read_vocabulary(const fr_checkpoint *files, fr_gemma4_config *config) {
    const fr_gguf_value *tokens;
    int64_t listed;
    FR_TRY(fr_config_vocabulary(files, config->hidden, &config->vocab));
    FR_TRY(fr_gguf_int(files->gguf, ".vocab_size", 1, 1 << 24, (int64_t)config->vocab, &listed));
    FR_TRY(fr_gguf_array(files->gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    if (tokens && tokens->count != config->vocab) listed = (int64_t)tokens->count;
    if (listed == (int64_t)config->vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a vocabulary of %lld ids, and tensor token_embd.weight has %zu rows", files->path,
                   (long long)listed, config->vocab);
}

/* Whether a layer has a value projection, by itself or behind queries and keys. */
static bool has_values(const fr_weights *weights, size_t layer) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "blk.%zu.", layer);
    return fr_weights_has(weights, prefix, "attn_v.weight") || fr_weights_has(weights, prefix, "attn_qkv.weight");
}

/* Full layers that own a KV cache and have no value projection, all of them, take their values from the keys. */
static fr_status read_values(fr_gemma4_config *config, const fr_weights *weights) {
    size_t lacking = config->layers;
    bool some = false;
    for (size_t i = 0; i < config->layers; i++) {
        if (config->layer[i].kind != FR_FULL || !config->layer[i].owns_kv) continue;
        if (has_values(weights, i)) some = true;
        else lacking = i;
    }
    config->k_eq_v = lacking < config->layers && !some;
    if (lacking == config->layers || !some) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor blk.%zu.attn_v.weight is missing, and other full-attention layers have theirs",
                   weights->files->path, lacking);
}

static fr_status read_widths(const fr_gguf *gguf, fr_gemma4_config *config) {
    double eps, softcap;
    FR_TRY(fr_gguf_size(gguf, ".embedding_length", 1, 1 << 17, FR_GGUF_REQUIRED, &config->hidden));
    FR_TRY(fr_gguf_size(gguf, ".attention.sliding_window", 1, 1 << 24, FR_GGUF_REQUIRED, &config->window));
    FR_TRY(fr_gguf_size(gguf, ".context_length", 1, 1 << 24, FR_GGUF_REQUIRED, &config->context_limit));
    FR_TRY(fr_gguf_size(gguf, ".embedding_length_per_layer_input", 0, 1 << 16, 0, &config->ple));
    FR_TRY(fr_gguf_real(gguf, ".attention.layer_norm_rms_epsilon", 0.0, 1.0, NAN, &eps));
    FR_TRY(fr_gguf_real(gguf, ".final_logit_softcapping", 0.0, 1e6, 0.0, &softcap));
    config->eps = (float)eps;
    config->softcap = (float)softcap;
    return FR_OK;
}

static fr_status read_all(fr_gemma4_config *config, fr_weights *weights, bool assistant, int64_t *numbers) {
    const fr_gguf *gguf = weights->files->gguf;
    size_t shared;
    FR_TRY(read_widths(gguf, config));
    FR_TRY(read_vocabulary(weights->files, config));
    FR_TRY(read_heads(gguf, config, numbers));
    FR_TRY(read_layers(gguf, config, numbers));
    FR_TRY(read_experts(gguf, config));
    FR_TRY(read_ropes(config, weights));
    FR_TRY(fr_gguf_size(gguf, ".attention.shared_kv_layers", 0, (int64_t)config->layers, 0, &shared));
    FR_TRY(fr_gemma4_config_share(config, shared, assistant, gguf->path));
    return read_values(config, weights);
}

fr_status fr_gemma4_config_from_gguf(fr_gemma4_config *config, fr_weights *weights, bool assistant) {
    *config = (fr_gemma4_config){0};
    FR_TRY(fr_gguf_size(weights->files->gguf, ".block_count", 1, 1024, FR_GGUF_REQUIRED, &config->layers));
    int64_t *numbers = calloc(config->layers, sizeof *numbers);
    config->layer = calloc(config->layers, sizeof *config->layer);
    fr_status status = numbers && config->layer ? read_all(config, weights, assistant, numbers)
                                                : fr_fail_memory("layer configuration", config->layers);
    free(numbers);
    if (status != FR_OK) fr_gemma4_config_free(config);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef size_t layer_number(const fr_layer_spec *layer);

static size_t ffn_width(const fr_layer_spec *layer) {
    return layer->ffn.width;
}

static size_t kv_heads(const fr_layer_spec *layer) {
    return layer->attention.kv_heads;
}

/* A number of each layer: one for all where they are the same. */
static void put_per_layer(fr_gguf_writer *writer, const char *key, const fr_trunk_spec *s, layer_number *number) {
    bool same = true;
    for (size_t i = 0; i < s->layers; i++) same &= number(&s->layer[i]) == number(&s->layer[0]);
    if (same) {
        fr_gguf_put_u32(writer, key, (uint32_t)number(&s->layer[0]));
        return;
    }
    fr_gguf_put_array(writer, key, FR_GGUF_I32, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_u32(writer, (uint32_t)number(&s->layer[i]));
}

/* The first layer of a kind; NULL: there is none. */
static const fr_attention_spec *first_of(const fr_trunk_spec *s, fr_layer_kind kind) {
    for (size_t i = 0; i < s->layers; i++)
        if (s->layer[i].attention.rope == kind) return &s->layer[i].attention;
    return NULL;
}

static void put_head_dim(fr_gguf_writer *writer, const fr_trunk_spec *s, fr_layer_kind kind,
                         const char *const keys[3]) {
    const fr_attention_spec *first = first_of(s, kind);
    for (size_t k = 0; first && k < 3; k++) fr_gguf_put_u32(writer, keys[k], (uint32_t)first->head_dim);
}

/* The window as configured (an assistant's rows see one position more); where no layer slides, readers want some. */
static size_t window_of(const fr_trunk_spec *s) {
    const fr_attention_spec *sliding = first_of(s, FR_SLIDING);
    size_t owners = 0;
    for (size_t i = 0; i < s->layers; i++) owners += s->layer[i].attention.owns_kv;
    return sliding ? sliding->window - (owners == 0) : 1;
}

static void put_sizes(const fr_trunk_spec *s, fr_gguf_writer *writer) {
    size_t shared = 0;
    for (size_t i = 0; i < s->layers; i++) shared += !s->layer[i].attention.owns_kv;
    fr_gguf_put_u32(writer, ".block_count", (uint32_t)s->layers);
    fr_gguf_put_u32(writer, ".context_length", (uint32_t)s->context_limit);
    fr_gguf_put_u32(writer, ".embedding_length", (uint32_t)s->hidden);
    put_per_layer(writer, ".feed_forward_length", s, ffn_width);
    fr_gguf_put_u32(writer, ".attention.head_count", (uint32_t)s->layer[0].attention.heads);
    put_per_layer(writer, ".attention.head_count_kv", s, kv_heads);
    fr_gguf_put_f32(writer, ".rope.freq_base", (float)s->rope[FR_FULL].theta);
    fr_gguf_put_f32(writer, ".rope.freq_base_swa", (float)s->rope[FR_SLIDING].theta);
    fr_gguf_put_f32(writer, ".attention.layer_norm_rms_epsilon", s->eps);
    if (s->softcap > 0) fr_gguf_put_f32(writer, ".final_logit_softcapping", s->softcap);
    fr_gguf_put_u32(writer, ".attention.sliding_window", (uint32_t)window_of(s));
    fr_gguf_put_u32(writer, ".attention.shared_kv_layers", (uint32_t)shared);
    fr_gguf_put_u32(writer, ".embedding_length_per_layer_input", (uint32_t)s->ple_width);
    fr_gguf_put_array(writer, ".attention.sliding_window_pattern", FR_GGUF_BOOL, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_bool(writer, s->layer[i].attention.rope == FR_SLIDING);
    const fr_experts_spec *experts = &s->layer[0].experts;
    if (experts->count == 0) return;
    fr_gguf_put_u32(writer, ".expert_count", (uint32_t)experts->count);
    fr_gguf_put_u32(writer, ".expert_used_count", (uint32_t)experts->top_k);
    fr_gguf_put_u32(writer, ".expert_feed_forward_length", (uint32_t)experts->width);
}

fr_status fr_gemma4_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *writer) {
    static const char *const full_keys[] = {".attention.key_length", ".attention.value_length",
                                            ".rope.dimension_count"};
    static const char *const sliding_keys[] = {".attention.key_length_swa", ".attention.value_length_swa",
                                               ".rope.dimension_count_swa"};
    const fr_rope_spec *sliding = &s->rope[FR_SLIDING], *full = &s->rope[FR_FULL];
    (void)mtp_layers; /* none: its drafters have files of their own */
    if (sliding->kind != FR_ROPE_DEFAULT || sliding->partial < 1.0 || sliding->factor > 1.0 || sliding->factor < 1.0 ||
        full->factor > 1.0 || full->factor < 1.0)
        return fr_fail(FR_INPUT, "%s: its rotary positions have a factor or a part that GGUF has no key for", where);
    put_sizes(s, writer);
    put_head_dim(writer, s, FR_FULL, full_keys);
    put_head_dim(writer, s, FR_SLIDING, sliding_keys);
    return FR_OK;
}

/* The full layers': 1 for angles that turn, 1e30 for the others. */
size_t fr_gemma4_put_rope_factors(const fr_trunk_spec *s, float *factors) {
    const fr_rope_spec *rope = &s->rope[FR_FULL];
    size_t angles = rope->dims / 2, turning = angles;
    if (rope->kind == FR_ROPE_PROPORTIONAL) turning = (size_t)((double)rope->dims * rope->partial / 2);
    for (size_t i = 0; i < angles; i++) factors[i] = i < turning ? 1.0F : 1e30F;
    return angles;
}
