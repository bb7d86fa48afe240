/* The states that recurrent layers have instead of keys and values, and the inputs of the positions before them.
 *
 * A state can't be cut back to an earlier position. So the stored state is that of an earlier position `at`, before
 * all positions that may still be rejected.
 *
 *     base    in a page, the states of all layers after the first `at` positions, all of which are accepted
 *     ring    inputs of the positions from at - (conv_kernel - 1) on, at slot = position; they are overwritten like
 *             slots of keys and values, so that rejecting costs nothing
 *
 * A forward first runs the positions from `at` up to its first row again, with inputs from the ring, and then its
 * rows. It moves the base forward to position `certain`, which fr_recurrent_claim sets and fr_recurrent_certain
 * raises. The positions after `certain` are run on a copy of the state in scratch memory. The bits are those of plain
 * decoding: the same operations in the same order.
 *
 * Every pointer to a page holds the page: a fork copies nothing, and a timeline copies a shared state before it
 * changes the state. Checkpoints are pages for certain positions (points). When a forward passes such a position, it
 * fills the page with the states there and with the last inputs before that position. A timeline can continue from
 * there.
 *
 * In: shapes of layers, the number of timelines. Out: memory taken from an arena. deltanet.c reads and writes it. */
#ifndef FR_SRC_ENGINE_CACHE_RECURRENT_H
#define FR_SRC_ENGINE_CACHE_RECURRENT_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"

/* The shape of one recurrent layer. */
typedef struct fr_recurrent_shape {
    size_t heads, key_dim, value_dim; /* a head's state has the layout of the deltanet kernel (fr_deltanet) */
    size_t before, behind;            /* the numbers of heads before and after this rank's own, which other ranks
                                       * keep */
    size_t channels, conv_kernel;     /* channels: values of an input that are convolved; conv_kernel: positions that a
                                       * convolution spans */
    size_t gates; /* number of further values that the ring keeps of a position, which are the position's decays and
                   * betas */
} fr_recurrent_shape;

typedef struct fr_recurrent_layer {
    fr_recurrent_shape shape;
    size_t state_at; /* place of the states, in floats from a page's beginning: [kept heads, a head's state] */
    /* place of the inputs before the position, in floats from a page's beginning: [conv_kernel - 1, channels], the
     * oldest first */
    size_t history_at;
    float *ring; /* [slots, channels + gates] for each position its input, its decays and its betas */
} fr_recurrent_layer;

/* A position at which a forward leaves a copy of the states, and the page for it. */
typedef struct fr_recurrent_point {
    size_t position;
    uint8_t *page;
} fr_recurrent_point;

enum { FR_RECURRENT_POINTS = 6 }; /* the most points of one forward */

typedef struct fr_recurrent {
    const fr_recurrent_shape *shapes; /* [count] kept by the caller of the layout */
    fr_recurrent_layer *layers;       /* [count] where each layer's states and inputs lie */
    size_t count;                     /* 0: there are no recurrent layers, and the members below are empty */
    size_t slots;                     /* positions that a ring has room for */
    fr_kv_pages *pages;               /* the pool of pages with states */
    size_t page_count;                /* number of pages in the pool `pages` */
    uint8_t *base;                    /* the states' page; NULL: no position has been run, and all states are 0 */
    size_t at, certain;
    fr_recurrent_point point[FR_RECURRENT_POINTS]; /* the points of the next forward: positions in ascending order,
                                                    * after `at` and up to `certain`; the timeline owns their pages */
    size_t points;
} fr_recurrent;

/* fr_recurrent_page_bytes gives the bytes of a page, which holds the states of all layers. fr_recurrent_position_bytes
 * gives the bytes that the rings take for each position after the base. */
size_t fr_recurrent_page_bytes(const fr_recurrent_shape *shapes, size_t count);
size_t fr_recurrent_position_bytes(const fr_recurrent_shape *shapes, size_t count);

/* Takes the memory of an empty timeline from the arena, which may be a measuring one (base/arena.h), and with it a pool
 * of `pages` pages. A fork uses the other timeline's pool. */
void fr_recurrent_layout(fr_recurrent *recurrent, fr_arena *arena, const fr_recurrent_shape *shapes, size_t count,
                         size_t pages);
void fr_recurrent_layout_fork(fr_recurrent *fork, fr_arena *arena, const fr_recurrent *recurrent);

/* Prepares a forward of rows from `position` on: makes this timeline the only holder of the base. FR_MEMORY if no page
 * was left. */
fr_status fr_recurrent_claim(fr_recurrent *recurrent, size_t position);

/* Says that the positions before `position` will not be rejected after the next forward, so that the forward may move
 * the base up to there. */
void fr_recurrent_certain(fr_recurrent *recurrent, size_t position);

/* Makes the forward leave a copy of the states at a position. Positions must ascend from call to call, up to
 * `certain`. Returns the page of the copy, which the caller owns from then on and which is complete once the forward
 * has run; NULL if no page was left. */
uint8_t *fr_recurrent_save(fr_recurrent *recurrent, size_t position);

/* Records that the forward has run, and so has moved the base to `certain`. */
void fr_recurrent_ran(fr_recurrent *recurrent);

/* Returns true if the frontier can move back to `position` without restoring a page. */
bool fr_recurrent_holds(const fr_recurrent *recurrent, size_t position);

/* fr_recurrent_reset goes back to before the first position. fr_recurrent_return goes back to `position`, whose states
 * are in `page`; from then on the timeline holds that page. */
void fr_recurrent_reset(fr_recurrent *recurrent);
void fr_recurrent_return(fr_recurrent *recurrent, uint8_t *page, size_t position);

/* Completes the page of the base and returns it: the last inputs before `at` are added, so that other timelines can
 * continue from there. NULL if no position has been run. */
uint8_t *fr_recurrent_page(const fr_recurrent *recurrent);

/* Moves the recurrent layers to `position`. bytes: their states at that position, which are copied to a page.
 * FR_MEMORY if no page was left. */
fr_status fr_recurrent_restore(fr_recurrent *recurrent, const uint8_t *bytes, size_t position);

/* Makes a fork hold the states and inputs that another timeline holds up to its frontier. */
void fr_recurrent_fork(fr_recurrent *fork, const fr_recurrent *recurrent);

static inline float *fr_recurrent_slot(const fr_recurrent *recurrent, const fr_recurrent_layer *layer,
                                       size_t position) {
    return layer->ring + position % recurrent->slots * (layer->shape.channels + layer->shape.gates);
}

#endif
