/* Replaces `not`, `if` and similar keywords by choices of schemas (json_schema_reader.h). To deny a schema means to
 * require that it does not hold. A denied schema is replaced by a list of schemas, at least one of which must hold.
 * Some values that do not match the denied schema may match no schema of the list. The grammar then allows fewer
 * values, but never wrong ones. */
#include <stdio.h>
#include <string.h>

#include "src/language/grammar/json_schema_reader.h"

#define DEPTH_MAX      16 /* limit on nested denials */
/* Limit on the members on which other members depend. Each of these members is in the object or not, which doubles the
 * number of choices. */
#define DEPENDENTS_MAX 6
/* Limit on the bounds of a length that can be denied. A double represents all integers up to this limit exactly. */
#define COUNT_MAX      1e15
#define PAIRS_MAX      4096 /* limit on the pairs of schemas in a oneOf that may hold at the same time */

/* ---------------------------------------------------------------------------------------------------------- denying */

typedef struct denial {
    fr_schema_reader *r;
    json_t *list;      /* the schemas of which at least one must hold */
    fr_status *status; /* becomes a failure if the denied schema is not a valid schema */
} denial;

static void deny(const denial *d, const json_t *schema, const fr_schema_path *path, size_t depth);

static fr_grammar_rules *rules_of(const denial *d) {
    return d->r->parts->rules;
}

/* Adds a schema to the list of `d`. Takes over the schema. */
static void may_be(const denial *d, json_t *schema) {
    fr_schema_add(rules_of(d), d->list, schema);
}

static json_t *denied(const denial *of, const json_t *schema, const fr_schema_path *path, size_t depth) {
    const denial d = {of->r, fr_schema_list(rules_of(of)), of->status};
    if (d.list) deny(&d, schema, path, depth + 1);
    return d.list;
}

static void deny_type(const denial *d, const json_t *types) {
    static const char *const each[] = {"string", "number", "boolean", "null", "object", "array"};
    fr_grammar_rules *rules = rules_of(d);
    json_t *list = json_is_array(types) ? json_incref((json_t *)types) : fr_schema_pack(rules, "[O]", types);
    json_t *integer = fr_schema_pack(rules, "s", "integer"), *others = fr_schema_list(rules);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        json_t *type = fr_schema_pack(rules, "s", each[i]);
        bool whole = strcmp(each[i], "number") == 0 && fr_schema_lists(rules, list, integer);
        if (!whole && !fr_schema_lists(rules, list, type)) fr_schema_add(rules, others, json_incref(type));
        json_decref(type);
    }
    if (json_array_size(others)) may_be(d, fr_schema_pack(rules, "{s:O}", "type", others));
    json_decref(others);
    json_decref(list);
    json_decref(integer);
}

/* Denies a bound on a number or on a count: requires a number beyond the bound. */
static void deny_number(const denial *d, const char *key, const json_t *value) {
    static const struct {
        const char *key, *type, *beyond;
        int step;
    } words[] = {{"minimum", "number", "exclusiveMaximum", 0},
                 {"maximum", "number", "exclusiveMinimum", 0},
                 {"exclusiveMinimum", "number", "maximum", 0},
                 {"exclusiveMaximum", "number", "minimum", 0},
                 {"minLength", "string", "maxLength", -1},
                 {"maxLength", "string", "minLength", 1},
                 {"minItems", "array", "maxItems", -1},
                 {"maxItems", "array", "minItems", 1},
                 {"minProperties", "object", "maxProperties", -1},
                 {"maxProperties", "object", "minProperties", 1}};
    for (size_t i = 0; fr_schema_is_number(value) && i < sizeof words / sizeof *words; i++) {
        double count = (double)fr_schema_number(value) + words[i].step;
        if (strcmp(key, words[i].key) != 0 || (words[i].step && !(count >= 0 && count <= COUNT_MAX))) continue;
        json_t *bound =
            words[i].step ? fr_schema_pack(rules_of(d), "I", (json_int_t)count) : json_incref((json_t *)value);
        may_be(d, fr_schema_pack(rules_of(d), "{s:s,s:o}", "type", words[i].type, words[i].beyond, bound));
    }
}

static void deny_required(const denial *d, const json_t *names) {
    size_t i;
    json_t *name;
    json_array_foreach (names, i, name)
        may_be(d, fr_schema_pack(rules_of(d), "{s:s,s:{s:b}}", "type", "object", "properties", json_string_value(name),
                                 0));
}

static void deny_properties(const denial *d, const json_t *properties, const fr_schema_path *path, size_t depth) {
    const char *key;
    json_t *value, *other;
    size_t i;
    json_object_foreach ((json_t *)properties, key, value) {
        json_t *others = denied(d, value, &(fr_schema_path){path, key, 0}, depth);
        json_array_foreach (others, i, other)
            may_be(d, fr_schema_pack(rules_of(d), "{s:s,s:[s],s:{s:O}}", "type", "object", "required", key,
                                     "properties", key, other));
        json_decref(others);
    }
}

static void deny_items(const denial *d, const json_t *schema, const json_t *items, const fr_schema_path *path,
                       size_t depth) {
    size_t i;
    json_t *others, *other;
    if (json_is_array(items) || json_object_get(schema, "prefixItems")) return;
    others = denied(d, items, path, depth);
    json_array_foreach (others, i, other)
        may_be(d, fr_schema_pack(rules_of(d), "{s:s,s:O}", "type", "array", "contains", other));
    json_decref(others);
}

/* Denies an anyOf by denying each of its schemas. The denial of one schema is a list of which one entry must hold. So
 * the denial of the anyOf is an allOf with one anyOf for each schema. */
static void deny_any(const denial *d, const json_t *list, const fr_schema_path *path, size_t depth) {
    json_t *all = fr_schema_list(rules_of(d)), *one;
    size_t i;
    json_array_foreach (list, i, one) {
        json_t *others = denied(d, one, &(fr_schema_path){path, NULL, i}, depth);
        fr_schema_add(rules_of(d), all, fr_schema_said(rules_of(d), "anyOf", others));
    }
    may_be(d, fr_schema_said(rules_of(d), "allOf", all));
}

static void deny_all(const denial *d, const json_t *list, const fr_schema_path *path, size_t depth) {
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one) deny(d, one, &(fr_schema_path){path, NULL, i}, depth + 1);
}

static void deny_pattern(const denial *d, const json_t *pattern) {
    fr_grammar_rules *rules = rules_of(d);
    json_t *other = fr_schema_said(rules, FR_NO_PATTERNS, fr_schema_pack(rules, "[O]", pattern));
    fr_schema_set(rules, other, "type", fr_schema_pack(rules, "s", "string"));
    may_be(d, other);
}

static void deny_target(const denial *d, const json_t *ref, const fr_schema_path *path, size_t depth) {
    const json_t *target;
    *d->status = fr_schema_find(d->r, json_string_value(ref), path, &target);
    if (*d->status == FR_OK) deny(d, target, path, depth + 1);
}

static void deny_word(const denial *d, const json_t *schema, const char *key, const json_t *value,
                      const fr_schema_path *path, size_t depth) {
    if (strcmp(key, "type") == 0) deny_type(d, value);
    if (strcmp(key, "enum") == 0) may_be(d, fr_schema_said(rules_of(d), FR_NONE_OF, json_incref((json_t *)value)));
    if (strcmp(key, "const") == 0)
        may_be(d, fr_schema_said(rules_of(d), FR_NONE_OF, fr_schema_pack(rules_of(d), "[O]", value)));
    if (strcmp(key, "pattern") == 0) deny_pattern(d, value);
    if (strcmp(key, "required") == 0) deny_required(d, value);
    if (strcmp(key, "properties") == 0) deny_properties(d, value, path, depth);
    if (strcmp(key, "items") == 0) deny_items(d, schema, value, path, depth);
    if (strcmp(key, "anyOf") == 0) deny_any(d, value, path, depth);
    if (strcmp(key, "allOf") == 0) deny_all(d, value, path, depth);
    if (strcmp(key, "not") == 0) may_be(d, json_incref((json_t *)value));
    if (strcmp(key, "$ref") == 0) deny_target(d, value, path, depth);
    deny_number(d, key, value);
}

/* Denies a schema. A schema does not hold if any one of its keywords does not hold, so the denials of all its keywords
 * are added to the list. */
static void deny(const denial *d, const json_t *schema, const fr_schema_path *path, size_t depth) {
    const char *key;
    json_t *value;
    if (!fr_grammar_spend(rules_of(d), 1 + json_object_size(schema)) || *d->status != FR_OK) return;
    *d->status = fr_schema_check_words(d->r, schema, path);
    if (json_is_false(schema)) may_be(d, json_true());
    if (depth == DEPTH_MAX) return;
    json_object_foreach ((json_t *)schema, key, value)
        if (*d->status == FR_OK) deny_word(d, schema, key, value, &(fr_schema_path){path, key, 0}, depth);
}

/* Lists schemas that exclude this schema: a value that matches one of them does not match this schema. Every value
 * matches the schema `true`, so its list is empty. */
static fr_status other_than(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, json_t **list) {
    fr_status status = FR_OK;
    const denial d = {r, *list = fr_schema_list(r->parts->rules), &status};
    const char *key;
    json_t *value;
    bool says = false;
    if (*list) deny(&d, schema, path, 0);
    json_object_foreach ((json_t *)schema, key, value) says |= !fr_schema_describes(key);
    if (status == FR_OK) status = fr_schema_check(r->parts->rules, path);
    if (status == FR_OK && !json_array_size(*list) && says)
        status = fr_schema_fail(path, FR_UNBUILT, "the negation of this schema is not built");
    if (status == FR_OK) return FR_OK;
    json_decref(*list);
    *list = NULL;
    return status;
}

/* ------------------------------------------------------------------------------------------- conditions, dependents */

/* Adds `part` to the schema's allOf. Takes over `part`. */
static void add_part(fr_grammar_rules *rules, json_t *schema, json_t *part) {
    const json_t *all = json_object_get(schema, "allOf");
    json_t *more = json_is_array(all) ? fr_schema_copy(rules, all) : fr_schema_list(rules);
    fr_schema_add(rules, more, part);
    fr_schema_set(rules, schema, "allOf", more);
}

/* Adds a choice, which is a list of schemas, as an anyOf. The anyOf becomes an entry of the schema's allOf, because a
 * schema may need several such choices at once. Takes over the list. */
static void add_choice(fr_grammar_rules *rules, json_t *schema, json_t *list) {
    add_part(rules, schema, fr_schema_said(rules, "anyOf", list));
}

static json_t *with(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    if (!other || json_is_true(other)) return json_incref((json_t *)one);
    return fr_schema_pack(rules, "{s:[OO]}", "allOf", one, other);
}

static fr_status rewrite_if(fr_schema_reader *r, json_t *schema, const fr_schema_path *path) {
    const json_t *condition = json_object_get(schema, "if"), *then = json_object_get(schema, "then");
    const json_t *otherwise = json_object_get(schema, "else");
    const fr_schema_path place = {path, "if", 0};
    fr_grammar_rules *rules = r->parts->rules;
    json_t *others = NULL, *other;
    size_t i;
    if (condition && (then || otherwise)) {
        FR_TRY(other_than(r, condition, &place, &others));
        json_t *list = fr_schema_pack(rules, "[o]", with(rules, condition, then));
        json_array_foreach (others, i, other) fr_schema_add(rules, list, with(rules, other, otherwise));
        json_decref(others);
        add_choice(rules, schema, list);
    }
    json_object_del(schema, "if");
    json_object_del(schema, "then");
    json_object_del(schema, "else");
    return FR_OK;
}

static fr_status rewrite_not(fr_schema_reader *r, json_t *schema, const fr_schema_path *path) {
    const json_t *not = json_object_get(schema, "not");
    const fr_schema_path place = {path, "not", 0};
    json_t *others;
    if (!not ) return FR_OK;
    FR_TRY(other_than(r, not, &place, &others));
    add_choice(r->parts->rules, schema, others);
    json_object_del(schema, "not");
    return FR_OK;
}

/* Rewrites dependents as choices: either a member is missing, or the schema that depends on it holds. */
static fr_status rewrite_dependents(fr_grammar_rules *rules, json_t *schema, const char *key,
                                    const fr_schema_path *path) {
    const json_t *dependents = json_object_get(schema, key);
    const fr_schema_path place = {path, key, 0};
    const char *name;
    json_t *value;
    if (!dependents) return FR_OK;
    if (json_object_size(dependents) > DEPENDENTS_MAX)
        return fr_schema_fail(&place, FR_UNBUILT, "more than 6 members that others depend on are not built");
    json_object_foreach ((json_t *)dependents, name, value) {
        json_t *there = fr_schema_pack(rules, "{s:[s]}", "required", name);
        json_t *needed = json_is_array(value) ? fr_schema_pack(rules, "{s:O}", "required", value) : json_incref(value);
        json_t *both = fr_schema_pack(rules, "{s:[oo]}", "allOf", there, needed);
        add_choice(rules, schema, fr_schema_pack(rules, "[{s:{s:b}},o]", "properties", name, 0, both));
    }
    json_object_del(schema, key);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- schemas of oneOf */

static bool disjoint(fr_schema_reader *r, const json_t *one, const json_t *other, const fr_schema_path *path) {
    return json_is_false(one) || json_is_false(other) ||
           fr_schemas_disjoint(r->parts->rules, fr_schema_look_through(r, one, path),
                               fr_schema_look_through(r, other, path));
}

/* Gives one schema of a list, combined with denials of all other schemas that may hold at the same time. Adds the
 * number of these others to *pairs. */
static json_t *alone(fr_schema_reader *r, const json_t *list, size_t number, const fr_schema_path *path,
                     size_t *pairs) {
    fr_grammar_rules *rules = r->parts->rules;
    const json_t *one = json_array_get(list, number);
    json_t *parts = fr_schema_pack(rules, "[O]", one), *other;
    size_t i;
    json_array_foreach (list, i, other) {
        if (!fr_grammar_spend(rules, 1) || *pairs > PAIRS_MAX) break;
        if (i == number || disjoint(r, one, other, path)) continue;
        fr_schema_add(rules, parts, fr_schema_pack(rules, "{s:O}", "not", other));
        ++*pairs;
    }
    json_t *all =
        json_array_size(parts) == 1 ? json_incref((json_t *)one) : fr_schema_pack(rules, "{s:O}", "allOf", parts);
    json_decref(parts);
    return all;
}

fr_status fr_schema_one_of(fr_schema_reader *r, const json_t *list, const fr_schema_path *path, json_t **schemas) {
    fr_grammar_rules *rules = r->parts->rules;
    size_t pairs = 0, count = json_array_size(list);
    json_t *all = fr_schema_list(rules);
    for (size_t i = 0; i < count && rules->status == FR_OK && pairs <= PAIRS_MAX; i++)
        fr_schema_add(rules, all, alone(r, list, i, path, &pairs));
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK && pairs > PAIRS_MAX)
        status = fr_schema_fail(path, FR_UNBUILT, "not built for so many schemas that may match the same value");
    if (status != FR_OK) json_decref(all);
    *schemas = status == FR_OK ? all : NULL;
    return status;
}

/* -------------------------------------------------------------------------------------------------------- rewriting */

static fr_status rewrite_one_of(fr_schema_reader *r, json_t *schema, const fr_schema_path *path) {
    const json_t *list = json_object_get(schema, "oneOf");
    const fr_schema_path place = {path, "oneOf", 0};
    json_t *schemas;
    if (!list) return FR_OK;
    FR_TRY(fr_schema_one_of(r, list, &place, &schemas));
    add_choice(r->parts->rules, schema, schemas);
    json_object_del(schema, "oneOf");
    return FR_OK;
}

static fr_status rewrite_reference(fr_schema_reader *r, json_t *schema, const fr_schema_path *path) {
    const json_t *ref = json_object_get(schema, "$ref"), *target;
    const fr_schema_path place = {path, "$ref", 0};
    if (!ref) return FR_OK;
    FR_TRY(fr_schema_find(r, json_string_value(ref), &place, &target));
    add_part(r->parts->rules, schema, json_incref((json_t *)target));
    json_object_del(schema, "$ref");
    return FR_OK;
}

static fr_status rewrite(fr_schema_reader *r, json_t *schema, bool as_part, const fr_schema_path *path) {
    fr_grammar_rules *rules = r->parts->rules;
    FR_TRY(fr_schema_rewrite_unevaluated(r, schema, path));
    FR_TRY(rewrite_if(r, schema, path));
    FR_TRY(rewrite_not(r, schema, path));
    FR_TRY(rewrite_dependents(rules, schema, "dependentRequired", path));
    FR_TRY(rewrite_dependents(rules, schema, "dependentSchemas", path));
    FR_TRY(rewrite_dependents(rules, schema, "dependencies", path));
    if (as_part) FR_TRY(rewrite_one_of(r, schema, path));
    if (as_part) FR_TRY(rewrite_reference(r, schema, path));
    return fr_schema_check(rules, path);
}

fr_status fr_schema_rewrite(fr_schema_reader *r, const json_t *schema, bool as_part, const fr_schema_path *path,
                            json_t **rewritten) {
    static const char *const always[] = {"not",
                                         "if",
                                         "then",
                                         "else",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "dependencies",
                                         "unevaluatedProperties",
                                         "unevaluatedItems",
                                         NULL};
    static const char *const in_parts[] = {"oneOf", "$ref", NULL};
    *rewritten = NULL;
    if (!fr_schema_has_any(schema, always) && !(as_part && fr_schema_has_any(schema, in_parts))) return FR_OK;
    json_t *copy = fr_schema_copy(r->parts->rules, schema);
    fr_status status = copy ? rewrite(r, copy, as_part, path) : fr_schema_check(r->parts->rules, path);
    if (status == FR_OK)
        *rewritten = copy;
    else
        json_decref(copy);
    return status;
}
