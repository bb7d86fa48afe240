/* Chooses the size to which a picture is resized, and reads its patches as normalised numbers for the vision tower.
 *
 * In: a picture, the configuration. Out: the grid of its tokens; a patch's values. */
#include <math.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/vision/tower.h"

#define LONGEST     200.0 /* largest ratio of a picture's longer side to the shorter one */
#define PATCHES_MAX 65536 /* attention's work grows with the square of this; published models have at most 30000 */

static double ceiling(double x) {
    return -floor(-x);
}

static double at_least(double low, double x) {
    return x < low ? low : x;
}

fr_status fr_tower_check_ratio(size_t width, size_t height, double ratio) {
    if (ratio <= LONGEST) return FR_OK;
    return fr_fail(FR_INPUT, "a picture of %zu x %zu is more than %g times as long as wide", width, height, LONGEST);
}

void fr_tower_grid_by_area(const fr_vision_config *c, double frames, double w, double h, fr_image_grid *grid) {
    double unit = (double)(c->patch * c->merge);
    double rows = rint(h / unit), columns = rint(w / unit), most = (double)c->max_pixels, least = (double)c->min_pixels;
    if (frames * (rows * unit) * (columns * unit) > most) {
        double shrink = sqrt(frames * h * w / most);
        rows = at_least(1.0, floor(h / shrink / unit));
        columns = at_least(1.0, floor(w / shrink / unit));
    } else if (frames * (rows * unit) * (columns * unit) < least) {
        double grow = sqrt(least / (frames * h * w));
        rows = ceiling(h * grow / unit);
        columns = ceiling(w * grow / unit);
    }
    *grid = (fr_image_grid){.rows = (size_t)at_least(1.0, rows), .columns = (size_t)at_least(1.0, columns)};
}

fr_status fr_vision_grid(const fr_vision *vision, size_t width, size_t height, fr_image_grid *grid) {
    const fr_vision_config *c = &vision->config;
    fr_image_grid found;
    FR_TRY(c->tile ? fr_vision_grid_of_tiles(c, width, height, &found) : c->tower->grid(c, width, height, &found));
    double unit = (double)(c->patch * c->merge), tokens = (double)found.rows * (double)found.columns;
    double patches = tokens * (double)(c->merge * c->merge) / (c->tile ? (double)found.runs : 1.0);
    if (patches > PATCHES_MAX || tokens * unit * unit > (double)FR_IMAGE_PIXELS_MAX)
        return fr_fail(FR_INPUT,
                       "a picture of %zu x %zu would be %.0f patches of %zu x %zu pixels, more than %d or more than "
                       "%zu pixels",
                       width, height, patches, c->patch, c->patch, PATCHES_MAX, FR_IMAGE_PIXELS_MAX);
    *grid = found;
    return FR_OK;
}

void fr_vision_order(const fr_vision_config *config, fr_image_grid grid, fr_vision_token *tokens) {
    size_t count = grid.rows * grid.columns;
    if (config->tower->order) {
        config->tower->order(config, grid, tokens);
        return;
    }
    for (size_t i = 0; i < count; i++) tokens[i] = (fr_vision_token){(uint32_t)i, 0, (uint32_t)(count - 1)};
}

void fr_vision_place(const fr_vision_config *config, fr_image_grid grid, const fr_vision_token *tokens, size_t patch,
                     size_t *row, size_t *column) {
    size_t merge = config->merge, token = tokens[patch / (merge * merge)].place, part = patch % (merge * merge);
    *row = token / grid.columns * merge + part / merge;
    *column = token % grid.columns * merge + part % merge;
}

void fr_vision_patch(const fr_vision_config *config, const fr_image *image, size_t row, size_t column, float *values) {
    size_t side = config->patch, first = (row * side * image->width + column * side) * FR_VISION_CHANNELS;
    for (size_t y = 0; config->channel_last && y < side; y++) {
        const uint8_t *pixel = image->rgb + first + y * image->width * FR_VISION_CHANNELS;
        for (size_t i = 0; i < side * FR_VISION_CHANNELS; i++)
            *values++ = config->value[i % FR_VISION_CHANNELS][pixel[i]];
    }
    for (size_t c = 0; c < FR_VISION_CHANNELS && !config->channel_last; c++)
        for (size_t t = 0; t < config->frames; t++)
            for (size_t y = 0; y < side; y++) {
                const uint8_t *pixel = image->rgb + first + y * image->width * FR_VISION_CHANNELS + c;
                for (size_t x = 0; x < side; x++, pixel += FR_VISION_CHANNELS) *values++ = config->value[c][*pixel];
            }
}

/* Gives one of the limits in pixels, from an option in pixels or in tokens; 0: no limit is set. */
static fr_status read_limit(const fr_vision_config *c, const char *end, int64_t pixels, int64_t tokens,
                            int64_t *limit) {
    int64_t side = (int64_t)(c->patch * c->merge);
    if (pixels && tokens)
        return fr_fail(FR_INPUT, "image-%s-pixels and image-%s-tokens limit the same: give one of them", end, end);
    *limit = tokens ? tokens * side * side : pixels;
    if (pixels && pixels < side * side)
        return fr_fail(FR_INPUT, "image-%s-pixels %lld is less than the %lld pixels of one token", end,
                       (long long)pixels, (long long)(side * side));
    return FR_OK;
}

fr_status fr_vision_limit(fr_vision *vision, const fr_options *options) {
    fr_vision_config *c = &vision->config;
    const int64_t *value = options->value;
    int64_t least = 0, most = 0, count = (int64_t)c->pixel_count;
    FR_TRY(read_limit(c, "min", value[FR_OPT_IMAGE_MIN_PIXELS], value[FR_OPT_IMAGE_MIN_TOKENS], &least));
    FR_TRY(read_limit(c, "max", value[FR_OPT_IMAGE_MAX_PIXELS], value[FR_OPT_IMAGE_MAX_TOKENS], &most));
    if (!least && !most) return FR_OK;
    if (least && most && least > most)
        return fr_fail(FR_INPUT, "a picture can't have at least %lld pixels and at most %lld", (long long)least,
                       (long long)most);
    if (c->tower->limit) return c->tower->limit(c, least, most);
    if (!c->max_pixels)
        return fr_fail(FR_INPUT, "this vision tower resizes all pictures to one size: image-max-pixels, "
                                 "image-max-tokens and the limits at the other end don't apply");
    if (least) c->min_pixels = least * count;
    if (most) c->max_pixels = most * count;
    if (c->min_pixels > c->max_pixels && least) c->max_pixels = c->min_pixels;
    if (c->min_pixels > c->max_pixels) c->min_pixels = c->max_pixels;
    return FR_OK;
}
