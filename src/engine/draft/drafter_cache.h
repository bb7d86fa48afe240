/* A drafter's own cache of keys and values in one session, which follows the target's rows.
 *
 * In: the target's rows, when a session runs them. Out: the rows that are not in the cache yet, which the drafter then
 * runs.
 *
 * The cache's frontier is the number of positions that were run from the target's rows:
 *
 *     new rows run in one batch --> frontier moves to the target's (fr_drafter_cache_take, _advance)
 *     rows of drafts lie after the frontier, and the next drafts overwrite them: rejecting costs nothing
 *
 * In rounds without drafts, a few of the target's rows are kept and run later. So the drafter's weights are read once
 * for all these rows. Sessions of an engine share pages, and there are enough for all. If a page is missing
 * nevertheless, the session drafts nothing until its next prompt. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFTER_CACHE_H
#define FR_SRC_ENGINE_DRAFT_DRAFTER_CACHE_H

#include "src/engine/draft/draft.h"

typedef struct fr_drafter_cache {
    fr_kv kv;
    size_t seen;          /* number of values that the drafter reads from each of the target's rows */
    bool aux;             /* the drafter reads the inputs of the target's aux_layers instead of the row after the final
                           * norm */
    bool missed;          /* there was no page for some rows of the target, so these rows are missing */
    float *kept;          /* [room, seen] values of the kept rows, which begin at the frontier */
    size_t waiting, room; /* waiting: number of kept rows; room: the most rows that are kept */
} fr_drafter_cache;

/* Rows of the target that are run together. They are the rows of `count` positions from `first` on. */
typedef struct fr_followed_rows {
    size_t first, count, seen;
    const float *kept; /* the first `kept_count` rows */
    size_t kept_count;
    const float *rest; /* the rows that follow the first `kept_count` rows */
} fr_followed_rows;

/* Gives the values of the row with this index. */
static inline const float *fr_followed_row(const fr_followed_rows *rows, size_t index) {
    if (index < rows->kept_count) return rows->kept + index * rows->seen;
    return rows->rest + (index - rows->kept_count) * rows->seen;
}

/* Takes the pages of all sessions' caches, and the layout of these caches, from the arena. The arena may be a measuring
 * one (base/arena.h). */
void fr_drafter_cache_lay_out_pages(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count,
                                    const fr_draft_sizes *sizes);

/* Takes a session's cache for a drafter from the arena, which may be a measuring one. all: the layout that
 * fr_drafter_cache_lay_out_pages has made. */
void fr_drafter_cache_lay_out(fr_drafter_cache *cache, fr_arena *arena, const fr_kv *all, const fr_drafter *drafter,
                              const fr_draft_sizes *sizes);

void fr_drafter_cache_fork(fr_drafter_cache *fork, const fr_drafter_cache *cache);

/* Moves the drafter's frontier back to the target's frontier, if that was moved back. */
void fr_drafter_cache_cut(fr_drafter_cache *cache, const fr_draft_view *view);

/* Keeps the target's rows up to position `end` - 1, to run them later. Returns false if view->defers is not set,
 * because the rows are then run at once. Also returns false if there is no room for the rows, or if the drafter has
 * missed earlier rows. */
bool fr_drafter_cache_keep(fr_drafter_cache *cache, const fr_draft_view *view, size_t end);

/* Gives the rows from the frontier to `end`; there may be none. Claims pages for these rows and for `more` rows after
 * them. Returns false if there are not enough pages. */
bool fr_drafter_cache_take(fr_drafter_cache *cache, const fr_draft_view *view, size_t end, size_t more,
                           fr_followed_rows *rows);

/* Moves the frontier after the rows before `end` have been run. */
void fr_drafter_cache_advance(fr_drafter_cache *cache, size_t end);

#endif
