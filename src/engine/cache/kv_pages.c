/* Counts the holders of pages of keys and values: see kv_pages.h. */
#include "src/engine/cache/kv_pages.h"

fr_kv_pages fr_kv_pages_layout(fr_arena *arena, size_t bytes, size_t count) {
    fr_kv_pages pages = {.bytes = bytes, .count = count, .free_count = count};
    pages.holders = fr_arena_take(arena, count, sizeof *pages.holders);
    pages.free = fr_arena_take(arena, count, sizeof *pages.free);
    pages.data = fr_arena_take(arena, count, bytes);
    for (size_t i = 0; pages.free && i < count; i++) pages.free[i] = (uint32_t)(count - 1 - i);
    return pages;
}

uint8_t *fr_kv_pages_take(fr_kv_pages *pages) {
    if (pages->free_count == 0 && pages->keeper.reclaim) pages->keeper.reclaim(pages->keeper.context, pages);
    if (pages->free_count == 0) return NULL;
    size_t number = pages->free[--pages->free_count];
    pages->holders[number] = 1;
    return pages->data + number * pages->bytes;
}

void fr_kv_pages_hold(fr_kv_pages *pages, uint8_t **to, uint8_t *const *table, size_t from, size_t end) {
    for (size_t block = from; block < end; block++) {
        to[block] = table[block];
        if (table[block]) pages->holders[fr_kv_page_number(pages, table[block])]++;
    }
}

static void drop(fr_kv_pages *pages, const uint8_t *page) {
    size_t number = fr_kv_page_number(pages, page);
    uint32_t holders = --pages->holders[number];
    if (holders == 0)
        pages->free[pages->free_count++] = (uint32_t)number;
    else if (holders == 1 && pages->keeper.left)
        pages->keeper.left(pages->keeper.context, pages, number);
}

void fr_kv_pages_drop(fr_kv_pages *pages, uint8_t **table, size_t from, size_t end) {
    for (size_t block = from; block < end; block++) {
        if (table[block]) drop(pages, table[block]);
        table[block] = NULL;
    }
}

void fr_kv_pages_recount(fr_kv_pages *pages, uint8_t *const *table, size_t blocks, int change) {
    for (size_t block = 0; block < blocks; block++) {
        if (!table[block]) continue;
        uint32_t *holders = &pages->holders[fr_kv_page_number(pages, table[block])];
        *holders = (uint32_t)((int64_t)*holders + change);
    }
}

bool fr_kv_page_release(fr_kv_pages *pages, const uint8_t *page) {
    if (fr_kv_page_shared(pages, page) && pages->keeper.release)
        pages->keeper.release(pages->keeper.context, pages, page);
    return !fr_kv_page_shared(pages, page);
}

bool fr_kv_page_shared(const fr_kv_pages *pages, const uint8_t *page) {
    return pages->holders[fr_kv_page_number(pages, page)] > 1;
}
