/* Binds tensors by tables of names: see tensor_names.h. */
#include "src/engine/layers/tensor_names.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/layers/latent_heads.h"

enum { FR_EXPERT_NAME = 128 }; /* bytes of the name of one expert's tensor */

const fr_tensor_name fr_model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight", .norm = true),
    FR_VECTOR(fr_trunk, norm_bias, HIDDEN, "norm.bias", "output_norm.bias", .needs = FR_IF_NORM_BIAS),
    {0},
};

const fr_tensor_name *fr_naming_model(const fr_tensor_naming *naming) {
    return naming->model ? naming->model : fr_model_names;
}

const fr_tensor_name *const *fr_naming_tables(const fr_tensor_naming *naming, bool mtp) {
    return mtp && naming->mtp_layer[0] ? naming->mtp_layer : naming->layer;
}

/* Prefixes of the text model's tensors in multimodal checkpoints. Since version 5 transformers writes `nested`. Before
 * that it wrote `older`, and `older_top` for tensors outside of the text model. Idefics has a prefix of its own. */
static const char nested[] = "model.language_model.", idefics[] = "model.text_model.";
static const char older[] = "language_model.model.", older_top[] = "language_model.";

/* All prefixes that published names may have: those of multimodal checkpoints, and those of GPT-2, OPT, GPT-NeoX and
 * Mamba-2. */
static const char *const prefixes[] = {older,       nested,      idefics, "transformer.", "model.decoder.", "decoder.",
                                       "gpt_neox.", "backbone.", NULL};

/* The words before a layer's number. GPT-2's files use the second word, and MPT's files the third. */
static const char *const layer_words[] = {"layers.", "h.", "blocks.", NULL};

const char *fr_tensor_names_prefix(const fr_weights *weights) {
    if (weights->files->gguf) return "";
    for (const char *const *prefix = prefixes; *prefix; prefix++)
        if (fr_weights_has_any(weights, *prefix)) return *prefix;
    /* A decoder for text embeddings is saved without a head, and its names have no prefix. */
    for (const char *const *word = layer_words; *word; word++) {
        char first[32];
        snprintf(first, sizeof first, "%s0.", *word);
        if (fr_weights_has_any(weights, first)) return "";
    }
    return "model.";
}

static const char *layer_word(const fr_weights *weights) {
    char other[128];
    if (weights->files->gguf) return "blk.";
    for (const char *const *word = layer_words + 1; *word; word++) {
        snprintf(other, sizeof other, "%s%s0.", fr_tensor_names_prefix(weights), *word);
        if (fr_weights_has_any(weights, other)) return *word;
    }
    return layer_words[0];
}

static const char *top_prefix(const char *prefix) {
    return strcmp(prefix, older) == 0 ? older_top : "";
}

const char *fr_names_top(const fr_weights *weights) {
    return top_prefix(fr_tensor_names_prefix(weights));
}

fr_binding fr_binding_model(fr_weights *weights, const fr_trunk_spec *trunk) {
    fr_binding b = {.weights = weights, .trunk = trunk};
    snprintf(b.prefix, sizeof b.prefix, "%s", fr_tensor_names_prefix(weights));
    return b;
}

fr_binding fr_binding_layer(fr_weights *weights, const fr_trunk_spec *trunk, const fr_layer_spec *layer, size_t index) {
    fr_binding b = {.weights = weights, .trunk = trunk, .layer = layer};
    snprintf(b.prefix, sizeof b.prefix, "%s%s%zu.", fr_tensor_names_prefix(weights), layer_word(weights), index);
    return b;
}

/* Gives the word before the number of an MTP layer. */
static const char *mtp_word(const fr_tensor_naming *naming) {
    return naming->mtp_word ? naming->mtp_word : layer_words[0];
}

/* Gives the prefix of the published names of a model's MTP layer. */
static const char *mtp_prefix(const fr_weights *weights, const fr_tensor_naming *naming) {
    for (const char *const *prefix = naming->mtp_prefixes; *prefix; prefix++)
        if (fr_weights_has_any(weights, *prefix)) return *prefix;
    return naming->mtp_prefixes[0];
}

fr_binding fr_binding_mtp(fr_weights *weights, const fr_tensor_naming *naming, const fr_trunk_spec *trunk,
                          bool beside) {
    fr_binding b = fr_binding_layer(weights, trunk, &trunk->mtp, trunk->layers);
    b.naming = naming;
    if (naming->mtp_prefixes && !weights->files->gguf) {
        bool flat = beside || naming->mtp_flat;
        snprintf(b.prefix, sizeof b.prefix, "%s%s%s", mtp_prefix(weights, naming), flat ? "" : mtp_word(naming),
                 flat ? "" : "0.");
    }
    return b;
}

float fr_channel_factor(const fr_layer_spec *layer, size_t channel) {
    const fr_mamba_spec *mamba = &layer->mamba;
    size_t values = mamba->heads * mamba->head_dim, keys = mamba->groups * mamba->state_dim;
    if (channel < values) return layer->factors.mamba_x;
    return channel < values + keys ? layer->factors.mamba_b : layer->factors.mamba_c;
}

size_t fr_dim_size(fr_dim dim, const fr_trunk_spec *trunk, const fr_layer_spec *layer) {
    const fr_deltanet_spec *delta = layer ? &layer->deltanet : NULL;
    const fr_mamba_spec *mamba = layer ? &layer->mamba : NULL;
    switch (dim) {
    case FR_DIM_ONE: return 1;
    case FR_DIM_HIDDEN: return trunk->hidden;
    case FR_DIM_TWICE_HIDDEN: return 2 * trunk->hidden;
    case FR_DIM_VOCAB: return trunk->vocab;
    case FR_DIM_HEAD: return layer->attention.head_dim;
    case FR_DIM_HEADS: return layer->attention.heads;
    case FR_DIM_QUERIES: return layer->attention.heads * layer->attention.head_dim;
    case FR_DIM_QUERIES_GATED:
        return (layer->attention.output_gate ? 2 : 1) * layer->attention.heads * layer->attention.head_dim;
    case FR_DIM_GATES: return layer->attention.heads * layer->attention.own_gate;
    case FR_DIM_DELTA_HEADS: return delta->value_heads;
    case FR_DIM_DELTA_HEAD: return delta->value_dim;
    case FR_DIM_DELTA_VALUES: return delta->value_heads * delta->value_dim;
    case FR_DIM_DELTA_CHANNELS: return 2 * delta->key_heads * delta->key_dim + delta->value_heads * delta->value_dim;
    case FR_DIM_DELTA_QKVZ: return 2 * (delta->key_heads * delta->key_dim + delta->value_heads * delta->value_dim);
    case FR_DIM_DELTA_BA: return 2 * delta->value_heads;
    case FR_DIM_MAMBA_HEADS: return mamba->heads;
    case FR_DIM_MAMBA_VALUES: return mamba->heads * mamba->head_dim;
    case FR_DIM_MAMBA_CHANNELS: return mamba->heads * mamba->head_dim + 2 * mamba->groups * mamba->state_dim;
    case FR_DIM_MAMBA_INPUTS:
        return 2 * (mamba->heads * mamba->head_dim + mamba->groups * mamba->state_dim) + mamba->heads;
    case FR_DIM_LATENT_EXPERTS: return layer->experts.latent ? layer->experts.latent : trunk->hidden;
    case FR_DIM_CONV_KERNEL:
        if (mamba->conv_kernel) return mamba->conv_kernel;
        return layer->mixer == FR_MIXER_SHORT_CONV ? layer->short_conv.conv_kernel : delta->conv_kernel;
    case FR_DIM_KEYS: return layer->attention.kv_heads * layer->attention.head_dim;
    case FR_DIM_QUERY_NORM:
        return (layer->attention.qk_norm_wide || trunk->layer_norm ? layer->attention.heads : 1) *
               layer->attention.head_dim;
    case FR_DIM_KEY_NORM:
        return (layer->attention.qk_norm_wide || trunk->layer_norm ? layer->attention.kv_heads : 1) *
               layer->attention.head_dim;
    case FR_DIM_FFN: return layer->ffn.width;
    case FR_DIM_EXPERTS: return layer->experts.count;
    case FR_DIM_EXPERT_FFN: return layer->experts.width;
    case FR_DIM_Q_LORA: return layer->mla.q_lora;
    case FR_DIM_Q_INPUT: return layer->mla.q_lora ? layer->mla.q_lora : trunk->hidden;
    case FR_DIM_HEAD_QUERIES:
        return layer->attention.heads * (layer->mla.nope + layer->attention.head_dim - layer->attention.latent);
    case FR_DIM_LATENT: return layer->attention.latent;
    case FR_DIM_NOPE: return layer->mla.nope;
    case FR_DIM_VALUE: return layer->mla.value_dim;
    case FR_DIM_VALUES: return layer->attention.heads * layer->mla.value_dim;
    case FR_DIM_KV_B: return layer->attention.heads * (layer->mla.nope + layer->mla.value_dim);
    case FR_DIM_EMBEDDING: return trunk->embed_width ? trunk->embed_width : trunk->hidden;
    case FR_DIM_POSITIONS: return trunk->position_rows;
    case FR_DIM_TOKEN: return trunk->ple_width;
    case FR_DIM_TOKENS: return trunk->layers * trunk->ple_width;
    }
    return 0;
}

bool fr_tensor_name_needed(const fr_tensor_name *name, const fr_trunk_spec *trunk, const fr_layer_spec *layer) {
    unsigned needs = name->needs;
    bool mamba = layer && (layer->mixer == FR_MIXER_MAMBA || layer->mixer == FR_MIXER_BOTH);
    if (needs & FR_IF_ATTENTION && layer->mixer != FR_MIXER_ATTENTION && layer->mixer != FR_MIXER_BOTH) return false;
    if (name->also & FR_ALSO_MAMBA && !mamba) return false;
    if (name->also & FR_ALSO_MAMBA_NORM && !layer->mamba.norm_groups) return false;
    if (name->also & FR_ALSO_MAMBA_BIAS && !layer->mamba.bias) return false;
    if (name->also & FR_ALSO_CONV_BIAS && !layer->mamba.conv_bias) return false;
    if (name->also & FR_ALSO_MLA && layer->mixer != FR_MIXER_MLA) return false;
    if (name->also & FR_ALSO_LATENT && !layer->experts.latent) return false;
    if (name->also & FR_ALSO_GATED && !layer->mla.gated) return false;
    if (name->also & FR_ALSO_OWN_GATE && !layer->attention.own_gate) return false;
    if (name->also & FR_ALSO_POST_NORMS && !trunk->post_norms) return false;
    if (needs & FR_IF_DELTANET && layer->mixer != FR_MIXER_DELTANET) return false;
    if (needs & FR_IF_SHORT_CONV && layer->mixer != FR_MIXER_SHORT_CONV) return false;
    if (needs & FR_IF_FUSED && !layer->deltanet.fused) return false;
    if (needs & FR_IF_PARTED && layer->deltanet.fused) return false;
    if (needs & FR_IF_KEYS && !layer->attention.owns_kv) return false;
    if (needs & FR_IF_VALUES && (!layer->attention.owns_kv || layer->attention.k_eq_v)) return false;
    if (needs & FR_IF_EXPERTS && layer->experts.count == 0) return false;
    if (needs & FR_IF_DENSE && (layer->experts.count || layer->ffn.width == 0)) return false;
    if (needs & FR_IF_TURNED && !layer->experts.turned) return false;
    if (needs & FR_IF_SHARED && (layer->experts.count == 0 || layer->ffn.width == 0)) return false;
    if (needs & FR_IF_SHARED_GATED && !layer->experts.shared_gated) return false;
    if (needs & FR_IF_CORRECTED && !layer->experts.score_bias) return false;
    if (needs & FR_IF_Q_LORA && layer->mla.q_lora == 0) return false;
    if (needs & FR_IF_NORMED_HEADS && !layer->attention.qk_norm) return false;
    if (needs & FR_IF_PLE && trunk->ple_width == 0) return false;
    if (needs & FR_IF_QKV_BIAS && !layer->attention.qkv_bias) return false;
    if (needs & FR_IF_O_BIAS && !layer->attention.o_bias) return false;
    if (needs & (FR_IF_INPUT_NORM | FR_IF_FFN_NORM | FR_IF_NORMS_AFTER | FR_IF_LAST_NORM) && trunk->plain_norms)
        return false;
    if (needs & FR_IF_INPUT_NORM && (layer->norms == FR_NORMS_BEHIND || layer->norms == FR_NORMS_AFTER)) return false;
    if (needs & FR_IF_INPUT_NORM && layer->mixer == FR_MIXER_NONE) return false;
    if (needs & FR_IF_FFN_NORM && !fr_layer_feeds(layer)) return false;
    if (needs & FR_IF_NORMS_AFTER && layer->norms != FR_NORMS_AFTER) return false;
    if (needs & FR_IF_FFN_NORM && layer->norms != FR_NORMS_BEFORE && layer->norms != FR_NORMS_PARALLEL) return false;
    if (needs & FR_IF_EMBED_WIDTH && trunk->embed_width == 0) return false;
    if (needs & FR_IF_LAST_NORM && trunk->no_last_norm) return false;
    if (needs & FR_IF_HEAD_BIAS && !trunk->head_bias) return false;
    if (needs & FR_IF_NORM_BIAS && !trunk->norm_bias) return false;
    if (needs & FR_IF_FFN_BIASED && !layer->ffn.biased) return false;
    if (needs & FR_IF_SINKS && !layer->attention.sinks) return false;
    if (needs & FR_IF_EXPERTS_BIASED && !layer->experts.biased) return false;
    return !(needs & FR_IF_EMBEDS) || trunk->embeds;
}

/* ---------------------------------------------------------------------------------------------------------- binding */

static const char *spelling_of(const fr_tensor_name *name, bool gguf) {
    return gguf ? name->gguf : name->published;
}

static const char *spelled(const fr_binding *b, const fr_tensor_name *name) {
    return spelling_of(name, b->weights->files->gguf);
}

/* Returns true if two lines of a table fill the same field, but from different tensors. */
static bool alternatives(const fr_tensor_name *name, const fr_tensor_name *other, bool gguf) {
    const char *mine = spelling_of(name, gguf), *its = spelling_of(other, gguf);
    return other->field == name->field && its && mine && strcmp(mine, its) != 0;
}

bool fr_tensor_name_has_another(const fr_tensor_name *name, bool gguf, const fr_trunk_spec *trunk,
                                const fr_layer_spec *layer) {
    for (const fr_tensor_name *other = name + 1; other->published || other->gguf; other++)
        if (alternatives(name, other, gguf) && fr_tensor_name_needed(other, trunk, layer)) return true;
    return false;
}

static bool is_numbered(const char *spelling) {
    return strchr(spelling, '*') != NULL;
}

static const char *prefix_of(const fr_binding *b, const fr_tensor_name *name) {
    return name->top && !b->weights->files->gguf ? fr_names_top(b->weights) : b->prefix;
}

/* A line whose name has a `*` names several tensors. Gives their number. */
static size_t count_numbered(const fr_binding *b, const fr_tensor_name *name) {
    bool heads = name->rows == FR_DIM_QUERY_NORM || name->rows == FR_DIM_KEY_NORM;
    return heads ? fr_dim_size(name->rows, b->trunk, b->layer) / b->layer->attention.head_dim : b->layer->experts.count;
}

/* Returns true if the file has the tensor. An expert's matrices or a head's norms may be separate tensors. Then the
 * first of them that is found is enough, because all others should be there too. */
static bool is_there(const fr_binding *b, const fr_tensor_name *name) {
    const char *spelling = spelled(b, name);
    char expert[FR_EXPERT_NAME];
    if (!spelling) return false;
    if (!is_numbered(spelling)) return fr_weights_has(b->weights, prefix_of(b, name), spelling);
    for (size_t e = 0; e < count_numbered(b, name); e++) {
        fr_spell_numbered(spelling, e, expert, sizeof expert);
        if (fr_weights_has(b->weights, prefix_of(b, name), expert)) return true;
    }
    return false;
}

const fr_tensor *fr_tensor_names_tensor(const fr_binding *b, const fr_tensor_name *names, size_t field) {
    char name[FR_EXPERT_NAME + sizeof b->prefix];
    for (; names->published || names->gguf; names++) {
        if (names->field != field || !is_there(b, names)) continue;
        snprintf(name, sizeof name, "%s%s", prefix_of(b, names), spelled(b, names));
        return fr_tensors_find(&b->weights->files->tensors, name);
    }
    return NULL;
}

static bool is_filled(const fr_tensor_name *name, const void *field) {
    bool matrix = name->slot == FR_SLOT_MATRIX || name->slot == FR_SLOT_TABLE || name->slot == FR_SLOT_PARTS ||
                  name->slot == FR_SLOT_THIRDS || name->slot == FR_SLOT_QKV || name->slot == FR_SLOT_QKVZ ||
                  name->slot == FR_SLOT_MAMBA_IN;
    return matrix ? ((const fr_matrix *)field)->data != NULL : *(void *const *)field != NULL;
}

/* Binds the separate tensor of each expert. */
static fr_status bind_each(const fr_binding *b, const fr_tensor_name *name, size_t rows, size_t cols,
                           fr_matrix **field) {
    size_t count = b->layer->experts.count;
    char expert[FR_EXPERT_NAME];
    *field = calloc(count, sizeof **field);
    if (!*field) return fr_fail_memory("experts", count * sizeof **field);
    for (size_t e = 0; e < count; e++) {
        fr_spell_numbered(spelled(b, name), e, expert, sizeof expert);
        FR_TRY(fr_bind_expert(b->weights, b->prefix, expert, rows, cols, &(*field)[e]));
    }
    return FR_OK;
}

static fr_status bind_experts(const fr_binding *b, const fr_tensor_name *name, size_t rows, size_t cols,
                              fr_matrix **field) {
    size_t count = b->layer->experts.count, parts = name->slot == FR_SLOT_EXPERTS_PARTS ? 2 : 1;
    if (is_numbered(spelled(b, name))) return bind_each(b, name, rows, cols, field);
    fr_matrix *both = calloc(parts * count, sizeof *both);
    if (!both) return fr_fail_memory("experts", parts * count * sizeof *both);
    fr_stack_layout layout = b->weights->files->gguf ? FR_LAYOUT_ROWS : name->layout;
    fr_status status = fr_bind_stack(b->weights, b->prefix, spelled(b, name), layout, count, parts, rows, cols, both);
    for (size_t p = 0; status == FR_OK && p < parts; p++) {
        field[p] = calloc(count, sizeof **field);
        if (!field[p]) status = fr_fail_memory("experts", count * sizeof **field);
        for (size_t i = 0; status == FR_OK && i < count; i++) field[p][i] = both[i * parts + p];
    }
    free(both);
    return status;
}

static fr_status bind_qkv(const fr_binding *b, const fr_tensor_name *name, size_t rows, size_t cols, fr_matrix *field) {
    size_t keys = fr_dim_size(FR_DIM_KEYS, b->trunk, b->layer), head = b->layer->attention.head_dim;
    const size_t features[] = {rows, keys, keys};
    if (b->weights->files->gguf || name->layout == FR_LAYOUT_ROWS)
        return fr_bind_rows(b->weights, b->prefix, spelled(b, name), features, 3, cols, field);
    return fr_bind_copied_rows(b->weights, b->prefix, spelled(b, name), name->layout, features, 3, head, cols, field);
}

static fr_status bind_qkv_vector(const fr_binding *b, const fr_tensor_name *name, size_t rows, const float **field) {
    size_t keys = fr_dim_size(FR_DIM_KEYS, b->trunk, b->layer);
    if (!b->weights->files->gguf && name->layout == FR_LAYOUT_HEADS)
        FR_TRY(fr_bind_head_values(b->weights, b->prefix, spelled(b, name), rows, keys, b->layer->attention.head_dim,
                                   field));
    else
        FR_TRY(fr_bind_vector(b->weights, b->prefix, spelled(b, name), rows + 2 * keys, field));
    field[1] = field[0] + rows;
    field[2] = field[1] + keys;
    return FR_OK;
}

/* Gives the factor by which products with the tensor of this line are multiplied; 0: none. Only folders need such
 * factors, because weights in GGUF are already multiplied by them. */
static float factor_of(const fr_binding *b, const fr_tensor_name *name) {
    if (!name->factor || b->weights->files->gguf) return 0;
    return *(const float *)(const void *)((const char *)b->layer + name->factor);
}

static fr_status bind_mamba_in(const fr_binding *b, const fr_tensor_name *name, size_t cols, fr_matrix *field) {
    const size_t rows[] = {fr_dim_size(FR_DIM_MAMBA_VALUES, b->trunk, b->layer),
                           fr_dim_size(FR_DIM_MAMBA_CHANNELS, b->trunk, b->layer), b->layer->mamba.heads};
    const fr_layer_factors *factors = &b->layer->factors;
    FR_TRY(fr_bind_rows(b->weights, b->prefix, spelled(b, name), rows, 3, cols, field));
    if (b->weights->files->gguf) return FR_OK;
    field[0].factor = factors->mamba_z;
    field[2].factor = factors->mamba_dt;
    return FR_OK;
}

/* Binds a convolution. In Mamba-2, each channel that the convolution reads may have a factor. Here the convolution's
 * weights are multiplied by these factors, so that the channels need not be. */
static fr_status bind_conv(const fr_binding *b, const fr_tensor_name *name, size_t rows, size_t cols,
                           const float **field) {
    const fr_layer_factors *factors = &b->layer->factors;
    FR_TRY(fr_bind_conv(b->weights, b->prefix, spelled(b, name), rows, cols, field));
    if (factors->mamba_x == 0.0F || b->weights->files->gguf) return FR_OK;
    float *weights = (float *)*field; /* the arena's own copy */
    for (size_t i = 0; i < rows * cols; i++) weights[i] *= fr_channel_factor(b->layer, i % rows);
    return FR_OK;
}

static fr_status fill(const fr_binding *b, const fr_tensor_name *name, void *field) {
    fr_weights *w = b->weights;
    const char *prefix = prefix_of(b, name), *spelling = spelled(b, name);
    size_t rows = fr_dim_size(name->rows, b->trunk, b->layer), cols = fr_dim_size(name->cols, b->trunk, b->layer);
    fr_values values = w->files->gguf ? FR_AS_THEY_ARE : fr_name_values(w->files, b->naming, name);
    switch (name->slot) {
    case FR_SLOT_MATRIX:
        if (b->head_order && name->rows == FR_DIM_VOCAB)
            return fr_bind_sorted(w, prefix, spelling, b->head_order, rows, cols, field, b->head_sorted);
        if (!w->files->gguf && name->layout != FR_LAYOUT_ROWS)
            return fr_bind_copied_rows(w, prefix, spelling, name->layout, &rows, 1, 0, cols, field);
        if (name->rows == FR_DIM_EXPERTS) return fr_bind_router(w, prefix, spelling, rows, cols, field);
        FR_TRY(fr_bind_matrix(w, prefix, spelling, rows, cols, FR_STREAMED, field));
        ((fr_matrix *)field)->factor = factor_of(b, name);
        return FR_OK;
    case FR_SLOT_MAMBA_IN: return bind_mamba_in(b, name, cols, field);
    case FR_SLOT_IN_ROWS: return fr_bind_values_in_rows(w, prefix, spelling, rows, values, field);
    case FR_SLOT_QKVZ: return fr_bind_matrix(w, prefix, spelling, rows, cols, FR_STREAMED, field);
    case FR_SLOT_TABLE: return fr_bind_matrix(w, prefix, spelling, rows, cols, FR_LOOKED_UP, field);
    case FR_SLOT_PARTS: return fr_bind_parts(w, prefix, spelling, 2, rows, cols, field);
    case FR_SLOT_THIRDS: return fr_bind_parts(w, prefix, spelling, 3, rows, cols, field);
    case FR_SLOT_VECTOR:
        if (b->trunk->layer_norm && (name->rows == FR_DIM_QUERY_NORM || name->rows == FR_DIM_KEY_NORM)) {
            size_t each = b->layer->attention.head_dim; /* a LayerNorm has weights for each head, which are a row
                                                         * here */
            if (is_numbered(spelling)) return fr_bind_numbered(w, prefix, spelling, rows / each, each, field);
            return fr_bind_array(w, prefix, spelling, (uint64_t[]){rows / each, each}, 2, field);
        }
        return fr_bind_values(w, prefix, spelling, rows, values, field);
    case FR_SLOT_ROW: return fr_bind_row(w, prefix, spelling, cols, field);
    case FR_SLOT_CONV:
    case FR_SLOT_CONV_WHOLE: return bind_conv(b, name, rows, cols, field);
    case FR_SLOT_HEADS: return fr_latent_bind_heads(w, prefix, spelling, b->layer->attention.heads, rows, cols, field);
    case FR_SLOT_KV_B: return fr_latent_bind_whole(w, prefix, spelling, b->layer, field);
    case FR_SLOT_QKV: return bind_qkv(b, name, rows, cols, field);
    case FR_SLOT_QKV_VECTOR: return bind_qkv_vector(b, name, rows, field);
    case FR_SLOT_EXPERTS:
    case FR_SLOT_EXPERTS_PARTS: return bind_experts(b, name, rows, cols, field);
    case FR_SLOT_EXPERTS_VECTORS: return fr_bind_vectors(w, prefix, spelling, b->layer->experts.count, rows, 1, field);
    case FR_SLOT_EXPERTS_VECTOR_PARTS:
        return fr_bind_vectors(w, prefix, spelling, b->layer->experts.count, rows, 2, field);
    }
    return FR_OK;
}

/* Finds another line that could have filled the same field: an earlier line that fits this model, fills this field, and
 * does so from another tensor. NULL if there is none. */
static const fr_tensor_name *line_before(const fr_binding *b, const fr_tensor_name *names, const fr_tensor_name *name) {
    for (const fr_tensor_name *line = names; line < name; line++)
        if (alternatives(name, line, b->weights->files->gguf) && fr_tensor_name_needed(line, b->trunk, b->layer))
            return line;
    return NULL;
}

static fr_status fail_both(const fr_binding *b, const fr_tensor_name *name, const fr_tensor_name *other) {
    return fr_fail(FR_INPUT, "%s: tensor %s%s is missing, and %s%s, which may stand for it, too",
                   b->weights->files->path, prefix_of(b, name), spelled(b, name), prefix_of(b, other),
                   spelled(b, other));
}

fr_status fr_tensor_names_bind(const fr_binding *b, const fr_tensor_name *names, void *base) {
    for (const fr_tensor_name *name = names; name->published || name->gguf; name++) {
        void *field = (char *)base + name->field;
        if (!spelled(b, name) || !fr_tensor_name_needed(name, b->trunk, b->layer) || is_filled(name, field)) continue;
        bool may_lack =
            name->needs & FR_IF_THERE || fr_tensor_name_has_another(name, b->weights->files->gguf, b->trunk, b->layer);
        bool there = is_there(b, name);
        if (may_lack && !there) continue;
        const fr_tensor_name *other = there ? NULL : line_before(b, names, name);
        FR_TRY(other ? fail_both(b, name, other) : fill(b, name, field));
    }
    return FR_OK;
}

fr_status fr_names_bind_model(const fr_binding *b, const fr_tensor_naming *naming, fr_trunk *trunk) {
    fr_binding named = *b;
    named.naming = naming;
    return fr_tensor_names_bind(&named, fr_naming_model(naming), trunk);
}

fr_status fr_tensor_names_bind_layer(const fr_binding *b, const fr_tensor_naming *naming, fr_layer *layer) {
    fr_binding named = *b;
    named.naming = naming;
    const fr_tensor_name *const *tables = fr_naming_tables(naming, b->layer == &b->trunk->mtp);
    for (size_t t = 0; t < FR_LAYER_TABLES && tables[t]; t++) FR_TRY(fr_tensor_names_bind(&named, tables[t], layer));
    return FR_OK;
}

/* --------------------------------------------------------------------------------------- tensors that nothing reads */

/* Gives the part of a name after a layer's number, as in "layers.12." or "blk.12."; NULL if the name does not begin in
 * this way. */
static const char *behind_layer(const char *name, const char *word, size_t *layer) {
    size_t length = strlen(word);
    if (strncmp(name, word, length) != 0 || name[length] < '0' || name[length] > '9') return NULL;
    char *end;
    *layer = strtoul(name + length, &end, 10);
    return *end == '.' ? end + 1 : NULL;
}

const char *fr_tensor_names_below(const char *name, bool gguf, bool *of_layer, size_t *layer) {
    const char *rest = gguf ? behind_layer(name, "blk.", layer) : NULL;
    bool found = gguf;
    for (const char *const *prefix = prefixes; *prefix && !found; prefix++) {
        found = strncmp(name, *prefix, strlen(*prefix)) == 0;
        if (found) name += strlen(*prefix);
    }
    for (size_t i = 0; i < 2 && !found; i++) {
        const char *outer = i ? "model." : older_top;
        found = strncmp(name, outer, strlen(outer)) == 0;
        if (found) name += strlen(outer);
    }
    for (const char *const *word = layer_words; *word && !gguf && !rest; word++)
        rest = behind_layer(name, *word, layer);
    *of_layer = rest != NULL;
    return rest ? rest : name;
}

static bool matches(const char *const *patterns, const char *name) {
    for (; patterns && *patterns; patterns++)
        if (fnmatch(*patterns, name, 0) == 0) return true;
    return false;
}

bool fr_tensor_names_extra(const fr_tensor_naming *naming, const char *tensor) {
    return matches(naming->extras, tensor);
}

bool fr_tensor_name_spells(const char *spelling, const char *name, size_t *expert) {
    char again[FR_EXPERT_NAME], *end;
    if (!is_numbered(spelling)) return strcmp(spelling, name) == 0;
    size_t before = strcspn(spelling, "*");
    if (strncmp(name, spelling, before) != 0 || name[before] < '0' || name[before] > '9') return false;
    *expert = strtoul(name + before, &end, 10);
    fr_spell_numbered(spelling, *expert, again, sizeof again);
    return strcmp(again, name) == 0;
}

static bool lists(const fr_tensor_name *names, bool gguf, const char *name) {
    size_t expert;
    for (; names && (names->published || names->gguf); names++) {
        const char *spelling = spelling_of(names, gguf);
        if (spelling && fr_tensor_name_spells(spelling, name, &expert)) return true;
    }
    return false;
}

/* If the tensor holds the scales of FP8 codes, gives the name of the codes. Any other name is returned unchanged. */
static const char *without_scale(const char *name, char *codes, size_t size) {
    static const char tail[] = "_scale_inv";
    size_t length = strlen(name), before = length - (sizeof tail - 1);
    if (length < sizeof tail || before >= size || strcmp(name + before, tail) != 0) return name;
    memcpy(codes, name, before);
    codes[before] = '\0';
    return codes;
}

/* Returns true if the tables of MTP layers have the name. */
static bool lists_of_layer(const fr_tensor_naming *naming, bool gguf, const char *name) {
    const fr_tensor_name *const *tables = fr_naming_tables(naming, true);
    for (size_t t = 0; t < FR_LAYER_TABLES && tables[t]; t++)
        if (lists(tables[t], gguf, name)) return true;
    return false;
}

/* Gives the part of a published name after an MTP layer's prefix; NULL if the name has no such prefix. */
static const char *below_mtp(const fr_tensor_naming *naming, const char *published) {
    for (const char *const *prefix = naming->mtp_prefixes; prefix && *prefix; prefix++)
        if (strncmp(published, *prefix, strlen(*prefix)) == 0) return published + strlen(*prefix);
    return NULL;
}

/* Returns true if this tensor may stay unbound: it is one of the family's extras, or it belongs to an MTP layer, which
 * only the drafter binds. */
static bool is_extra(const fr_weights *weights, const fr_tensor_naming *naming, const char *tensor, size_t layers,
                     size_t mtp_layers) {
    bool gguf = weights->files->gguf;
    char word[128], codes[FR_EXPERT_NAME + sizeof word];
    const char *name = without_scale(tensor, codes, sizeof codes);
    size_t layer;
    const char *below = gguf ? NULL : below_mtp(naming, name);
    if (below && !mtp_layers && fr_tensor_names_extra(naming, tensor)) return true;
    if (below) {
        const char *rest = naming->mtp_layer[0] ? NULL : behind_layer(below, mtp_word(naming), &layer);
        if (naming->mtp_flat && mtp_layers && lists_of_layer(naming, false, below)) return true;
        return rest ? layer < mtp_layers && lists_of_layer(naming, false, rest) : lists(naming->mtp, false, below);
    }
    snprintf(word, sizeof word, "%s%s", fr_tensor_names_prefix(weights), layer_word(weights));
    const char *rest = behind_layer(name, word, &layer);
    if (rest && matches(naming->layer_extras, rest)) return true;
    if (!rest || layer < layers) return fr_tensor_names_extra(naming, tensor);
    return naming->mtp && layer < layers + mtp_layers &&
           (lists_of_layer(naming, gguf, rest) || lists(naming->mtp, gguf, rest));
}

static fr_status fail_unread(const fr_weights *weights, const fr_tensor *tensor) {
    return fr_fail(FR_INPUT, "%s: nothing reads tensor %s: the weights don't fit the configuration",
                   weights->files->path, tensor->name);
}

/* Returns true for a tensor with the signs of a rotation. Such tensors are not read, because hadamard.json lists the
 * signs of all modules. */
static bool is_copy_of_signs(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".signs") == 0;
}

fr_status fr_tensor_names_check_read(const fr_weights *weights, const fr_tensor_naming *naming, size_t layers,
                                     size_t mtp_layers) {
    const fr_tensors *lists[] = {&weights->files->tensors, &weights->files->unread};
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const fr_tensor *t = &lists[l]->items[i];
            if (fr_weights_bound(weights, t) || is_extra(weights, naming, t->name, layers, mtp_layers)) continue;
            if (weights->files->rotations && is_copy_of_signs(t->name)) continue;
            return fail_unread(weights, t);
        }
    return FR_OK;
}

fr_status fr_tensor_names_check_below(const fr_weights *weights, const fr_tensor_naming *naming, const char *prefix,
                                      const fr_tensor *const spared[2]) {
    const fr_tensors *all = &weights->files->tensors;
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        bool below = strncmp(t->name, prefix, strlen(prefix)) == 0;
        if (below && matches(naming->layer_extras, t->name + strlen(prefix))) continue;
        if (below && t != spared[0] && t != spared[1] && !fr_weights_bound(weights, t)) return fail_unread(weights, t);
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------ without a binding */

bool fr_tensor_name_fills_two(const fr_tensor_name *name) {
    return name->slot == FR_SLOT_EXPERTS_PARTS || name->slot == FR_SLOT_EXPERTS_VECTOR_PARTS ||
           name->slot == FR_SLOT_KV_B || (name->slot == FR_SLOT_PARTS && !name->gguf);
}

void fr_tensor_name_in_rows(const fr_tensor_name *name, const fr_layer_spec *layer, uint64_t *shape, uint32_t *dims) {
    *dims = 2;
    shape[1] = name->rows == FR_DIM_MAMBA_VALUES ? shape[0] / layer->mamba.norm_groups : 1;
    shape[0] /= shape[1];
}

/* Finds the line of a table that has this published name. If a layer is given, only lines whose tensor this layer has
 * are searched. Lines without a GGUF name are skipped, except those of a tensor that becomes two tensors in GGUF
 * (fr_tensor_name_of_part gives the two names). */
static bool find_line(const fr_tensor_name *names, const fr_trunk_spec *spec, const fr_layer_spec *layer,
                      const char *published, bool top, fr_tensor_name_found *found) {
    for (const fr_tensor_name *name = names; name && (name->published || name->gguf); name++) {
        bool has = name->top == top && name->published && (name->gguf || fr_tensor_name_fills_two(name));
        if (layer) has &= fr_tensor_name_needed(name, spec, layer);
        if (!has || !fr_tensor_name_spells(name->published, published, &found->expert)) continue;
        found->name = name;
        found->table = names;
        found->of_expert = is_numbered(name->published);
        return true;
    }
    return false;
}

static bool find_layers(const fr_tensor_naming *naming, const fr_trunk_spec *spec, const char *rest,
                        fr_tensor_name_found *found) {
    const fr_layer_spec *layer = fr_spec_layer(spec, found->layer);
    const fr_tensor_name *const *tables = fr_naming_tables(naming, found->layer >= spec->layers);
    for (size_t t = 0; t < FR_LAYER_TABLES && tables[t]; t++)
        if (find_line(tables[t], spec, layer, rest, false, found)) return true;
    /* Gemma 4 has matrices for keys and values even in layers that borrow both. GGUF has these matrices too. */
    for (size_t t = 0; t < FR_LAYER_TABLES && tables[t]; t++)
        if (find_line(tables[t], spec, NULL, rest, false, found)) return true;
    return false;
}

static bool find_mtp(const fr_tensor_naming *naming, const fr_trunk_spec *spec, const char *below, size_t mtp_layers,
                     fr_tensor_name_found *found) {
    const char *rest = naming->mtp_layer[0] ? NULL : behind_layer(below, mtp_word(naming), &found->layer);
    found->of_layer = true;
    if (!rest) found->layer = 0;
    if (found->layer >= mtp_layers) return false;
    found->layer += spec->layers;
    if (naming->mtp_layer[0] && find_layers(naming, spec, below, found)) return true;
    return rest ? find_layers(naming, spec, rest, found) : find_line(naming->mtp, spec, NULL, below, false, found);
}

bool fr_tensor_names_find(const fr_tensor_naming *naming, const char *prefix, const char *published,
                          const fr_trunk_spec *spec, size_t mtp_layers, fr_tensor_name_found *found) {
    const char *mtp = below_mtp(naming, published);
    const fr_tensor_name *model = fr_naming_model(naming);
    *found = (fr_tensor_name_found){0};
    if (mtp) return find_mtp(naming, spec, mtp, mtp_layers, found);
    size_t top = strlen(top_prefix(prefix));
    if (strncmp(published, prefix, top) == 0 && find_line(model, spec, NULL, published + top, true, found)) return true;
    if (strncmp(published, prefix, strlen(prefix)) != 0) return false;
    const char *below = published + strlen(prefix), *rest = NULL;
    for (const char *const *word = layer_words; *word && !rest; word++)
        rest = behind_layer(below, *word, &found->layer);
    found->of_layer = rest != NULL;
    if (!rest) return find_line(model, spec, NULL, below, false, found);
    if (found->layer >= spec->layers + mtp_layers) return false;
    return find_layers(naming, spec, rest, found) ||
           (found->layer >= spec->layers && find_line(naming->mtp, spec, NULL, rest, false, found));
}

const fr_tensor_name *fr_tensor_name_of_part(const fr_tensor_name *table, const fr_tensor_name *name, size_t part) {
    size_t step = name->slot == FR_SLOT_PARTS ? sizeof(fr_matrix) : sizeof(fr_matrix *);
    const fr_tensor_name *first = NULL;
    for (const fr_tensor_name *line = table; line->published || line->gguf; line++) {
        if (!line->gguf || fr_tensor_name_fills_two(line) || line->field != name->field + part * step) continue;
        if (line->needs == name->needs) return line;
        if (!first) first = line;
    }
    return first;
}

fr_values fr_name_values(const fr_checkpoint *files, const fr_tensor_naming *naming, const fr_tensor_name *name) {
    if (name->norm && files->channels_last) return FR_AS_THEY_ARE;
    return name->norm && naming ? naming->norms : name->values;
}

fr_reorder fr_tensor_name_reorder(const fr_tensor_naming *naming, const fr_tensor_name *name,
                                  const fr_trunk_spec *trunk, const fr_layer_spec *layer) {
    fr_row_order order = name->rotary ? naming->rotary_rows : name->order;
    bool tiled = order == FR_ROWS_TILED || order == FR_COLS_TILED;
    if (order == FR_ROWS_ALIKE || (tiled && naming->untiled)) return (fr_reorder){0};
    const fr_deltanet_spec *delta = &layer->deltanet;
    if (!tiled)
        return (fr_reorder){
            .order = order, .head = layer->attention.head_dim, .rotated = trunk->rope[layer->attention.rope].dims};
    return (fr_reorder){.order = order,
                        .head = name->rows == FR_DIM_DELTA_HEADS ? 1 : delta->value_dim,
                        .first = name->rows == FR_DIM_DELTA_CHANNELS ? 2 * delta->key_heads * delta->key_dim : 0,
                        .groups = delta->key_heads,
                        .in_group = delta->value_heads / delta->key_heads};
}

/* Takes the index of a row (or column) in tiled order, and gives its index in the published file. r->head: number of
 * rows or columns of a value head. */
static size_t from_tiles(const fr_reorder *r, size_t row) {
    if (row < r->first) return row;
    size_t head = (row - r->first) / r->head, at = (row - r->first) % r->head;
    return r->first + (head % r->groups * r->in_group + head / r->groups) * r->head + at;
}

fr_reorder fr_tensor_name_parted(const fr_layer_spec *layer, bool gates) {
    const fr_deltanet_spec *delta = &layer->deltanet;
    size_t values = delta->value_heads / delta->key_heads * delta->value_dim;
    size_t before = delta->key_heads * (2 * delta->key_dim + values);
    return (fr_reorder){.order = FR_ROWS_PARTED,
                        .head = delta->key_dim,
                        .first = gates ? before : 0,
                        .groups = delta->key_heads,
                        .values = values};
}

/* Takes the index of a row in the separate queries, keys, values or gates, and gives its index in the published tensor.
 * The published tensor keeps all rows of one key head together. */
static size_t from_parts(const fr_reorder *r, size_t row) {
    size_t keys = r->groups * r->head, values = r->groups * r->values, each = 2 * (r->head + r->values);
    row += r->first;
    if (row < 2 * keys) return row % keys / r->head * each + row / keys * r->head + row % r->head;
    row -= 2 * keys;
    return row % values / r->values * each + 2 * r->head + row / values * r->values + row % r->values;
}

size_t fr_row_published(const fr_reorder *r, size_t row) {
    if (r->order == FR_ROWS_ALIKE) return row;
    if (r->order == FR_ROWS_PARTED) return from_parts(r, row);
    if (r->order == FR_ROWS_TILED || r->order == FR_COLS_TILED) return from_tiles(r, row);
    size_t first = row / r->head * r->head, at = row % r->head, half = r->rotated / 2;
    if (at >= 2 * half) return row;
    if (r->order == FR_ROWS_TO_NEOX) return first + (at < half ? 2 * at : 2 * (at - half) + 1);
    return first + at / 2 + at % 2 * half;
}
