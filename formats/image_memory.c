/* Allocates a picture's memory (image_parts.h). */
#include <stdlib.h>

#include "base/error.h"
#include "formats/image_parts.h"

fr_status fr_image_take(fr_image *image, size_t width, size_t height, const char *path) {
    if (width == 0 || height == 0 || width > FR_IMAGE_SIDE_MAX || height > FR_IMAGE_SIDE_MAX ||
        width > image->most / height)
        return fr_fail(FR_INPUT, "%s: a picture of %zu x %zu, expected sides of 1 to %zu and at most %zu pixels", path,
                       width, height, FR_IMAGE_SIDE_MAX, image->most);
    image->width = width;
    image->height = height;
    image->rgb = malloc(width * height * 3);
    return image->rgb ? FR_OK : fr_fail_memory("a picture", width * height * 3);
}
