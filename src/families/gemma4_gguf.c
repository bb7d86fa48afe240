/* Gemma 4's configuration from GGUF metadata, of targets and of drafters.
 *
 * In: a GGUF file as llama.cpp's converter writes it (architectures "gemma4", "gemma4-assistant"), or a drafter as
 * AtomicChat's fork ("gemma4_assistant") and ik_llama.cpp ("gemma4_mtp") do. Out: the fr_gemma4_config that the
 * published folder gives. What metadata leave out is read off the tensors: the vocabulary, the rotary factor, and
 * whether full layers take their values from the key projection. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
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
    const fr_tensor *embedding;
    const fr_gguf_value *tokens;
    int64_t listed;
    FR_TRY(fr_checkpoint_tensor(files, "token_embd.weight", &embedding));
    config->vocab = embedding->dims == 2 ? embedding->shape[0] : 0;
    if (config->vocab < 1 || config->vocab > 1 << 24)
        return fr_fail(FR_INPUT, "%s: tensor token_embd.weight has %zu rows, expected 1 to 2^24", files->path,
                       config->vocab);
    FR_TRY(fr_gguf_int(files->gguf, ".vocab_size", 1, 1 << 24, (int64_t)config->vocab, &listed));
    FR_TRY(fr_gguf_array(files->gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    if (tokens && tokens->count != config->vocab) listed = (int64_t)tokens->count;
    if (listed == (int64_t)config->vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a vocabulary of %lld ids, and tensor token_embd.weight has %zu rows", files->path,
                   (long long)listed, config->vocab);
}

/* Full layers that own a KV cache and have no value projection take their values from the keys. */
static bool lacks_values(const fr_gemma4_config *config, const fr_weights *weights) {
    char name[64];
    for (size_t i = 0; i < config->layers; i++) {
        if (config->layer[i].kind != FR_FULL || !config->layer[i].owns_kv) continue;
        snprintf(name, sizeof name, "blk.%zu.attn_v.weight", i);
        return !fr_weights_has(weights, "", name);
    }
    return false;
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
    config->k_eq_v = lacks_values(config, weights);
    return FR_OK;
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
