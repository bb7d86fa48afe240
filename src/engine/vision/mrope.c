/* Computes multi-axis rotary positions: see mrope.h. */
#include "src/engine/vision/mrope.h"

#include "base/error.h"

static void put(int32_t (*positions)[FR_MROPE_AXES], size_t at, int64_t time, int64_t height, int64_t width) {
    if (!positions) return;
    positions[at][0] = (int32_t)time;
    positions[at][1] = (int32_t)height;
    positions[at][2] = (int32_t)width;
}

/* Counts the image tokens at the beginning of ids. */
static size_t run_length(const int32_t *ids, size_t count, int32_t image_id) {
    size_t length = 0;
    while (length < count && ids[length] == image_id) length++;
    return length;
}

fr_status fr_mrope_positions(const int32_t *ids, size_t count, int32_t image_id, const fr_image_grid *grids,
                             size_t images, int32_t (*positions)[FR_MROPE_AXES], int64_t *next) {
    size_t image = 0, run = 0; /* the picture to which the next run belongs, and the run's number in it */
    *next = 0;
    for (size_t i = 0, length; i < count; i += length) {
        length = run_length(ids + i, count - i, image_id);
        if (length == 0) {
            put(positions, i, *next, *next, *next);
            *next += 1;
            length = 1;
            continue;
        }
        if (image == images)
            return fr_fail(FR_INPUT, "the prompt has image tokens for more than the %zu images given", images);
        size_t rows = fr_image_grid_run_rows(grids[image]), columns = grids[image].columns;
        if (length != rows * columns && grids[image].runs > 1)
            return fr_fail(FR_INPUT,
                           "image %zu needs %zu runs of %zu image tokens each, the prompt has %zu in run %zu, at token "
                           "%zu",
                           image, grids[image].runs, rows * columns, length, run, i);
        if (length != rows * columns)
            return fr_fail(FR_INPUT, "image %zu needs %zu x %zu = %zu image tokens, the prompt has %zu at token %zu",
                           image, rows, columns, rows * columns, length, i);
        for (size_t t = 0; t < length; t++)
            put(positions, i + t, *next, *next + (int64_t)(t / columns), *next + (int64_t)(t % columns));
        *next += (int64_t)(rows > columns ? rows : columns);
        if (++run < grids[image].runs) continue;
        image++;
        run = 0;
    }
    if (run)
        return fr_fail(FR_INPUT, "image %zu needs %zu runs of image tokens, the prompt has %zu", image,
                       grids[image].runs, run);
    if (image < images)
        return fr_fail(FR_INPUT, "%zu images given, the prompt has image tokens for %zu", images, image);
    return FR_OK;
}
