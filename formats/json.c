/* Reads bounded JSON: a scan of the raw bytes enforces the limits before jansson allocates anything.
 *
 * In: the bytes of a file. Out: jansson values, or a line that names the text and the key. The getters check the type
 * and range of a value. */
#include "formats/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/text_buffer.h"
#include "formats/json_read.h"
#include "formats/json_wide.h"
#include "formats/map.h"

#define DEPTH_MAX 64
#define VALUES_MAX \
    ((size_t)1 << 23) /* Four times the number of values in the largest tokenizers. This many values take at most 2
                       * GB. */

/* Checks depth and number of values. Text that isn't JSON may pass, because the parser will refuse it. */
static fr_status check_limits(const char *text, size_t size, const char *where) {
    size_t depth = 0, values = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            values++;
            if (++depth > DEPTH_MAX)
                return fr_fail(FR_INPUT, "%s: JSON nested deeper than %d at byte %zu", where, DEPTH_MAX, i);
        } else if (c == ']' || c == '}') {
            if (depth > 0) depth--;
        } else if (c == ',' || c == ':') {
            values++;
        }
    }
    if (values > VALUES_MAX) return fr_fail(FR_INPUT, "%s: JSON of more than %zu values", where, VALUES_MAX);
    return FR_OK;
}

/* Gives the key that ends at byte `end` of the text, as it is spelled there. */
static fr_text key_before(const char *text, size_t end) {
    size_t first = end > 0 && text[end - 1] == '"' ? end - 1 : 0, begin = first;
    while (begin > 0 && (text[begin - 1] != '"' || (begin > 1 && text[begin - 2] == '\\'))) begin--;
    return (fr_text){text + begin, first - begin};
}

static fr_status fail_parse(const char *text, size_t size, const char *where, const json_error_t *error) {
    if (json_error_code(error) == json_error_out_of_memory) return fr_fail_memory(where, size);
    if (json_error_code(error) != json_error_duplicate_key)
        return fr_fail(FR_INPUT, "%s: not valid JSON: line %d, column %d: %s", where, error->line, error->column,
                       error->text);
    size_t end = error->position > 0 ? (size_t)error->position : 0;
    fr_text key = key_before(text, end <= size ? end : 0);
    return fr_fail(FR_INPUT, "%s: not valid JSON: line %d, column %d: duplicate object key %.*s", where, error->line,
                   error->column, FR_SHOW(key));
}

/* Replaces Infinity and NaN outside of strings by a 0 and blanks. jansson's error then names the real fault of the text
 * instead of these words. */
static void blank_words(char *text, size_t size) {
    static const char *const words[] = {"Infinity", "NaN"};
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        for (size_t w = 0; !in_string && w < 2; w++) {
            size_t length = strlen(words[w]);
            if (size - i < length || memcmp(text + i, words[w], length) != 0) continue;
            memset(text + i, ' ', length);
            text[i] = '0';
        }
    }
}

/* Loads the text with jansson's own reader. If `flags` has FR_JSON_PYTHON_NUMBERS, the call only finds the text's
 * error, and returns NULL. */
static json_t *load(const char *text, size_t size, size_t flags, json_error_t *error) {
    if (flags & JSON_ALLOW_NUL) return fr_json_load_wide(text, size, flags, error);
    if (!(flags & FR_JSON_PYTHON_NUMBERS)) return json_loadb(text, size, flags, error);
    char *copy = malloc(size + 1);
    *error = (json_error_t){.line = -1};
    if (!copy) return NULL;
    memcpy(copy, text, size);
    blank_words(copy, size);
    json_t *root = json_loadb(copy, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, error);
    json_decref(root);
    free(copy);
    return NULL;
}

/* Returns true if an error is a fault of the text. Returns false if memory ran out, because jansson may then give a
 * wrong reason. The two errors come from parsing the text twice: a fault of the text gives the same error at the same
 * position both times. */
static bool had_memory(const json_error_t *first, const json_error_t *second) {
    return first->line > 0 && first->position == second->position && strcmp(first->text, second->text) == 0;
}

static fr_status parse(const char *text, size_t size, const char *where, size_t flags, json_t **root) {
    *root = NULL;
    FR_TRY(check_limits(text, size, where));
    json_error_t error, again;
    bool lost;
    *root = fr_json_read_text(text, size, flags, &lost);
    if (*root) return FR_OK;
    if (lost) return fr_fail_memory(where, size);
    *root = load(text, size, flags, &error);
    if (*root) return FR_OK;
    *root = load(text, size, flags, &again);
    if (*root) return FR_OK;
    return had_memory(&error, &again) ? fail_parse(text, size, where, &error) : fr_fail_memory(where, size);
}

static int add_piece(const char *bytes, size_t size, void *buffer) {
    fr_text_append(buffer, bytes, size);
    return ((fr_text_buffer *)buffer)->status == FR_OK ? 0 : -1;
}

static bool has_wide(const json_t *value) {
    size_t i, length;
    const char *key;
    json_t *item;
    if (json_is_string(value)) return fr_json_wide_digits(value, &length) != NULL;
    json_array_foreach (value, i, item)
        if (has_wide(item)) return true;
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        if (has_wide(item)) return true;
    return false;
}

/* Writes a value that may have wide integers, without blanks. Returns false if memory ran out. */
static bool put_wide(fr_text_buffer *all, const json_t *value, size_t flags) {
    size_t i, length;
    const char *key, *comma = "", *digits = fr_json_wide_digits(value, &length);
    json_t *item;
    bool good = true;
    if (digits) {
        fr_text_append(all, digits, length);
        return all->status == FR_OK;
    }
    if (!has_wide(value)) return json_dump_callback(value, add_piece, all, flags) == 0;
    fr_text_append_string(all, json_is_array(value) ? "[" : "{");
    json_array_foreach (value, i, item) {
        fr_text_append_string(all, i ? "," : "");
        good = good && put_wide(all, item, flags);
    }
    json_object_foreach ((json_t *)(uintptr_t)value, key, item) {
        json_t *name = json_string(key);
        fr_text_append_string(all, comma);
        good = good && name && json_dump_callback(name, add_piece, all, flags) == 0;
        fr_text_append_string(all, ":");
        good = good && put_wide(all, item, flags);
        json_decref(name);
        comma = ",";
    }
    fr_text_append_string(all, json_is_array(value) ? "]" : "}");
    return good && all->status == FR_OK;
}

/* This does not use json_dumps, because if its buffer cannot grow, it returns a text with bytes missing (jansson
 * 2.14). */
fr_status fr_json_dump(const json_t *value, size_t flags, const char *what, char **text, size_t *length) {
    fr_text_buffer all = {0};
    bool whole = value && (has_wide(value) ? put_wide(&all, value, JSON_COMPACT | JSON_ENCODE_ANY)
                                           : json_dump_callback(value, add_piece, &all, flags) == 0);
    fr_status status = whole ? FR_OK : fr_fail_memory(what, 0);
    if (status == FR_OK) status = fr_text_take(&all, what, text, length);
    fr_text_free(&all);
    return status;
}

fr_status fr_json_parse(const char *text, size_t size, const char *where, json_t **root) {
    return parse(text, size, where, JSON_REJECT_DUPLICATES, root);
}

fr_status fr_json_parse_texts(const char *text, size_t size, const char *where, json_t **root) {
    return parse(text, size, where, JSON_ALLOW_NUL, root);
}

fr_status fr_json_read(const char *path, size_t limit, json_t **root) {
    *root = NULL;
    char *text;
    size_t size;
    FR_TRY(fr_read_text(path, limit, &text, &size));
    fr_status status = parse(text, size, path, JSON_REJECT_DUPLICATES | FR_JSON_PYTHON_NUMBERS, root);
    free(text);
    return status;
}

/* Gives a member; NULL if the member is missing or null, because the two mean the same in configuration files. */
static json_t *member(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static fr_status fail_missing(const char *where, const char *key) {
    return fr_fail(FR_INPUT, "%s: \"%s\" is missing", where, key);
}

/* Reports that a member has the wrong type, and which type it should have. If the value is a number that is not
 * finite, the line quotes it, so that a user can find it in the file. */
static fr_status fail_type(const json_t *json, const char *where, const char *key, const char *type) {
    const char *word = fr_json_not_finite(json);
    return fr_fail(FR_INPUT, "%s: \"%s\" is %s%s%s", where, key, word ? word : "", word ? ", " : "", type);
}

/* Gives json's value as an int64. Returns false if the value is not an integer or does not fit. */
static bool whole(const json_t *json, int64_t *value) {
    if (json_is_integer(json)) {
        *value = json_integer_value(json);
        return true;
    }
    double real = json_real_value(json); /* 0 if it is not a real */
    if (!json_is_real(json) || !(real >= -0x1p63 && real < 0x1p63) || real != floor(real)) return false;
    *value = (int64_t)real;
    return true;
}

fr_status fr_json_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                      const char *where, int64_t *value) {
    *value = fallback;
    const json_t *json = member(object, key);
    if (!json) return fallback == FR_JSON_REQUIRED ? fail_missing(where, key) : FR_OK;
    if (!whole(json, value)) return fail_type(json, where, key, "not a whole number");
    if (*value < low || *value > high)
        return fr_fail(FR_INPUT, "%s: \"%s\" is %lld, not in %lld to %lld", where, key, (long long)*value,
                       (long long)low, (long long)high);
    return FR_OK;
}

fr_status fr_json_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                       const char *where, size_t *value) {
    int64_t number;
    FR_TRY(fr_json_int(object, key, low, high, fallback, where, &number));
    *value = (size_t)number;
    return FR_OK;
}

fr_status fr_json_real(const json_t *object, const char *key, double low, double high, double fallback,
                       const char *where, double *value) {
    *value = fallback;
    const json_t *json = member(object, key);
    if (!json) return isnan(fallback) ? fail_missing(where, key) : FR_OK;
    const char *type = fr_json_not_finite(json) ? "not a finite number" : "not a number";
    if (!json_is_number(json)) return fail_type(json, where, key, type);
    *value = json_number_value(json);
    if (*value < low || *value > high)
        return fr_fail(FR_INPUT, "%s: \"%s\" is %g, not in %g to %g", where, key, *value, low, high);
    return FR_OK;
}

const char *fr_json_spelling(const json_t *object, const char *first, const char *second) {
    return json_object_get(object, first) ? first : second;
}

fr_status fr_json_bool(const json_t *object, const char *key, bool fallback, const char *where, bool *value) {
    *value = fallback;
    const json_t *json = member(object, key);
    if (!json) return FR_OK;
    if (!json_is_boolean(json)) return fail_type(json, where, key, "neither true nor false");
    *value = json_is_true(json);
    return FR_OK;
}

fr_status fr_json_text(const json_t *object, const char *key, const char *where, const char **value) {
    *value = NULL;
    const json_t *json = member(object, key);
    if (!json) return FR_OK;
    if (!fr_json_is_text(json)) return fail_type(json, where, key, "not a string");
    *value = json_string_value(json);
    return FR_OK;
}

fr_status fr_json_object(const json_t *object, const char *key, const char *where, json_t **value) {
    *value = member(object, key);
    if (*value && !json_is_object(*value)) {
        *value = NULL;
        return fr_fail(FR_INPUT, "%s: \"%s\" is not an object", where, key);
    }
    return FR_OK;
}

static fr_status add_id(const json_t *json, const char *key, int64_t high, const char *where, fr_notes *notes,
                        int32_t *ids, size_t capacity, size_t *count) {
    int64_t id;
    if (!whole(json, &id)) return fr_fail(FR_INPUT, "%s: \"%s\" holds something that is no id", where, key);
    if (id < 0 || id > high) {
        if (notes)
            fr_notes_add(notes, "%s: \"%s\" holds %lld, which no token has: it is left out", where, key, (long long)id);
        return FR_OK;
    }
    for (size_t i = 0; i < *count; i++)
        if (ids[i] == id) return FR_OK;
    if (*count == capacity) return fr_fail(FR_INPUT, "%s: \"%s\" makes more than %zu ids", where, key, capacity);
    ids[(*count)++] = (int32_t)id;
    return FR_OK;
}

fr_status fr_json_ids(const json_t *object, const char *key, int64_t high, const char *where, fr_notes *notes,
                      int32_t *ids, size_t capacity, size_t *count) {
    json_t *json = member(object, key);
    if (!json) return FR_OK;
    if (!json_is_array(json)) return add_id(json, key, high, where, notes, ids, capacity, count);
    size_t i;
    json_t *item;
    json_array_foreach (json, i, item) FR_TRY(add_id(item, key, high, where, notes, ids, capacity, count));
    return FR_OK;
}

fr_status fr_json_id_list(const json_t *object, const char *key, int64_t high, const char *where, int32_t *ids,
                          size_t capacity, size_t *count) {
    json_t *json = member(object, key);
    *count = 0;
    if (!json) return FR_OK;
    if (!json_is_array(json)) return fr_fail(FR_INPUT, "%s: \"%s\" is not an array of ids", where, key);
    if (json_array_size(json) > capacity)
        return fr_fail(FR_INPUT, "%s: \"%s\" has %zu ids, and at most %zu are read", where, key, json_array_size(json),
                       capacity);
    for (size_t i = 0; i < json_array_size(json); i++) {
        int64_t id;
        if (!whole(json_array_get(json, i), &id))
            return fr_fail(FR_INPUT, "%s: \"%s\" holds something that is no id", where, key);
        if (id >= 0 && id <= high) ids[(*count)++] = (int32_t)id;
    }
    return FR_OK;
}
