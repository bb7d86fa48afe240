/* Reads and writes base64 (base64.h). */
#include "tools/serve/base64.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Gives the value of a digit; 64 for any other character. */
static unsigned digit_of(char c) {
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (unsigned)(at - digits) : 64;
}

/* Decodes four digits to three bytes. With padding there are fewer bytes. The unused bits of the last digit must be
 * 0. */
static bool read_group(const char *text, unsigned padding, unsigned char *bytes) {
    unsigned bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned digit = i < 4 - padding ? digit_of(text[i]) : 0;
        if (digit == 64) return false;
        bits = bits << 6 | digit;
    }
    for (unsigned i = 0; i < 3 - padding; i++) bytes[i] = (unsigned char)(bits >> (16 - 8 * i));
    return (bits & ((1u << 8 * padding) - 1)) == 0;
}

unsigned char *fr_base64_read(const char *text, size_t length, size_t *size) {
    *size = 0;
    if (length == 0 || length % 4) return NULL;
    unsigned padding = text[length - 1] != '=' ? 0 : text[length - 2] != '=' ? 1 : 2;
    unsigned char *bytes = fr_resize(NULL, length / 4, 3);
    bool good = true;
    for (size_t at = 0; at < length && good; at += 4)
        good = read_group(text + at, at + 4 == length ? padding : 0, bytes + at / 4 * 3);
    if (good) *size = length / 4 * 3 - padding;
    if (!good) free(bytes);
    return good ? bytes : NULL;
}

char *fr_base64_write(const unsigned char *bytes, size_t size) {
    size_t groups = (size + 2) / 3;
    char *text = fr_resize(NULL, groups + 1, 4), *out = text;
    for (size_t at = 0; at < size; at += 3) {
        size_t has = size - at < 3 ? size - at : 3;
        unsigned bits = 0;
        for (size_t i = 0; i < 3; i++) bits = bits << 8 | (i < has ? bytes[at + i] : 0);
        for (size_t i = 0; i < 4; i++) *out++ = i <= has ? digits[bits >> (18 - 6 * i) & 63] : '=';
    }
    *out = '\0';
    return text;
}
