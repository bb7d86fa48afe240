/* What layers carry on from position to position that have no keys and values: a state, and inputs of the positions
 * behind it.
 *
 * A state can't be cut back, so it lags behind the frontier by what may still be rejected:
 *
 *     base    in a page, the states of all layers behind the first `at` positions, all accepted
 *     ring    inputs of the positions from at - (conv_kernel - 1) on, at slot = position: overwritten like slots of
 * keys and
 *             values, so that rejecting costs nothing
 *
 * A forward first runs the positions between `at` and its rows once more, from the ring, then its rows. Up to `certain`
 * it moves base on (fr_recurrent_claim says how far that is, and whoever knows better says so behind it); what lies
 * behind is run on a copy in scratch. The bits are those of plain decoding: the same operations in the same order.
 *
 * A page is held by all who point to it: forks take no copy, and who moves a state on that others hold moves a copy of
 * his own. Checkpoints are pages which a forward fills where it passes their position (points): states and the last
 * inputs before it, so that a timeline can go on from there.
 *
 * In: shapes of layers, the number of timelines. Out: memory taken from an arena. deltanet.c reads and writes it. */
#ifndef FR_SRC_ENGINE_CACHE_RECURRENT_H
#define FR_SRC_ENGINE_CACHE_RECURRENT_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"

/* Of one layer. */
typedef struct fr_recurrent_shape {
    size_t heads, key_dim, value_dim; /* a head's state as fr_deltanet has it */
    size_t before, behind;            /* of the heads, those whose states other ranks keep */
    size_t channels, conv_kernel;     /* an input's values that are convolved, over how many positions */
} fr_recurrent_shape;

typedef struct fr_recurrent_layer {
    fr_recurrent_shape shape;
    size_t state_at;   /* floats from a page's beginning: [heads that are kept, a head's state] */
    size_t history_at; /* and [conv_kernel - 1, channels], inputs before the position, the oldest first */
    float *ring;       /* [slots, channels + 2 * heads]: an input, its decays, its betas */
} fr_recurrent_layer;

/* Where a forward leaves a copy of the states it passes. */
typedef struct fr_recurrent_point {
    size_t position;
    uint8_t *page;
} fr_recurrent_point;

enum { FR_RECURRENT_POINTS = 6 }; /* the most points of one forward */

typedef struct fr_recurrent {
    const fr_recurrent_shape *shapes; /* [count] whoever laid it out keeps them */
    fr_recurrent_layer *layers;       /* [count] */
    size_t count;       /* 0: none, and nothing of the following */
    size_t slots;       /* of a ring */
    fr_kv_pages *pages; /* of states */
    size_t page_count;  /* how many pages */
    uint8_t *base;      /* NULL: behind no position, all 0 */
    size_t at, certain;
    fr_recurrent_point point[FR_RECURRENT_POINTS]; /* ascending, in (at, certain]; their pages are the timeline's */
    size_t points;
} fr_recurrent;

/* Bytes of what all layers keep of a timeline, and of each position behind its base. */
size_t fr_recurrent_page_bytes(const fr_recurrent_shape *shapes, size_t count);
size_t fr_recurrent_position_bytes(const fr_recurrent_shape *shapes, size_t count);

/* Takes an empty one and `pages` pages from the arena, or measures them; and one that shares another's pages. */
void fr_recurrent_layout(fr_recurrent *recurrent, fr_arena *arena, const fr_recurrent_shape *shapes, size_t count,
                         size_t pages);
void fr_recurrent_layout_fork(fr_recurrent *fork, fr_arena *arena, const fr_recurrent *recurrent);

/* Said before a forward of rows from `position` on: the base is then this timeline's alone. FR_MEMORY: no page was
 * left. */
fr_status fr_recurrent_claim(fr_recurrent *recurrent, size_t position);

/* Of that forward, positions before `position` will stand, whatever comes of the others. */
void fr_recurrent_certain(fr_recurrent *recurrent, size_t position);

/* Lets it leave a copy at a position behind all such, at most where it is certain. Gives the page, which is the
 * caller's from then on, whole once the forward has run; NULL: none was left. */
uint8_t *fr_recurrent_save(fr_recurrent *recurrent, size_t position);

/* The forward has run. */
void fr_recurrent_ran(fr_recurrent *recurrent);

/* Whether the frontier can stand there without going back to a page. */
bool fr_recurrent_holds(const fr_recurrent *recurrent, size_t position);

/* To no position, or to that of a page, which it holds then. */
void fr_recurrent_reset(fr_recurrent *recurrent);
void fr_recurrent_return(fr_recurrent *recurrent, uint8_t *page, size_t position);

/* Gives the base as a page from which other timelines can go on at the present position, with the inputs before it;
 * NULL: there is none. */
uint8_t *fr_recurrent_page(const fr_recurrent *recurrent);

/* To a page of its own with those bytes, which stand for the position. FR_MEMORY: none was left. */
fr_status fr_recurrent_restore(fr_recurrent *recurrent, const uint8_t *bytes, size_t position);

/* What another holds, up to its frontier; and what it becomes of one that is empty again then. */
void fr_recurrent_fork(fr_recurrent *fork, const fr_recurrent *recurrent);

static inline float *fr_recurrent_slot(const fr_recurrent *recurrent, const fr_recurrent_layer *layer,
                                       size_t position) {
    return layer->ring + position % recurrent->slots * (layer->shape.channels + 2 * layer->shape.heads);
}

#endif
