/* Types by a JSON schema, and texts as values of them: see reply_value.h. */
#include "src/chat/reply_value.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/chat/json_scan.h"

#define MAX_SCHEMAS 8 /* within each other, of anyOf and its like */

/* ---------------------------------------------------------------------------------------------------------- schemas */

static const json_t *function_of(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    return function ? function : tool;
}

const json_t *fr_tool_find(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = function_of(json_array_get(tools, i));
        const char *own = json_string_value(json_object_get(tool, "name"));
        if (own && strcmp(own, name) == 0) return tool;
    }
    return NULL;
}

static fr_value_types named_type(const char *name) {
    static const struct {
        const char *name;
        fr_value_types type;
    } types[] = {{"string", FR_VALUE_STRING},   {"integer", FR_VALUE_NUMBER}, {"number", FR_VALUE_NUMBER},
                 {"boolean", FR_VALUE_BOOLEAN}, {"null", FR_VALUE_NULL},      {"object", FR_VALUE_OBJECT},
                 {"array", FR_VALUE_ARRAY}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].name, name) == 0) return types[i].type;
    return 0;
}

static fr_value_types type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_STRING: return FR_VALUE_STRING;
    case JSON_INTEGER:
    case JSON_REAL: return FR_VALUE_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return FR_VALUE_BOOLEAN;
    case JSON_NULL: return FR_VALUE_NULL;
    case JSON_OBJECT: return FR_VALUE_OBJECT;
    default: return FR_VALUE_ARRAY;
    }
}

static fr_value_types schema_types(const json_t *schema, size_t depth);

static fr_value_types types_of_any(const json_t *schemas, size_t depth) {
    fr_value_types types = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++) {
        fr_value_types one = schema_types(json_array_get(schemas, i), depth);
        if (!one) return 0; /* anything */
        types |= one;
    }
    return types;
}

static fr_value_types schema_types(const json_t *schema, size_t depth) {
    if (depth == MAX_SCHEMAS) return 0;
    const json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum");
    fr_value_types types = 0;
    if (json_is_string(type)) types = named_type(json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));
        types |= name ? named_type(name) : 0;
    }
    if (!types)
        for (size_t i = 0; i < json_array_size(values); i++) types |= type_of(json_array_get(values, i));
    if (!types) types = types_of_any(json_object_get(schema, "anyOf"), depth + 1);
    if (!types) types = types_of_any(json_object_get(schema, "oneOf"), depth + 1);
    if (types && json_is_true(json_object_get(schema, "nullable"))) types |= FR_VALUE_NULL;
    return types;
}

fr_value_types fr_tool_parameter_types(const json_t *tool, const char *parameter) {
    const json_t *properties = json_object_get(json_object_get(tool, "parameters"), "properties");
    return schema_types(json_object_get(properties, parameter), 0);
}

/* ----------------------------------------------------------------------------------------------------------- values */

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

static bool is_json(const char *text, size_t length) {
    fr_json_scan scan = {0};
    for (size_t i = 0; i < length; i++)
        if (fr_json_scan_byte(&scan, text[i]) == FR_SCAN_BAD) return false;
    return fr_json_scan_complete(&scan);
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
        fr_text_append(out, inner, size);
    } else {
        fr_text_append_string(out, "\"");
        fr_value_put_escaped(out, text, length);
        fr_text_append_string(out, "\"");
    }
}
