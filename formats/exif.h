/* Reads the orientation that a camera writes into a photo's EXIF data.
 *
 * In: the bytes of a TIFF header and everything after it. They come from JPEG's APP1 segment (after "Exif", 0, 0),
 * PNG's eXIf chunk or WebP's EXIF chunk. Out: the value of tag 0x0112, as Pillow reads it. Nothing here fails: damaged
 * data count as no orientation. */
#ifndef FR_FORMATS_EXIF_H
#define FR_FORMATS_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* Gives the orientation, a number from 1 (upright as stored) to 8. If the data have none, gives 1. */
int fr_exif_orientation(const uint8_t *bytes, size_t size);

#endif
