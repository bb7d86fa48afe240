/* How a photo lies, as its camera says in EXIF.
 *
 * In: the bytes of a TIFF header and what follows it, as JPEG's APP1 segment (behind "Exif", 0, 0) and PNG's eXIf chunk
 * hold them. Out: tag 0x0112, as Pillow reads it. Nothing here fails: what is damaged says nothing. */
#ifndef FR_FORMATS_EXIF_H
#define FR_FORMATS_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* 1 (as it lies) to 8; 1 where nothing else is said. */
int fr_exif_orientation(const uint8_t *bytes, size_t size);

#endif
