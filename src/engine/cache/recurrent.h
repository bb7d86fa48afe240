/* The states that recurrent layers have instead of keys and values, and the inputs of the last positions.
 *
 * A state can't be cut back to an earlier position. So the cache stores the state of an earlier position `at`. All
 * positions that may still be rejected come after `at`.
 *
 *     base    in a page, the states of all layers after the first `at` positions, all of which are accepted
 *     ring    inputs of the positions from at - (conv_kernel - 1) on. Position p is in slot p % slots. Inputs of later
 *             positions overwrite those of rejected ones, so rejecting a draft costs nothing
 *
 * A forward first runs the positions from `at` up to its first row again, with inputs from the ring. Then it runs its
 * rows. It moves the base forward to position `certain`, which fr_recurrent_claim sets and fr_recurrent_certain raises.
 * The positions after `certain` are run on a copy of the state in scratch memory. The results have the same bits as
 * plain decoding, because the operations and their order are the same.
 *
 * Every pointer to a page holds the page. A fork copies nothing, and a timeline copies a shared state before it changes
 * the state. Checkpoints are pages for selected positions (points). When a forward passes such a position, it fills the
 * page with the states there and with the last inputs before that position. A timeline can continue from this page
 * later.
 *
 * In: shapes of layers, the number of timelines. Out: memory taken from an arena. deltanet.c reads and writes this
 * memory. */
#ifndef FR_SRC_ENGINE_CACHE_RECURRENT_H
#define FR_SRC_ENGINE_CACHE_RECURRENT_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"

/* The shape of one recurrent layer. */
typedef struct fr_recurrent_shape {
    size_t heads, key_dim, value_dim; /* a head's state has the layout of the deltanet kernel (fr_deltanet) */
    size_t before, behind;            /* number of heads before and after this rank's heads; other ranks keep these
                                       * heads */
    size_t channels, conv_kernel;     /* channels: values of one input that are convolved; conv_kernel: number of
                                       * positions that a convolution spans */
    size_t gates; /* number of further values that the ring keeps for each position: the position's decays and betas */
} fr_recurrent_shape;

typedef struct fr_recurrent_layer {
    fr_recurrent_shape shape;
    size_t state_at; /* place of the states, in floats from a page's beginning: [kept heads, a head's state] */
    /* place of the last inputs, in floats from a page's beginning: [conv_kernel - 1, channels], the oldest input
     * first */
    size_t history_at;
    float *ring; /* [slots, channels + gates] for each position: its input, its decays and its betas */
} fr_recurrent_layer;

/* A position at which a forward leaves a copy of the states, and the page for it. */
typedef struct fr_recurrent_point {
    size_t position;
    uint8_t *page;
} fr_recurrent_point;

enum { FR_RECURRENT_POINTS = 6 }; /* the largest number of points in one forward */

typedef struct fr_recurrent {
    const fr_recurrent_shape *shapes; /* [count] the shapes; the caller of the layout owns this array */
    fr_recurrent_layer *layers;       /* [count] where each layer's states and inputs lie */
    size_t count;                     /* number of recurrent layers; 0: the members below are empty */
    size_t slots;                     /* number of positions for which a ring has room */
    fr_kv_pages *pages;               /* the pool of pages with states */
    size_t page_count;                /* number of pages in the pool `pages` */
    uint8_t *base;                    /* the page of the base's states; NULL: no position has been run, and all states
                                       * are 0 */
    size_t at, certain;
    fr_recurrent_point point[FR_RECURRENT_POINTS]; /* the points of the next forward. Their positions ascend, are after
                                                    * `at`, and are at most `certain`. The timeline owns their pages */
    size_t points;
} fr_recurrent;

/* fr_recurrent_page_bytes gives the bytes of a page, which holds the states of all layers. fr_recurrent_position_bytes
 * gives the bytes that one position takes in the rings of all layers. */
size_t fr_recurrent_page_bytes(const fr_recurrent_shape *shapes, size_t count);
size_t fr_recurrent_position_bytes(const fr_recurrent_shape *shapes, size_t count);

/* fr_recurrent_layout takes the memory of an empty timeline from the arena, which may be a measuring one
 * (base/arena.h). It also takes a pool of `pages` pages. fr_recurrent_layout_fork takes the memory of a fork, which
 * uses the other timeline's pool. */
void fr_recurrent_layout(fr_recurrent *recurrent, fr_arena *arena, const fr_recurrent_shape *shapes, size_t count,
                         size_t pages);
void fr_recurrent_layout_fork(fr_recurrent *fork, fr_arena *arena, const fr_recurrent *recurrent);

/* Prepares a forward of rows from `position` on: makes this timeline the only holder of the base. Returns FR_MEMORY if
 * no page is left. */
fr_status fr_recurrent_claim(fr_recurrent *recurrent, size_t position);

/* Says that the positions before `position` will stay accepted after the next forward. So this forward may move the
 * base up to `position`. */
void fr_recurrent_certain(fr_recurrent *recurrent, size_t position);

/* Makes the next forward leave a copy of the states at a position. Positions must ascend from call to call, and be at
 * most `certain`. Returns the page for the copy, or NULL if no page is left. The caller owns the page. The page is
 * complete once the forward has run. */
uint8_t *fr_recurrent_save(fr_recurrent *recurrent, size_t position);

/* Records that the forward has run, and so has moved the base to `certain`. */
void fr_recurrent_ran(fr_recurrent *recurrent);

/* Returns true if the frontier can move back to `position` without restoring a page. */
bool fr_recurrent_holds(const fr_recurrent *recurrent, size_t position);

/* fr_recurrent_reset goes back to the state before the first position. fr_recurrent_return goes back to `position`,
 * whose states are in `page`; from then on the timeline holds that page. */
void fr_recurrent_reset(fr_recurrent *recurrent);
void fr_recurrent_return(fr_recurrent *recurrent, uint8_t *page, size_t position);

/* Adds the last inputs before `at` to the page of the base, so that other timelines can continue from this page.
 * Returns the page, or NULL if no position has been run. */
uint8_t *fr_recurrent_page(const fr_recurrent *recurrent);

/* Moves the recurrent layers to `position`. bytes: the states at that position, which are copied to a page. Returns
 * FR_MEMORY if no page is left. */
fr_status fr_recurrent_restore(fr_recurrent *recurrent, const uint8_t *bytes, size_t position);

/* Makes a fork hold the states and inputs that another timeline holds up to its frontier. */
void fr_recurrent_fork(fr_recurrent *fork, const fr_recurrent *recurrent);

static inline float *fr_recurrent_slot(const fr_recurrent *recurrent, const fr_recurrent_layer *layer,
                                       size_t position) {
    return layer->ring + position % recurrent->slots * (layer->shape.channels + layer->shape.gates);
}

#endif
