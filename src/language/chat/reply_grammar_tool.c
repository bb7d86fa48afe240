/* Prepares a tool's parameters, so that they can be read as a schema (reply_grammar.h). */
#include <string.h>

#include "base/error.h"
#include "formats/json_wide.h"
#include "src/language/chat/reply_grammar.h"

static fr_status check_values(const json_t *value, fr_grammar_rules *rules, const fr_schema_path *path);

static fr_status check_text(const json_t *value, const fr_schema_path *path) {
    if (strlen(json_string_value(value)) < json_string_length(value))
        return fr_schema_fail(path, FR_INPUT, "a text with a NUL can't be matched");
    return FR_OK;
}

static fr_status check_members(const json_t *object, fr_grammar_rules *rules, const fr_schema_path *path) {
    const char *key;
    json_t *member;
    json_object_foreach ((json_t *)object, key, member) {
        const fr_schema_path at = {path, key, 0};
        FR_TRY(check_values(member, rules, &at));
    }
    return FR_OK;
}

static fr_status check_items(const json_t *array, fr_grammar_rules *rules, const fr_schema_path *path) {
    size_t i;
    json_t *item;
    json_array_foreach (array, i, item) {
        const fr_schema_path at = {path, NULL, i};
        FR_TRY(check_values(item, rules, &at));
    }
    return FR_OK;
}

/* Refuses values that conversations may have but schemas may not: wide integers (json_wide.h), and texts with a NUL.
 * The JSON parser has already limited the depth. */
static fr_status check_values(const json_t *value, fr_grammar_rules *rules, const fr_schema_path *path) {
    if (!fr_grammar_spend(rules, 1)) return fr_schema_check(rules, path);
    if (fr_json_is_text(value)) return check_text(value, path);
    return json_is_object(value) ? check_members(value, rules, path) : check_items(value, rules, path);
}

/* Completes what tools leave out of a schema. If the schema has no reference, it gets the type object. If it lists
 * properties, no others are allowed; but if its subschemas may name more members, other members stay allowed. */
static void complete(json_t *schema, fr_grammar_rules *rules) {
    static const char *const others[] = {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", NULL};
    if (json_object_size(schema) == 0) fr_schema_set(rules, schema, "properties", json_object());
    if (!json_object_get(schema, "$ref")) fr_schema_set(rules, schema, "type", json_string("object"));
    if (json_object_get(schema, "properties") && !json_object_get(schema, "additionalProperties") &&
        !fr_schema_has_any(schema, others))
        fr_schema_set(rules, schema, "additionalProperties", json_false());
}

/* Returns true if a type is "object", is a list of types with "object" in it, or is missing. */
static bool names_objects(const json_t *type) {
    bool found = !type || (json_is_string(type) && strcmp(json_string_value(type), "object") == 0);
    for (size_t i = 0; i < json_array_size(type) && !found; i++) found = names_objects(json_array_get(type, i));
    return found;
}

fr_status fr_tool_schema(const json_t *tool, fr_grammar_rules *rules, json_t **schema) {
    const json_t *given = json_object_get(tool, "parameters"), *type = json_object_get(given, "type");
    const fr_schema_path place = {NULL, "type", 0};
    *schema = NULL;
    if (given && !json_is_object(given) && !json_is_null(given))
        return fr_schema_fail(NULL, FR_INPUT, "a tool's parameters are a schema of an object");
    if (!names_objects(type)) return fr_schema_fail(&place, FR_INPUT, "a tool's parameters are an object");
    FR_TRY(check_values(given, rules, NULL));
    json_t *made = fr_schema_copy(rules, given);
    complete(made, rules);
    fr_status status = fr_schema_check(rules, NULL);
    if (status == FR_OK)
        *schema = made;
    else
        json_decref(made);
    return status;
}
