/* A drafter's own KV cache in one session, which follows the target's rows.
 *
 * In: the target's rows, as a session runs them. Out: the rows that are not in the cache yet, for the drafter to run.
 *
 * The cache's frontier is the number of positions that were run from the target's rows:
 *
 *     new rows run in one batch --> frontier moves with the target's (fr_drafter_cache_take, _advance)
 *     rows of drafts lie after it and are overwritten by the next ones: rejecting costs nothing
 *
 * In rounds without drafts, a few of the target's rows are kept and run later, so that together they read the drafter's
 * weights once. Sessions of an engine share pages, of which there are enough for all. If a page is missing all the
 * same, the session drafts nothing until its next prompt. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFTER_CACHE_H
#define FR_SRC_ENGINE_DRAFT_DRAFTER_CACHE_H

#include "src/engine/draft/draft.h"

typedef struct fr_drafter_cache {
    fr_kv kv;
    size_t seen;          /* number of values that the drafter reads of each of the target's rows */
    bool aux;             /* the drafter reads the target's rows in the aux_layers, not after the final norm */
    bool missed;          /* rows of the target were missed because there was no page */
    float *kept;          /* [room, seen] values of the kept rows, which begin at the frontier */
    size_t waiting, room; /* waiting: number of kept rows; room: the most rows that are kept */
} fr_drafter_cache;

/* Rows of the target that are run together: those of `count` positions from `first` on. */
typedef struct fr_followed_rows {
    size_t first, count, seen;
    const float *kept; /* the first `kept_count` rows */
    size_t kept_count;
    const float *rest; /* the rows after the first `kept_count` */
} fr_followed_rows;

/* Gives the values of the row with this index. */
static inline const float *fr_followed_row(const fr_followed_rows *rows, size_t index) {
    if (index < rows->kept_count) return rows->kept + index * rows->seen;
    return rows->rest + (index - rows->kept_count) * rows->seen;
}

/* Takes the layout and the pages of all sessions' caches from the arena, which may be a measuring one
 * (base/arena.h). */
void fr_drafter_cache_lay_out_pages(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count,
                                    const fr_draft_sizes *sizes);

/* Takes a session's cache for a drafter from the arena, which may be a measuring one. all: the layout that
 * fr_drafter_cache_lay_out_pages has made. */
void fr_drafter_cache_lay_out(fr_drafter_cache *cache, fr_arena *arena, const fr_kv *all, const fr_drafter *drafter,
                              const fr_draft_sizes *sizes);

void fr_drafter_cache_fork(fr_drafter_cache *fork, const fr_drafter_cache *cache);

/* Moves the drafter's frontier back to the target's, if the target's was moved back. */
void fr_drafter_cache_cut(fr_drafter_cache *cache, const fr_draft_view *view);

/* Keeps the target's rows up to position `end` - 1, to run them later. Returns false if view->defers is not set,
 * because the rows then need not be put off. Also returns false if there is no room for the rows, or if the drafter
 * has missed earlier rows. */
bool fr_drafter_cache_keep(fr_drafter_cache *cache, const fr_draft_view *view, size_t end);

/* Gives the rows from the frontier to `end`; there may be none. Claims pages for these rows and for `more` rows after
 * them. If there are not enough pages, returns false. */
bool fr_drafter_cache_take(fr_drafter_cache *cache, const fr_draft_view *view, size_t end, size_t more,
                           fr_followed_rows *rows);

/* Moves the frontier after the rows before `end` have been run. */
void fr_drafter_cache_advance(fr_drafter_cache *cache, size_t end);

#endif
