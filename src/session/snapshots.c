/* Snapshots of the rings: see snapshots.h. */
#include "src/session/snapshots.h"

#include <string.h>

#include "src/base/sizes.h"

void fr_snapshots_layout(fr_snapshots *s, fr_arena *arena, const fr_kv *kv, size_t wanted, size_t context) {
    *s = (fr_snapshots){.capacity = kv->ring_slots ? fr_smaller(wanted, context / kv->ring_slots) : 0};
    s->at = fr_arena_take(arena, s->capacity, sizeof *s->at);
    for (size_t i = 0; i < s->capacity; i++) {
        uint8_t *rows = fr_arena_take(arena, kv->ring_bytes, 1);
        if (s->at) s->at[i] = (fr_snapshot){.rows = rows};
    }
}

/* The one whose neighbours are nearest to each other; `next` comes behind the last. */
static size_t least_missed(const fr_snapshots *s, size_t next) {
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
static void drop(fr_snapshots *s, size_t index) {
    fr_snapshot dropped = s->at[index];
    s->count--;
    memmove(s->at + index, s->at + index + 1, (s->count - index) * sizeof *s->at);
    s->at[s->count] = dropped;
}

fr_snapshot *fr_snapshots_place(fr_snapshots *s, size_t position, size_t from) {
    if (s->capacity == 0) return NULL;
    if (s->count == s->capacity) drop(s, least_missed(s, position));
    fr_snapshot *place = &s->at[s->count++];
    place->position = position;
    place->from = from;
    return place;
}

static size_t rows_bytes(const fr_kv_layer *layer, const fr_kv_rows *rows) {
    return layer->heads * layer->slots * rows->bytes;
}

fr_kv_layer fr_snapshot_ring(const fr_kv_layer *layer, uint8_t **rows) {
    fr_kv_layer ring = *layer;
    ring.k.data = *rows;
    ring.v.data = ring.k.data + rows_bytes(layer, &layer->k);
    *rows = ring.v.data + rows_bytes(layer, &layer->v);
    return ring;
}

/* Every ring into the snapshot, or back. */
static void copy_rings(const fr_snapshot *snapshot, const fr_kv *kv, bool back) {
    uint8_t *rows = snapshot->rows;
    for (size_t i = 0; i < kv->count; i++) {
        const fr_kv_layer *layer = &kv->layers[i];
        if (!layer->ring) continue;
        fr_kv_layer copy = fr_snapshot_ring(layer, &rows);
        const fr_kv_layer *to = back ? layer : &copy, *source = back ? &copy : layer;
        memcpy(to->k.data, source->k.data, rows_bytes(layer, &layer->k));
        memcpy(to->v.data, source->v.data, rows_bytes(layer, &layer->v));
    }
}

void fr_snapshots_note(fr_snapshots *s, const fr_kv *kv, bool prompt_end) {
    if (s->capacity == 0) return;
    size_t last = s->count ? s->at[s->count - 1].position : 0;
    size_t due = prompt_end ? kv->ring_slots - kv->window : kv->ring_slots;
    if (kv->length < last + due) return;
    copy_rings(fr_snapshots_place(s, kv->length, kv->from), kv, false);
}

/* Whether the snapshot holds what rows from `length` on look back to. */
static bool serves(const fr_snapshot *snapshot, const fr_kv *kv, size_t length) {
    return snapshot->from == 0 || snapshot->from + kv->window <= length;
}

void fr_snapshots_truncate(fr_snapshots *s, const fr_kv *kv, size_t length) {
    for (size_t i = s->count; i-- > 0;) {
        s->at[i].position = fr_smaller(s->at[i].position, length);
        if (s->at[i].position == 0 || !serves(&s->at[i], kv, s->at[i].position)) drop(s, i);
    }
}

void fr_snapshots_rewind(const fr_snapshots *s, fr_kv *kv, size_t length) {
    if (fr_kv_reaches(kv, length)) {
        fr_kv_rewind(kv, length);
        return;
    }
    const fr_snapshot *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (serves(&s->at[i], kv, fr_smaller(s->at[i].position, length))) best = &s->at[i];
    fr_kv_rewind(kv, best ? fr_smaller(best->position, length) : 0);
    if (!best) return;
    copy_rings(best, kv, true);
    kv->from = best->from;
}
