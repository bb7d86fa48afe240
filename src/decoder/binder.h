/* Tensors bound under a prefix, each named twice: as published and as GGUF has it. For the files that bind a family. */
#ifndef FR_SRC_BINDER_H
#define FR_SRC_BINDER_H

#include "src/decoder/weights.h"

typedef struct binder {
    fr_weights *weights;
    char prefix[128]; /* "model.layers.7." or "blk.7." and so on */
} binder;

static inline const char *spelled(const binder *b, const char *published, const char *gguf) {
    return b->weights->files->gguf ? gguf : published;
}

static inline fr_status matrix(const binder *b, const char *published, const char *gguf, size_t outs, size_t cols,
                               fr_matrix *field) {
    return fr_bind_matrix(b->weights, b->prefix, spelled(b, published, gguf), outs, cols, FR_STREAMED, field);
}

static inline fr_status vector(const binder *b, const char *published, const char *gguf, size_t n,
                               const float **field) {
    return fr_bind_vector(b->weights, b->prefix, spelled(b, published, gguf), n, field);
}

/* What the published names of a model's tensors begin with; multimodal models keep the text model one level down. */
static inline const char *name_prefix(const fr_weights *weights) {
    static const char nested[] = "model.language_model.";
    if (weights->files->gguf) return "";
    return fr_weights_has(weights, nested, "embed_tokens.weight") ? nested : "model.";
}

#endif
