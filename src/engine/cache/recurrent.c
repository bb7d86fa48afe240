/* Keeps the states of recurrent layers: see recurrent.h. */
#include "src/engine/cache/recurrent.h"

#include <string.h>

#include "base/error.h"
#include "base/sizes.h"

/* ----------------------------------------------------------------------------------------------------------- layout */

static size_t slot_size(const fr_recurrent_shape *shape) {
    return shape->channels + shape->gates;
}

/* Places a layer after the earlier layers in a page. *page is the number of floats in the page so far, and grows by the
 * layer's floats. */
static fr_recurrent_layer place_layer(const fr_recurrent_shape *shape, size_t *page) {
    fr_recurrent_layer layer = {.shape = *shape, .state_at = *page};
    size_t kept = shape->heads - shape->before - shape->behind;
    layer.history_at = layer.state_at + kept * fr_deltanet_state(shape->key_dim, shape->value_dim);
    *page = layer.history_at + (shape->conv_kernel - 1) * shape->channels;
    return layer;
}

size_t fr_recurrent_page_bytes(const fr_recurrent_shape *shapes, size_t count) {
    size_t floats = 0;
    for (size_t i = 0; i < count; i++) place_layer(&shapes[i], &floats);
    return (floats * sizeof(float) + 63) / 64 * 64;
}

size_t fr_recurrent_position_bytes(const fr_recurrent_shape *shapes, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += slot_size(&shapes[i]) * sizeof(float);
    return bytes;
}

/* Places the layers one after the other in a page. Takes the rings of this timeline from the arena. */
static void take_layers(fr_recurrent *r, fr_arena *arena) {
    size_t page = 0;
    r->layers = fr_arena_take(arena, r->count, sizeof *r->layers);
    for (size_t i = 0; i < r->count; i++) {
        fr_recurrent_layer layer = place_layer(&r->shapes[i], &page);
        layer.ring = fr_arena_take(arena, r->slots * slot_size(&layer.shape), sizeof *layer.ring);
        if (r->layers) r->layers[i] = layer;
    }
}

void fr_recurrent_layout(fr_recurrent *r, fr_arena *arena, const fr_recurrent_shape *shapes, size_t count,
                         size_t pages) {
    size_t conv_kernel = 1;
    *r = (fr_recurrent){.shapes = shapes, .count = count, .page_count = pages};
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) conv_kernel = fr_larger(conv_kernel, shapes[i].conv_kernel);
    r->slots = FR_STEP_MAX + conv_kernel - 1;
    take_layers(r, arena);
    fr_kv_pages pool = fr_kv_pages_layout(arena, fr_recurrent_page_bytes(shapes, count), pages);
    r->pages = fr_arena_take(arena, 1, sizeof *r->pages);
    if (r->pages) *r->pages = pool;
}

void fr_recurrent_layout_fork(fr_recurrent *fork, fr_arena *arena, const fr_recurrent *r) {
    *fork = (fr_recurrent){
        .shapes = r->shapes, .count = r->count, .slots = r->slots, .pages = r->pages, .page_count = r->page_count};
    if (fork->count) take_layers(fork, arena);
}

/* ---------------------------------------------------------------------------------------------------------- forward */

static void let_go(fr_recurrent *r) {
    fr_kv_pages_drop(r->pages, &r->base, 0, 1);
}

fr_status fr_recurrent_claim(fr_recurrent *r, size_t position) {
    if (r->count == 0) return FR_OK;
    r->certain = position;
    r->points = 0;
    if (r->base && !fr_kv_page_shared(r->pages, r->base)) return FR_OK;
    uint8_t *mine = fr_kv_pages_take(r->pages);
    if (!mine && r->base && fr_kv_page_release(r->pages, r->base)) return FR_OK;
    if (!mine)
        return fr_fail(FR_MEMORY, "no page for recurrent states at position %zu is left: all %zu are held", position,
                       r->pages->count);
    if (r->at) memcpy(mine, r->base, r->pages->bytes);
    let_go(r);
    r->base = mine;
    return FR_OK;
}

void fr_recurrent_certain(fr_recurrent *r, size_t position) {
    if (r->count) r->certain = position; /* if there are no recurrent layers, nothing limits the frontier */
}

uint8_t *fr_recurrent_save(fr_recurrent *r, size_t position) {
    uint8_t *page = r->points < FR_RECURRENT_POINTS ? fr_kv_pages_take(r->pages) : NULL;
    if (page) r->point[r->points++] = (fr_recurrent_point){position, page};
    return page;
}

void fr_recurrent_ran(fr_recurrent *r) {
    r->at = fr_larger(r->at, r->certain);
    r->points = 0;
}

/* ------------------------------------------------------------------------------------------------ going back, forks */

bool fr_recurrent_holds(const fr_recurrent *r, size_t position) {
    return position >= r->at;
}

void fr_recurrent_reset(fr_recurrent *r) {
    if (r->count == 0) return;
    let_go(r);
    r->at = r->certain = r->points = 0;
}

/* Copies the convolution's last inputs before position r->at from the ring to a page, or from the page to the ring.
 * Decays and betas in the ring are not copied. The page's states already contain their effect, and later rows bring
 * their own. */
static void copy_history(const fr_recurrent *r, const fr_recurrent_layer *layer, uint8_t *page, bool to_page) {
    const fr_recurrent_shape *shape = &layer->shape;
    float *history = (float *)page + layer->history_at;
    for (size_t back = fr_smaller(shape->conv_kernel - 1, r->at); back > 0; back--) {
        float *slot = fr_recurrent_slot(r, layer, r->at - back);
        float *kept = history + (shape->conv_kernel - 1 - back) * shape->channels;
        memcpy(to_page ? kept : slot, to_page ? slot : kept, shape->channels * sizeof *history);
    }
}

uint8_t *fr_recurrent_page(const fr_recurrent *r) {
    for (size_t i = 0; r->at && i < r->count; i++) copy_history(r, &r->layers[i], r->base, true);
    return r->at ? r->base : NULL;
}

/* Sets the position of the base (recurrent.h), and fills the rings with the inputs that are stored in the base's
 * page. */
static void stand_at(fr_recurrent *r, size_t position) {
    r->at = r->certain = position;
    for (size_t i = 0; i < r->count; i++) copy_history(r, &r->layers[i], r->base, false);
}

void fr_recurrent_return(fr_recurrent *r, uint8_t *page, size_t position) {
    fr_recurrent_reset(r);
    fr_kv_pages_hold(r->pages, &r->base, &page, 0, 1);
    stand_at(r, position);
}

fr_status fr_recurrent_restore(fr_recurrent *r, const uint8_t *bytes, size_t position) {
    FR_TRY(fr_recurrent_claim(r, position));
    memcpy(r->base, bytes, r->pages->bytes);
    stand_at(r, position);
    return FR_OK;
}

void fr_recurrent_fork(fr_recurrent *fork, const fr_recurrent *r) {
    fr_recurrent_reset(fork);
    if (r->count == 0) return;
    fr_kv_pages_hold(r->pages, &fork->base, &r->base, 0, 1);
    fork->at = fork->certain = r->at;
    for (size_t i = 0; i < r->count; i++)
        memcpy(fork->layers[i].ring, r->layers[i].ring, r->slots * slot_size(&r->shapes[i]) * sizeof(float));
}
