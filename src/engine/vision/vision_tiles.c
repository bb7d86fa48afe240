/* Makes the squares by which some towers see a picture: the whole picture and its tiles.
 *
 * In: a picture, the tiles that its kind of tower chose. Out: for each of these squares an image of the size that the
 * tower sees. A tower without tiles sees a picture once, resized to its grid of tokens. */
#include <stdlib.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/vision/tower.h"

#define TILES_MAX 4096

size_t fr_vision_views(const fr_vision_tiling *tiling) {
    return tiling->rows * tiling->columns + 1;
}

fr_status fr_vision_tile(const fr_vision_config *c, size_t width, size_t height, fr_vision_tiling *tiling) {
    fr_vision_tiling found = {0};
    if (c->tile && c->tower->tile) FR_TRY(c->tower->tile(c, width, height, &found));
    for (size_t i = 0; i < found.resizes; i++)
        if (!found.size[i][0] || !found.size[i][1] || found.size[i][0] > FR_IMAGE_PIXELS_MAX / found.size[i][1])
            return fr_fail(FR_INPUT, "a picture of %zu x %zu would be resized to %zu x %zu pixels, more than %zu",
                           width, height, found.size[i][0], found.size[i][1], FR_IMAGE_PIXELS_MAX);
    if (found.columns && found.rows > TILES_MAX / found.columns)
        return fr_fail(FR_INPUT, "a picture of %zu x %zu would be %zu x %zu tiles, more than %d", width, height,
                       found.columns, found.rows, TILES_MAX);
    *tiling = found;
    return FR_OK;
}

fr_status fr_vision_grid_of_tiles(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    size_t side = c->tile / (c->patch * c->merge);
    fr_vision_tiling tiling;
    FR_TRY(fr_vision_tile(c, width, height, &tiling));
    size_t views = fr_vision_views(&tiling);
    *grid = (fr_image_grid){.rows = side * views, .columns = side, .runs = views};
    return FR_OK;
}

/* Counts the pairs of patches that see each other in a layer with windows. */
static fr_status count_pairs(const fr_vision_config *c, fr_image_grid one, double *pairs) {
    size_t tokens = one.rows * one.columns, parts = c->merge * c->merge;
    fr_vision_token *order = calloc(tokens + 1, sizeof *order);
    if (!order) return fr_fail_memory("a picture's tokens", tokens * sizeof *order);
    fr_vision_order(c, one, order);
    *pairs = 0;
    for (size_t i = 0; i < tokens; i++) *pairs += (double)((order[i].last - order[i].first + 1) * parts * parts);
    free(order);
    return FR_OK;
}

fr_status fr_vision_count(const fr_vision *vision, size_t width, size_t height, fr_vision_work *work) {
    const fr_vision_config *c = &vision->config;
    fr_image_grid grid;
    fr_vision_tiling tiling;
    double windowed = 0;
    FR_TRY(fr_vision_grid(vision, width, height, &grid));
    FR_TRY(fr_vision_tile(c, width, height, &tiling));
    size_t views = fr_vision_views(&tiling), sees_window = 0;
    const fr_image_grid one = {.rows = grid.rows / views, .columns = grid.columns};
    double patches = (double)(one.rows * one.columns * c->merge * c->merge), hidden = (double)c->hidden;
    for (size_t i = 0; i < c->layers; i++) sees_window += c->windowed[i];
    if (sees_window) FR_TRY(count_pairs(c, one, &windowed));
    double gated = c->layers && vision->layers[0].gate.features ? 3 : 2;
    double values = (double)(FR_VISION_CHANNELS * c->frames * c->patch * c->patch);
    double layer = 4 * hidden * hidden + gated * hidden * (double)c->ffn;
    double pairs = (double)(c->layers - sees_window) * patches * patches + (double)sees_window * windowed;
    work->products = (double)views * patches * (values * hidden + (double)c->layers * layer);
    work->attention = (double)views * pairs * 2 * hidden;
    work->type = c->layers ? vision->layers[0].up.type : FR_DTYPE_COUNT;
    return FR_OK;
}

fr_status fr_vision_canvas(const fr_vision_config *c, const fr_vision_tiling *tiling, const fr_image *image,
                           fr_image *canvas) {
    fr_image last = {0};
    *canvas = (fr_image){0};
    for (size_t i = 0; i < tiling->resizes; i++) {
        fr_status status =
            fr_image_resize(i ? &last : image, c->resample, tiling->size[i][0], tiling->size[i][1], canvas);
        fr_image_close(&last);
        FR_TRY(status);
        last = *canvas;
    }
    return FR_OK;
}

/* Copies a tile of the canvas. */
static fr_status crop(const fr_vision_tiling *tiling, const fr_image *canvas, size_t index, fr_image *tile) {
    size_t left = index % tiling->columns * tiling->width, top = index / tiling->columns * tiling->height;
    return fr_image_crop(canvas, left, top, fr_smaller(tiling->width, canvas->width - left),
                         fr_smaller(tiling->height, canvas->height - top), tile);
}

fr_status fr_vision_view(const fr_vision_config *c, const fr_vision_tiling *tiling, fr_image_grid grid,
                         const fr_image *canvas, size_t index, fr_image *view) {
    size_t tiles = tiling->rows * tiling->columns, whole = tiling->whole_last ? tiles : 0, unit = c->patch * c->merge;
    size_t width = c->tile ? c->tile : grid.columns * unit, height = c->tile ? c->tile : grid.rows * unit;
    fr_image tile;
    if (index == whole) return fr_image_resize(canvas, c->resample, width, height, view);
    FR_TRY(crop(tiling, canvas, index - !tiling->whole_last, &tile));
    fr_status status = fr_image_resize(&tile, c->resample, width, height, view);
    fr_image_close(&tile);
    return status;
}
