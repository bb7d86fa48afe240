/* What the picture formats share; a format is one file.
 *
 * In: a mapped file. Out: a picture. Private to formats/image*.c. */
#ifndef FR_FORMATS_IMAGE_PARTS_H
#define FR_FORMATS_IMAGE_PARTS_H

#include "formats/image.h"
#include "formats/map.h"

/* Checks a size that a file claims, and takes the memory. What a failed decoder leaves is freed by fr_image_open. */
fr_status fr_image_take(fr_image *image, size_t width, size_t height, const char *path);

/* orientation: what its EXIF says, 1 to 8; left alone where there is none. */
fr_status fr_png_decode(fr_image *image, const fr_map *file, int *orientation);
fr_status fr_jpeg_decode(fr_image *image, const fr_map *file, int *orientation);

#endif
