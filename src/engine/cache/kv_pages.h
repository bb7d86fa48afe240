/* Pages of keys and values, and the counts of their holders.
 *
 * A page has room for 64 consecutive positions, as many as attention's block, of all layers of one kind. Layers of one
 * kind look back equally far. Every pointer to a page is a holder: a timeline's table, its checkpoints, other
 * timelines with the same beginning. A page with several holders is never written; a timeline that wants to write it
 * takes a page of its own first (kv.h). A page without holders is free, and its contents mean nothing.
 *
 * In: the bytes of a page, the number of pages. Out: pages, from an arena's memory that is not touched before the page
 * is first written. */
#ifndef FR_SRC_ENGINE_CACHE_KV_PAGES_H
#define FR_SRC_ENGINE_CACHE_KV_PAGES_H

#include "base/arena.h"

enum { FR_KV_PAGE = 64 }; /* number of positions for which a page has room */

typedef struct fr_kv_pages fr_kv_pages;

/* A holder that can give up its pages when the pool runs out of free ones (kv_prefixes.h). */
typedef struct fr_kv_keeper {
    void (*reclaim)(void *context, fr_kv_pages *pages); /* called when no page is free; frees one if it can */
    /* Drops the keeper's hold on a page if the page has exactly one other holder. */
    void (*release)(void *context, fr_kv_pages *pages, const uint8_t *page);
    /* called when only one holder of a page is left */
    void (*left)(void *context, const fr_kv_pages *pages, size_t page);
    void *context;
} fr_kv_keeper;

struct fr_kv_pages {
    uint8_t *data; /* [count][bytes] the pages */
    size_t bytes, count;
    uint32_t *holders; /* [count] the number of holders of each page; 0: the page is free */
    uint32_t *free;    /* [free_count] the numbers of the free pages; the last is taken next */
    size_t free_count;
    fr_kv_keeper keeper; /* a holder that can give up its pages; all NULL: none */
};

/* Takes the pages from the arena, which may be a measuring one (base/arena.h). */
fr_kv_pages fr_kv_pages_layout(fr_arena *arena, size_t bytes, size_t count);

/* Takes a free page, which then has one holder. NULL if all pages are held. */
uint8_t *fr_kv_pages_take(fr_kv_pages *pages);

/* Asks the keeper to drop its hold on a page. Returns true if the caller is then the page's only holder. */
bool fr_kv_page_release(fr_kv_pages *pages, const uint8_t *page);

static inline size_t fr_kv_page_number(const fr_kv_pages *pages, const uint8_t *page) {
    return (size_t)(page - pages->data) / pages->bytes;
}

/* Counts the table entries that cover the first `positions` positions: one for each 64, rounded up. */
static inline size_t fr_kv_blocks(size_t positions) {
    return positions / FR_KV_PAGE + (positions % FR_KV_PAGE != 0);
}

/* fr_kv_pages_hold copies entries [from, end) of a table to another table, which has no pages there, and also holds
 * their pages. fr_kv_pages_drop drops the pages of these entries and empties them. */
void fr_kv_pages_hold(fr_kv_pages *pages, uint8_t **to, uint8_t *const *table, size_t from, size_t end);
void fr_kv_pages_drop(fr_kv_pages *pages, uint8_t **table, size_t from, size_t end);

/* Changes the holder counts of a table's pages by `change`. Calls come in pairs, -1 and later +1; in between, the
 * caller can count which pages would be free without the table. */
void fr_kv_pages_recount(fr_kv_pages *pages, uint8_t *const *table, size_t blocks, int change);

/* Returns true if the page has more than one holder. */
bool fr_kv_page_shared(const fr_kv_pages *pages, const uint8_t *page);

#endif
