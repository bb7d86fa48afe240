/* A drafter's own cache of keys and values: see drafter_cache.h. */
#include "src/engine/draft/drafter_cache.h"

#include <string.h>

#include "base/error.h"
#include "base/sizes.h"

/* A session may need this many more pages here than in the target's cache, for three reasons. Its drafts may reach past
 * the page of the last position. The frontiers of drafter and target may be in different pages, one of which is shared.
 * The text may branch off from another text within a page. */
enum { OWN_PAGES = 4 };

/* The most rows that are kept for later. Running this many rows together costs hardly more than running a single
 * row. */
enum { KEPT_ROWS = 7 };

/* Timelines share only a drafter's pages for full layers (kv_prefixes.h). So sliding layers use such pages too, and
 * positions outside of their window are not read. */
void fr_drafter_cache_lay_out_pages(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count,
                                    const fr_draft_sizes *sizes) {
    size_t context = sizes->context + FR_STEP_MAX;
    size_t pages = sizes->pages + OWN_PAGES * sizes->sessions;
    fr_kv_layout(
        kv, arena, shapes, count, fr_kv_drafter_types(shapes, count, sizes->kv_types),
        (fr_kv_sizes){
            .context = context, .batch = context, .timelines = sizes->sessions, .pages = pages, .whole = true});
}

void fr_drafter_cache_lay_out(fr_drafter_cache *cache, fr_arena *arena, const fr_kv *all, const fr_drafter *drafter,
                              const fr_draft_sizes *sizes) {
    size_t layers = drafter->aux_layers.count, seen = drafter->target->trunk.spec.hidden * fr_larger(layers, 1);
    *cache = (fr_drafter_cache){.seen = seen, .aux = layers > 0};
    fr_kv_layout_fork(&cache->kv, arena, all);
    if (sizes->rows >= KEPT_ROWS + FR_STEP_MAX) cache->room = KEPT_ROWS;
    cache->kept = fr_arena_take(arena, cache->room * seen, sizeof *cache->kept);
}

void fr_drafter_cache_fork(fr_drafter_cache *fork, const fr_drafter_cache *cache) {
    fr_kv_fork(&fork->kv, &cache->kv);
    fork->missed = cache->missed;
    fork->waiting = cache->waiting;
    if (cache->waiting) memcpy(fork->kept, cache->kept, cache->waiting * cache->seen * sizeof *cache->kept);
}

void fr_drafter_cache_cut(fr_drafter_cache *c, const fr_draft_view *view) {
    if (c->kv.length > view->kv->length) fr_kv_rewind(&c->kv, view->kv->length);
    if (c->kv.length == view->kv->length) c->missed = false;
    c->waiting = fr_smaller(c->waiting, view->kv->length - c->kv.length);
}

/* Gives the values that the drafter reads of the target's row at position p. The values are taken from the view, so the
 * row must not be one that was kept for later. */
static const float *row_of(const fr_drafter_cache *c, const fr_draft_view *view, size_t p) {
    return (c->aux ? view->aux_hidden : view->hidden) - (view->kv->length - 1 - p) * c->seen;
}

bool fr_drafter_cache_keep(fr_drafter_cache *c, const fr_draft_view *view, size_t end) {
    size_t kept = c->kv.length + c->waiting;
    if (!view->defers || c->missed || end - c->kv.length > c->room) return false;
    if (end <= kept) return true;
    memcpy(c->kept + c->waiting * c->seen, row_of(c, view, kept), (end - kept) * c->seen * sizeof *c->kept);
    c->waiting = end - c->kv.length;
    return true;
}

bool fr_drafter_cache_take(fr_drafter_cache *c, const fr_draft_view *view, size_t end, size_t more,
                           fr_followed_rows *rows) {
    size_t first = c->kv.length, count = end - first, kept = fr_smaller(c->waiting, count);
    if (c->missed) return false;
    if (fr_failure_keep(fr_kv_claim(&c->kv, count + more)).status != FR_OK) {
        /* The drafter has missed some of the target's rows. All later rows would need the keys and values of the missed
         * rows, so the cache is useless and returns its pages. */
        c->missed = true;
        c->waiting = 0;
        fr_kv_reset(&c->kv);
        return false;
    }
    *rows = (fr_followed_rows){.first = first, .count = count, .seen = c->seen, .kept = c->kept, .kept_count = kept};
    if (kept < count) rows->rest = row_of(c, view, first + kept);
    return true;
}

void fr_drafter_cache_advance(fr_drafter_cache *c, size_t end) {
    fr_kv_commit(&c->kv, end);
    c->waiting = 0;
}
