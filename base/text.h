/* Refers to bytes of a file by address and length, without a copy. */
#ifndef FR_BASE_TEXT_H
#define FR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Refers to bytes that belong to someone else; no NUL need follow the last byte. */
typedef struct fr_text {
    const char *bytes;
    size_t length;
} fr_text;

/* Gives the two arguments of printf's "%.*s", for texts of bounded length. */
#define FR_SHOW(text) (int)(text).length, (text).bytes

static inline bool fr_text_same(fr_text a, fr_text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static inline bool fr_text_is(fr_text text, const char *word) {
    return fr_text_same(text, (fr_text){word, strlen(word)});
}

/* Returns a number below, equal to or above 0, as memcmp does. */
static inline int fr_text_compare(fr_text a, fr_text b) {
    int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* Reads an unsigned little-endian integer of n bytes, at most 8. */
static inline uint64_t fr_little_endian(const uint8_t *bytes, size_t n) {
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

#endif
