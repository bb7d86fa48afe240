/* A picture on disk as rows of RGB bytes.
 *
 * In: a PNG or JPEG file, told apart by its first bytes. Out: 8-bit RGB, what Pillow's
 * ImageOps.exif_transpose(Image.open(path)).convert("RGB") gives: a photo is turned and mirrored as the orientation in
 * its EXIF says (exif.h; one that stands in XMP alone is not looked for); transparency is dropped, not blended; grey is
 * repeated; a palette looked up; of 16-bit colours the high byte stays, while 16-bit grey is clamped to 255; CMYK is
 * turned into RGB without a profile. Damage is an error, never a partial picture; damaged EXIF says nothing. */
#ifndef FR_FORMATS_IMAGE_H
#define FR_FORMATS_IMAGE_H

#include "forerun.h"

/* A file of a few bytes can claim any size: these are checked before a pixel's memory is taken. */
#define FR_IMAGE_MAX_SIDE   ((size_t)1 << 16)
#ifndef FR_IMAGE_MAX_PIXELS /* libFuzzer tries more pictures of fewer pixels */
#define FR_IMAGE_MAX_PIXELS ((size_t)1 << 27)
#endif

typedef struct fr_image {
    uint8_t *rgb; /* [height, width, 3], malloc'd */
    size_t width, height;
    size_t most; /* pixels that it may have */
} fr_image;

fr_status fr_image_open(fr_image *image, const char *path);

/* The same of a file's bytes, which are not kept; name: what error lines call it. most: pixels, if
 * those are fewer than any file may have. */
fr_status fr_image_open_bytes(fr_image *image, const void *bytes, size_t size, const char *name, size_t most);
void fr_image_close(fr_image *image);

#endif
