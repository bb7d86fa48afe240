/* Python's way to print: see python_text.h. */
#include "src/text/python_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/text/unicode_form.h"

/* ----------------------------------------------------------------------------------------------------- str and repr */

/* The fewest digits that read back as the same number, and where the point goes: 0.d1d2d3... * 10^point. */
static void shortest_digits(double value, char digits[24], int *point) {
    char text[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value) break;
    }
    const char *exponent = strchr(text, 'e');
    size_t count = 0;
    for (const char *c = text; c < exponent; c++)
        if (*c >= '0' && *c <= '9') digits[count++] = *c; /* leaves out the sign, and a locale's decimal point */
    digits[count] = 0;
    *point = (int)strtol(exponent + 1, NULL, 10) + 1;
}

static void append_zeros(int count, fr_text_buffer *out) {
    for (; count > 0; count--) fr_text_append_string(out, "0");
}

/* 1.0, 0.001, 1e-05, 1.5e+16 */
static void append_float(double value, fr_text_buffer *out) {
    char digits[24], exponent[16];
    int point;
    shortest_digits(value, digits, &point);
    int count = (int)strlen(digits);
    if (value < 0 || (value == 0 && 1 / value < 0)) fr_text_append_string(out, "-");
    if (point > 16 || point < -3) {
        fr_text_append(out, digits, 1);
        if (count > 1) fr_text_append_string(out, ".");
        fr_text_append_string(out, digits + 1);
        snprintf(exponent, sizeof exponent, "e%+03d", point - 1);
        fr_text_append_string(out, exponent);
        return;
    }
    int whole = point < 0 ? 0 : point < count ? point : count; /* digits before the point */
    fr_text_append(out, whole > 0 ? digits : "0", whole > 0 ? (size_t)whole : 1);
    append_zeros(point - count, out);
    fr_text_append_string(out, ".");
    append_zeros(-point, out);
    fr_text_append_string(out, whole < count ? digits + whole : "0");
}

static bool is_printable(utf8proc_int32_t codepoint) {
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

/* A character inside quotes. */
static void append_character(utf8proc_int32_t codepoint, char quote, fr_text_buffer *out) {
    char text[16] = {'\\', (char)codepoint}; /* \\ or an escaped quote, if nothing below applies */
    if (codepoint == '\n' || codepoint == '\r' || codepoint == '\t')
        text[1] = codepoint == '\n' ? 'n' : codepoint == '\r' ? 'r' : 't';
    else if (codepoint != quote && codepoint != '\\' && is_printable(codepoint))
        text[utf8proc_encode_char(codepoint, (utf8proc_uint8_t *)text)] = 0;
    else if (codepoint >= 0x10000)
        snprintf(text, sizeof text, "\\U%08" PRIx32, (uint32_t)codepoint);
    else if (codepoint >= 0x100)
        snprintf(text, sizeof text, "\\u%04" PRIx32, (uint32_t)codepoint);
    else if (codepoint != quote && codepoint != '\\')
        snprintf(text, sizeof text, "\\x%02" PRIx32, (uint32_t)codepoint);
    fr_text_append_string(out, text);
}

static void append_quoted(const char *text, size_t length, fr_text_buffer *out) {
    char quote = memchr(text, '\'', length) && !memchr(text, '"', length) ? '"' : '\'';
    fr_text_append(out, &quote, 1);
    for (const char *end = text + length; text < end;) {
        utf8proc_int32_t codepoint;
        text += utf8proc_iterate((const utf8proc_uint8_t *)text, end - text, &codepoint);
        append_character(codepoint, quote, out);
    }
    fr_text_append(out, &quote, 1);
}

static void append_repr(const json_t *value, fr_text_buffer *out);

static void append_list(const json_t *list, fr_text_buffer *out) {
    fr_text_append_string(out, "[");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (i > 0) fr_text_append_string(out, ", ");
        append_repr(json_array_get(list, i), out);
    }
    fr_text_append_string(out, "]");
}

static void append_dict(const json_t *dict, fr_text_buffer *out) {
    const char *key, *separator = "";
    json_t *value;
    fr_text_append_string(out, "{");
    json_object_foreach((json_t *)(uintptr_t)dict, key, value) {
        fr_text_append_string(out, separator);
        append_quoted(key, strlen(key), out);
        fr_text_append_string(out, ": ");
        append_repr(value, out);
        separator = ", ";
    }
    fr_text_append_string(out, "}");
}

static void append_repr(const json_t *value, fr_text_buffer *out) {
    char number[24];
    switch (json_typeof(value)) {
    case JSON_OBJECT: append_dict(value, out); break;
    case JSON_ARRAY: append_list(value, out); break;
    case JSON_STRING: append_quoted(json_string_value(value), json_string_length(value), out); break;
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        fr_text_append_string(out, number);
        break;
    case JSON_REAL: append_float(json_real_value(value), out); break;
    case JSON_TRUE: fr_text_append_string(out, "True"); break;
    case JSON_FALSE: fr_text_append_string(out, "False"); break;
    case JSON_NULL: fr_text_append_string(out, "None"); break;
    }
}

void fr_python_str(const json_t *value, fr_text_buffer *out) {
    if (json_is_string(value))
        fr_text_append(out, json_string_value(value), json_string_length(value));
    else if (value)
        append_repr(value, out);
}

/* ---------------------------------------------------------------------------------------------------------- methods */

void fr_python_upper(const json_t *value, fr_text_buffer *out) {
    fr_text_buffer text = {0};
    fr_python_str(value, &text);
    for (size_t at = 0; at < text.length;) {
        utf8proc_int32_t codepoint;
        utf8proc_uint8_t bytes[4];
        at += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)text.bytes + at, -1, &codepoint);
        fr_text_append(out, bytes, (size_t)utf8proc_encode_char(utf8proc_toupper(codepoint), bytes));
    }
    if (text.status != FR_OK) out->status = text.status;
    fr_text_free(&text);
}

/* str.isspace() is true for the four separators U+001C to U+001F too. */
static bool is_python_space(int32_t codepoint) {
    return fr_is_space(codepoint) || (codepoint >= 0x1C && codepoint <= 0x1F);
}

fr_text fr_python_strip(fr_text text) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text.bytes;
    size_t begin = text.length, end = 0; /* of what is not white space */
    for (size_t at = 0; at < text.length;) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t step = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
        size_t next = at + (step > 0 ? (size_t)step : 1);
        if (step <= 0 || !is_python_space(codepoint)) {
            if (begin > at) begin = at;
            end = next;
        }
        at = next;
    }
    return end > begin ? (fr_text){text.bytes + begin, end - begin} : (fr_text){"", 0};
}

void fr_python_stripped(const json_t *value, fr_text_buffer *out) {
    fr_text_buffer text = {0};
    fr_python_str(value, &text);
    fr_text stripped = fr_python_strip((fr_text){text.bytes, text.length});
    fr_text_append(out, stripped.bytes, stripped.length);
    if (text.status != FR_OK) out->status = text.status;
    fr_text_free(&text);
}

int fr_python_compare_lower(const char *a, const char *b) {
    for (;;) {
        utf8proc_int32_t left = 0, right = 0;
        if (*a) a += utf8proc_iterate((const utf8proc_uint8_t *)a, -1, &left);
        if (*b) b += utf8proc_iterate((const utf8proc_uint8_t *)b, -1, &right);
        if (left == 0 && right == 0) return 0;
        int32_t difference = utf8proc_tolower(left) - utf8proc_tolower(right);
        if (difference != 0) return difference;
    }
}
