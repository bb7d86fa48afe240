/* Tensors bound under a prefix, each named twice: as published and as GGUF has it. For towers. */
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

#endif
