/* Finds which of the values that a schema lists match the rest of the schema (json_schema_reader.h). */
#include <math.h>
#include <string.h>

#include "formats/json_wide.h"
#include "src/language/grammar/json_schema_reader.h"

#define DEPTH_MAX 32

static bool is_of_type(const json_t *value, const char *type) {
    if (strcmp(type, "object") == 0) return json_is_object(value);
    if (strcmp(type, "array") == 0) return json_is_array(value);
    if (strcmp(type, "string") == 0) return fr_json_is_text(value);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "null") == 0) return json_is_null(value);
    if (strcmp(type, "number") == 0) return fr_schema_is_number(value);
    return strcmp(type, "integer") == 0 && fr_schema_is_number(value) &&
           fr_schema_number(value) == floorl(fr_schema_number(value));
}

static bool is_of_types(const json_t *value, const json_t *types) {
    size_t i;
    json_t *type;
    if (json_is_string(types)) return is_of_type(value, json_string_value(types));
    json_array_foreach (types, i, type)
        if (json_is_string(type) && is_of_type(value, json_string_value(type))) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------- keywords of one type */

typedef struct question {
    fr_schema_reader *r;
    const json_t *schema, *value;
    const fr_schema_path *path; /* the keyword's place */
    size_t depth;
} question;

static fr_grammar_rules *rules_of(const question *q) {
    return q->r->parts->rules;
}

static bool holds_bound(const question *q, const char *key, const json_t *bound) {
    int compared = fr_schema_compare(q->value, bound);
    if (strcmp(key, "minimum") == 0)
        return json_is_true(json_object_get(q->schema, "exclusiveMinimum")) ? compared > 0 : compared >= 0;
    if (strcmp(key, "maximum") == 0)
        return json_is_true(json_object_get(q->schema, "exclusiveMaximum")) ? compared < 0 : compared <= 0;
    return strcmp(key, "exclusiveMinimum") == 0 ? compared > 0 : compared < 0;
}

static size_t characters(const json_t *text) {
    size_t count = 0;
    for (const char *c = json_string_value(text); *c; c++) count += (*c & 0xC0) != 0x80;
    return count;
}

static bool holds_count(const char *key, size_t count, double bound) {
    return key[1] == 'i' ? (double)count >= bound : (double)count <= bound; /* key is min... or max... */
}

static fr_status holds_pattern(const question *q, const json_t *pattern, bool *holds) {
    fr_language *language;
    FR_TRY(fr_schema_pattern(rules_of(q), json_string_value(pattern), json_string_length(pattern), false, q->path,
                             &language));
    *holds = fr_language_has(language, (fr_text){json_string_value(q->value), json_string_length(q->value)});
    fr_language_free(language);
    return FR_OK;
}

static fr_status holds_properties(const question *q, const json_t *properties, bool *holds) {
    const char *key;
    json_t *schema;
    json_object_foreach ((json_t *)properties, key, schema) {
        const fr_schema_path at = {q->path, key, 0};
        const json_t *member = json_object_get(q->value, key);
        if (*holds && member) FR_TRY(fr_schema_holds(q->r, schema, member, &at, q->depth + 1, holds));
    }
    return FR_OK;
}

static fr_status holds_items(const question *q, const json_t *items, bool *holds) {
    size_t i;
    json_t *item;
    json_array_foreach (q->value, i, item)
        if (*holds) FR_TRY(fr_schema_holds(q->r, items, item, q->path, q->depth + 1, holds));
    return FR_OK;
}

static bool holds_required(const question *q, const json_t *names) {
    size_t i;
    json_t *name;
    json_array_foreach (names, i, name)
        if (!json_object_get(q->value, json_string_value(name))) return false;
    return true;
}

/* Checks the value against a keyword that limits values of its type. */
static fr_status holds_word(const question *q, const char *key, const json_t *word, bool *holds) {
    static const char *const bounds[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", NULL};
    static const char *const lengths[] = {"minLength", "maxLength", NULL};
    static const char *const counts[] = {"minItems", "maxItems", NULL};
    static const char *const members[] = {"minProperties", "maxProperties", NULL};
    bool text = fr_json_is_text(q->value), list = json_is_array(q->value), object = json_is_object(q->value);
    double number = (double)fr_schema_number(word);
    if (fr_schema_is_word(key, bounds)) {
        if (fr_schema_is_number(q->value) && fr_schema_is_number(word)) *holds = holds_bound(q, key, word);
    } else if (fr_schema_is_word(key, lengths)) {
        if (text) *holds = holds_count(key, characters(q->value), number);
    } else if (fr_schema_is_word(key, counts)) {
        if (list) *holds = holds_count(key, json_array_size(q->value), number);
    } else if (fr_schema_is_word(key, members)) {
        if (object) *holds = holds_count(key, json_object_size(q->value), number);
    } else if (strcmp(key, "pattern") == 0) {
        if (text) return holds_pattern(q, word, holds);
    } else if (strcmp(key, "required") == 0) {
        if (object) *holds = holds_required(q, word);
    } else if (strcmp(key, "properties") == 0) {
        if (object) return holds_properties(q, word, holds);
    } else if (strcmp(key, "items") == 0 && !json_is_array(word) && !json_object_get(q->schema, "prefixItems")) {
        if (list) return holds_items(q, word, holds);
    } else {
        return fr_schema_fail(q->path, FR_UNBUILT, "not built beside constants");
    }
    return FR_OK;
}

/* Returns true if the keyword does not limit values of this type. The keyword `format` limits no constant, because it
 * is only an annotation. */
static bool is_silent(const char *key, const json_t *value) {
    static const char *const texts[] = {FR_ALL_PATTERNS, FR_NO_PATTERNS, NULL};
    static const char *const lists[] = {"uniqueItems", "contains",        "minContains",      "maxContains", "items",
                                        "prefixItems", "additionalItems", "unevaluatedItems", NULL};
    static const char *const objects[] = {
        "additionalProperties", "patternProperties", "propertyNames",         "dependentRequired",
        "dependentSchemas",     "dependencies",      "unevaluatedProperties", NULL};
    return strcmp(key, "format") == 0 || (!fr_json_is_text(value) && fr_schema_is_word(key, texts)) ||
           (!json_is_array(value) && fr_schema_is_word(key, lists)) ||
           (!json_is_object(value) && fr_schema_is_word(key, objects)) ||
           (!fr_schema_is_number(value) && strcmp(key, "multipleOf") == 0);
}

/* ---------------------------------------------------------------------------------------------------------- schemas */

/* Counts the schemas of a list that the value matches. */
static fr_status count_holding(const question *q, const json_t *list, size_t *count) {
    size_t i;
    json_t *schema;
    *count = 0;
    json_array_foreach (list, i, schema) {
        const fr_schema_path at = {q->path, NULL, i};
        bool holds;
        FR_TRY(fr_schema_holds(q->r, schema, q->value, &at, q->depth + 1, &holds));
        *count += holds;
    }
    return FR_OK;
}

static fr_status holds_choice(const question *q, const char *key, const json_t *list, bool *holds) {
    size_t count;
    FR_TRY(count_holding(q, list, &count));
    *holds = key[0] == 'o' ? count == 1 : key[1] == 'n' ? count > 0 : count == json_array_size(list);
    return FR_OK;
}

static fr_status holds_reference(const question *q, const json_t *ref, bool *holds) {
    const json_t *target;
    FR_TRY(fr_schema_find(q->r, json_string_value(ref), q->path, &target));
    return fr_schema_holds(q->r, target, q->value, q->path, q->depth + 1, holds);
}

static fr_status ask(const question *q, const char *key, const json_t *word, bool *holds) {
    static const char *const choices[] = {"anyOf", "oneOf", "allOf", NULL};
    if (fr_schema_describes(key) || is_silent(key, q->value)) return FR_OK;
    if (strcmp(key, "type") == 0)
        *holds = is_of_types(q->value, word);
    else if (strcmp(key, "enum") == 0)
        *holds = fr_schema_lists(rules_of(q), word, q->value);
    else if (strcmp(key, FR_NONE_OF) == 0)
        *holds = !fr_schema_lists(rules_of(q), word, q->value);
    else if (strcmp(key, "const") == 0)
        *holds = fr_schema_same(rules_of(q), word, q->value);
    else if (fr_schema_is_word(key, choices))
        return holds_choice(q, key, word, holds);
    else if (strcmp(key, "$ref") == 0)
        return holds_reference(q, word, holds);
    else if (strcmp(key, "not") == 0) {
        FR_TRY(fr_schema_holds(q->r, word, q->value, q->path, q->depth + 1, holds));
        *holds = !*holds;
    } else
        return holds_word(q, key, word, holds);
    return FR_OK;
}

fr_status fr_schema_holds(fr_schema_reader *r, const json_t *schema, const json_t *value, const fr_schema_path *path,
                          size_t depth, bool *holds) {
    const char *key;
    json_t *word;
    *holds = !json_is_false(schema);
    if (depth > DEPTH_MAX)
        return fr_schema_fail(path, FR_UNBUILT, "not built beside constants that are nested so deep");
    if (!fr_grammar_spend(r->parts->rules, 1)) return fr_schema_check(r->parts->rules, path);
    FR_TRY(fr_schema_check_words(r, schema, path));
    json_object_foreach ((json_t *)schema, key, word) {
        const fr_schema_path place = {path, key, 0};
        const question q = {r, schema, value, &place, depth};
        fr_grammar_spend(r->parts->rules, 1);
        if (*holds) FR_TRY(ask(&q, key, word, holds));
    }
    return FR_OK;
}

/* Adds those values of `list` that match the schema to `kept`. */
static fr_status keep_holding(fr_schema_reader *r, const json_t *schema, const json_t *list, const fr_schema_path *path,
                              json_t *kept) {
    size_t i;
    json_t *value;
    json_array_foreach (list, i, value) {
        bool holds;
        FR_TRY(fr_schema_holds(r, schema, value, path, 0, &holds));
        if (holds) fr_schema_add(r->parts->rules, kept, json_incref(value));
    }
    return fr_schema_check(r->parts->rules, path);
}

/* Gives the values that a schema lists and that match its other keywords. The keyword with the list need not be
 * checked, because all values in the list match it. */
fr_status fr_schema_constants(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, json_t **values) {
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    fr_grammar_rules *rules = r->parts->rules;
    *values = NULL;
    if (!list && !constant) return FR_OK;
    json_t *rest = fr_schema_without(rules, schema, list ? "enum" : "const"), *kept = fr_schema_list(rules);
    json_t *all = list ? json_incref((json_t *)list) : fr_schema_pack(rules, "[O]", constant);
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK) status = keep_holding(r, rest, all, path, kept);
    json_decref(rest);
    json_decref(all);
    if (status != FR_OK) json_decref(kept);
    if (status == FR_OK) *values = kept;
    return status;
}
