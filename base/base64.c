/* Decodes Base64: see base64.h. */
#include "base/base64.h"

/* Gives a digit's value, or -1 for any other character. */
static int digit_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool fr_base64_decode(fr_text text, char *bytes, size_t *size) {
    uint32_t bits = 0;
    unsigned count = 0; /* bits that were read but do not make up a whole byte yet */
    *size = 0;
    for (unsigned padding = 0; padding < 2 && text.length > 0 && text.bytes[text.length - 1] == '='; padding++)
        text.length--;
    for (size_t i = 0; i < text.length; i++) {
        int digit = digit_value(text.bytes[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes[(*size)++] = (char)(bits >> count & 0xFF);
    }
    return text.length % 4 != 1;
}
