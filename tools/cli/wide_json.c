/* Reads and writes JSON whose integers may have any size (wide_json.h). */
#include "tools/cli/wide_json.h"

#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"

json_t *fr_json_load(const char *text, size_t length, json_error_t *error) {
    return fr_lab_json_load(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, error);
}

static bool is_wide(const json_t *value) {
    return json_string_length(value) > 0 && *json_string_value(value) == FR_LAB_WIDE;
}

/* Finds out which quotes and brackets are still open at the end of a text, and writes the characters that close
 * them. */
static size_t write_closers(const char *text, size_t length, char *closers, size_t most) {
    size_t count = 0;
    bool string = false;
    for (size_t i = 0; i < length; i++) {
        if (string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            string = !string;
        else if (!string && (text[i] == '{' || text[i] == '[') && count < most)
            closers[count++] = text[i];
        else if (!string && (text[i] == '}' || text[i] == ']') && count)
            count--;
    }
    for (size_t i = 0; i < count / 2; i++) {
        char other = closers[i];
        closers[i] = closers[count - 1 - i];
        closers[count - 1 - i] = other;
    }
    for (size_t i = 0; i < count; i++) closers[i] = closers[i] == '{' ? '}' : ']';
    if (string) memmove(closers + 1, closers, count++);
    if (string) closers[0] = '"';
    return count;
}

json_t *fr_json_load_cut(const char *text, size_t length) {
    /* LOOKS: at most this many bytes are dropped at the end of the text to make the rest an object. DEEP: at most this
     * many brackets may be open */
    enum { LOOKS = 256, DEEP = 64 };
    json_error_t error;
    char *copy = length ? malloc(length + DEEP + 1) : NULL;
    json_t *object = length ? fr_json_load(text, length, &error) : NULL;
    for (size_t looks = 0, end = length; copy && !object && end > 0 && looks < LOOKS; looks++, end--) {
        memcpy(copy, text, end);
        object = fr_json_load(copy, end + write_closers(text, end, copy + end, DEEP), &error);
    }
    free(copy);
    if (json_is_object(object)) return object;
    json_decref(object);
    return NULL;
}

bool fr_is_json_text(const json_t *value) {
    return json_is_string(value) && !is_wide(value);
}

json_t *fr_json_joined(const json_t *text, const json_t *more) {
    json_t *joined = json_pack("s%+%", json_string_value(text), json_string_length(text), json_string_value(more),
                               json_string_length(more));
    return joined ? joined : json_incref((json_t *)(uintptr_t)text);
}

bool fr_json_has_wide(const json_t *value) {
    if (is_wide(value)) return true;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (fr_json_has_wide(json_array_get(value, i))) return true;
    json_t *object = (json_t *)(uintptr_t)value; /* jansson has no iterators for const objects */
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
        if (fr_json_has_wide(json_object_iter_value(at))) return true;
    return false;
}

static bool write_key(const char *key, FILE *out) {
    json_t *name = json_string(key);
    bool written = name && json_dumpf(name, out, JSON_ENCODE_ANY) == 0;
    json_decref(name);
    fputc(':', out);
    return written;
}

static bool write_object(json_t *object, FILE *out) {
    bool written = true;
    fputc('{', out);
    for (void *at = json_object_iter(object), *next; at && written; at = next) {
        next = json_object_iter_next(object, at);
        written = write_key(json_object_iter_key(at), out) && fr_json_write(json_object_iter_value(at), out);
        if (next) fputc(',', out);
    }
    fputc('}', out);
    return written;
}

static bool write_array(const json_t *array, FILE *out) {
    bool written = true;
    fputc('[', out);
    for (size_t i = 0; i < json_array_size(array) && written; i++) {
        if (i > 0) fputc(',', out);
        written = fr_json_write(json_array_get(array, i), out);
    }
    fputc(']', out);
    return written;
}

/* Writes a number with the fewest digits that read back as the same number. A number without a point or an exponent
 * gets ".0", so that it is not read as an integer. */
static bool write_real(double value, FILE *out) {
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0") > 0;
}

bool fr_json_write(const json_t *value, FILE *out) {
    if (json_is_real(value)) return write_real(json_real_value(value), out);
    if (is_wide(value)) return fputs(json_string_value(value) + 1, out) >= 0;
    if (json_is_object(value)) return write_object((json_t *)(uintptr_t)value, out);
    if (json_is_array(value)) return write_array(value, out);
    return json_dumpf(value, out, JSON_ENCODE_ANY) == 0;
}
