/* Learns the ids of texts for a trimmed draft head: see learned_head.h. */
#include "src/engine/draft/learned_head.h"

#include <string.h>

#include "base/sizes.h"
#include "quant/packed.h"

/* ---------------------------------------------------------------------------------------------------------- opening */

void fr_learned_head_layout(fr_learned_head *head, fr_arena *arena, const fr_drafter *drafter,
                            const fr_draft_sizes *sizes) {
    const fr_draft_head *likely = &drafter->head;
    *head = (fr_learned_head){0};
    if (!likely->learns) return;
    const fr_matrix *whole = drafter->method->head(drafter);
    size_t vocab = fr_smaller(whole->features, drafter->target->trunk.spec.vocab), count = likely->matrix.features;
    size_t most = sizes->sessions < vocab / FR_LEARNED_IDS_MAX ? sizes->sessions * FR_LEARNED_IDS_MAX : vocab;
    *head = (fr_learned_head){.matrix = likely->matrix,
                              .whole = whole,
                              .likely = count,
                              .capacity = count + fr_smaller(most, vocab - count),
                              .vocab = vocab};
    size_t tiles = (head->capacity + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES;
    uint8_t *data = fr_arena_take(arena, 1, fr_matrix_features_bytes(whole, tiles * FR_TILE_FEATURES));
    head->ids = fr_arena_take(arena, head->capacity, sizeof *head->ids);
    head->rows = fr_arena_take(arena, vocab, sizeof *head->rows);
    head->users = fr_arena_take(arena, head->capacity, sizeof *head->users);
    head->stale = fr_arena_take(arena, tiles, sizeof *head->stale);
    head->room = fr_arena_take(arena, FR_TILE_FEATURES, fr_draft_head_row_bytes(whole));
    head->scored = fr_arena_take(arena, count + FR_LEARNED_IDS_MAX, sizeof *head->scored);
    head->scores = fr_arena_take(arena, FR_LEARNED_IDS_MAX, sizeof *head->scores);
    if (!data || !head->ids || !head->rows || !head->users || !head->stale || !head->room || !head->scored ||
        !head->scores)
        return;
    memcpy(head->ids, likely->ids, count * sizeof *head->ids);
    memcpy(head->scored, likely->ids, count * sizeof *head->scored);
    memset(head->rows, 0xFF, vocab * sizeof *head->rows);
    for (size_t row = 0; row < count; row++) head->rows[head->ids[row]] = (int32_t)row;
    memset(head->stale, true, (count + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES);
    head->matrix.data = data;
    fr_learned_head_gather(head);
}

void fr_learned_ids_layout(fr_learned_ids *ids, fr_arena *arena, const fr_drafter *drafter,
                           const fr_draft_sizes *sizes) {
    *ids = (fr_learned_ids){0};
    if (!drafter->head.learns) return;
    ids->text = fr_arena_take(arena, sizes->context, sizeof *ids->text);
    ids->ids = fr_arena_take(arena, FR_LEARNED_IDS_MAX, sizeof *ids->ids);
    ids->first = fr_arena_take(arena, FR_LEARNED_IDS_MAX, sizeof *ids->first);
    ids->known = fr_arena_take(arena, drafter->target->trunk.spec.vocab / 8 + 1, sizeof *ids->known);
}

size_t fr_learned_head_width(const fr_learned_head *head) {
    return head->capacity;
}

/* --------------------------------------------------------------------------------------------------------- learning */

/* Finds a row for an id. If a row has no user, this row is taken; otherwise a new row at the end. There is always such
 * a row, because the capacity is enough for all sessions together. */
static size_t find_row(fr_learned_head *head) {
    if (head->unused == 0) return head->matrix.features++;
    size_t row = head->likely;
    while (head->users[row]) row++;
    head->rows[head->ids[row]] = -1;
    head->unused--;
    return row;
}

static void learn(fr_learned_ids *ids, fr_learned_head *head, int32_t id, size_t position) {
    int32_t row = head->rows[id];
    if (row < 0) {
        size_t new = find_row(head);
        head->ids[new] = id;
        head->rows[id] = row = (int32_t) new;
        head->stale[new / FR_TILE_FEATURES] = true;
    } else if (head->users[row] == 0) {
        head->unused--;
    }
    head->users[row]++;
    ids->known[id / 8] |= (uint8_t)(1U << id % 8);
    ids->ids[ids->count] = id;
    ids->first[ids->count++] = (int32_t)position;
}

/* Forgets the ids whose first position is at or after `length`. Rows at the end that no session uses any more are
 * removed. */
static void forget(fr_learned_ids *ids, fr_learned_head *head, size_t length) {
    for (; ids->count && (size_t)ids->first[ids->count - 1] >= length; ids->count--) {
        int32_t id = ids->ids[ids->count - 1];
        ids->known[id / 8] &= (uint8_t) ~(1U << id % 8);
        if (--head->users[head->rows[id]] == 0) head->unused++;
    }
    for (fr_matrix *m = &head->matrix; m->features > head->likely && !head->users[m->features - 1]; head->unused--)
        head->rows[head->ids[--m->features]] = -1;
    ids->length = fr_smaller(ids->length, length);
}

void fr_learned_ids_follow(fr_learned_ids *ids, fr_learned_head *head, const fr_draft_view *view) {
    if (!head->whole) return;
    size_t same = fr_smaller(ids->length, view->length);
    if (memcmp(ids->text, view->ids, same * sizeof *ids->text) != 0)
        for (same = 0; ids->text[same] == view->ids[same];) same++;
    forget(ids, head, same);
    for (size_t i = same; i < view->length; i++) {
        int32_t id = ids->text[i] = view->ids[i];
        bool likely =
            id < 0 || (size_t)id >= head->vocab || (head->rows[id] >= 0 && (size_t)head->rows[id] < head->likely);
        if (likely || ids->known[id / 8] >> id % 8 & 1 || ids->count == FR_LEARNED_IDS_MAX) continue;
        learn(ids, head, id, i);
    }
    ids->length = view->length;
}

void fr_learned_ids_forget(fr_learned_ids *ids, fr_learned_head *head) {
    if (head->whole) forget(ids, head, 0);
}

/* ----------------------------------------------------------------------------------------------------------- scores */

void fr_learned_head_gather(fr_learned_head *head) {
    for (size_t first = 0; first < head->matrix.features; first += FR_TILE_FEATURES) {
        bool *stale = &head->stale[first / FR_TILE_FEATURES];
        if (*stale) fr_draft_head_gather_tile(&head->matrix, head->ids, head->whole, first, head->room);
        *stale = false;
    }
}

fr_scores fr_learned_head_scores(fr_learned_head *head, const fr_learned_ids *ids, float *scores) {
    for (size_t i = 0; i < ids->count; i++) head->scores[i] = scores[head->rows[ids->ids[i]]];
    memcpy(scores + head->likely, head->scores, ids->count * sizeof *scores);
    memcpy(head->scored + head->likely, ids->ids, ids->count * sizeof *head->scored);
    return (fr_scores){.logits = scores, .ids = head->scored, .count = head->likely + ids->count};
}
