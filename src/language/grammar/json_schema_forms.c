/* Checks the value of each keyword: its type and its range (json_schema_reader.h), by JSON Schema's drafts 4 to
 * 2020-12. */
#include <math.h>
#include <string.h>

#include "formats/json_wide.h"
#include "src/language/grammar/json_schema_reader.h"

static bool is_schema(const json_t *value) {
    return json_is_object(value) || json_is_boolean(value);
}

static bool is_schema_or_list(const json_t *value) {
    return is_schema(value) || json_is_array(value);
}

static bool is_list(const json_t *value) {
    return json_is_array(value);
}

static bool is_object(const json_t *value) {
    return json_is_object(value);
}

static bool is_text(const json_t *value) {
    return fr_json_is_text(value);
}

static bool is_bool(const json_t *value) {
    return json_is_boolean(value);
}

static bool is_step(const json_t *value) {
    return fr_schema_number(value) > 0;
}

/* Accepts a number or a boolean. In draft 4, exclusiveMinimum is a boolean, which says that the number of `minimum` is
 * itself excluded. */
static bool is_bound(const json_t *value) {
    return fr_schema_is_number(value) || json_is_boolean(value);
}

static bool is_count(const json_t *value) {
    long double count = fr_schema_number(value);
    return fr_schema_is_number(value) && count >= 0 && count == truncl(count);
}

static bool is_names(const json_t *value) {
    size_t i;
    json_t *name;
    json_array_foreach (value, i, name)
        if (!json_is_string(name)) return false;
    return json_is_array(value);
}

/* Checks only that each member is a list. The names in the lists are checked when the lists become `required`. */
static bool is_lists_by_name(const json_t *value) {
    const char *key;
    json_t *names;
    json_object_foreach ((json_t *)value, key, names)
        if (!json_is_array(names)) return false;
    return json_is_object(value);
}

static bool is_type(const json_t *value) {
    static const char *const types[] = {"object", "array", "string", "number", "null", "integer", "boolean", NULL};
    size_t i;
    json_t *type;
    if (json_is_string(value)) return fr_schema_is_word(json_string_value(value), types);
    json_array_foreach (value, i, type)
        if (!json_is_string(type) || !is_type(type)) return false;
    return json_is_array(value);
}

#define A_SCHEMA "a schema is an object or a bool"

static const struct form {
    bool (*is)(const json_t *value);
    const char *otherwise, *words[12];
} FORMS[] = {
    {is_type, "this is not a type of JSON", {"type"}},
    {is_text, "not a string", {"$ref", "pattern", "format"}},
    {is_count,
     "not a count",
     {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minContains",
      "maxContains"}},
    {fr_schema_is_number, "not a number", {"minimum", "maximum"}},
    {is_bound, "not a number", {"exclusiveMinimum", "exclusiveMaximum"}},
    {is_step, "not a number above 0", {"multipleOf"}},
    {is_bool, "not a bool", {"uniqueItems"}},
    {is_list, "not a list", {"enum", "allOf", "anyOf", "oneOf", "prefixItems"}},
    {is_names, "not a list of names", {"required"}},
    {is_lists_by_name, "not an object of lists", {"dependentRequired"}},
    {is_object, "not an object", {"properties", "patternProperties", "dependentSchemas", "dependencies"}},
    {is_schema_or_list, A_SCHEMA, {"items"}},
    {is_schema,
     A_SCHEMA,
     {"additionalProperties", "propertyNames", "additionalItems", "contains", "not", "if", "then", "else",
      "unevaluatedProperties", "unevaluatedItems"}},
};

static const struct form *form_of(const char *key) {
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (fr_schema_is_word(key, FORMS[i].words)) return &FORMS[i];
    return NULL;
}

bool fr_schema_is_formed(const char *key, const json_t *value) {
    const struct form *form = form_of(key);
    return !form || form->is(value);
}

fr_status fr_schema_check_words(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path) {
    const char *key;
    json_t *value;
    if (!is_schema(schema)) return fr_schema_fail(path, FR_INPUT, A_SCHEMA);
    json_object_foreach ((json_t *)schema, key, value) {
        const fr_schema_path place = {path, key, 0};
        fr_grammar_spend(r->parts->rules, json_array_size(value) / 16);
        if (fr_schema_is_unbuilt(key)) return fr_schema_fail(&place, FR_UNBUILT, "not built");
        if (!fr_schema_is_formed(key, value)) return fr_schema_fail(&place, FR_INPUT, form_of(key)->otherwise);
    }
    return FR_OK;
}
