/* Reads the orientation from EXIF (exif.h). */
#include "formats/exif.h"

#include <stdbool.h>
#include <string.h>

enum { ORIENTATION = 0x0112, SHORT = 3, LONG = 4, SIGNED_SHORT = 8, SIGNED_LONG = 9, ENTRY = 12 };

typedef struct tiff {
    const uint8_t *bytes;
    size_t size;
    bool big_endian;
} tiff;

/* Reads a number of 2 or 4 bytes. Returns 0 if the data end before the number's last byte. */
static uint32_t number_at(const tiff *t, size_t at, size_t count) {
    uint32_t value = 0;
    if (at > t->size || t->size - at < count) return 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t byte = t->bytes[at + i];
        value |= byte << 8 * (t->big_endian ? count - 1 - i : i);
    }
    return value;
}

/* Gives the first value of the entry at `at`, or 0 if there is none. If the values take at most 4 bytes together, they
 * are in the entry itself. Otherwise the entry has their offset. */
static uint32_t value_of(const tiff *t, size_t at) {
    uint32_t type = number_at(t, at + 2, 2), count = number_at(t, at + 4, 4);
    size_t each = type == SHORT || type == SIGNED_SHORT ? 2 : type == LONG || type == SIGNED_LONG ? 4 : 0;
    if (each == 0 || count == 0) return 0;
    return number_at(t, count <= 4 / each ? at + 8 : number_at(t, at + 8, 4), each);
}

int fr_exif_orientation(const uint8_t *bytes, size_t size) {
    tiff t = {.bytes = bytes, .size = size};
    uint32_t found = 1;
    if (size < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0)) return 1;
    t.big_endian = *bytes == 'M';
    size_t at = number_at(&t, 4, 4), entries = number_at(&t, at, 2);
    for (at += 2; entries > 0 && at <= size && size - at >= ENTRY; entries--, at += ENTRY)
        if (number_at(&t, at, 2) == ORIENTATION) found = value_of(&t, at);
    return found >= 1 && found <= 8 ? (int)found : 1;
}
