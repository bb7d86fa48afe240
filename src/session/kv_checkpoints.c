/* Checkpoints of the rings: see kv_checkpoints.h. */
#include "src/session/kv_checkpoints.h"

#include <string.h>

#include "src/base/sizes.h"

void fr_kv_checkpoints_layout(fr_kv_checkpoints *s, fr_arena *arena, const fr_kv *kv, size_t wanted, size_t context) {
    *s = (fr_kv_checkpoints){.capacity = kv->ring_slots ? fr_smaller(wanted, context / kv->ring_slots) : 0};
    s->at = fr_arena_take(arena, s->capacity, sizeof *s->at);
    for (size_t i = 0; i < s->capacity; i++) {
        uint8_t *rows = fr_arena_take(arena, kv->ring_bytes, 1);
        if (s->at) s->at[i] = (fr_kv_checkpoint){.rows = rows};
    }
}

/* The one whose neighbours are nearest to each other; `next` comes behind the last. */
static size_t least_missed(const fr_kv_checkpoints *s, size_t next) {
    size_t least = 0, least_gap = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++) {
        size_t gap = (i + 1 < s->count ? s->at[i + 1].position : next) - (i ? s->at[i - 1].position : 0);
        if (gap >= least_gap) continue;
        least = i;
        least_gap = gap;
    }
    return least;
}

/* Its memory goes to the first free place. */
static void drop(fr_kv_checkpoints *s, size_t index) {
    fr_kv_checkpoint dropped = s->at[index];
    s->count--;
    memmove(s->at + index, s->at + index + 1, (s->count - index) * sizeof *s->at);
    s->at[s->count] = dropped;
}

fr_kv_checkpoint *fr_kv_checkpoints_place(fr_kv_checkpoints *s, size_t position, size_t from) {
    if (s->capacity == 0) return NULL;
    if (s->count == s->capacity) drop(s, least_missed(s, position));
    fr_kv_checkpoint *place = &s->at[s->count++];
    place->position = position;
    place->from = from;
    return place;
}

static size_t rows_bytes(const fr_kv_layer *layer, const fr_kv_rows *rows) {
    return layer->heads * layer->slots * rows->bytes;
}

fr_kv_layer fr_kv_checkpoint_ring(const fr_kv_layer *layer, uint8_t **rows) {
    fr_kv_layer ring = *layer;
    ring.k.data = *rows;
    ring.v.data = ring.k.data + rows_bytes(layer, &layer->k);
    *rows = ring.v.data + rows_bytes(layer, &layer->v);
    return ring;
}

/* Every ring into the checkpoint, or back. */
static void copy_rings(const fr_kv_checkpoint *checkpoint, const fr_kv *kv, bool back) {
    uint8_t *rows = checkpoint->rows;
    for (size_t i = 0; i < kv->count; i++) {
        const fr_kv_layer *layer = &kv->layers[i];
        if (!layer->ring) continue;
        fr_kv_layer copy = fr_kv_checkpoint_ring(layer, &rows);
        const fr_kv_layer *to = back ? layer : &copy, *source = back ? &copy : layer;
        memcpy(to->k.data, source->k.data, rows_bytes(layer, &layer->k));
        memcpy(to->v.data, source->v.data, rows_bytes(layer, &layer->v));
    }
}

void fr_kv_checkpoints_note(fr_kv_checkpoints *s, const fr_kv *kv, bool prompt_end) {
    if (s->capacity == 0) return;
    size_t last = s->count ? s->at[s->count - 1].position : 0;
    size_t due = prompt_end ? kv->ring_slots - kv->window : kv->ring_slots;
    if (kv->length < last + due) return;
    copy_rings(fr_kv_checkpoints_place(s, kv->length, kv->from), kv, false);
}

/* Whether the checkpoint holds what rows from `length` on look back to. */
static bool serves(const fr_kv_checkpoint *checkpoint, const fr_kv *kv, size_t length) {
    return checkpoint->from == 0 || checkpoint->from + kv->window <= length;
}

void fr_kv_checkpoints_truncate(fr_kv_checkpoints *s, const fr_kv *kv, size_t length) {
    for (size_t i = s->count; i-- > 0;) {
        s->at[i].position = fr_smaller(s->at[i].position, length);
        if (s->at[i].position == 0 || !serves(&s->at[i], kv, s->at[i].position)) drop(s, i);
    }
}

void fr_kv_checkpoints_rewind(const fr_kv_checkpoints *s, fr_kv *kv, size_t length) {
    if (fr_kv_holds_lookback(kv, length)) {
        fr_kv_rewind(kv, length);
        return;
    }
    const fr_kv_checkpoint *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (serves(&s->at[i], kv, fr_smaller(s->at[i].position, length))) best = &s->at[i];
    fr_kv_rewind(kv, best ? fr_smaller(best->position, length) : 0);
    if (!best) return;
    copy_rings(best, kv, true);
    kv->from = best->from;
}
