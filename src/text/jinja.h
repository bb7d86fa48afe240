/* JSON values as Jinja sees them, for the files that are templates written out in C. */
#ifndef FR_SRC_JINJA_H
#define FR_SRC_JINJA_H

#include <jansson.h>
#include <string.h>

#include "src/text/text_buffer.h"

static inline const json_t *member(const json_t *object, const char *key) {
    return json_object_get(object, key);
}

static inline bool is_true(const json_t *value) {
    if (!value) return false;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return json_object_size(value) > 0;
    case JSON_ARRAY: return json_array_size(value) > 0;
    case JSON_STRING: return json_string_length(value) > 0;
    case JSON_INTEGER: return json_integer_value(value) != 0;
    case JSON_REAL: return json_real_value(value) != 0;
    default: return json_is_true(value);
    }
}

static inline bool is_text(const json_t *value, const char *text) {
    size_t length = strlen(text);
    return json_is_string(value) && json_string_length(value) == length &&
           memcmp(json_string_value(value), text, length) == 0;
}

static inline void put(fr_text_buffer *out, const char *text) {
    fr_text_append_string(out, text);
}

#endif
