/* The key/value cache: see kv.h. */
#include "src/kv.h"

static size_t round_up_64(size_t n) {
    return (n + 63) / 64 * 64;
}

static size_t slots_for(const fr_kv_shape *shape, size_t context, size_t batch) {
    size_t all = round_up_64(context);
    if (shape->window == 0) return all;
    size_t ring = round_up_64(shape->window + 1 + batch);
    return ring < all ? ring : all;
}

void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, size_t context, size_t batch) {
    kv->layers = fr_arena_take(arena, count, sizeof *kv->layers);
    kv->count = count;
    kv->length = 0;
    for (size_t i = 0; i < count; i++) {
        fr_kv_layer layer = {.heads = shapes[i].heads, .head_dim = shapes[i].head_dim};
        layer.slots = slots_for(&shapes[i], context, batch);
        size_t floats = layer.heads * layer.slots * layer.head_dim;
        layer.k = fr_arena_take(arena, floats, sizeof(float));
        layer.v = fr_arena_take(arena, floats, sizeof(float));
        if (kv->layers) kv->layers[i] = layer;
    }
}

size_t fr_kv_bytes(const fr_kv *kv) {
    size_t bytes = 0;
    for (size_t i = 0; i < kv->count; i++) {
        const fr_kv_layer *layer = &kv->layers[i];
        bytes += 2 * layer->heads * layer->slots * layer->head_dim * sizeof(float);
    }
    return bytes;
}

void fr_kv_commit(fr_kv *kv, size_t length) {
    kv->length = length;
}

void fr_kv_reset(fr_kv *kv) {
    kv->length = 0;
}
