/* Pages of keys and values, and the counts of their holders.
 *
 * A page has room for 64 consecutive positions of all layers of one kind. One block of attention also has 64 positions.
 * Layers of one kind look back equally far. Every pointer to a page is a holder of the page. Holders are a timeline's
 * table, the timeline's checkpoints, and other timelines with the same beginning. A page with several holders is never
 * written; a timeline that wants to write it takes a page of its own first (kv.h). A page without holders is free, and
 * its contents mean nothing.
 *
 * In: the bytes of a page, the number of pages. Out: pages in memory of an arena. The memory of a page is not touched
 * before the page is first written. */
#ifndef FR_SRC_ENGINE_CACHE_KV_PAGES_H
#define FR_SRC_ENGINE_CACHE_KV_PAGES_H

#include "base/arena.h"

enum { FR_KV_PAGE = 64 }; /* number of positions for which a page has room */

typedef struct fr_kv_pages fr_kv_pages;

/* A holder that can give up its pages when the pool has no free page (kv_prefixes.h). */
typedef struct fr_kv_keeper {
    void (*reclaim)(void *context, fr_kv_pages *pages); /* called when no page is free; makes one page free if it can */
    /* Makes the keeper give up a page, but only if the page has exactly one other holder. */
    void (*release)(void *context, fr_kv_pages *pages, const uint8_t *page);
    /* called when the number of a page's holders falls to one */
    void (*left)(void *context, const fr_kv_pages *pages, size_t page);
    void *context;
} fr_kv_keeper;

struct fr_kv_pages {
    uint8_t *data; /* [count][bytes] the pages */
    size_t bytes, count;
    uint32_t *holders; /* [count] the number of holders of each page; 0: the page is free */
    uint32_t *free;    /* [free_count] the numbers of the free pages; the last one in this list is taken first */
    size_t free_count;
    fr_kv_keeper keeper; /* a holder that can give up its pages; all members are NULL if there is none */
};

/* Takes the pages from the arena, which may be a measuring one (base/arena.h). */
fr_kv_pages fr_kv_pages_layout(fr_arena *arena, size_t bytes, size_t count);

/* Takes a free page, which then has one holder. Returns NULL if all pages are held. */
uint8_t *fr_kv_pages_take(fr_kv_pages *pages);

/* Asks the keeper to give up a page. Returns true if the caller is then the page's only holder. */
bool fr_kv_page_release(fr_kv_pages *pages, const uint8_t *page);

static inline size_t fr_kv_page_number(const fr_kv_pages *pages, const uint8_t *page) {
    return (size_t)(page - pages->data) / pages->bytes;
}

/* Counts the table entries for the first `positions` positions: one entry for each 64 positions, rounded up. */
static inline size_t fr_kv_blocks(size_t positions) {
    return positions / FR_KV_PAGE + (positions % FR_KV_PAGE != 0);
}

/* fr_kv_pages_hold copies entries [from, end) of a table to table `to`, whose entries there are empty, and counts a new
 * holder for each page. fr_kv_pages_drop removes a holder from each page of these entries and empties them. */
void fr_kv_pages_hold(fr_kv_pages *pages, uint8_t **to, uint8_t *const *table, size_t from, size_t end);
void fr_kv_pages_drop(fr_kv_pages *pages, uint8_t **table, size_t from, size_t end);

/* Adds `change` to the holder counts of a table's pages. Calls come in pairs, first with -1 and later with +1. Between
 * the two calls, the caller can count which pages would be free without the table. */
void fr_kv_pages_recount(fr_kv_pages *pages, uint8_t *const *table, size_t blocks, int change);

/* Returns true if the page has more than one holder. */
bool fr_kv_page_shared(const fr_kv_pages *pages, const uint8_t *page);

#endif
