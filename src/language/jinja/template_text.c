/* Handles characters and parts of texts (template_text.h). */
#include "src/language/jinja/template_text.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/unicode_form.h"

/* ------------------------------------------------------------------------------------------------------- characters */

#define SURROGATE_OF_BYTE 0xDC00 /* the sum of this number and a byte is the surrogate in place of that byte */

size_t fr_jinja_decode(const char *bytes, size_t length, int32_t *codepoint) {
    if ((signed char)*bytes >= 0) {
        *codepoint = *bytes;
        return 1;
    }
    utf8proc_ssize_t step =
        utf8proc_iterate((const utf8proc_uint8_t *)bytes, length < 4 ? (utf8proc_ssize_t)length : 4, codepoint);
    if (step > 0) return (size_t)step;
    *codepoint = SURROGATE_OF_BYTE + (unsigned char)*bytes;
    return 1;
}

size_t fr_jinja_encode(int32_t codepoint, char *bytes) {
    bool byte = codepoint >= SURROGATE_OF_BYTE + 0x80 && codepoint <= SURROGATE_OF_BYTE + 0xFF;
    if (codepoint >= 0x80 && !byte) return (size_t)utf8proc_encode_char(codepoint, (utf8proc_uint8_t *)bytes);
    *bytes = (char)codepoint;
    return 1;
}

bool fr_jinja_all_ascii(const char *bytes, size_t length) {
    unsigned char seen = 0;
    for (size_t i = 0; i < length; i++) seen |= (unsigned char)bytes[i];
    return seen < 0x80;
}

size_t fr_jinja_character_offset(const char *bytes, size_t length, size_t number) {
    size_t at = 0;
    int32_t codepoint;
    for (; number > 0 && at < length; number--) at += fr_jinja_decode(bytes + at, length - at, &codepoint);
    return at;
}

size_t fr_jinja_count_characters(const char *bytes, size_t length) {
    size_t count = 0;
    int32_t codepoint;
    for (size_t at = 0; at < length; count++) at += fr_jinja_decode(bytes + at, length - at, &codepoint);
    return count;
}

/* ------------------------------------------------------------------------------------------------------ white space */

bool fr_jinja_is_python_space(int32_t codepoint) {
    return fr_is_space(codepoint) || (codepoint >= 0x1C && codepoint <= 0x1F);
}

static bool is_ascii_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}

size_t fr_jinja_space_prefix(const char *bytes, size_t length) {
    size_t at = 0, step;
    for (; at < length; at += step) {
        int32_t codepoint;
        step = 1;
        if (is_ascii_space(bytes[at])) continue;
        step = fr_jinja_decode(bytes + at, length - at, &codepoint);
        if (!fr_jinja_is_python_space(codepoint)) break;
    }
    return at;
}

/* Gives the offset at which the text's last character begins. */
static size_t last_character(const char *bytes, size_t length) {
    int32_t codepoint;
    for (size_t back = 1; back <= 4 && back <= length; back++) {
        bool begins = ((unsigned char)bytes[length - back] & 0xC0) != 0x80;
        if (begins)
            return fr_jinja_decode(bytes + length - back, back, &codepoint) == back ? length - back : length - 1;
    }
    return length - 1;
}

size_t fr_jinja_space_suffix(const char *bytes, size_t length) {
    size_t end = length;
    while (end > 0) {
        if (is_ascii_space(bytes[end - 1])) {
            end--;
            continue;
        }
        size_t begin = last_character(bytes, end);
        int32_t codepoint;
        fr_jinja_decode(bytes + begin, end - begin, &codepoint);
        if (!fr_jinja_is_python_space(codepoint)) break;
        end = begin;
    }
    return length - end;
}

/* -------------------------------------------------------------------------------------------------------- searching */

/* Searches in windows that grow, so that no call reads much further than its match. (The memmem of a sanitizer would
 * read everything each time.) */
size_t fr_jinja_find(const char *bytes, size_t length, const char *needle, size_t needle_length) {
    size_t at = 0, window = needle_length < 64 ? 256 : 4 * needle_length;
    while (needle_length <= length - at) {
        size_t size = window < length - at ? window : length - at;
        const char *found = needle_length == 0 ? bytes : memmem(bytes + at, size, needle, needle_length);
        if (found) return (size_t)(found - bytes);
        if (size == length - at) break;
        at += size - needle_length + 1;
        window *= 2;
    }
    return SIZE_MAX;
}

/* ------------------------------------------------------------------------------------------------------- properties */

bool fr_jinja_is_alphabetic(int32_t codepoint) {
    utf8proc_category_t category = utf8proc_category(codepoint);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool fr_jinja_is_decimal(int32_t codepoint) {
    return utf8proc_category(codepoint) == UTF8PROC_CATEGORY_ND;
}

/* Returns true for decimal digits and for other digits: superscripts, subscripts and digits in circles. */
bool fr_jinja_is_digit(int32_t codepoint) {
    static const int32_t ranges[][2] = {{0xB2, 0xB3},     {0xB9, 0xB9},     {0x1369, 0x1371}, {0x19DA, 0x19DA},
                                        {0x2070, 0x2070}, {0x2074, 0x2079}, {0x2080, 0x2089}, {0x2460, 0x2468},
                                        {0x2474, 0x247C}, {0x2488, 0x2490}, {0x24EA, 0x24EA}, {0x24F5, 0x24FD},
                                        {0x24FF, 0x24FF}, {0x2776, 0x277E}, {0x2780, 0x2788}, {0x278A, 0x2792}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (codepoint >= ranges[i][0] && codepoint <= ranges[i][1]) return true;
    return fr_jinja_is_decimal(codepoint);
}

bool fr_jinja_is_numeric_character(int32_t codepoint) {
    utf8proc_category_t category = utf8proc_category(codepoint);
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool fr_jinja_is_upper(int32_t codepoint) {
    return utf8proc_isupper(codepoint);
}

bool fr_jinja_is_lower(int32_t codepoint) {
    return utf8proc_islower(codepoint);
}

bool fr_jinja_is_titlecase(int32_t codepoint) {
    return utf8proc_category(codepoint) == UTF8PROC_CATEGORY_LT;
}

bool fr_jinja_is_printable(int32_t codepoint) {
    switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return codepoint == ' ';
    default: return true;
    }
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

#define REAL_TEXT_MAX 400 /* limit on the bytes of a number's text */

/* Converts a number as Python writes it to a number as JSON writes it, which has digits before and after the point, no
 * leading zeros and no plus. Gives the length of the text; 0: the text is not a number. */
static size_t as_json(const char *bytes, size_t length, char text[REAL_TEXT_MAX]) {
    size_t at = 0, to = 0, digits = 0;
    if (length == 0 || length > REAL_TEXT_MAX - 8) return 0;
    if (bytes[at] == '-') text[to++] = '-';
    at += bytes[at] == '-' || bytes[at] == '+';
    while (at + 1 < length && bytes[at] == '0' && bytes[at + 1] >= '0' && bytes[at + 1] <= '9') at++;
    for (; at < length && bytes[at] >= '0' && bytes[at] <= '9'; at++, digits++) text[to++] = bytes[at];
    if (digits == 0) text[to++] = '0';
    text[to++] = '.';
    if (at < length && bytes[at] == '.') at++;
    for (; at < length && bytes[at] >= '0' && bytes[at] <= '9'; at++, digits++) text[to++] = bytes[at];
    if (digits == 0) return 0;
    if (text[to - 1] == '.') text[to++] = '0';
    memcpy(text + to, bytes + at, length - at);
    return at == length || (bytes[at] | 0x20) == 'e' ? to + length - at : 0;
}

bool fr_jinja_read_real(const char *bytes, size_t length, double *real) {
    char text[REAL_TEXT_MAX];
    size_t size = as_json(bytes, length, text);
    json_t *number = size > 0 ? json_loadb(text, size, JSON_DECODE_ANY, NULL) : NULL;
    bool read = json_is_real(number);
    if (read) *real = json_real_value(number);
    json_decref(number);
    return read;
}

/* Finds the fewest digits that read back as the same number, and the exponent `point`: the number is 0.d1d2d3... *
 * 10^point. */
static void shortest_digits(double real, char digits[24], int *point) {
    char text[40];
    /* If 15 digits read back as the number, they are its shortest form once the zeros at their end are dropped. Only
     * numbers below DBL_MIN may have a shorter form. */
    int fewest = fabs(real) < DBL_MIN ? 0 : 14;
    for (int precision = fewest; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, real);
        if (strtod(text, NULL) == real) break;
    }
    const char *exponent = strchr(text, 'e');
    size_t count = 0;
    for (const char *c = text; c < exponent; c++)
        if (*c >= '0' && *c <= '9') digits[count++] = *c; /* skips the sign and the locale's decimal point */
    while (count > 1 && digits[count - 1] == '0') count--;
    digits[count] = 0;
    *point = (int)strtol(exponent + 1, NULL, 10) + 1;
}

/* Writes digits with a point as Python does: 1.0, 0.001, 1e-05, 1.5e+16. */
static void place_point(const char *digits, int point, char *text, size_t size) {
    static const char zeros[] = "0000000000000000";
    int count = (int)strlen(digits);
    if (point > 16 || point < -3)
        snprintf(text, size, "%c%s%se%+03d", digits[0], count > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        snprintf(text, size, "0.%.*s%s", -point, zeros, digits);
    else if (point < count)
        snprintf(text, size, "%.*s.%s", point, digits, digits + point);
    else
        snprintf(text, size, "%s%.*s.0", digits, point - count, zeros);
}

void fr_jinja_print_real(double real, char text[FR_REAL_SIZE]) {
    char digits[24];
    int point;
    bool negative = signbit(real);
    if (isnan(real) || isinf(real)) {
        snprintf(text, FR_REAL_SIZE, "%s", isnan(real) ? "nan" : negative ? "-inf" : "inf");
        return;
    }
    shortest_digits(real, digits, &point);
    if (negative) *text++ = '-';
    place_point(digits, point, text, FR_REAL_SIZE - 1);
}
