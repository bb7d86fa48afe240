/* Resizes a picture as Pillow's resize(size, filter) does, byte for byte (up to Pillow 12.1; later versions resize the
 * columns first if that is faster, and so round differently).
 *
 * In: RGB bytes. Out: RGB bytes. There are two passes, first the rows and then the columns, each rounded to whole
 * bytes; a pass whose side does not change is left out. A new pixel is a weighted sum of the old ones near its centre.
 * The filter gives the weights by distance. It is three lobes of Lanczos, a triangle, or the cubic of Keys 1981 (a =
 * -1/2). If the picture shrinks, the filter is stretched over more pixels. Weights are multiples of 2^-22. */
#ifndef FR_SRC_ENGINE_VISION_IMAGE_RESIZE_H
#define FR_SRC_ENGINE_VISION_IMAGE_RESIZE_H

#include "formats/image.h"

/* The filters. Their numbers are those that the setting "resample" has in a picture processor's JSON file. */
typedef enum fr_resample { FR_RESAMPLE_LANCZOS = 1, FR_RESAMPLE_BILINEAR = 2, FR_RESAMPLE_BICUBIC = 3 } fr_resample;

/* Resizes to width and height, each at least 1. A failure (out of memory) leaves nothing in *resized. */
fr_status fr_image_resize(const fr_image *image, fr_resample filter, size_t width, size_t height, fr_image *resized);

/* Copies a rectangle that lies in the picture and has at least one pixel. A failure leaves nothing in *cropped. */
fr_status fr_image_crop(const fr_image *image, size_t left, size_t top, size_t width, size_t height, fr_image *cropped);

#endif
