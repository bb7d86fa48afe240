/* Binds a vision tower's tensors: its layers by the kind's names, then the tensors that only this kind has.
 *
 * In: a checkpoint. Out: an fr_vision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernels/rope_table.h"
#include "src/engine/vision/tower.h"

static const char *choose_name(const fr_tower_binder *b, const char *folder, const char *gguf) {
    return b->weights->files->gguf ? gguf : folder;
}

fr_status fr_tower_list(const fr_tower_binder *b, const char *folder, const char *gguf, fr_vision_layout layout) {
    fr_vision *v = b->vision;
    if (b->weights->files->gguf) return FR_OK;
    if ((v->tensor_count & (v->tensor_count - 1)) == 0) { /* the list has room for 1, 2, 4, 8 and so on tensors, so it
                                                           * is full at these counts */
        size_t capacity = v->tensor_count ? 2 * v->tensor_count : 1;
        fr_vision_tensor *tensors = realloc(v->tensors, capacity * sizeof *tensors);
        if (!tensors) return fr_fail_memory("vision tower", capacity * sizeof *tensors);
        v->tensors = tensors;
    }
    fr_vision_tensor *tensor = &v->tensors[v->tensor_count++];
    snprintf(tensor->folder, sizeof tensor->folder, "%s%.60s", b->prefix, folder);
    snprintf(tensor->gguf, sizeof tensor->gguf, "%s%.31s", b->in_gguf, gguf);
    tensor->layout = layout;
    return FR_OK;
}

fr_status fr_tower_bind_vector(const fr_tower_binder *b, const char *folder, const char *gguf, size_t n,
                               const float **vector) {
    FR_TRY(fr_tower_list(b, folder, gguf, FR_VISION_WHOLE));
    return fr_bind_vector(b->weights, b->prefix, choose_name(b, folder, gguf), n, vector);
}

/* Binds the vector NAME.PART. */
static fr_status bind_part(const fr_tower_binder *b, const char *folder, const char *gguf, const char *part, size_t n,
                           const float **vector) {
    char in_folder[128], in_gguf[64];
    snprintf(in_folder, sizeof in_folder, "%.100s.%s", folder ? folder : "", part);
    snprintf(in_gguf, sizeof in_gguf, "%.50s.%s", gguf ? gguf : "", part);
    return fr_tower_bind_vector(b, in_folder, in_gguf, n, vector);
}

fr_status fr_tower_bind_norm(const fr_tower_binder *b, const char *folder, const char *gguf, bool biased, size_t n,
                             fr_vision_norm *norm) {
    FR_TRY(bind_part(b, folder, gguf, "weight", n, &norm->weight));
    return biased ? bind_part(b, folder, gguf, "bias", n, &norm->bias) : FR_OK;
}

fr_status fr_tower_bind_product(const fr_tower_binder *b, const char *folder, const char *gguf, size_t features,
                                size_t cols, fr_matrix *product, const float **bias) {
    char in_folder[128], in_gguf[64];
    snprintf(in_folder, sizeof in_folder, "%.100s.weight", folder ? folder : "");
    snprintf(in_gguf, sizeof in_gguf, "%.50s.weight", gguf ? gguf : "");
    FR_TRY(fr_tower_list(b, in_folder, in_gguf, FR_VISION_WHOLE));
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, choose_name(b, in_folder, in_gguf), features, cols, FR_STREAMED,
                          product));
    return bias ? bind_part(b, folder, gguf, "bias", features, bias) : FR_OK;
}

/* Binds the embedding of patches. This is a convolution over time, which GGUF does not have. So llama.cpp's converter
 * cuts the convolution into two tensors, one for each frame. */
fr_status fr_tower_bind_patches(const fr_tower_binder *b, const char *folder, fr_vision *v) {
    static const char *const frames[FR_VISION_GGUF_FRAMES] = {"v.patch_embd.weight", "v.patch_embd.weight.1"};
    const fr_vision_config *c = &v->config;
    const uint64_t whole[] = {c->hidden, FR_VISION_CHANNELS, c->frames, c->patch, c->patch};
    const uint64_t frame[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    if (b->weights->files->gguf) return fr_bind_frames(b->weights, "", frames, c->frames, frame, &v->embed);
    FR_TRY(fr_tower_list(b, folder, frames[0], FR_VISION_FRAMES));
    return fr_bind_convolution(b->weights, b->prefix, folder, whole, 5, &v->embed);
}

/* Binds queries, keys and values, which are one tensor or three. */
static fr_status bind_qkv(const fr_tower_binder *b, const fr_vision_config *c, fr_vision_layer *l) {
    const fr_tower_names *n = c->tower->names;
    const char *const folder[] = {n->q, n->k, n->v}, *const gguf[] = {"attn_q", "attn_k", "attn_v"};
    bool fused = b->weights->files->gguf ? !fr_weights_has(b->weights, b->prefix, "attn_q.weight") : n->qkv != NULL;
    l->qkv_count = fused ? 1 : 3;
    if (fused) {
        size_t first = b->vision->tensor_count;
        FR_TRY(fr_tower_bind_product(b, n->qkv, n->parted_in_gguf ? "attn_?" : "attn_qkv", 3 * c->hidden, c->hidden,
                                     &l->qkv[0], c->bias ? &l->qkv_bias[0] : NULL));
        for (size_t i = first; n->parted_in_gguf && i < b->vision->tensor_count; i++)
            b->vision->tensors[i].layout = FR_VISION_THIRDS;
        return FR_OK;
    }
    for (size_t i = 0; i < 3; i++) {
        size_t first = b->vision->tensor_count;
        FR_TRY(fr_tower_bind_product(b, folder[i], gguf[i], c->hidden, c->hidden, &l->qkv[i],
                                     c->bias ? &l->qkv_bias[i] : NULL));
        for (size_t t = first; n->paired_in_gguf && i < 2 && t < b->vision->tensor_count; t++)
            b->vision->tensors[t].layout = FR_VISION_PAIRED;
    }
    return FR_OK;
}

/* Binds the bounds between which a layer's products are clipped. The bounds for PRODUCT.linear are PRODUCT.input_min
 * and so on. */
static fr_status bind_clips(const fr_tower_binder *b, const fr_tower_names *n, fr_vision_clip *clips) {
    const char *const folder[] = {n->q, n->k, n->v, n->proj, n->gate, n->up, n->down};
    const char *const gguf[] = {"attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"};
    static const char inner[] = ".linear";
    for (size_t i = 0; i < FR_VISION_PRODUCTS; i++) {
        const char *name = choose_name(b, folder[i], gguf[i]);
        size_t length = strlen(name), cut = b->weights->files->gguf ? 0 : sizeof inner - 1;
        const struct {
            const char *word;
            float *value;
        } bounds[] = {{"input_min", &clips[i].input_min},
                      {"input_max", &clips[i].input_max},
                      {"output_min", &clips[i].output_min},
                      {"output_max", &clips[i].output_max}};
        for (size_t j = 0; j < sizeof bounds / sizeof *bounds; j++) {
            char full[128];
            snprintf(full, sizeof full, "%.*s.%s", (int)(length - cut), name, bounds[j].word);
            char in_gguf[64];
            snprintf(in_gguf, sizeof in_gguf, "%s.%s", gguf[i], bounds[j].word);
            FR_TRY(fr_tower_list(b, full, in_gguf, FR_VISION_WHOLE));
            FR_TRY(fr_bind_scalar(b->weights, b->prefix, full, bounds[j].value));
        }
    }
    return FR_OK;
}

static fr_status bind_layer(const fr_tower_binder *tower, const fr_vision_config *c, size_t index, fr_vision_layer *l) {
    fr_tower_binder b = {.weights = tower->weights, .vision = tower->vision};
    const fr_tower_names *n = c->tower->names;
    size_t d = c->hidden, head = d / c->heads;
    bool bias = c->bias;
    snprintf(b.in_gguf, sizeof b.in_gguf, "v.blk.%zu.", index);
    if (tower->weights->files->gguf)
        snprintf(b.prefix, sizeof b.prefix, "%s", b.in_gguf);
    else
        snprintf(b.prefix, sizeof b.prefix, "%.96s%s%zu.", tower->prefix, n->layers, index);
    FR_TRY(fr_tower_bind_norm(&b, n->norm1, "ln1", c->layer_norm, d, &l->norm1));
    FR_TRY(fr_tower_bind_norm(&b, n->norm2, "ln2", c->layer_norm, d, &l->norm2));
    if (n->post_norm1)
        FR_TRY(fr_tower_bind_norm(&b, n->post_norm1, "attn_post_norm", c->layer_norm, d, &l->post_norm1));
    if (n->post_norm2) FR_TRY(fr_tower_bind_norm(&b, n->post_norm2, "ffn_post_norm", c->layer_norm, d, &l->post_norm2));
    if (c->clipped) FR_TRY(bind_clips(&b, n, l->clips));
    if (n->q_norm) FR_TRY(fr_tower_bind_vector(&b, n->q_norm, "attn_q_norm.weight", head, &l->q_norm));
    if (n->k_norm) FR_TRY(fr_tower_bind_vector(&b, n->k_norm, "attn_k_norm.weight", head, &l->k_norm));
    FR_TRY(bind_qkv(&b, c, l));
    FR_TRY(fr_tower_bind_product(&b, n->proj, "attn_out", d, d, &l->proj, bias ? &l->proj_bias : NULL));
    if (n->gate)
        FR_TRY(fr_tower_bind_product(&b, n->gate, "ffn_gate", c->ffn, d, &l->gate, bias ? &l->gate_bias : NULL));
    FR_TRY(fr_tower_bind_product(&b, n->up, "ffn_up", c->ffn, d, &l->up, bias ? &l->up_bias : NULL));
    return fr_tower_bind_product(&b, n->down, "ffn_down", d, c->ffn, &l->down, bias ? &l->down_bias : NULL);
}

/* Finds the prefix of the tensors' names in a folder: the first one with which the tensor `first` exists. If there is
 * none, gives the first of all prefixes, so that an error line can name a tensor. */
static const char *find_prefix(const fr_weights *weights, const char *const *prefixes, const char *first) {
    for (const char *const *prefix = prefixes; *prefix; prefix++)
        if (fr_weights_has(weights, *prefix, first)) return *prefix;
    return prefixes[0];
}

fr_tower_binder fr_tower_beside(const fr_tower_binder *b, const char *const *prefixes, const char *first) {
    fr_tower_binder beside = *b;
    if (!b->weights->files->gguf)
        snprintf(beside.prefix, sizeof beside.prefix, "%s", find_prefix(b->weights, prefixes, first));
    return beside;
}

/* Computes the rotary frequencies for rows, then those for columns, `quarter` of each. */
static fr_status find_frequencies(const fr_vision_config *c, size_t quarter, float *inverse) {
    if (c->theta <= 0) return FR_OK;
    if (!c->rope_alternates) {
        fr_rope_frequencies(FR_ROPE_DEFAULT, c->theta, 2 * quarter, 1.0, 1.0, inverse);
        memcpy(inverse + quarter, inverse, quarter * sizeof *inverse);
        return FR_OK;
    }
    float *all = calloc(2 * quarter, sizeof *all);
    if (!all) return fr_fail_memory("vision tower", 2 * quarter * sizeof *all);
    fr_rope_frequencies(FR_ROPE_DEFAULT, c->theta, 4 * quarter, 1.0, 1.0, all);
    for (size_t i = 0; i < 2 * quarter; i++) inverse[i % 2 * quarter + i / 2] = all[i];
    free(all);
    return FR_OK;
}

fr_status fr_vision_bind(fr_vision *v, fr_weights *weights, size_t hidden) {
    fr_tower_binder b = {.weights = weights, .vision = v};
    FR_TRY(fr_vision_config_read(&v->config, weights));
    const fr_vision_config *c = &v->config;
    if (hidden && c->out != hidden)
        return fr_fail(FR_INPUT, "%s: the vision tower gives rows of %zu, the text model reads rows of %zu (%s)",
                       weights->files->path, c->out, hidden,
                       weights->files->gguf ? "clip.vision.projection_dim" : "out_hidden_size");
    size_t quarter = c->hidden / c->heads / 4;
    v->layers = calloc(c->layers + 1, sizeof *v->layers);
    v->inverse = calloc(2 * quarter + 1, sizeof *v->inverse);
    if (!v->layers || !v->inverse) return fr_fail_memory("vision tower", c->layers * sizeof *v->layers);
    FR_TRY(find_frequencies(c, quarter, v->inverse));
    b = fr_tower_beside(&b, c->tower->prefixes, c->tower->first);
    for (size_t i = 0; i < c->layers; i++) FR_TRY(bind_layer(&b, c, i, &v->layers[i]));
    FR_TRY(c->tower->bind(&b, v));
    v->packed = weights->has_packed;
    return FR_OK;
}
