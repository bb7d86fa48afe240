/* Writes texts as values of the types that a schema allows (reply_value.h). */
#include "src/language/chat/reply_value.h"

#include <stdio.h>
#include <string.h>

#include "src/language/chat/json_scan.h"

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

/* ----------------------------------------------------------------------------------------------------- UTF-16 units */

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

/* ---------------------------------------------------------------------------------------------------- JSON by bytes */

static void put_comma(fr_text_buffer *out, fr_json_writer *w) {
    if (w->comma) fr_text_append_string(out, ",");
    if (w->comma) fr_text_append(out, w->blanks, w->gap);
    w->comma = false;
    w->gap = 0;
}

/* Writes an invalid escape as plain characters, because the model meant its backslash as an ordinary character. */
static void put_broken_escape(fr_text_buffer *out, fr_json_writer *w) {
    fr_value_end_unit(out, &w->half);
    fr_text_append_string(out, "\\\\");
    fr_value_put_escaped(out, w->escape, w->escaped);
    w->escaped = 0;
}

static void put_in_string(fr_text_buffer *out, fr_json_writer *w, const fr_json_scan *before, char byte) {
    if (byte == '\\') return; /* the backslash is written together with the next byte, which shows what is escaped */
    fr_value_end_unit(out, &w->half);
    if (byte == before->quote)
        fr_text_append_string(out, "\"");
    else
        fr_value_put_escaped(out, &byte, 1);
}

static void put_escaped_byte(fr_text_buffer *out, fr_json_writer *w, const fr_json_scan *before, char byte) {
    w->escape[0] = byte;
    w->escaped = 1;
    if (byte == 'u' || (byte == 'x' && before->python)) return;
    bool known = byte && strchr("\"\\/bfnrt", byte);
    if (!known && !(before->python && byte == '\'')) {
        put_broken_escape(out, w);
        return;
    }
    fr_value_end_unit(out, &w->half);
    if (known) fr_text_append_string(out, "\\");
    fr_text_append(out, &byte, 1);
}

static bool is_hex(char byte) {
    return byte && strchr("0123456789abcdefABCDEF", byte);
}

static void put_hex(fr_text_buffer *out, fr_json_writer *w, const fr_json_scan *before, char byte) {
    if (!is_hex(byte)) {
        put_broken_escape(out, w);
        put_in_string(out, w, before, byte);
        return;
    }
    w->escape[w->escaped++] = byte;
    if (before->hex > 1) return;
    unsigned unit = 0;
    for (size_t i = 1; i < w->escaped; i++) unit = unit << 4 | fr_value_hex_digit(w->escape[i]);
    fr_value_put_unit(out, &w->half, unit);
}

void fr_value_put_json(fr_text_buffer *out, fr_json_writer *writer, const fr_json_scan *before, char byte) {
    fr_json_writer *w = writer;
    switch (before->state) {
    case FR_SCAN_STRING: put_in_string(out, w, before, byte); return;
    case FR_SCAN_ESCAPE: put_escaped_byte(out, w, before, byte); return;
    case FR_SCAN_HEX: put_hex(out, w, before, byte); return;
    case FR_SCAN_WORD:
        if (!w->none) fr_text_append(out, &byte, 1);
        return;
    default: break;
    }
    w->none = byte == 'N';
    if (byte == ',') {
        w->comma = true;
    } else if (w->comma && fr_json_is_space(byte)) {
        if (w->gap < sizeof w->blanks) w->blanks[w->gap++] = byte;
    } else if (byte == '}' || byte == ']' || byte == ')') {
        w->comma = false;
        w->gap = 0;
        fr_text_append_string(out, byte == '}' ? "}" : "]");
    } else {
        put_comma(out, w);
        if (w->none)
            fr_text_append_string(out, "null");
        else
            fr_text_append(out,
                           byte == '\''  ? "\""
                           : byte == 'T' ? "t"
                           : byte == 'F' ? "f"
                           : byte == '(' ? "["
                                         : &byte,
                           1);
    }
}

/* ----------------------------------------------------------------------------------------------------------- values */

static fr_value_types type_by_first(char byte) {
    switch (byte) {
    case '{': return FR_VALUE_OBJECT;
    case '(':
    case '[': return FR_VALUE_ARRAY;
    case '"':
    case '\'': return FR_VALUE_STRING;
    case 't':
    case 'T':
    case 'f':
    case 'F': return FR_VALUE_BOOLEAN;
    case 'n':
    case 'N': return FR_VALUE_NULL;
    default: return FR_VALUE_NUMBER;
    }
}

bool fr_value_is_too_big(const char *number, size_t length) {
    json_error_t error;
    json_t *value = json_loadb(number, length, JSON_DECODE_ANY, &error);
    bool whole = !memchr(number, '.', length) && !memchr(number, 'e', length) && !memchr(number, 'E', length);
    json_decref(value);
    return !value && !whole && json_error_code(&error) == json_error_numeric_overflow;
}

/* Returns true if a loose scan accepts the text as one value that fits in an object and can be read back. */
static bool is_json(const char *text, size_t length, bool *python) {
    fr_json_scan scan = {.loose = true};
    size_t number = 0; /* offset at which the last number begins */
    for (size_t i = 0; i < length; i++) {
        bool before = fr_json_scan_in_number(&scan);
        if (fr_json_scan_byte(&scan, text[i]) == FR_SCAN_BAD || scan.depth == FR_SCAN_DEPTH) return false;
        bool in_number = fr_json_scan_in_number(&scan);
        if (!before) number = i;
        if (before && !in_number && fr_value_is_too_big(text + number, i - number)) return false;
    }
    *python = scan.python;
    if (!fr_json_scan_complete(&scan)) return false;
    return !fr_json_scan_in_number(&scan) || !fr_value_is_too_big(text + number, length - number);
}

/* Decides if a text that can be read as a value of type `found` is taken as that value. Otherwise it is taken as text.
 * A quoted text is taken as a value only if the types are known and have no string among them. A text without quotes is
 * taken as a value if `found` is one of the types, or if it is null and there is no string among them. If the types are
 * not known, it is taken as a value unless it is written as in Python. */
static bool is_meant(fr_value_types found, fr_value_types types, bool python) {
    if (found == FR_VALUE_STRING) return types && !(types & FR_VALUE_STRING);
    if (!types) return !python;
    return (found & types) != 0 || (found == FR_VALUE_NULL && !(types & FR_VALUE_STRING));
}

void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types) {
    const char *inner = text;
    size_t size = length;
    bool python;
    while (size > 0 && fr_json_is_space(*inner)) inner++, size--;
    while (size > 0 && fr_json_is_space(inner[size - 1])) size--;
    if (size > 0 && is_json(inner, size, &python) && is_meant(type_by_first(*inner), types, python)) {
        fr_json_scan scan = {.loose = true};
        fr_json_writer writer = {0};
        for (size_t i = 0; i < size; i++) {
            const fr_json_scan before = scan;
            fr_json_scan_byte(&scan, inner[i]);
            fr_value_put_json(out, &writer, &before, inner[i]);
        }
    } else {
        fr_text_append_string(out, "\"");
        fr_value_put_escaped(out, text, length);
        fr_text_append_string(out, "\"");
    }
}
