/* Sorts a schema's keywords (json_schema_words.h), by JSON Schema's drafts 4 to 2020-12. */
#include "src/language/grammar/json_schema_words.h"

#include <string.h>

#include "base/text_buffer.h"

#define SHOWN_MAX 256 /* limit on the bytes of a place in an error line */

bool fr_schema_is_word(const char *key, const char *const *words) {
    for (; *words; words++)
        if (strcmp(key, *words) == 0) return true;
    return false;
}

bool fr_schema_has_any(const json_t *schema, const char *const *words) {
    for (; *words; words++)
        if (json_object_get(schema, *words)) return true;
    return false;
}

static const char *const BUILT[] = {"type",
                                    "enum",
                                    "const",
                                    "properties",
                                    "required",
                                    "additionalProperties",
                                    "items",
                                    "prefixItems",
                                    "additionalItems",
                                    "minItems",
                                    "maxItems",
                                    "minLength",
                                    "maxLength",
                                    "pattern",
                                    "format",
                                    "minimum",
                                    "maximum",
                                    "exclusiveMinimum",
                                    "exclusiveMaximum",
                                    "anyOf",
                                    "oneOf",
                                    "allOf",
                                    "$ref",
                                    "not",
                                    "if",
                                    "then",
                                    "else",
                                    "dependentRequired",
                                    "dependentSchemas",
                                    "dependencies",
                                    "patternProperties",
                                    "propertyNames",
                                    "unevaluatedProperties",
                                    "unevaluatedItems",
                                    "contains",
                                    "minContains",
                                    "maxContains",
                                    "uniqueItems",
                                    "multipleOf",
                                    "minProperties",
                                    "maxProperties",
                                    FR_NONE_OF,
                                    FR_ALL_PATTERNS,
                                    FR_NO_PATTERNS,
                                    NULL};
static const char *const UNBUILT[] = {"$dynamicRef", "$recursiveRef", NULL};

bool fr_schema_is_unbuilt(const char *key) {
    return fr_schema_is_word(key, UNBUILT);
}

bool fr_schema_describes(const char *key) {
    return !fr_schema_is_word(key, BUILT) && !fr_schema_is_unbuilt(key);
}

/* ----------------------------------------------------------------------------------------------------------- places */

static void write_path(const fr_schema_path *path, fr_text_buffer *out) {
    char index[24];
    if (!path) {
        fr_text_append_string(out, "#");
        return;
    }
    write_path(path->above, out);
    fr_text_append_string(out, "/");
    if (!path->key) snprintf(index, sizeof index, "%zu", path->index);
    for (const char *c = path->key ? path->key : index; *c; c++) {
        if (*c == *FR_OWN) continue; /* the byte with which our own keywords begin */
        if (*c == '~' || *c == '/')
            fr_text_append_string(out, *c == '~' ? "~0" : "~1");
        else
            fr_text_append(out, c, 1);
    }
}

/* Fails with the place in the error line. A long place is cut, between two characters, so that the line stays
 * readable. */
fr_status fr_schema_fail(const fr_schema_path *path, fr_status status, const char *what) {
    fr_text_buffer place = {0};
    write_path(path, &place);
    const char *text = place.bytes && place.status == FR_OK ? place.bytes : "#";
    int length = (int)strnlen(text, SHOWN_MAX);
    bool cut = text[length];
    while (cut && length > 0 && (text[length] & 0xC0) == 0x80) length--;
    fr_fail(status, "schema, at %.*s%s: %s", length, text, cut ? "..." : "", what);
    fr_text_free(&place);
    return status;
}
