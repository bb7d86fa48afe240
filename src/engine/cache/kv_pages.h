/* Pages of keys and values, and who holds them.
 *
 * A page has room for 64 consecutive positions (attention's own block) of all layers of one kind, those whose readers
 * look back equally far. It is held by as many as point to it: a timeline's table, checkpoints of it, other timelines
 * that began alike. Nobody writes a page that others hold too: he takes one of his own first (kv.h). What nobody holds
 * is free; its contents mean nothing.
 *
 * In: how many bytes a page has, how many pages there may be. Out: pages, from an arena's memory that is not touched
 * before the page is first written. */
#ifndef FR_SRC_ENGINE_CACHE_KV_PAGES_H
#define FR_SRC_ENGINE_CACHE_KV_PAGES_H

#include "base/arena.h"

enum { FR_KV_PAGE = 64 }; /* positions */

typedef struct fr_kv_pages fr_kv_pages;

/* Who holds pages that he can do without. */
typedef struct fr_kv_keeper {
    void (*reclaim)(void *context, fr_kv_pages *pages); /* none is free: makes one free, if there is any */
    /* Lets go of that one, where he and one other are all that hold it. */
    void (*release)(void *context, fr_kv_pages *pages, const uint8_t *page);
    void (*left)(void *context, const fr_kv_pages *pages, size_t page); /* all but one have let go of that one */
    void *context;
} fr_kv_keeper;

struct fr_kv_pages {
    uint8_t *data; /* [count][bytes] */
    size_t bytes, count;
    uint32_t *holders; /* [count] 0: free */
    uint32_t *free;    /* [free_count] the numbers of those, the next to be taken last */
    size_t free_count;
    fr_kv_keeper keeper; /* all NULL: nobody */
};

/* Takes them from the arena, or measures them. */
fr_kv_pages fr_kv_pages_layout(fr_arena *arena, size_t bytes, size_t count);

/* A page that nobody held, held once; NULL: all are held. */
uint8_t *fr_kv_pages_take(fr_kv_pages *pages);

/* Makes the holder of a page the only one, where but the keeper holds it too: whether he is. */
bool fr_kv_page_release(fr_kv_pages *pages, const uint8_t *page);

static inline size_t fr_kv_page_number(const fr_kv_pages *pages, const uint8_t *page) {
    return (size_t)(page - pages->data) / pages->bytes;
}

/* A table has a page, or NULL, for each 64 positions: how many entries the first `positions` take up. */
static inline size_t fr_kv_blocks(size_t positions) {
    return positions / FR_KV_PAGE + (positions % FR_KV_PAGE != 0);
}

/* Entries [from, end) of a table: in another too, which held none there; and let go of. */
void fr_kv_pages_hold(fr_kv_pages *pages, uint8_t **to, uint8_t *const *table, size_t from, size_t end);
void fr_kv_pages_drop(fr_kv_pages *pages, uint8_t **table, size_t from, size_t end);

/* Counts a table's holds once less (-1), or again (+1): in between it can be asked what would be free without them. */
void fr_kv_pages_recount(fr_kv_pages *pages, uint8_t *const *table, size_t blocks, int change);

/* Whether somebody else holds it too. */
bool fr_kv_page_shared(const fr_kv_pages *pages, const uint8_t *page);

#endif
