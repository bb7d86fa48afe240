/* Keeps checkpoints of a cache: see kv_checkpoints.h. */
#include "src/engine/session/kv_checkpoints.h"

#include <string.h>

#include "base/sizes.h"

void fr_kv_checkpoints_layout(fr_kv_checkpoints *s, fr_arena *arena, const fr_kv *kv) {
    *s = (fr_kv_checkpoints){.capacity = kv->spare};
    s->at = fr_arena_take(arena, s->capacity, sizeof *s->at);
    for (size_t i = 0; i < s->capacity; i++) {
        uint8_t **pages = fr_arena_take(arena, kv->blocks, sizeof *pages);
        if (s->at) s->at[i] = (fr_kv_checkpoint){.pages = pages};
    }
}

/* Picks the checkpoint whose neighbours are closest to each other, because dropping it costs least. If there are spare
 * checkpoints, only these are considered. `next` is the position after the last checkpoint. */
static size_t least_missed(const fr_kv_checkpoints *s, size_t next) {
    size_t least = 0, least_gap = SIZE_MAX;
    for (size_t i = 0; i < s->count; i++) {
        size_t gap = (i + 1 < s->count ? s->at[i + 1].position : next) - (i ? s->at[i - 1].position : 0);
        bool kept = !s->at[i].spare && s->at[least].spare, sooner = s->at[i].spare && !s->at[least].spare;
        if (kept || (gap >= least_gap && !sooner)) continue;
        least = i;
        least_gap = gap;
    }
    return least;
}

/* Makes a table of the sliding layers hold the pages of positions [from, end) of another table, and no others. */
static void hold(fr_kv *kv, uint8_t **to, uint8_t *const *table, size_t from, size_t end) {
    fr_kv_pages *pages = &kv->pages[FR_KV_SLIDING];
    fr_kv_pages_drop(pages, to, 0, kv->blocks);
    fr_kv_pages_hold(pages, to, table, from / FR_KV_PAGE, fr_kv_blocks(end));
}

/* Drops a checkpoint. Its table of pages becomes the first free one. */
static void drop(fr_kv_checkpoints *s, fr_kv *kv, size_t index) {
    fr_kv_checkpoint dropped = s->at[index];
    fr_kv_pages_drop(&kv->pages[FR_KV_SLIDING], dropped.pages, 0, kv->blocks);
    fr_kv_pages_drop(kv->recurrent.pages, &dropped.states, 0, 1);
    s->count--;
    memmove(s->at + index, s->at + index + 1, (s->count - index) * sizeof *s->at);
    s->at[s->count] = dropped;
}

/* Makes an empty checkpoint and puts it after all others. Returns NULL if there is no room for any checkpoint. */
static fr_kv_checkpoint *place(fr_kv_checkpoints *s, fr_kv *kv, size_t position, size_t from, bool spare) {
    if (s->capacity == 0) return NULL;
    if (s->count == s->capacity) drop(s, kv, least_missed(s, position));
    fr_kv_checkpoint *checkpoint = &s->at[s->count++];
    checkpoint->position = position;
    checkpoint->from = from;
    checkpoint->spare = spare;
    return checkpoint;
}

void fr_kv_checkpoints_save(fr_kv_checkpoints *s, fr_kv *kv, size_t position, bool spare) {
    fr_kv_checkpoint *checkpoint = place(s, kv, position, kv->from, spare);
    if (!checkpoint) return;
    if (kv->keeps) hold(kv, checkpoint->pages, kv->table[FR_KV_SLIDING], kv->from, position);
    checkpoint->states = fr_recurrent_save(&kv->recurrent, position);
    if (!checkpoint->states) drop(s, kv, s->count - 1);
}

fr_kv_checkpoint *fr_kv_checkpoints_restore(fr_kv_checkpoints *s, fr_kv *kv, size_t position, size_t from) {
    fr_kv_checkpoint *checkpoint = place(s, kv, position, from, false);
    bool whole = true;
    if (!checkpoint) return NULL;
    if (kv->recurrent.count) whole = (checkpoint->states = fr_kv_pages_take(kv->recurrent.pages)) != NULL;
    for (size_t block = from / FR_KV_PAGE; kv->keeps && whole && block < fr_kv_blocks(position); block++)
        whole = (checkpoint->pages[block] = fr_kv_pages_take(&kv->pages[FR_KV_SLIDING])) != NULL;
    if (whole) return checkpoint;
    drop(s, kv, s->count - 1);
    return NULL;
}

void fr_kv_checkpoints_fork(fr_kv_checkpoints *fork, fr_kv *kv, const fr_kv_checkpoints *s) {
    for (size_t i = 0; i < s->count; i++) {
        fr_kv_checkpoint *of = &s->at[i], *copy = place(fork, kv, of->position, of->from, of->spare);
        hold(kv, copy->pages, of->pages, of->from, of->position);
        if (of->states) fr_kv_pages_hold(kv->recurrent.pages, &copy->states, &of->states, 0, 1);
    }
}

fr_kv_layer fr_kv_checkpoint_layer(const fr_kv_checkpoint *checkpoint, const fr_kv_layer *layer) {
    fr_kv_layer view = *layer;
    view.pages = checkpoint->pages;
    return view;
}

void fr_kv_checkpoints_note(fr_kv_checkpoints *s, fr_kv *kv, bool prompt_end) {
    if (s->capacity == 0 || kv->recurrent.count) return;
    size_t last = s->count ? s->at[s->count - 1].position : 0;
    size_t due = prompt_end ? kv->keeps - kv->window : kv->keeps;
    if (kv->length < last + due) return;
    fr_kv_checkpoint *checkpoint = place(s, kv, kv->length, kv->from, false);
    hold(kv, checkpoint->pages, kv->table[FR_KV_SLIDING], checkpoint->from, checkpoint->position);
}

/* Returns true if the checkpoint holds all positions that rows from `length` on look back to. */
static bool serves(const fr_kv_checkpoint *checkpoint, const fr_kv *kv, size_t length) {
    if (checkpoint->states && checkpoint->position != length) return false;
    return checkpoint->from == 0 || checkpoint->from + kv->window <= length;
}

void fr_kv_checkpoints_truncate(fr_kv_checkpoints *s, fr_kv *kv, size_t length) {
    for (size_t i = s->count; i-- > 0;) {
        size_t position = fr_smaller(s->at[i].position, length);
        if (position == 0 || !serves(&s->at[i], kv, position))
            drop(s, kv, i);
        else
            s->at[i].position = position;
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
    if (best->states) fr_recurrent_return(&kv->recurrent, best->states, best->position);
    if (kv->keeps) hold(kv, kv->table[FR_KV_SLIDING], best->pages, best->from, kv->length);
    kv->from = best->from;
}
