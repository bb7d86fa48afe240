/* Reads JSON without jansson's own reader (json_read.h).
 *
 * jansson 2.14's own reader continues after its lexer's buffer could not grow: texts then lose bytes, and it reads past
 * the end of its memory. So nearly all JSON is read here. Only rare values and faulty texts are read by jansson's
 * reader, which also finds the error message. */
#include "formats/json_read.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode_form.h"
#include "formats/json_wide.h"

typedef struct reader {
    const char *at, *end;
    size_t flags, depth;
    char *text; /* the last string, NUL-terminated */
    size_t length, capacity;
    bool lost;
} reader;

static json_t *read_value(reader *r);

static void pass_blanks(reader *r) {
    while (r->at < r->end && strchr(" \t\n\r", *r->at) && *r->at) r->at++;
}

static bool take(reader *r, char c) {
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static json_t *made(reader *r, json_t *value) {
    r->lost |= !value;
    return value;
}

/* ---------------------------------------------------------------------------------------------------------- strings */

/* Reads the four hexadecimal digits after \u. Returns -1 if any of them is another byte. */
static int32_t read_unit(reader *r) {
    int32_t unit = 0;
    if (r->end - r->at < 4) return -1;
    for (int i = 0; i < 4; i++, r->at++) {
        const char *digits = "0123456789abcdefABCDEF", *found = *r->at ? strchr(digits, *r->at) : NULL;
        if (!found) return -1;
        int digit = (int)(found - digits);
        unit = unit * 16 + (digit < 16 ? digit : digit - 6);
    }
    return unit;
}

static void put(reader *r, int32_t byte) {
    r->text[r->length++] = (char)byte;
}

/* Reads a character of one or two UTF-16 units. Returns false if a surrogate has no partner. */
static bool read_character(reader *r) {
    int32_t c = read_unit(r);
    if (c >= 0xD800 && c < 0xDC00) {
        if (!take(r, '\\') || !take(r, 'u')) return false;
        int32_t low = read_unit(r);
        if (low < 0xDC00 || low > 0xDFFF) return false;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    } else if (c < 0 || (c >= 0xDC00 && c <= 0xDFFF)) {
        return false;
    }
    if (c == 0 && !(r->flags & JSON_ALLOW_NUL)) return false;
    if (c >= 0x10000) put(r, 0xF0 | c >> 18);
    if (c >= 0x800) put(r, c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
    if (c >= 0x80) put(r, c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6);
    put(r, c >= 0x80 ? 0x80 | (c & 0x3F) : c);
    return true;
}

static bool read_escape(reader *r) {
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end || !*r->at) return false;
    if (take(r, 'u')) return read_character(r);
    const char *found = strchr(names, *r->at++);
    if (found) put(r, bytes[found - names]);
    return found;
}

static bool make_room(reader *r, size_t needed) {
    if (needed <= r->capacity) return true;
    char *text = realloc(r->text, 2 * needed);
    r->lost |= !text;
    if (!text) return false;
    r->text = text;
    r->capacity = 2 * needed;
    return true;
}

/* Counts the bytes of a string as it is written. The decoded text is not longer. */
static size_t written_length(const reader *r) {
    const char *at = r->at;
    while (at < r->end && *at != '"') at += *at == '\\' && at + 1 < r->end ? 2 : 1;
    return (size_t)(at - r->at);
}

static bool is_utf8(const char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        fr_character_bytes character = fr_first_character(text + at, length - at);
        if (character.there == 0 || character.there != character.whole) return false;
        at += character.whole;
    }
    return true;
}

/* Reads the rest of a string after its opening quote. */
static bool read_text(reader *r) {
    if (!make_room(r, written_length(r) + 1)) return false;
    for (r->length = 0; r->at < r->end && *r->at != '"';) {
        if ((unsigned char)*r->at < 0x20) return false;
        if (take(r, '\\')) {
            if (!read_escape(r)) return false;
        } else {
            put(r, *r->at++);
        }
    }
    r->text[r->length] = 0;
    return take(r, '"') && is_utf8(r->text, r->length);
}

static json_t *read_string(reader *r) {
    return read_text(r) ? made(r, json_stringn_nocheck(r->text, r->length)) : NULL;
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static size_t pass_digits(reader *r) {
    const char *first = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return (size_t)(r->at - first);
}

static bool take_word(reader *r, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* Makes a string that stands for NaN or an infinity, for which jansson has no value: the byte FR_JSON_WIDE and the
 * word. No JSON text can contain such a string. */
static json_t *make_not_finite(reader *r, const char *word) {
    char marked[16];
    if (!(r->flags & FR_JSON_PYTHON_NUMBERS)) return NULL;
    int length = snprintf(marked, sizeof marked, "%c%s", FR_JSON_WIDE, word);
    return made(r, json_stringn_nocheck(marked, (size_t)length));
}

/* Makes a number from a text that fits JSON's grammar. */
static json_t *make_number(reader *r, const char *first, size_t length, bool real) {
    if (!make_room(r, length + 1)) return NULL;
    memcpy(r->text, first, length);
    r->text[length] = 0;
    if (!real) {
        errno = 0;
        long long value = strtoll(r->text, NULL, 10);
        if (errno == 0) return made(r, json_integer(value));
        if (!(r->flags & FR_JSON_PYTHON_NUMBERS)) return NULL;
    }
    double value = strtod_l(r->text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (isfinite(value)) return made(r, json_real(value));
    return make_not_finite(r, value > 0 ? "Infinity" : "-Infinity");
}

static json_t *read_number(reader *r) {
    const char *first = r->at;
    if (take_word(r, "NaN")) return make_not_finite(r, "NaN");
    bool negative = take(r, '-');
    if (take_word(r, "Infinity")) return make_not_finite(r, negative ? "-Infinity" : "Infinity");
    const char *digits = r->at;
    size_t count = pass_digits(r);
    if (count == 0 || (count > 1 && *digits == '0')) return NULL;
    bool real = take(r, '.');
    if (real && pass_digits(r) == 0) return NULL;
    if (take(r, 'e') || take(r, 'E')) {
        real = true;
        if (!take(r, '+')) take(r, '-');
        if (pass_digits(r) == 0) return NULL;
    }
    return make_number(r, first, (size_t)(r->at - first), real);
}

/* ----------------------------------------------------------------------------------------------------------- values */

static bool read_member(reader *r, json_t *object) {
    pass_blanks(r);
    if (!take(r, '"') || !read_text(r) || strlen(r->text) < r->length) return false;
    if (r->flags & JSON_REJECT_DUPLICATES && json_object_get(object, r->text)) return false;
    char *key = strdup(r->text);
    r->lost |= !key;
    pass_blanks(r);
    json_t *value = key && take(r, ':') ? read_value(r) : NULL;
    bool kept = value && json_object_set_new_nocheck(object, key, value) == 0;
    r->lost |= value && !kept;
    free(key);
    pass_blanks(r);
    return kept;
}

static bool read_item(reader *r, json_t *array) {
    json_t *value = read_value(r);
    bool kept = value && json_array_append_new(array, value) == 0;
    r->lost |= value && !kept;
    pass_blanks(r);
    return kept;
}

static json_t *read_many(reader *r, json_t *all, char close, bool (*read_one)(reader *r, json_t *all)) {
    bool good = ++r->depth <= FR_JSON_READ_DEPTH && all;
    pass_blanks(r);
    if (good && !take(r, close)) {
        do good = read_one(r, all);
        while (good && take(r, ','));
        good = good && take(r, close);
    }
    r->depth--;
    if (good) return all;
    json_decref(all);
    return NULL;
}

static json_t *read_value(reader *r) {
    pass_blanks(r);
    if (take(r, '{')) return read_many(r, made(r, json_object()), '}', read_member);
    if (take(r, '[')) return read_many(r, made(r, json_array()), ']', read_item);
    if (take(r, '"')) return read_string(r);
    if (take_word(r, "true")) return json_true();
    if (take_word(r, "false")) return json_false();
    if (take_word(r, "null")) return json_null();
    return read_number(r);
}

json_t *fr_json_read_text(const char *text, size_t size, size_t flags, bool *lost) {
    reader r = {.at = text, .end = text + size, .flags = flags};
    json_t *root = read_value(&r);
    pass_blanks(&r);
    bool any = flags & JSON_DECODE_ANY || json_is_object(root) || json_is_array(root);
    free(r.text);
    *lost = r.lost;
    if (root && any && r.at == r.end) return root;
    json_decref(root);
    return NULL;
}
