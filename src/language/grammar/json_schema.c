/* Reads JSON schemas (readers.h). The grammar allows only values of the schema, but not all of them. Members come in
 * the order of `properties`, numbers have few digits, and a keyword that concerns one type implies that type. A keyword
 * that is not built is refused, and the error line names its place. */
#include <stdlib.h>

#include "formats/json_read.h"
#include "formats/json_wide.h"
#include "src/language/grammar/json_schema_reader.h"

#define DEPTH_MAX   64    /* limit on nested schemas */
#define SCHEMAS_MAX 20000 /* limit on all schemas that are read */
#define LOOKS_MAX   8     /* limit on the references that are followed one after the other */
#define TYPES_MAX   7     /* number of JSON Schema's types, so a schema can't have more */
#define VALUES_MAX  4000  /* limit on listed values; each of them may take one of the places of an automaton's state */

struct fr_schema_reference {
    const json_t *schema;
    uint32_t rule;
    bool nothing; /* no value matches the schema */
};

typedef fr_schema_reader reader;

fr_expression fr_schema_then(reader *r, fr_expression first, fr_expression second) {
    return fr_expression_then(r->parts->rules, first, second);
}

void fr_schema_or(reader *r, fr_expression one, fr_expression *all, bool *some) {
    *all = *some ? fr_expression_or(r->parts->rules, *all, one) : one;
    *some = true;
}

static fr_schema_path below(const fr_schema_path *path, const char *key) {
    return (fr_schema_path){path, key, 0};
}

fr_status fr_schema_nothing(reader *r, const fr_schema_path *path) {
    r->nothing = true;
    return fr_schema_fail(path, FR_INPUT, "this schema allows no value, or none that fits in here");
}

fr_status fr_schema_read_some(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression,
                              bool *some) {
    size_t depth = r->depth;
    fr_status status = fr_schema_read(r, schema, path, expression);
    *some = status == FR_OK;
    if (status == FR_OK || !r->nothing) return status;
    r->nothing = false;
    r->depth = depth;
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- counts */

/* Reads a count. If the schema lacks the keyword, gives `otherwise`. If the count is so high that no text can reach it,
 * gives `beyond`. */
static uint32_t read_count(const json_t *schema, const char *key, uint32_t otherwise, uint32_t beyond) {
    const json_t *number = json_object_get(schema, key);
    if (!number) return otherwise;
    return fr_schema_number(number) > FR_REPEATS_MAX ? beyond : (uint32_t)fr_schema_number(number);
}

fr_status fr_schema_read_counts(reader *r, const json_t *schema, const char *least_key, const char *most_key,
                                const fr_schema_path *path, uint32_t *least, uint32_t *most) {
    *least = read_count(schema, least_key, 0, FR_REPEATS_MAX);
    *most = FR_GRAMMAR_UNBOUND;
    if (most_key) *most = read_count(schema, most_key, FR_GRAMMAR_UNBOUND, FR_GRAMMAR_UNBOUND);
    return *least <= *most ? FR_OK : fr_schema_nothing(r, path);
}

/* ------------------------------------------------------------------------------------------------- types, constants */

static const struct type {
    const char *name, *words[13]; /* words: the keywords that imply this type if the schema names no type */
} TYPES[] = {
    {"object",
     {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
      "maxProperties", "unevaluatedProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format", FR_ALL_PATTERNS, FR_NO_PATTERNS}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
};

/* Returns true if some of the values that the schema excludes have this type. */
static bool excludes(const json_t *schema, const char *type) {
    size_t i;
    json_t *value;
    bool found = false;
    json_array_foreach (json_object_get(schema, FR_NONE_OF), i, value)
        found |= (strcmp(type, "string") == 0 && fr_json_is_text(value)) ||
                 (strcmp(type, "number") == 0 && fr_schema_is_number(value)) ||
                 (strcmp(type, "object") == 0 && json_is_object(value)) ||
                 (strcmp(type, "array") == 0 && json_is_array(value)) ||
                 (strcmp(type, "null") == 0 && json_is_null(value));
    return found;
}

/* Allows true and false (`boolean`) or null, except those that the schema excludes. */
static fr_status read_words(reader *r, const json_t *schema, bool boolean, const fr_schema_path *path,
                            fr_expression *expression) {
    static const char *const words[] = {"true", "false", "null"};
    const json_t *others = json_object_get(schema, FR_NONE_OF);
    bool some = false;
    for (size_t i = boolean ? 0 : 2; i < (boolean ? 2 : 3); i++) {
        json_t *value = i == 2 ? json_null() : json_boolean(i == 0);
        if (!fr_schema_lists(r->parts->rules, others, value))
            fr_schema_or(r, fr_expression_string(r->parts->rules, words[i]), expression, &some);
    }
    return some ? FR_OK : fr_schema_nothing(r, path);
}

static fr_status read_type_of(reader *r, const char *type, const json_t *schema, const fr_schema_path *path,
                              fr_expression *expression) {
    bool composed = strcmp(type, "object") == 0 || strcmp(type, "array") == 0;
    if (composed && excludes(schema, type))
        return fr_schema_fail(path, FR_UNBUILT, "excluding given objects or arrays is not built");
    if (strcmp(type, "object") == 0) return fr_schema_read_object(r, schema, path, expression);
    if (strcmp(type, "array") == 0) return fr_schema_read_array(r, schema, path, expression);
    if (strcmp(type, "string") == 0) return fr_schema_read_string(r, schema, path, expression);
    if (strcmp(type, "number") == 0) return fr_schema_read_number(r, schema, false, path, expression);
    if (strcmp(type, "integer") == 0) return fr_schema_read_number(r, schema, true, path, expression);
    return read_words(r, schema, strcmp(type, "boolean") == 0, path, expression);
}

static fr_status read_type(reader *r, const char *type, const json_t *schema, const fr_schema_path *path,
                           fr_expression *expression) {
    const char *told = strcmp(type, "integer") == 0 ? "number" : type;
    json_t *plain = NULL;
    if (json_object_get(schema, FR_NONE_OF) && strcmp(type, "boolean") != 0 && !excludes(schema, told)) {
        plain = fr_schema_without(r->parts->rules, schema, FR_NONE_OF);
        if (!plain) return fr_schema_check(r->parts->rules, path);
    }
    fr_status status = read_type_of(r, type, plain ? plain : schema, path, expression);
    json_decref(plain);
    return status;
}

static fr_status read_types(reader *r, const json_t *types, const json_t *schema, const fr_schema_path *path,
                            fr_expression *expression) {
    size_t i;
    json_t *type;
    bool some = false;
    if (json_array_size(types) > TYPES_MAX)
        return fr_schema_fail(path, FR_INPUT, "there are more types here than JSON has");
    json_array_foreach (types, i, type) {
        fr_expression one = 0;
        fr_status status = read_type(r, json_string_value(type), schema, path, &one);
        if (status != FR_OK && !r->nothing) return status;
        if (status == FR_OK) fr_schema_or(r, one, expression, &some);
        r->nothing = false;
    }
    return some ? FR_OK : fr_schema_nothing(r, path);
}

/* Allows the given values. Takes over the list. */
static fr_status write_constants(reader *r, json_t *values, const fr_schema_path *path, fr_expression *expression) {
    size_t i;
    json_t *value;
    bool some = false, many = json_array_size(values) > VALUES_MAX;
    json_array_foreach (values, i, value)
        if (!many) fr_schema_or(r, fr_written_literal(r->parts, value), expression, &some);
    json_decref(values);
    if (many) return fr_schema_fail(path, FR_UNBUILT, "more than 4000 values are not built");
    return some ? FR_OK : fr_schema_nothing(r, path);
}

static const char *implied_type(const json_t *schema) {
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        for (const char *const *word = TYPES[i].words; *word; word++)
            if (json_object_get(schema, *word)) return TYPES[i].name;
    return NULL;
}

static fr_status read_any_but(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    json_t *types =
        fr_schema_pack(r->parts->rules, "[s,s,s,s,s,s]", "object", "array", "string", "number", "boolean", "null");
    fr_status status = fr_schema_check(r->parts->rules, path);
    if (status == FR_OK) status = read_types(r, types, schema, path, expression);
    json_decref(types);
    return status;
}

/* Reads a schema without choices and references. */
static fr_status read_plain(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *type = json_object_get(schema, "type");
    json_t *constants;
    FR_TRY(fr_schema_constants(r, schema, path, &constants));
    if (constants) return write_constants(r, constants, path, expression);
    if (json_is_array(type)) return read_types(r, type, schema, path, expression);
    const char *only = type ? json_string_value(type) : implied_type(schema);
    if (only) return read_type(r, only, schema, path, expression);
    if (json_object_get(schema, FR_NONE_OF)) return read_any_but(r, schema, path, expression);
    *expression = fr_written_any(r->parts);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------- references */

bool fr_schema_says_more(const json_t *schema, const char *than) {
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)schema, key, value)
        if (strcmp(key, than) != 0 && !fr_schema_describes(key)) return true;
    return false;
}

const json_t *fr_schema_look_through(reader *r, const json_t *schema, const fr_schema_path *path) {
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        const json_t *target, *ref = json_object_get(schema, "$ref");
        if (ref) fr_grammar_spend(r->parts->rules, json_object_size(schema));
        if (!json_is_string(ref) || fr_schema_says_more(schema, "$ref")) break;
        if (fr_schema_find(r, json_string_value(ref), path, &target) != FR_OK) break;
        schema = target;
    }
    return schema;
}

static fr_status add_reference(reader *r, const json_t *target, uint32_t *rule) {
    fr_schema_reference *more = realloc(r->references, (r->reference_count + 1) * sizeof *more);
    if (!more) return fr_fail_memory("a schema", (r->reference_count + 1) * sizeof *more);
    r->references = more;
    *rule = fr_grammar_rule(r->parts->rules);
    more[r->reference_count++] = (fr_schema_reference){target, *rule, false};
    return FR_OK;
}

/* Reads a reference. All references to one schema call the same rule, so a schema may refer to itself. */
static fr_status read_reference(reader *r, const json_t *target, const fr_schema_path *path,
                                fr_expression *expression) {
    fr_grammar_rules *rules = r->parts->rules;
    size_t number = 0;
    uint32_t rule = 0;
    fr_expression body;
    bool some;
    while (number < r->reference_count && r->references[number].schema != target) number++;
    if (number < r->reference_count) {
        *expression = fr_expression_rule(rules, r->references[number].rule);
        return r->references[number].nothing ? fr_schema_nothing(r, path) : FR_OK;
    }
    FR_TRY(add_reference(r, target, &rule));
    FR_TRY(fr_schema_read_some(r, target, path, &body, &some));
    fr_grammar_define(rules, rule, some ? body : fr_expression_characters(rules, NULL, 0, false));
    r->references[number].nothing = !some;
    *expression = fr_expression_rule(rules, rule);
    return some ? FR_OK : fr_schema_nothing(r, path);
}

/* ----------------------------------------------------------------------------------------------------- combinations */

/* Prepares a part of a schema, such as an entry of allOf, so that it can be merged with the rest. */
static fr_status read_part(reader *r, const json_t *part, const fr_schema_path *path, json_t **ready) {
    const json_t *said = fr_schema_look_through(r, part, path);
    FR_TRY(fr_schema_check_words(r, said, path));
    FR_TRY(fr_schema_rewrite(r, said, true, path, ready));
    if (!*ready) *ready = json_incref((json_t *)said);
    return FR_OK;
}

/* Merges a part into *rest, which is replaced by the merged schema. */
static fr_status merge_part(reader *r, json_t **rest, const json_t *part, const fr_schema_path *path) {
    json_t *ready = NULL, *merged = NULL;
    fr_status status = fr_schema_check(r->parts->rules, path);
    if (status == FR_OK) status = read_part(r, part, path, &ready);
    if (status == FR_OK) status = fr_schema_merge(r->parts->rules, *rest, ready, path, &merged);
    json_decref(ready);
    json_decref(*rest);
    *rest = merged;
    return status;
}

/* Merges a schema with the rest of the schema in which it is a part, and reads the result. Takes over `rest`. */
static fr_status read_merged(reader *r, json_t *rest, const json_t *with, const fr_schema_path *path,
                             fr_expression *expression) {
    fr_status status = merge_part(r, &rest, with, path);
    if (status == FR_OK) status = fr_schema_read(r, rest, path, expression);
    json_decref(rest);
    return status;
}

static fr_status read_ref(reader *r, const json_t *schema, const json_t *ref, const fr_schema_path *path,
                          fr_expression *expression) {
    const fr_schema_path place = below(path, "$ref");
    const json_t *target;
    FR_TRY(fr_schema_find(r, json_string_value(ref), &place, &target));
    if (!fr_schema_says_more(schema, "$ref")) return read_reference(r, target, &place, expression);
    return read_merged(r, fr_schema_without(r->parts->rules, schema, "$ref"), target, &place, expression);
}

static fr_status read_all_of(reader *r, const json_t *schema, const json_t *list, const fr_schema_path *path,
                             fr_expression *expression) {
    const fr_schema_path place = below(path, "allOf");
    size_t i;
    json_t *one, *merged = fr_schema_without(r->parts->rules, schema, "allOf");
    fr_status status = fr_schema_check(r->parts->rules, path);
    json_array_foreach (list, i, one) {
        const fr_schema_path at = {&place, NULL, i};
        if (status == FR_OK) status = merge_part(r, &merged, one, &at);
    }
    if (status == FR_OK) status = fr_schema_read(r, merged, path, expression);
    json_decref(merged);
    return status;
}

static fr_status read_choice(reader *r, const json_t *schema, const char *key, const json_t *list,
                             const fr_schema_path *path, fr_expression *expression) {
    const fr_schema_path place = below(path, key);
    bool some = false, more = fr_schema_says_more(schema, key);
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one) {
        const fr_schema_path at = {&place, NULL, i};
        fr_expression made;
        json_t *both = more ? fr_schema_without(r->parts->rules, schema, key) : json_incref(one);
        bool there = false;
        fr_status status = more ? merge_part(r, &both, one, &at) : FR_OK;
        if (status == FR_OK) status = fr_schema_read_some(r, both, &at, &made, &there);
        json_decref(both);
        FR_TRY(status);
        if (there) fr_schema_or(r, made, expression, &some);
    }
    return some ? FR_OK : fr_schema_nothing(r, path);
}

static fr_status read_one_of(reader *r, const json_t *schema, const json_t *list, const fr_schema_path *path,
                             fr_expression *expression) {
    const fr_schema_path place = below(path, "oneOf");
    json_t *schemas;
    FR_TRY(fr_schema_one_of(r, list, &place, &schemas));
    fr_status status = read_choice(r, schema, "oneOf", schemas, path, expression);
    json_decref(schemas);
    return status;
}

static fr_status read_words_of(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *ref = json_object_get(schema, "$ref"), *all = json_object_get(schema, "allOf");
    const json_t *any = json_object_get(schema, "anyOf"), *one = json_object_get(schema, "oneOf");
    if (all) return read_all_of(r, schema, all, path, expression);
    if (ref) return read_ref(r, schema, ref, path, expression);
    if (any) return read_choice(r, schema, "anyOf", any, path, expression);
    if (one) return read_one_of(r, schema, one, path, expression);
    return read_plain(r, schema, path, expression);
}

static fr_status read_object_schema(reader *r, const json_t *schema, const fr_schema_path *path,
                                    fr_expression *expression) {
    json_t *rewritten;
    FR_TRY(fr_schema_check_words(r, schema, path));
    FR_TRY(fr_schema_rewrite(r, schema, false, path, &rewritten));
    fr_status status = read_words_of(r, rewritten ? rewritten : schema, path, expression);
    json_decref(rewritten);
    return status;
}

/* Returns true if a part of the schema that could not be read may be ignored. That is so if `parts` is lenient, and the
 * part is not supported or not valid. */
static bool may_say_less(const reader *r, fr_status status) {
    bool failed = status == FR_UNBUILT || (status == FR_INPUT && !r->nothing);
    return failed && r->parts->lenient && r->parts->rules->status == FR_OK && r->schemas <= SCHEMAS_MAX;
}

/* Reads only the keywords that are always built and valid. If that fails, reads only the type. If that fails too,
 * allows any value. */
static fr_status read_leniently(reader *r, const json_t *schema, const fr_schema_path *path,
                                fr_expression *expression) {
    static const char *const kept[] = {"type",       "enum",      "const",
                                       "properties", "required",  "items",
                                       "minItems",   "maxItems",  "additionalProperties",
                                       "minLength",  "maxLength", "minimum",
                                       "maximum",    NULL};
    static const char *const type_alone[] = {"type", NULL}, *const nothing[] = {NULL};
    const char *const *const words[] = {kept, type_alone, nothing};
    fr_grammar_rules *rules = r->parts->rules;
    fr_status status = FR_UNBUILT;
    for (size_t i = r->depth > DEPTH_MAX; i < 3 && may_say_less(r, status); i++) {
        const char *key;
        json_t *value, *less = fr_schema_pack(rules, "{}");
        json_object_foreach ((json_t *)schema, key, value)
            if (fr_schema_is_word(key, words[i]) && fr_schema_is_formed(key, value))
                fr_schema_set(rules, less, key, json_incref(value));
        status = fr_schema_check(rules, path);
        if (status == FR_OK) status = read_plain(r, less, path, expression);
        json_decref(less);
    }
    return status;
}

fr_status fr_schema_read(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    fr_status status = fr_schema_check(r->parts->rules, path);
    size_t depth = r->depth;
    *expression = 0;
    if (json_is_true(schema)) *expression = fr_written_any(r->parts);
    if (json_is_true(schema)) return FR_OK;
    if (json_is_false(schema)) return fr_schema_nothing(r, path);
    if (++r->schemas > SCHEMAS_MAX) return fr_schema_fail(path, FR_INPUT, "the schema is too large");
    if (++r->depth > DEPTH_MAX && status == FR_OK)
        status = fr_schema_fail(path, FR_INPUT, "schemas are nested more than 64 deep");
    if (status == FR_OK) status = read_object_schema(r, schema, path, expression);
    if (may_say_less(r, status)) status = read_leniently(r, schema, path, expression);
    if (status == FR_OK) status = fr_schema_check(r->parts->rules, path);
    r->depth = depth;
    return status;
}

fr_status fr_json_schema_expression(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    fr_written_parts *parts, fr_expression *expression) {
    reader r = {.root = root, .parts = parts};
    fr_status status = fr_schema_read(&r, schema, path, expression);
    free(r.references);
    return status;
}

fr_status fr_json_schema_read(fr_text text, fr_grammar_rules *rules) {
    bool lost;
    json_t *root = fr_json_read_text(text.bytes, text.length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &lost);
    if (!root && !lost) {
        json_error_t error;
        root = fr_json_load_wide(text.bytes, text.length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
        lost = !root && json_error_code(&error) == json_error_out_of_memory;
    }
    if (!root) return lost ? fr_fail_memory("a schema", text.length) : fr_fail(FR_INPUT, "the schema is not JSON");
    fr_written_parts parts = fr_written_parts_of(rules);
    fr_expression expression;
    fr_status status = fr_json_schema_expression(root, root, NULL, &parts, &expression);
    if (status == FR_OK) {
        rules->root = fr_grammar_rule(rules);
        fr_grammar_define(rules, rules->root, expression);
        status = fr_grammar_rules_check(rules);
    }
    json_decref(root);
    return status;
}
