/* The key/value cache: see kv.h. */
#include "src/decoder/kv.h"

#include <string.h>

#include "formats/error.h"

static const char *const words[FR_KV_TYPES] = {"f32", "f16", "bf16", "q8_0", "q4_0"};

fr_dtype fr_kv_type_from_word(const char *word) {
    for (fr_dtype type = FR_F32; type < FR_KV_TYPES; type++)
        if (strcmp(word, words[type]) == 0) return type;
    return FR_DTYPE_COUNT;
}

static fr_status check_rows(const fr_kv_shape *shape, const char *what, fr_dtype type) {
    if (shape->head_dim % fr_dtype_block(type) == 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s of type %s need heads that are multiples of %zu wide, this model has some of %zu",
                   what, words[type], fr_dtype_block(type), shape->head_dim);
}

fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types) {
    for (size_t i = 0; i < count; i++) {
        FR_TRY(check_rows(&shapes[i], "keys", types.k));
        FR_TRY(check_rows(&shapes[i], "values", types.v));
    }
    return FR_OK;
}

static size_t round_up_64(size_t n) {
    return (n + 63) / 64 * 64;
}

static size_t slots_for(const fr_kv_shape *shape, size_t context, size_t batch) {
    size_t all = round_up_64(context);
    if (shape->window == 0) return all;
    size_t ring = round_up_64(shape->window + 1 + batch);
    return ring < all ? ring : all;
}

static fr_kv_rows take_rows(fr_arena *arena, const fr_kv_layer *layer, fr_dtype type) {
    fr_kv_rows rows = {.type = type, .bytes = fr_dtype_row_bytes(type, layer->head_dim)};
    rows.data = fr_arena_take(arena, layer->heads * layer->slots, rows.bytes);
    return rows;
}

void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  size_t context, size_t batch) {
    *kv = (fr_kv){.layers = fr_arena_take(arena, count, sizeof *kv->layers), .count = count};
    for (size_t i = 0; i < count; i++) {
        fr_kv_layer layer = {.heads = shapes[i].heads, .head_dim = shapes[i].head_dim};
        layer.slots = slots_for(&shapes[i], context, batch);
        layer.slides = shapes[i].window > 0;
        layer.ring = layer.slots < round_up_64(context);
        size_t before = arena->used;
        layer.k = take_rows(arena, &layer, types.k);
        layer.v = take_rows(arena, &layer, types.v);
        if (shapes[i].window > kv->window) kv->window = shapes[i].window;
        if (layer.ring) {
            kv->ring_bytes += arena->used - before;
            if (kv->ring_slots == 0 || layer.slots < kv->ring_slots) kv->ring_slots = layer.slots;
        }
        if (kv->layers) kv->layers[i] = layer;
    }
}

size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += shapes[i].heads * (fr_dtype_row_bytes(types.k, shapes[i].head_dim) +
                                    fr_dtype_row_bytes(types.v, shapes[i].head_dim));
    return bytes;
}

size_t fr_kv_bytes(const fr_kv *kv) {
    size_t bytes = 0;
    for (size_t i = 0; i < kv->count; i++)
        bytes += kv->layers[i].heads * kv->layers[i].slots * (kv->layers[i].k.bytes + kv->layers[i].v.bytes);
    return bytes;
}

void fr_kv_claim(fr_kv *kv, size_t rows) {
    size_t end = kv->length + rows;
    if (kv->ring_slots && end > kv->ring_slots && end - kv->ring_slots > kv->from) kv->from = end - kv->ring_slots;
}

void fr_kv_commit(fr_kv *kv, size_t length) {
    kv->length = length;
}

bool fr_kv_holds_lookback(const fr_kv *kv, size_t length) {
    return kv->from == 0 || kv->from + kv->window <= length;
}

void fr_kv_rewind(fr_kv *kv, size_t length) {
    kv->length = length;
    if (length == 0) kv->from = 0;
}

void fr_kv_reset(fr_kv *kv) {
    fr_kv_rewind(kv, 0);
}
