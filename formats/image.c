/* Pictures of any format that is read: see image.h. */
#include "formats/image.h"

#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "formats/image_parts.h"

fr_status fr_image_take(fr_image *image, size_t width, size_t height, const char *path) {
    if (width == 0 || height == 0 || width > FR_IMAGE_MAX_SIDE || height > FR_IMAGE_MAX_SIDE ||
        width > FR_IMAGE_MAX_PIXELS / height)
        return fr_fail(FR_INPUT, "%s: a picture of %zu x %zu, expected sides of 1 to %zu and at most %zu pixels", path,
                       width, height, FR_IMAGE_MAX_SIDE, FR_IMAGE_MAX_PIXELS);
    image->width = width;
    image->height = height;
    image->rgb = malloc(width * height * 3);
    return image->rgb ? FR_OK : fr_fail_memory("a picture", width * height * 3);
}

static fr_status decode(fr_image *image, const fr_map *file) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    if (file->size > sizeof png && memcmp(file->bytes, png, sizeof png) == 0) return fr_png_decode(image, file);
    if (file->size > sizeof jpeg && memcmp(file->bytes, jpeg, sizeof jpeg) == 0) return fr_jpeg_decode(image, file);
    return fr_fail(FR_INPUT, "%s: neither a PNG nor a JPEG file", file->path);
}

fr_status fr_image_open(fr_image *image, const char *path) {
    fr_map file;
    *image = (fr_image){0};
    FR_TRY(fr_map_open(&file, path, true));
    fr_status status = decode(image, &file);
    fr_map_close(&file);
    if (status != FR_OK) fr_image_close(image);
    return status;
}

void fr_image_close(fr_image *image) {
    free(image->rgb);
    *image = (fr_image){0};
}
