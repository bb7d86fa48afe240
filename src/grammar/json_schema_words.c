/* A schema's keywords: see json_schema_words.h. JSON Schema, drafts 4 to 2020-12. */
#include "src/grammar/json_schema_words.h"

#include <string.h>

#include "base/text_buffer.h"

static bool one_of(const char *key, const char *const *words) {
    for (; *words; words++)
        if (strcmp(key, *words) == 0) return true;
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
                                    NULL};
static const char *const UNBUILT[] = {"not",
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
                                      "$dynamicRef",
                                      "$recursiveRef",
                                      NULL};

bool fr_schema_describes(const char *key) {
    return !one_of(key, BUILT) && !one_of(key, UNBUILT);
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
        if (*c == '~' || *c == '/')
            fr_text_append_string(out, *c == '~' ? "~0" : "~1");
        else
            fr_text_append(out, c, 1);
    }
}

fr_status fr_schema_fail(const fr_schema_path *path, fr_status status, const char *what) {
    fr_text_buffer place = {0};
    write_path(path, &place);
    const char *text = place.bytes && place.status == FR_OK ? place.bytes : "#";
    fr_fail(status, "schema, at %s: %s", text, what);
    fr_text_free(&place);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- keywords */

/* What says nothing: uniqueItems false, minProperties 0, a list that can't have two items. */
static bool says_nothing(const json_t *schema, const char *key, const json_t *value) {
    if (strcmp(key, "uniqueItems") == 0) {
        const json_t *most = json_object_get(schema, "maxItems");
        return json_is_false(value) || (json_is_integer(most) && json_integer_value(most) <= 1);
    }
    if (strcmp(key, "minProperties") == 0) {
        size_t required = json_array_size(json_object_get(schema, "required"));
        return json_is_integer(value) && json_integer_value(value) <= (json_int_t)required;
    }
    if (strcmp(key, "multipleOf") == 0) {
        const json_t *type = json_object_get(schema, "type");
        return json_is_integer(value) && json_integer_value(value) == 1 && json_is_string(type) &&
               strcmp(json_string_value(type), "integer") == 0;
    }
    return (strcmp(key, "unevaluatedProperties") == 0 || strcmp(key, "unevaluatedItems") == 0) && json_is_true(value);
}

fr_status fr_schema_check_words(const json_t *schema, const fr_schema_path *path) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value) {
        if (!one_of(key, UNBUILT) || says_nothing(schema, key, value)) continue;
        return fr_schema_fail(&(fr_schema_path){path, key, 0}, FR_UNBUILT, "not built");
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ merge */

static bool in_array(const json_t *array, const json_t *value) {
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item) if (json_equal(item, value)) return true;
    return false;
}

/* A word or a list of words as a list; NULL: no memory. */
static json_t *as_list(const json_t *value) {
    return json_is_array(value) ? json_copy((json_t *)value) : json_pack("[O]", value);
}

/* The types that both allow: integers are numbers. */
static json_t *common_types(const json_t *one, const json_t *other) {
    json_t *a = as_list(one), *b = as_list(other), *both = json_array(), *item;
    json_t *number = json_string("number"), *integer = json_string("integer");
    size_t i;
    json_array_foreach(a, i, item) {
        bool is_integer = json_equal(item, integer), is_number = json_equal(item, number);
        if (in_array(b, item) || (is_integer && in_array(b, number))) json_array_append(both, item);
        if (is_number && in_array(b, integer) && !in_array(b, number)) json_array_append(both, integer);
    }
    json_decref(a);
    json_decref(b);
    json_decref(number);
    json_decref(integer);
    return both;
}

static json_t *common_items(const json_t *one, const json_t *other) {
    json_t *both = json_array(), *item;
    size_t i;
    json_array_foreach(one, i, item) if (in_array(other, item)) json_array_append(both, item);
    return both;
}

static json_t *all_items(const json_t *one, const json_t *other) {
    json_t *all = json_copy((json_t *)one), *item;
    size_t i;
    json_array_foreach(other, i, item) if (!in_array(all, item)) json_array_append(all, item);
    return all;
}

/* Members of both; where both have one, a schema of both. */
static json_t *all_members(const json_t *one, const json_t *other) {
    json_t *all = json_copy((json_t *)one), *value;
    const char *key;
    json_object_foreach((json_t *)other, key, value) {
        json_t *mine = json_object_get(one, key);
        if (!mine || json_equal(mine, value))
            json_object_set(all, key, value);
        else
            json_object_set_new(all, key, json_pack("{s:[OO]}", "allOf", mine, value));
    }
    return all;
}

/* The larger of two numbers, or the smaller. */
static json_t *choose(const json_t *one, const json_t *other, bool larger) {
    bool first = (json_number_value(one) > json_number_value(other)) == larger;
    return json_incref((json_t *)(first ? one : other));
}

/* A keyword that both have and that is not the same; NULL: it can't be said at once. */
static json_t *merge_values(const char *key, const json_t *one, const json_t *other) {
    static const char *const least[] = {"minimum", "minItems", "minLength", NULL};
    static const char *const most[] = {"maximum", "maxItems", "maxLength", NULL};
    if (strcmp(key, "type") == 0) return common_types(one, other);
    if (strcmp(key, "enum") == 0 && json_is_array(one) && json_is_array(other)) return common_items(one, other);
    if (strcmp(key, "required") == 0 && json_is_array(one) && json_is_array(other)) return all_items(one, other);
    if (strcmp(key, "properties") == 0 && json_is_object(one) && json_is_object(other)) return all_members(one, other);
    bool numbers = json_is_number(one) && json_is_number(other);
    if (numbers && one_of(key, least)) return choose(one, other, true);
    if (numbers && one_of(key, most)) return choose(one, other, false);
    if (strcmp(key, "allOf") == 0 && json_is_array(one) && json_is_array(other)) return all_items(one, other);
    return NULL;
}

/* Keys that one forbids may not be properties of the other. */
static bool closed_to(const json_t *one, const json_t *other) {
    const char *key;
    json_t *value;
    if (!json_object_get(one, "additionalProperties") || json_is_true(json_object_get(one, "additionalProperties")))
        return false;
    json_object_foreach(json_object_get(other, "properties"), key,
                        value) if (!json_object_get(json_object_get(one, "properties"), key)) return true;
    return false;
}

fr_status fr_schema_merge(const json_t *one, const json_t *other, const fr_schema_path *path, json_t **merged) {
    const char *key;
    json_t *value;
    *merged = NULL;
    if (json_is_true(one) || json_is_false(other)) *merged = json_incref((json_t *)other);
    if (json_is_true(other) || json_is_false(one)) *merged = json_incref((json_t *)one);
    if (*merged) return FR_OK;
    if (!json_is_object(one) || !json_is_object(other))
        return fr_schema_fail(path, FR_INPUT, "a schema is an object or a bool");
    if (closed_to(one, other) || closed_to(other, one))
        return fr_schema_fail(path, FR_UNBUILT,
                              "schemas together of which one forbids members of the other are not built");
    json_t *both = json_copy((json_t *)one);
    if (!both) return fr_fail_memory("a schema", sizeof *both);
    json_object_foreach((json_t *)other, key, value) {
        const json_t *mine = json_object_get(one, key);
        json_t *made = !mine || json_equal(mine, value) || fr_schema_describes(key) ? json_incref(value)
                                                                                    : merge_values(key, mine, value);
        if (made && json_object_set_new(both, key, made) == 0) continue;
        json_decref(both);
        return fr_schema_fail(&(fr_schema_path){path, key, 0}, FR_UNBUILT, "two of these at once are not built");
    }
    *merged = both;
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- disjoint */

/* The values that a schema leaves, as a list; NULL: no list. */
static json_t *constants(const json_t *schema) {
    const json_t *constant = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    if (constant) return json_pack("[O]", constant);
    return json_is_array(list) ? json_incref((json_t *)list) : NULL;
}

static bool constants_disjoint(const json_t *one, const json_t *other) {
    json_t *a = constants(one), *b = constants(other);
    json_t *both = a && b ? common_items(a, b) : NULL;
    bool apart = both && json_array_size(both) == 0;
    json_decref(a);
    json_decref(b);
    json_decref(both);
    return apart;
}

static bool types_disjoint(const json_t *one, const json_t *other) {
    const json_t *a = json_object_get(one, "type"), *b = json_object_get(other, "type");
    json_t *both = a && b ? common_types(a, b) : NULL;
    bool apart = both && json_array_size(both) == 0;
    json_decref(both);
    return apart;
}

/* Whether one has to have a member that the other can't have, or has with another constant. */
static bool members_disjoint(const json_t *one, const json_t *other) {
    size_t i;
    json_t *name;
    const json_t *mine = json_object_get(one, "properties"), *theirs = json_object_get(other, "properties");
    json_array_foreach(json_object_get(one, "required"), i, name) {
        const char *key = json_string_value(name);
        if (!key) continue;
        const json_t *their = json_object_get(theirs, key);
        if (their && (constants_disjoint(json_object_get(mine, key), their) ||
                      types_disjoint(json_object_get(mine, key), their)))
            return true;
        if (!their && json_is_false(json_object_get(other, "additionalProperties"))) return true;
    }
    return false;
}

bool fr_schemas_disjoint(const json_t *one, const json_t *other) {
    return types_disjoint(one, other) || constants_disjoint(one, other) || members_disjoint(one, other) ||
           members_disjoint(other, one);
}
