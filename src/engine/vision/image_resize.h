/* Resizes a picture as Pillow's resize(size, BICUBIC) does, byte for byte (up to Pillow 12.1; later ones take the
 * columns first where that is faster, and round differently).
 *
 * In: RGB bytes. Out: RGB bytes. Two passes, the rows first and then the columns, each rounded to whole bytes; a pass
 * whose side does not change is left out. A new pixel is a weighted sum of those near its centre, by the cubic of Keys
 * 1981 (a = -1/2), which is stretched over more pixels where the picture shrinks. Weights are whole multiples of
 * 2^-22. */
#ifndef FR_SRC_ENGINE_VISION_IMAGE_RESIZE_H
#define FR_SRC_ENGINE_VISION_IMAGE_RESIZE_H

#include "formats/image.h"

/* width and height are at least 1. A failure (out of memory) leaves nothing in *resized. */
fr_status fr_image_resize(const fr_image *image, size_t width, size_t height, fr_image *resized);

#endif
