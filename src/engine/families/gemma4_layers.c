/* Makes Gemma 4's layers: see gemma4_layers.h. Two facts are not in GGUF's metadata and are found from the tensors: the
 * rotary factor, and whether full layers take their values from the projection of keys. */
#include "src/engine/families/gemma4_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/families/config_keys.h"

/* The converter's table has a divisor for each angle. A divisor of at least STANDING means that the angle is not
 * rotated. All other angles have the divisor 1. */
#define STANDING 1e29f

/* ------------------------------------------------------------------------------------------------- rotary positions */

/* Reads rope_freqs.weight, the divisors of the full layers' frequencies. The table has a 1 for each angle that is
 * rotated. The large entries of the other angles follow. */
static fr_status read_rope_table(const fr_source *source, fr_rope_spec *full) {
    const float *table;
    size_t rotated = 0, angles = full->dims / 2;
    FR_TRY(fr_bind_vector(source->weights, "", "rope_freqs.weight", angles, &table));
    while (rotated < angles && table[rotated] == 1.0f) rotated++;
    for (size_t i = rotated; i < angles; i++)
        if (table[i] < STANDING)
            return fr_fail(FR_INPUT, "%s: tensor rope_freqs.weight has %g at index %zu, expected ones, then 1e30",
                           source->where, (double)table[i], i);
    /* A reader multiplies `partial` by the number of angles and rounds down. Half an angle is added here, so that
     * rounding doesn't lose an angle. */
    full->partial = rotated < angles ? ((double)rotated + 0.5) / (double)angles : 1.0;
    return FR_OK;
}

fr_status fr_gemma4_rope(const fr_source *source, fr_model_spec *s) {
    double scaling;
    if (!source->gguf) return fr_rope_by_kind(source, s);
    FR_TRY(fr_gguf_real(source->gguf, ".rope.scaling.factor", 1.0, 1.0, 1.0, &scaling));
    if (fr_source_has(source, "rope_freqs.weight")) return read_rope_table(source, &s->trunk.rope[FR_FULL]);
    fr_notes_add(&source->weights->notes,
                 "%s has no rope_freqs.weight: a quarter of the full layers' angles turn, as published", source->where);
    return FR_OK;
}

/* Writes a divisor for each angle: 1 for rotated angles, 1e30 for all other angles. */
size_t fr_gemma4_put_rope_factors(const fr_trunk_spec *s, float *factors) {
    const fr_rope_spec *rope = &s->rope[FR_FULL];
    size_t angles = rope->dims / 2, rotated = angles;
    if (rope->kind == FR_ROPE_PROPORTIONAL) rotated = (size_t)((double)rope->dims * rope->partial / 2);
    for (size_t i = 0; i < angles; i++) factors[i] = i < rotated ? 1.0F : 1e30F;
    return angles;
}

/* ------------------------------------------------------------------------------------------------------------ heads */

/* Applies one entry of per_layer_config to one layer. */
static fr_status override_layer(const json_t *entry, fr_attention_spec *layer, const char *where) {
    if (!json_is_object(entry)) return fr_fail(FR_INPUT, "%s: a per_layer_config entry is no object", where);
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)entry, key, value) {
        if (strcmp(key, "head_dim") != 0 && strcmp(key, "num_key_value_heads") != 0)
            return fr_fail(FR_INPUT, "%s: per_layer_config has %s, expected head_dim or num_key_value_heads", where,
                           key);
    }
    FR_TRY(fr_json_size(entry, "head_dim", 2, 4096, (int64_t)layer->head_dim, where, &layer->head_dim));
    return fr_json_size(entry, "num_key_value_heads", 1, 4096, (int64_t)layer->kv_heads, where, &layer->kv_heads);
}

/* Reads per_layer_config, an object such as {"5": {...}}. Each of its keys is a layer's number or a kind of layers. */
static fr_status read_per_layer(const json_t *table, fr_trunk_spec *s, const char *where) {
    const char *key;
    json_t *entry;
    json_object_foreach ((json_t *)table, key, entry) {
        char *end;
        unsigned long index = strtoul(key, &end, 10);
        bool numbered = *key >= '0' && *key <= '9' && *end == '\0' && index < s->layers;
        bool full = strcmp(key, "full_attention") == 0, sliding = strcmp(key, "sliding_attention") == 0;
        if (!numbered && !full && !sliding)
            return fr_fail(FR_INPUT, "%s: per_layer_config key %s is neither a layer below %zu nor a layer type", where,
                           key, s->layers);
        for (size_t i = 0; i < s->layers; i++) {
            fr_attention_spec *a = &s->layer[i].attention;
            bool meant = numbered ? i == index : a->rope == (full ? FR_FULL : FR_SLIDING);
            if (meant) FR_TRY(override_layer(entry, a, where));
        }
    }
    return FR_OK;
}

/* Reads the heads of layers. If there is a per_layer_config, they are read from it. Otherwise full layers have
 * global_head_dim, and with attention_k_eq_v also num_global_key_value_heads. */
static fr_status read_heads(const fr_source *source, fr_model_spec *s) {
    const fr_attention_spec *all = &s->layer.attention;
    json_t *table = NULL;
    size_t kv_heads = all->kv_heads;
    FR_TRY(
        fr_json_size(source->text, "num_global_key_value_heads", 1, 4096, (int64_t)kv_heads, source->where, &kv_heads));
    FR_TRY(fr_json_object(source->text, "per_layer_config", source->where, &table));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        bool global = !table && a->rope == FR_FULL;
        a->head_dim = s->trunk.rope[global ? FR_FULL : FR_SLIDING].dims;
        if (global && all->k_eq_v) a->kv_heads = kv_heads;
    }
    return table ? read_per_layer(table, &s->trunk, source->where) : FR_OK;
}

/* Checks that all layers of a kind have the same head_dim, because each kind has one row of angles. */
static fr_status set_angles(const fr_source *source, fr_trunk_spec *s) {
    bool seen[FR_LAYER_KINDS] = {false};
    for (size_t i = 0; i < s->layers; i++) {
        const fr_attention_spec *a = &s->layer[i].attention;
        fr_rope_spec *rope = &s->rope[a->rope];
        if (seen[a->rope] && rope->dims != a->head_dim)
            return fr_fail(FR_UNBUILT, "%s: layers of one kind have head_dim %zu and %zu, which is not built",
                           source->where, rope->dims, a->head_dim);
        seen[a->rope] = true;
        rope->dims = a->head_dim;
    }
    for (size_t kind = 0; kind < FR_LAYER_KINDS; kind++) s->rope[kind].sections[0] = s->rope[kind].dims / 2;
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------- keys and values */

/* Makes the last layers use the keys and values of earlier layers. In an assistant, all layers use those of the target.
 * For each of these layers there must be a cache of the layer's kind. An assistant's row sees the target's keys and
 * values of earlier positions, but has none at its own position. So the window is wider by one position. */
static fr_status share(const fr_source *source, fr_model_spec *s) {
    size_t layers = s->trunk.layers, owners = source->drafter ? 0 : layers - fr_smaller(s->borrowers, layers);
    bool seen[FR_LAYER_KINDS] = {false};
    if (!source->drafter && owners == 0)
        return fr_fail(FR_INPUT, "%s: %zu layers share a KV cache, which leaves none that owns one: this is a drafter",
                       source->where, s->borrowers);
    for (size_t i = 0; i < layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        a->owns_kv = i < owners;
        a->k_eq_v = a->k_eq_v && a->rope == FR_FULL;
        if (source->drafter && a->window) a->window++;
        if (a->owns_kv)
            seen[a->rope] = true;
        else if (!source->drafter && !seen[a->rope])
            return fr_fail(FR_INPUT, "%s: layer %zu borrows a KV cache of its kind, but no earlier layer owns one",
                           source->where, i);
    }
    return FR_OK;
}

/* Doubles the width of the feed-forward in layers that use another layer's keys and values, if the model says so. */
static fr_status widen(const fr_source *source, fr_trunk_spec *s) {
    bool wide;
    FR_TRY(fr_json_bool(source->text, "use_double_wide_mlp", false, source->where, &wide));
    for (size_t i = 0; i < s->layers; i++)
        if (wide && !source->drafter && !s->layer[i].attention.owns_kv) s->layer[i].ffn.width *= 2;
    return FR_OK;
}

/* Returns true if a layer has a projection of values, in a tensor of its own or in one tensor with those of queries and
 * keys. */
static bool has_values(const fr_source *source, size_t layer) {
    char alone[48], fused[48];
    snprintf(alone, sizeof alone, "blk.%zu.attn_v.weight", layer);
    snprintf(fused, sizeof fused, "blk.%zu.attn_qkv.weight", layer);
    return fr_source_has(source, alone) || fr_source_has(source, fused);
}

/* Finds out whether full layers take values from the keys. For a GGUF file this is so if none of the full layers with
 * keys of their own has a projection of values. */
static fr_status find_values(const fr_source *source, fr_trunk_spec *s) {
    size_t lacking = s->layers;
    bool some = false;
    for (size_t i = 0; i < s->layers; i++) {
        if (s->layer[i].attention.rope != FR_FULL || !s->layer[i].attention.owns_kv) continue;
        if (has_values(source, i))
            some = true;
        else
            lacking = i;
    }
    if (lacking < s->layers && some)
        return fr_fail(FR_INPUT,
                       "%s: tensor blk.%zu.attn_v.weight is missing, and other full-attention layers have theirs",
                       source->where, lacking);
    for (size_t i = 0; i < s->layers; i++)
        s->layer[i].attention.k_eq_v = lacking < s->layers && s->layer[i].attention.rope == FR_FULL;
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- checks */

/* Checks the numbers of experts. Published dense models have these keys too, and another key that says that there are
 * no experts. */
static fr_status check_experts(const fr_source *source, fr_experts_spec *e) {
    bool there = e->count > 0;
    if (!source->gguf) FR_TRY(fr_json_bool(source->text, "enable_moe_block", false, source->where, &there));
    if (!there) e->count = e->top_k = e->width = 0;
    if (!there || (e->top_k && e->top_k <= e->count && e->width)) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %zu experts are chosen of %zu, which have a width of %zu", source->where, e->top_k,
                   e->count, e->width);
}

/* Lets rows of a picture see the picture's later rows in sliding layers, if the model says so. GGUF has no key for
 * this. So in a model that is read from GGUF, they do if the model has no per-layer embeddings. (The E-series has such
 * embeddings.) */
static void set_blocks(const fr_source *source, fr_model_spec *s) {
    const json_t *word = json_object_get(source->text, "use_bidirectional_attention");
    bool sees = s->layer.attention.sees_block;
    if (source->gguf) sees = s->trunk.ple_width == 0;
    /* The only supported text is "vision". */
    if (word) sees = json_is_string(word);
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        a->sees_block = sees && a->window;
    }
}

/* Checks that the table of per-layer embeddings has a row for each id of the vocabulary. */
static fr_status check_tokens(const fr_source *source, const fr_trunk_spec *s) {
    size_t vocab = s->vocab;
    if (s->ple_width == 0) return FR_OK;
    FR_TRY(fr_json_size(source->text, "vocab_size_per_layer_input", 1, 1 << 24, 262144, source->where, &vocab));
    if (s->ple_pad >= s->vocab)
        return fr_fail(FR_INPUT, "%s: pad_token_id %zu is outside the vocabulary of %zu", source->where, s->ple_pad,
                       s->vocab);
    if (vocab == s->vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: vocab_size_per_layer_input %zu differs from vocab_size %zu", source->where, vocab,
                   s->vocab);
}

/* Checks the vocabulary. Its size is the number of rows of the embedding table. If the file has a key for the size, or
 * a list of tokens, they must agree with the table. */
static fr_status check_vocabulary(const fr_source *source, fr_trunk_spec *s) {
    const fr_gguf_value *tokens;
    int64_t listed;
    FR_TRY(fr_config_vocabulary(source->weights->files, s->hidden, &s->vocab));
    FR_TRY(fr_gguf_int(source->gguf, ".vocab_size", 1, 1 << 24, (int64_t)s->vocab, &listed));
    FR_TRY(fr_gguf_array(source->gguf, "tokenizer.ggml.tokens", FR_GGUF_STRING, &tokens));
    if (tokens && tokens->count != s->vocab) listed = (int64_t)tokens->count;
    if (listed == (int64_t)s->vocab) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a vocabulary of %lld ids, and tensor token_embd.weight has %zu rows", source->where,
                   (long long)listed, s->vocab);
}

/* --------------------------------------------------------------------------------------------------- kinds of files */

static fr_status from_gguf(const fr_source *source, fr_model_spec *s) {
    FR_TRY(check_vocabulary(source, &s->trunk));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        a->head_dim = s->trunk.rope[a->rope].dims;
    }
    FR_TRY(share(source, s));
    return find_values(source, &s->trunk);
}

/* Reads what only config.json has, and makes the last layer full, as it always is. */
static fr_status from_json(const fr_source *source, fr_model_spec *s) {
    fr_attention_spec *last = &s->trunk.layer[s->trunk.layers - 1].attention;
    last->window = 0;
    last->rope = FR_FULL;
    if (source->drafter && source->weights) FR_TRY(fr_config_head(source->text, source->where, source->weights));
    FR_TRY(check_tokens(source, &s->trunk));
    FR_TRY(fr_config_image_token(source->root, "image_token_id", "image_token_index", 258880, s->trunk.vocab,
                                 source->where, &s->image_token));
    FR_TRY(read_heads(source, s));
    FR_TRY(share(source, s));
    return widen(source, &s->trunk);
}

fr_status fr_gemma4_layers(const fr_source *source, fr_model_spec *s) {
    FR_TRY(check_experts(source, &s->layer.experts));
    FR_TRY(fr_layers_by_kind(source, s));
    FR_TRY(source->gguf ? from_gguf(source, s) : from_json(source, s));
    set_blocks(source, s);
    return set_angles(source, &s->trunk);
}
