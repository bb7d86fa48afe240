/* The key/value cache: one buffer pair per layer that owns KV, written at slot = position, and a frontier.
 *
 * States of a slot, and who moves it:
 *
 *     unwritten --forward--> tentative --fr_kv_commit--> accepted
 *                               ^  |
 *                               |  +--fr_kv_commit (shorter)--> stale --forward (overwrites)--> tentative
 *     accepted --fr_kv_reset--> stale
 *
 * length is the frontier: slots of positions below it were written by accepted tokens; slots at or above it are
 * tentative or stale and are read by no row before that row's own forward has written them again. Rejecting a draft is
 * therefore one assignment; nothing is copied or cleared.
 *
 * Sliding layers are rings: position p lies in slot p % slots, slots a multiple of 64 and at least window + 1 + the
 * largest batch, so that the positions a row may look back to are never overwritten by the tentative rows of a batch.
 *
 * In: shapes, a context length, the largest batch. Out: memory taken from an arena. */
#ifndef FR_SRC_KV_H
#define FR_SRC_KV_H

#include "src/arena.h"

/* What one owning layer stores per position. */
typedef struct fr_kv_shape {
    size_t heads, head_dim;
    size_t window; /* positions that a reader may look back, its own included; 0: all */
} fr_kv_shape;

typedef struct fr_kv_layer {
    float *k, *v; /* [heads][slots][head_dim] */
    size_t heads, head_dim, slots;
} fr_kv_layer;

typedef struct fr_kv {
    fr_kv_layer *layers;
    size_t count;
    size_t length; /* the frontier */
} fr_kv;

/* Takes the cache from the arena, or measures it. */
void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, size_t context, size_t batch);

/* Bytes of keys and values that a cache of these shapes takes. */
size_t fr_kv_bytes(const fr_kv *kv);

/* Where one head's key (or value) of a position lies. */
static inline float *fr_kv_slot(const fr_kv_layer *layer, float *base, size_t head, size_t position) {
    return base + (head * layer->slots + position % layer->slots) * layer->head_dim;
}

/* Moves the frontier: positions below length are accepted. */
void fr_kv_commit(fr_kv *kv, size_t length);
void fr_kv_reset(fr_kv *kv);

#endif
