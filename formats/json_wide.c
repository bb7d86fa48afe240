/* Reads integers beyond int64 (json_wide.h).
 *
 * jansson refuses a text with such integers. The text is then read again with a mark in place of each of them. A mark
 * is one of the largest int64 values, padded with blanks, and tells which integer it replaces. An integer of the text
 * that could be mistaken for a mark is replaced by a mark as well. So each mark in the tree leads to its integer, even
 * if a key that occurs twice has made the parser drop other marks. */
#include "formats/json_wide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BELOW_MARKS \
    9223372036000000000 /* values above this are marks; there are more of them than values in any
                                         * text */

/* Points to an integer of the text that is replaced by a mark. */
typedef struct spot {
    const char *digits;
    size_t length;
} spot;

typedef struct spots {
    spot *items;
    size_t count, capacity;
    bool lost; /* memory ran out */
} spots;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Returns true if a number is an integer beyond a limit. The limit is `positive`, or `negative` if the number has a
 * minus. Bytes that aren't JSON give false, because the parser will refuse them anyway. */
static bool is_above(const char *number, size_t length, const char *positive, const char *negative) {
    bool minus = *number == '-';
    const char *digits = number + minus;
    size_t count = length - minus;
    if (count < 19 || *digits == '0') return false;
    for (size_t i = 0; i < count; i++)
        if (!is_digit(digits[i])) return false;
    return count > 19 || memcmp(digits, minus ? negative : positive, 19) > 0;
}

static bool is_wide(const char *number, size_t length) {
    return is_above(number, length, "9223372036854775807", "9223372036854775808");
}

static bool needs_mark(const char *number, size_t length) {
    return is_above(number, length, "9223372036000000000", "9223372036854775808");
}

static size_t number_length(const char *text, size_t left) {
    size_t length = 1;
    while (length < left && text[length] && strchr("+-.eE0123456789", text[length])) length++;
    return length;
}

static void add_spot(spots *s, const char *digits, size_t length) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 16;
        spot *items = realloc(s->items, capacity * sizeof *items);
        s->lost |= !items;
        if (!items) return;
        s->items = items;
        s->capacity = capacity;
    }
    s->items[s->count++] = (spot){digits, length};
}

/* Puts marks into `copy`, a copy of the text. A mark has as many digits as the shortest integer beyond int64, so it
 * fits into the place of the integer. */
static void put_marks(spots *s, const char *text, size_t size, char *copy) {
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i], mark[24];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '-' || is_digit(c)) {
            size_t length = number_length(text + i, size - i);
            if (needs_mark(text + i, length)) {
                int digits = snprintf(mark, sizeof mark, "%lld", (long long)(INT64_MAX - (int64_t)s->count));
                memset(copy + i, ' ', length);
                memcpy(copy + i, mark, (size_t)digits);
                add_spot(s, text + i, length);
            }
            i += length - 1;
        }
    }
}

/* Makes the wide integer that a mark replaces. Returns NULL if the value is not a mark. */
static json_t *marked_value(spots *s, const json_t *value) {
    if (json_integer_value(value) <= BELOW_MARKS) return NULL; /* json_integer_value gives 0 for other types */
    size_t at = (size_t)(INT64_MAX - json_integer_value(value));
    if (at >= s->count) return NULL;
    const spot *found = &s->items[at];
    char *text = malloc(found->length + 2);
    json_t *own = NULL;
    if (text) {
        *text = FR_JSON_WIDE;
        memcpy(text + 1, found->digits, found->length);
        text[found->length + 1] = 0;
        bool wide = is_wide(found->digits, found->length);
        own = wide ? json_stringn_nocheck(text, found->length + 1) : json_integer(strtoll(text + 1, NULL, 10));
    }
    free(text);
    s->lost |= !own;
    return own;
}

static void put_values(spots *s, json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *item = json_array_get(value, i), *own = marked_value(s, item);
        if (own)
            s->lost |= json_array_set_new(value, i, own) != 0;
        else
            put_values(s, item);
    }
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        json_t *item = json_object_iter_value(at), *own = marked_value(s, item);
        if (own)
            s->lost |= json_object_iter_set_new(value, at, own) != 0;
        else
            put_values(s, item);
    }
}

/* Loads the marked text and replaces the marks by their integers. With some flags the whole text may be a single
 * number. Such a number is in no array or object, so it is replaced in this function. */
static json_t *load(spots *s, const char *text, size_t size, char *copy, size_t flags, json_error_t *error) {
    put_marks(s, text, size, copy);
    json_t *root = s->lost ? NULL : json_loadb(copy, size, flags, error);
    json_t *own = root ? marked_value(s, root) : NULL;
    if (root && !own) put_values(s, root);
    if (own || s->lost) json_decref(root);
    return own ? own : s->lost ? NULL : root;
}

json_t *fr_json_load_wide(const char *text, size_t size, size_t flags, json_error_t *error) {
    json_t *root = json_loadb(text, size, flags, error);
    if (root || json_error_code(error) != json_error_numeric_overflow) return root;
    spots s = {0};
    char *copy = malloc(size + 1);
    s.lost = !copy;
    if (copy) {
        memcpy(copy, text, size);
        root = load(&s, text, size, copy, flags, error);
    }
    if (s.lost) {
        *error = (json_error_t){.text = "out of memory"};
        /* the byte where json_error_code looks for the code */
        error->text[sizeof error->text - 1] = json_error_out_of_memory;
    }
    free(s.items);
    free(copy);
    return root;
}

const char *fr_json_wide_digits(const json_t *value, size_t *length) {
    const char *text = json_string_value(value);
    size_t size = json_string_length(value);
    if (size < 2 || *text != FR_JSON_WIDE || !is_wide(text + 1, size - 1)) return NULL;
    *length = size - 1;
    return text + 1;
}

const char *fr_json_not_finite(const json_t *value) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    const char *text = json_string_value(value);
    for (size_t i = 0; text && *text == FR_JSON_WIDE && i < sizeof words / sizeof *words; i++)
        if (strcmp(text + 1, words[i]) == 0) return words[i];
    return NULL;
}

bool fr_json_is_text(const json_t *value) {
    size_t length;
    return json_is_string(value) && !fr_json_wide_digits(value, &length) && !fr_json_not_finite(value);
}
