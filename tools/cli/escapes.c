/* Replaces escapes (escapes.h). */
#include "tools/cli/escapes.h"

#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t fr_escapes_read(char *text, size_t length) {
    static const char letters[] = "nrt'\"\\", bytes[] = "\n\r\t'\"\\";
    size_t to = 0;
    for (size_t at = 0; at < length; at++, to++) {
        const char *next = text + at + 1;
        size_t left = length - at - 1;
        const char *letter = text[at] == '\\' && left ? memchr(letters, *next, sizeof letters - 1) : NULL;
        int high = text[at] == '\\' && left >= 3 && *next == 'x' ? hex_digit(next[1]) : -1;
        int low = high >= 0 ? hex_digit(next[2]) : -1;
        text[to] = letter ? bytes[letter - letters] : low >= 0 ? (char)(16 * high + low) : text[at];
        at += letter ? 1 : low >= 0 ? 3 : 0;
    }
    return to;
}
