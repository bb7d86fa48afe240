/* Declares the functions that the decoders of the picture formats share; each format is one file.
 *
 * In: a mapped file. Out: a picture. Private to formats/image*.c. */
#ifndef FR_FORMATS_IMAGE_PARTS_H
#define FR_FORMATS_IMAGE_PARTS_H

#include "formats/image.h"
#include "formats/map.h"

/* Checks a size that a file claims, and allocates the picture's memory. fr_image_open frees that memory if the decoder
 * fails. */
fr_status fr_image_take(fr_image *image, size_t width, size_t height, const char *path);

/* Each decodes the file of one format. `orientation` gets the number in the file's EXIF, 1 to 8, and is left unchanged
 * if there is none. */
fr_status fr_png_decode(fr_image *image, const fr_map *file, int *orientation);
fr_status fr_jpeg_decode(fr_image *image, const fr_map *file, int *orientation);
fr_status fr_webp_decode(fr_image *image, const fr_map *file, int *orientation);
fr_status fr_gif_decode(fr_image *image, const fr_map *file);

#endif
