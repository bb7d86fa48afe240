/* The key/value cache: one pair of arrays per layer that owns KV, written at slot = position, and a frontier.
 *
 * States of a slot, and who moves it:
 *
 *     unwritten --forward--> tentative --fr_kv_commit--> accepted
 *                               ^  |
 *                               |  +--fr_kv_commit (shorter)--> stale --forward (overwrites)--> tentative
 *     accepted --fr_kv_rewind, fr_kv_reset--> stale
 *
 * length is the frontier: slots of positions below it were written by accepted tokens; slots at or above it are
 * tentative or stale and are read by no row before that row's own forward has written them again. Rejecting a draft is
 * therefore one assignment; nothing is copied or cleared.
 *
 * Sliding layers are rings: position p lies in slot p % slots, slots a multiple of 64 and at least window + 1 + the
 * largest batch, so that the positions a row may look back to are never overwritten by the tentative rows of a batch.
 * How far the frontier may be moved back is another matter: `from` is the first position that the rings still hold, and
 * a row at the new frontier must find what it looks back to (fr_kv_holds_lookback). Farther back, the rings' contents
 * have to come from elsewhere (kv_checkpoints.h), or from running the positions again.
 *
 * In: shapes, types, a context length, the largest batch. Out: memory taken from an arena. */
#ifndef FR_SRC_KV_H
#define FR_SRC_KV_H

#include "kernels/kernels.h"
#include "src/base/arena.h"

/* What keys and values are stored as, each one of FR_KV_TYPES. */
typedef struct fr_kv_types {
    fr_dtype k, v;
} fr_kv_types;

/* The type that an option's word names (f32 f16 bf16 q8_0 q4_0); FR_DTYPE_COUNT for any other word. */
fr_dtype fr_kv_type_from_word(const char *word);

/* What one owning layer stores per position. */
typedef struct fr_kv_shape {
    size_t heads, head_dim;
    size_t window; /* positions that a reader may look back, its own included; 0: all */
} fr_kv_shape;

/* [heads][slots] rows of head_dim values, `bytes` each. */
typedef struct fr_kv_rows {
    uint8_t *data;
    fr_dtype type;
    size_t bytes;
} fr_kv_rows;

typedef struct fr_kv_layer {
    fr_kv_rows k, v;
    size_t heads, head_dim, slots;
    bool slides; /* its readers have a window */
    bool ring;   /* and it keeps no more than that needs */
} fr_kv_layer;

typedef struct fr_kv {
    fr_kv_layer *layers;
    size_t count;
    size_t length;                 /* the frontier */
    size_t from;                   /* accepted positions below it may be missing from layers that slide */
    size_t window;                 /* the widest of those that slide */
    size_t ring_slots, ring_bytes; /* of the shortest ring, of all of them; 0: there is none */
} fr_kv;

/* Whether heads of these shapes are whole blocks of these types; FR_INPUT if not. */
fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Takes the cache from the arena, or measures it. With a batch as long as the context no layer is a ring. */
void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  size_t context, size_t batch);

/* Bytes per position that a cache of these shapes grows by while no ring is full. */
size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Bytes of keys and values that a cache has room for. */
size_t fr_kv_bytes(const fr_kv *kv);

/* Where one head's key (or value) of a position lies. */
static inline void *fr_kv_slot(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t head, size_t position) {
    return rows->data + (head * layer->slots + position % layer->slots) * rows->bytes;
}

/* How many positions from `position` on, before `end`, lie side by side from that slot on. */
static inline size_t fr_kv_run(const fr_kv_layer *layer, size_t position, size_t end) {
    size_t left = layer->slots - position % layer->slots;
    return end - position < left ? end - position : left;
}

/* Said before a forward writes `rows` positions from the frontier on. */
void fr_kv_claim(fr_kv *kv, size_t rows);

/* Moves the frontier forward: positions below length are accepted. */
void fr_kv_commit(fr_kv *kv, size_t length);

/* Whether the frontier can stand at `length`, at most where it is: all that rows from there on look back to is held. */
bool fr_kv_holds_lookback(const fr_kv *kv, size_t length);

/* Moves the frontier back to a length whose lookback is held, or to 0. */
void fr_kv_rewind(fr_kv *kv, size_t length);
void fr_kv_reset(fr_kv *kv);

#endif
