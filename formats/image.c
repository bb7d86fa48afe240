/* Opens pictures of all supported formats (image.h). */
#include "formats/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "formats/image_parts.h"

/* The next three functions describe an EXIF orientation. Orientations 5 to 8 exchange rows and columns, and each axis
 * may be mirrored. */
static bool exchanges(int orientation) {
    return orientation >= 5;
}

static bool mirrors_x(int orientation) {
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool mirrors_y(int orientation) {
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

/* Copies the pixels that become row y of the upright picture. The copy starts with the pixel that becomes the first one
 * of the row. From there it goes forwards or backwards, along a row or a column of the stored picture. */
static void copy_row(uint8_t *to, const fr_image *from, int orientation, size_t y, size_t width) {
    bool exchanged = exchanges(orientation);
    size_t column = exchanged ? y : 0, row = exchanged ? 0 : y;
    if (mirrors_x(orientation)) column = from->width - 1 - column;
    if (mirrors_y(orientation)) row = from->height - 1 - row;
    ptrdiff_t step = exchanged ? (ptrdiff_t)(3 * from->width) : 3;
    if (exchanged ? mirrors_y(orientation) : mirrors_x(orientation)) step = -step;
    const uint8_t *pixel = from->rgb + 3 * (row * from->width + column);
    for (size_t x = 0; x < width; x++) memcpy(to + 3 * x, pixel + (ptrdiff_t)x * step, 3);
}

static fr_status turn(fr_image *image, int orientation, const char *path) {
    fr_image turned = {.most = image->most};
    bool exchanged = exchanges(orientation);
    if (orientation == 1) return FR_OK;
    FR_TRY(fr_image_take(&turned, exchanged ? image->height : image->width, exchanged ? image->width : image->height,
                         path));
    for (size_t y = 0; y < turned.height; y++)
        copy_row(turned.rgb + 3 * y * turned.width, image, orientation, y, turned.width);
    free(image->rgb);
    *image = turned;
    return FR_OK;
}

static fr_status decode(fr_image *image, const fr_map *file, int *orientation) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    const uint8_t *bytes = file->bytes;
    if (file->size > sizeof png && memcmp(bytes, png, sizeof png) == 0) return fr_png_decode(image, file, orientation);
    if (file->size > sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return fr_jpeg_decode(image, file, orientation);
    if (file->size > 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
        return fr_webp_decode(image, file, orientation);
    if (file->size > 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0))
        return fr_gif_decode(image, file);
    return fr_fail(FR_INPUT, "%s: neither a PNG, JPEG, WebP nor GIF file", file->path);
}

static fr_status read_image(fr_image *image, fr_map *file, size_t most) {
    int orientation = 1;
    *image = (fr_image){.most = fr_smaller(most, FR_IMAGE_PIXELS_MAX)};
    fr_status status = decode(image, file, &orientation);
    if (status == FR_OK) status = turn(image, orientation, file->path);
    if (status != FR_OK) fr_image_close(image);
    fr_map_close(file);
    return status;
}

fr_status fr_image_open(fr_image *image, const char *path) {
    fr_map file;
    *image = (fr_image){0};
    FR_TRY(fr_map_open(&file, path, true));
    return read_image(image, &file, SIZE_MAX);
}

fr_status fr_image_open_bytes(fr_image *image, const void *bytes, size_t size, const char *name, size_t most) {
    fr_map file;
    *image = (fr_image){0};
    FR_TRY(fr_map_lend(&file, bytes, size, name));
    return read_image(image, &file, most);
}

void fr_image_close(fr_image *image) {
    free(image->rgb);
    *image = (fr_image){0};
}
