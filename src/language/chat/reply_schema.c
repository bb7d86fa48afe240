/* Finds the types that a JSON schema allows (reply_schema.h). */
#include "src/language/chat/reply_schema.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "formats/json_pointer.h"
#include "formats/json_wide.h"

#define DEPTH_MAX   32    /* limit on nested schemas */
#define SCHEMAS_MAX 10000 /* limit on the number of schemas and listed values that are read for one parameter */

enum { ANY = FR_VALUE_STRING | FR_VALUE_NUMBER | FR_VALUE_BOOLEAN | FR_VALUE_NULL | FR_VALUE_OBJECT | FR_VALUE_ARRAY };

/* A search through schemas for the types of a value, or for the types of one of the value's properties. */
typedef struct search {
    const json_t *root;   /* the schema within which references are resolved */
    const char *property; /* name of the property; NULL: the search is for the types of the value itself */
    size_t left;          /* number of schemas that may still be read */
} search;

/* A schema, linked to the schema that contains it, and so on up to the outermost one. */
typedef struct chain {
    const json_t *schema;
    const struct chain *outer;
} chain;

/* ------------------------------------------------------------------------------------------------------------ tools */

static const json_t *function_of(const json_t *tool) {
    const json_t *function = json_object_get(tool, "function");
    return function ? function : tool;
}

const char *fr_tool_name_of(const json_t *tool) {
    return json_string_value(json_object_get(function_of(tool), "name"));
}

const json_t *fr_tool_find(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *own = fr_tool_name_of(json_array_get(tools, i));
        if (own && strcmp(own, name) == 0) return function_of(json_array_get(tools, i));
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------ types */

static fr_value_types named_type(const char *name) {
    static const struct {
        const char *name;
        fr_value_types type;
    } types[] = {{"string", FR_VALUE_STRING},   {"integer", FR_VALUE_NUMBER}, {"number", FR_VALUE_NUMBER},
                 {"boolean", FR_VALUE_BOOLEAN}, {"null", FR_VALUE_NULL},      {"object", FR_VALUE_OBJECT},
                 {"array", FR_VALUE_ARRAY}};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcasecmp(types[i].name, name) == 0) return types[i].type;
    return 0;
}

static fr_value_types type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_STRING: return fr_json_is_text(value) ? FR_VALUE_STRING : FR_VALUE_NUMBER;
    case JSON_INTEGER:
    case JSON_REAL: return FR_VALUE_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return FR_VALUE_BOOLEAN;
    case JSON_NULL: return FR_VALUE_NULL;
    case JSON_OBJECT: return FR_VALUE_OBJECT;
    default: return FR_VALUE_ARRAY;
    }
}

/* Gives the types that both sets allow. If the sets have no type in common, they contradict each other, and the first
 * set is used. */
static fr_value_types meet(fr_value_types a, fr_value_types b) {
    if (!a) return b;
    return a & b ? a & b : a;
}

static fr_value_types types_named(const json_t *type) {
    fr_value_types types = named_type(json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++) types |= named_type(json_string_value(json_array_get(type, i)));
    return types;
}

static fr_value_types types_listed(search *s, const json_t *values) {
    fr_value_types types = 0;
    for (size_t i = 0; i < json_array_size(values); i++, s->left--) {
        if (s->left == 0) return ANY;
        types |= type_of(json_array_get(values, i));
    }
    return types;
}

static fr_value_types schema_types(search *s, const json_t *schema, const chain *outer);

/* Gives the types that a schema's own keywords allow, without looking at the schemas in it. 0: the keywords do not
 * limit the types. */
static fr_value_types own_types(search *s, const json_t *schema) {
    if (!s->property) {
        const json_t *constant = json_object_get(schema, "const");
        fr_value_types types = meet(types_named(json_object_get(schema, "type")), constant ? type_of(constant) : 0);
        return meet(types, types_listed(s, json_object_get(schema, "enum")));
    }
    const json_t *found = json_object_get(json_object_get(schema, "properties"), s->property);
    if (!found) found = json_object_get(schema, "additionalProperties");
    search inner = {.root = s->root, .left = s->left};
    fr_value_types types = found ? schema_types(&inner, found, NULL) : 0;
    s->left = inner.left;
    return types;
}

static fr_value_types types_of_all(search *s, const json_t *schemas, const chain *outer) {
    fr_value_types types = 0;
    for (size_t i = 0; i < json_array_size(schemas) && s->left > 0; i++)
        types = meet(types, schema_types(s, json_array_get(schemas, i), outer));
    return types;
}

static fr_value_types types_of_any(search *s, const json_t *schemas, const chain *outer) {
    fr_value_types types = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++) {
        if (s->left == 0) return ANY;
        types |= schema_types(s, json_array_get(schemas, i), outer);
    }
    return types;
}

/* Returns true if the schema contains itself through a reference, so that it need not be read again. *depth: the number
 * of schemas that contain this one. */
static bool is_around(const chain *outer, const json_t *schema, size_t *depth) {
    for (*depth = 0; outer; outer = outer->outer, ++*depth)
        if (outer->schema == schema) return true;
    return false;
}

static bool is_made_of_others(const json_t *schema) {
    return json_array_size(json_object_get(schema, "allOf")) + json_array_size(json_object_get(schema, "anyOf")) +
               json_array_size(json_object_get(schema, "oneOf")) >
           0;
}

static fr_value_types schema_types(search *s, const json_t *schema, const chain *outer) {
    const fr_value_types silent = s->property ? 0 : ANY;
    size_t depth;
    if (!json_is_object(schema)) return silent;
    if (is_around(outer, schema, &depth)) return 0;
    if (depth == DEPTH_MAX || s->left == 0) return ANY;
    s->left--;
    const chain here = {schema, outer};
    const json_t *referred = fr_json_refer(s->root, json_string_value(json_object_get(schema, "$ref")));
    fr_value_types types = own_types(s, schema);
    if (referred) types = meet(types, schema_types(s, referred, &here));
    types = meet(types, types_of_all(s, json_object_get(schema, "allOf"), &here));
    types = meet(types, types_of_any(s, json_object_get(schema, "anyOf"), &here));
    types = meet(types, types_of_any(s, json_object_get(schema, "oneOf"), &here));
    if (types && json_is_true(json_object_get(schema, "nullable"))) types |= FR_VALUE_NULL;
    return types || referred || is_made_of_others(schema) ? types : silent;
}

fr_value_types fr_tool_parameter_types(const json_t *tool, const char *parameter) {
    const json_t *parameters = json_object_get(tool, "parameters");
    search s = {.root = parameters, .property = parameter, .left = SCHEMAS_MAX};
    fr_value_types types = schema_types(&s, parameters, NULL);
    return types == ANY ? 0 : types;
}
