/* Integers beyond int64: see json_wide.h.
 *
 * A text that jansson refuses because of them is read once more with a 0 in the place of each, blanks behind it, and
 * the values that belong there are found by counting the numbers: in the text, and in the tree, whose objects keep
 * their members in order. */
#include "formats/json_wide.h"

#include <stdlib.h>
#include <string.h>

/* A wide integer of the text, and how many numbers stand before it. */
typedef struct spot {
    size_t number;
    const char *digits;
    size_t length;
} spot;

typedef struct spots {
    spot *items;
    size_t count, capacity;
    size_t next, number; /* of the walk through the tree */
    bool lost;           /* memory ran out */
} spots;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Whether a number is an integer that int64 doesn't hold. What isn't JSON is none: the parser will say so. */
static bool is_wide(const char *number, size_t length) {
    static const char limits[2][20] = {"9223372036854775807", "9223372036854775808"};
    bool negative = *number == '-';
    const char *digits = number + negative;
    size_t count = length - negative;
    if (count < 19 || *digits == '0') return false;
    for (size_t i = 0; i < count; i++)
        if (!is_digit(digits[i])) return false;
    return count > 19 || memcmp(digits, limits[negative], 19) > 0;
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
    s->items[s->count++] = (spot){s->number, digits, length};
}

/* Puts zeros into `copy`, of the same text, where its integers are wide. */
static void narrow(spots *s, const char *text, size_t size, char *copy) {
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '-' || is_digit(c)) {
            size_t length = number_length(text + i, size - i);
            if (is_wide(text + i, length)) {
                add_spot(s, text + i, length);
                memset(copy + i, ' ', length);
                copy[i] = '0';
            }
            s->number++;
            i += length - 1;
        }
    }
    s->number = 0;
}

/* What belongs in the place of a number; NULL: it stays. */
static json_t *wide_value(spots *s, const json_t *value) {
    if (!json_is_number(value) || s->next == s->count || s->items[s->next].number != s->number++) return NULL;
    const spot *found = &s->items[s->next++];
    char *text = malloc(found->length + 1);
    json_t *wide = NULL;
    if (text) {
        *text = FR_JSON_WIDE;
        memcpy(text + 1, found->digits, found->length);
        wide = json_stringn_nocheck(text, found->length + 1);
    }
    free(text);
    s->lost |= !wide;
    return wide;
}

static void widen(spots *s, json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *item = json_array_get(value, i), *wide = wide_value(s, item);
        if (wide)
            s->lost |= json_array_set_new(value, i, wide) != 0;
        else
            widen(s, item);
    }
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        json_t *item = json_object_iter_value(at), *wide = wide_value(s, item);
        if (wide)
            s->lost |= json_object_iter_set_new(value, at, wide) != 0;
        else
            widen(s, item);
    }
}

/* A number alone, as flags may allow it, has no place in anything. */
static json_t *load(spots *s, const char *text, size_t size, char *copy, size_t flags, json_error_t *error) {
    narrow(s, text, size, copy);
    json_t *root = s->lost ? NULL : json_loadb(copy, size, flags | JSON_REJECT_DUPLICATES, error);
    json_t *wide = root ? wide_value(s, root) : NULL;
    if (root && !wide) widen(s, root);
    if (wide || s->lost) json_decref(root);
    return wide ? wide : s->lost ? NULL : root;
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
        error->text[sizeof error->text - 1] = json_error_out_of_memory; /* where json_error_code finds it */
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

bool fr_json_is_text(const json_t *value) {
    size_t length;
    return json_is_string(value) && !fr_json_wide_digits(value, &length);
}
