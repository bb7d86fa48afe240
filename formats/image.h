/* Reads a picture on disk as rows of RGB bytes.
 *
 * In: a PNG, JPEG, WebP or GIF file. The format is recognised by the file's first bytes. Out: 8-bit RGB, equal to
 * Pillow's ImageOps.exif_transpose(Image.open(path)).convert("RGB"). So a photo is turned and mirrored as the
 * orientation in its EXIF says (exif.h; an orientation only in XMP is ignored). Transparency is dropped, not blended.
 * Grey is repeated in red, green and blue; palettes are looked up. 16-bit colours keep their high byte, while 16-bit
 * grey is clamped to 255. CMYK is converted to RGB without a profile. Only the first picture of an animation is read. A
 * damaged picture is an error, and never gives a part of the picture. Damaged EXIF is no error; it counts as no
 * orientation. */
#ifndef FR_FORMATS_IMAGE_H
#define FR_FORMATS_IMAGE_H

#include "forerun.h"

/* Limits on the size that a file claims. The size is checked before memory for the pixels is allocated, because a file
 * of a few bytes can claim any size. */
#define FR_IMAGE_SIDE_MAX ((size_t)1 << 16)
#ifndef FR_IMAGE_PIXELS_MAX /* builds for libFuzzer set a smaller limit, so that more pictures are tried */
#define FR_IMAGE_PIXELS_MAX ((size_t)1 << 27)
#endif

typedef struct fr_image {
    uint8_t *rgb; /* [height, width, 3], malloc'd */
    size_t width, height;
    size_t most; /* limit on the number of pixels of this picture */
} fr_image;

fr_status fr_image_open(fr_image *image, const char *path);

/* Opens a picture from the bytes of a file. The bytes are not needed after the call. Error lines call the picture
 * `name`. A picture of more than `most` or FR_IMAGE_PIXELS_MAX pixels is refused. */
fr_status fr_image_open_bytes(fr_image *image, const void *bytes, size_t size, const char *name, size_t most);
void fr_image_close(fr_image *image);

#endif
