/* Texts as values of types: see reply_value.h. */
#include "src/chat/reply_value.h"

#include <stdio.h>
#include <string.h>

#include "src/chat/json_scan.h"

static bool needs_escape(char byte) {
    return (unsigned char)byte < ' ' || byte == '"' || byte == '\\';
}

static void put_escape(fr_text_buffer *out, char byte) {
    static const char plain[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    char text[8];
    const char *found = byte ? strchr(plain, byte) : NULL;
    if (found)
        snprintf(text, sizeof text, "\\%c", letters[found - plain]);
    else
        snprintf(text, sizeof text, "\\u%04x", (unsigned)byte);
    fr_text_append_string(out, text);
}

void fr_value_put_escaped(fr_text_buffer *out, const char *text, size_t length) {
    for (size_t begin = 0, at = 0; at <= length; at++) {
        if (at < length && !needs_escape(text[at])) continue;
        fr_text_append(out, text + begin, at - begin);
        if (at < length) put_escape(out, text[at]);
        begin = at + 1;
    }
}

/* ------------------------------------------------------------------------------------------------------------ units */

unsigned fr_value_hex_digit(char byte) {
    return (unsigned)(byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10);
}

void fr_value_end_unit(fr_text_buffer *out, unsigned *half) {
    if (*half) fr_text_append_string(out, "\\ufffd");
    *half = 0;
}

void fr_value_put_unit(fr_text_buffer *out, unsigned *half, unsigned unit) {
    char text[24];
    bool low = unit >= 0xdc00 && unit < 0xe000, high = unit >= 0xd800 && unit < 0xdc00;
    if (low && *half) {
        snprintf(text, sizeof text, "\\u%04x\\u%04x", *half, unit);
        fr_text_append_string(out, text);
        *half = 0;
        return;
    }
    fr_value_end_unit(out, half);
    if (high) {
        *half = unit;
        return;
    }
    snprintf(text, sizeof text, "\\u%04x", low ? 0xfffd : unit);
    fr_text_append_string(out, text);
}

/* Text that is JSON. */
static void put_json(fr_text_buffer *out, const char *text, size_t length) {
    unsigned half = 0;
    for (size_t at = 0, size; at < length; at += size) {
        bool unit = text[at] == '\\' && text[at + 1] == 'u';
        size = unit ? 6 : text[at] == '\\' ? 2 : 1;
        if (unit) {
            unsigned value = 0;
            for (size_t i = 2; i < 6; i++) value = value << 4 | fr_value_hex_digit(text[at + i]);
            fr_value_put_unit(out, &half, value);
        } else {
            fr_value_end_unit(out, &half);
            fr_text_append(out, text + at, size);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- values */

static bool equals(const char *text, size_t length, const char *word) {
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* What Python calls it. */
static const char *python_word(const char *text, size_t length) {
    if (equals(text, length, "True")) return "true";
    if (equals(text, length, "False")) return "false";
    return equals(text, length, "None") ? "null" : NULL;
}

static fr_value_types type_by_first(char byte) {
    switch (byte) {
    case '{': return FR_VALUE_OBJECT;
    case '[': return FR_VALUE_ARRAY;
    case '"': return FR_VALUE_STRING;
    case 't':
    case 'T':
    case 'f':
    case 'F': return FR_VALUE_BOOLEAN;
    case 'n':
    case 'N': return FR_VALUE_NULL;
    default: return FR_VALUE_NUMBER;
    }
}

static bool in_number(const fr_json_scan *scan) {
    return scan->state >= FR_SCAN_MINUS && scan->state <= FR_SCAN_EXPONENT_DIGITS;
}

bool fr_value_is_too_big(const char *number, size_t length) {
    json_error_t error;
    json_t *value = json_loadb(number, length, JSON_DECODE_ANY, &error);
    bool whole = !memchr(number, '.', length) && !memchr(number, 'e', length) && !memchr(number, 'E', length);
    json_decref(value);
    return !value && !whole && json_error_code(&error) == json_error_numeric_overflow;
}

/* Whether it is JSON that an object may hold and that can be read back. */
static bool is_json(const char *text, size_t length) {
    fr_json_scan scan = {0};
    size_t number = 0; /* where the last began */
    for (size_t i = 0; i < length; i++) {
        bool before = in_number(&scan);
        if (fr_json_scan_byte(&scan, text[i]) == FR_SCAN_BAD || scan.depth == FR_SCAN_DEPTH) return false;
        if (!before) number = i;
        if (before && !in_number(&scan) && fr_value_is_too_big(text + number, i - number)) return false;
    }
    if (!fr_json_scan_complete(&scan)) return false;
    return !in_number(&scan) || !fr_value_is_too_big(text + number, length - number);
}

/* Where nothing is known a text in quotes is still a text, quotes included, and so is Python's None. A parameter that
 * can't be a string may always be null. */
static bool is_meant(fr_value_types found, fr_value_types types, bool python) {
    if (found == FR_VALUE_STRING) return types && !(types & FR_VALUE_STRING);
    if (!types) return !python;
    return (found & types) != 0 || (found == FR_VALUE_NULL && !(types & FR_VALUE_STRING));
}

void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types) {
    const char *inner = text;
    size_t size = length;
    while (size > 0 && fr_json_is_space(*inner)) inner++, size--;
    while (size > 0 && fr_json_is_space(inner[size - 1])) size--;
    const char *python = python_word(inner, size);
    bool meant = size > 0 && is_meant(type_by_first(*inner), types, python != NULL);
    if (meant && python) {
        fr_text_append_string(out, python);
    } else if (meant && is_json(inner, size)) {
        put_json(out, inner, size);
    } else {
        fr_text_append_string(out, "\"");
        fr_value_put_escaped(out, text, length);
        fr_text_append_string(out, "\"");
    }
}
