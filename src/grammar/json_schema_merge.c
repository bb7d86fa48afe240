/* Schemas that are said at once: see json_schema_words.h. */
#include <stdio.h>
#include <string.h>

#include "src/grammar/json_schema_words.h"

#define MAX_CHOICES 256 /* that two choices become */

/* 1 and 1.0 are one number. */
static bool same(const json_t *one, const json_t *other) {
    bool numbers = json_is_number(one) && json_is_number(other);
    return numbers ? json_number_value(one) == json_number_value(other) : json_equal(one, other);
}

bool fr_schema_lists(const json_t *list, const json_t *value) {
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (same(item, value)) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ lists */

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
        if (fr_schema_lists(b, item) || (is_integer && fr_schema_lists(b, number))) json_array_append(both, item);
        if (is_number && fr_schema_lists(b, integer) && !fr_schema_lists(b, number)) json_array_append(both, integer);
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
    json_array_foreach(one, i, item) if (fr_schema_lists(other, item)) json_array_append(both, item);
    return both;
}

static json_t *all_items(const json_t *one, const json_t *other) {
    json_t *all = json_copy((json_t *)one), *item;
    size_t i;
    json_array_foreach(other, i, item) if (!fr_schema_lists(all, item)) json_array_append(all, item);
    return all;
}

/* A schema of two; one of them where that says it all. */
static json_t *both_of(const json_t *one, const json_t *other) {
    if (json_is_true(one) || json_is_false(other) || json_equal(one, other)) return json_incref((json_t *)other);
    if (json_is_true(other) || json_is_false(one)) return json_incref((json_t *)one);
    return json_pack("{s:[OO]}", "allOf", one, other);
}

/* Each of one with each of the other; NULL: too many. */
static json_t *all_pairs(const json_t *one, const json_t *other) {
    if (json_array_size(one) * json_array_size(other) > MAX_CHOICES) return NULL;
    json_t *all = json_array(), *a, *b;
    size_t i, k;
    json_array_foreach(one, i, a) json_array_foreach(other, k, b) {
        json_t *both = both_of(a, b);
        if (!json_is_false(both)) json_array_append(all, both);
        json_decref(both);
    }
    return all;
}

/* ---------------------------------------------------------------------------------------------------------- members */

/* What is said of a member by the additionalProperties of a schema that has no such property; NULL: nothing. */
static const json_t *said_of_others(const json_t *schema, const char *name) {
    const json_t *others = json_object_get(schema, "additionalProperties");
    if (!others || json_is_true(others) || json_object_get(json_object_get(schema, "properties"), name)) return NULL;
    return others;
}

/* The members of one, with what the other says of them. */
static void add_members(json_t *all, const json_t *one, const json_t *other) {
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(one, "properties"), key, value) {
        const json_t *there = json_object_get(json_object_get(other, "properties"), key);
        if (!there) there = said_of_others(other, key);
        if (!json_object_get(all, key))
            json_object_set_new(all, key, there ? both_of(value, there) : json_incref(value));
    }
}

static json_t *all_members(const json_t *one, const json_t *other) {
    json_t *all = json_object();
    add_members(all, one, other);
    add_members(all, other, one);
    return all;
}

static json_t *all_patterns(const json_t *one, const json_t *other) {
    json_t *all = json_copy((json_t *)one), *value;
    const char *key;
    json_object_foreach((json_t *)other, key, value) {
        const json_t *mine = json_object_get(one, key);
        json_object_set_new(all, key, mine ? both_of(mine, value) : json_incref(value));
    }
    return all;
}

/* Whether what one says of members that it does not name may be of names that the other's patterns match, or that are
 * members of the other and match patterns of its own. */
static bool crosses(const json_t *one, const json_t *other) {
    const json_t *others = json_object_get(one, "additionalProperties");
    if (!others || json_is_true(others)) return false;
    if (json_object_get(other, "patternProperties")) return true;
    return json_object_get(one, "patternProperties") && json_object_get(other, "properties");
}

/* Whether one looks at what other schemas beside it say. */
static bool looks_around(const json_t *one) {
    return json_object_get(one, "unevaluatedProperties") || json_object_get(one, "unevaluatedItems");
}

/* Items behind those that one lists are of what it says of items, which the other's list is then too. */
static bool lists_differ(const json_t *one, const json_t *other) {
    static const char *const of_items[] = {"items", "prefixItems", "additionalItems", "unevaluatedItems"};
    bool tuple = json_object_get(one, "prefixItems") || json_is_array(json_object_get(one, "items"));
    if (!tuple || json_equal(json_object_get(one, "prefixItems"), json_object_get(other, "prefixItems"))) return false;
    for (size_t i = 0; i < sizeof of_items / sizeof *of_items; i++)
        if (json_object_get(other, of_items[i])) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------------- keywords */

/* The larger of two numbers, or the smaller. */
static json_t *choose(const json_t *one, const json_t *other, bool larger) {
    bool first = (json_number_value(one) > json_number_value(other)) == larger;
    return json_incref((json_t *)(first ? one : other));
}

/* The least number that both divide; NULL: not of these. */
static json_t *common_multiple(const json_t *one, const json_t *other) {
    json_int_t a = json_integer_value(one), b = json_integer_value(other), rest = a, next = b;
    if (a < 1 || b < 1 || a > 1000000 || b > 1000000) return NULL;
    while (next) {
        json_int_t left = rest % next;
        rest = next;
        next = left;
    }
    return json_integer(a / rest * b);
}

static json_t *merge_numbers(const char *key, const json_t *one, const json_t *other) {
    static const char *const least[] = {"minimum",     "minItems",         "minLength", "minProperties",
                                        "minContains", "exclusiveMinimum", NULL};
    static const char *const most[] = {"maximum",     "maxItems",         "maxLength", "maxProperties",
                                       "maxContains", "exclusiveMaximum", NULL};
    if (fr_schema_is_word(key, least)) return choose(one, other, true);
    if (fr_schema_is_word(key, most)) return choose(one, other, false);
    return strcmp(key, "multipleOf") == 0 ? common_multiple(one, other) : NULL;
}

static json_t *merge_lists(const char *key, const json_t *one, const json_t *other) {
    static const char *const all[] = {"required", "allOf", FR_NONE_OF, FR_ALL_PATTERNS, FR_NO_PATTERNS, NULL};
    if (strcmp(key, "enum") == 0) return common_items(one, other);
    if (strcmp(key, "anyOf") == 0) return all_pairs(one, other);
    return fr_schema_is_word(key, all) ? all_items(one, other) : NULL;
}

static bool is_schema(const json_t *value) {
    return json_is_object(value) || json_is_boolean(value);
}

/* A keyword that both have and that is not the same; NULL: it can't be said at once. */
static json_t *merge_values(const char *key, const json_t *one, const json_t *other) {
    static const char *const schemas[] = {"items", "additionalProperties", "propertyNames", NULL};
    if (strcmp(key, "type") == 0) return common_types(one, other);
    if (json_is_array(one) && json_is_array(other)) return merge_lists(key, one, other);
    if (json_is_number(one) && json_is_number(other)) return merge_numbers(key, one, other);
    if (strcmp(key, "uniqueItems") == 0) return json_true();
    if (strcmp(key, "patternProperties") == 0 && json_is_object(one) && json_is_object(other))
        return all_patterns(one, other);
    if (!is_schema(one) || !is_schema(other)) return NULL;
    if (strcmp(key, "not") == 0) return json_pack("{s:[OO]}", "anyOf", one, other);
    return fr_schema_is_word(key, schemas) ? both_of(one, other) : NULL;
}

/* A second pattern, or a constant beside a list, is said in another way. */
static bool said_otherwise(json_t *both, const char *key, const json_t *mine, const json_t *value) {
    if (strcmp(key, "pattern") == 0 && json_is_string(mine) && json_is_string(value)) {
        const json_t *more = json_object_get(both, FR_ALL_PATTERNS);
        json_t *list = more ? json_copy((json_t *)more) : json_array();
        json_array_append(list, (json_t *)value);
        json_object_set_new(both, FR_ALL_PATTERNS, list);
        return true;
    }
    if (strcmp(key, "const") != 0) return false;
    json_object_set_new(both, "enum", json_array()); /* none is two */
    return true;
}

/* Whether one's `contains`, which asks for 1 if nothing is said, would ask for what another says. */
static bool counts_for(const json_t *one, const json_t *other) {
    return json_object_get(one, "contains") && !json_object_get(one, "minContains") &&
           json_object_get(other, "minContains");
}

static bool can_merge(const json_t *one, const json_t *other) {
    return !crosses(one, other) && !crosses(other, one) && !lists_differ(one, other) && !lists_differ(other, one) &&
           !looks_around(other) && !counts_for(one, other) && !counts_for(other, one);
}

static fr_status merge_words(const json_t *one, const json_t *other, const fr_schema_path *path, json_t *both) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)other, key, value) {
        const json_t *mine = json_object_get(both, key);
        if (strcmp(key, "properties") == 0) continue;
        if (mine && json_equal(mine, value)) continue;
        if (mine && said_otherwise(both, key, mine, value)) continue;
        json_t *made = !mine || fr_schema_describes(key) ? json_incref(value) : merge_values(key, mine, value);
        if (!made || json_object_set_new(both, key, made) != 0)
            return fr_schema_fail(&(fr_schema_path){path, key, 0}, FR_UNBUILT, "two of these at once are not built");
    }
    if (json_object_get(one, "properties") || json_object_get(other, "properties"))
        json_object_set_new(both, "properties", all_members(one, other));
    return FR_OK;
}

fr_status fr_schema_merge(const json_t *one, const json_t *other, const fr_schema_path *path, json_t **merged) {
    *merged = NULL;
    if (json_is_true(one) || json_is_false(other)) *merged = json_incref((json_t *)other);
    if (json_is_true(other) || json_is_false(one)) *merged = json_incref((json_t *)one);
    if (*merged) return FR_OK;
    if (!json_is_object(one) || !json_is_object(other))
        return fr_schema_fail(path, FR_INPUT, "a schema is an object or a bool");
    if (!can_merge(one, other))
        return fr_schema_fail(path, FR_UNBUILT,
                              "schemas together of which one speaks of what the other leaves over are not built");
    json_t *both = json_copy((json_t *)one);
    fr_status status = both ? merge_words(one, other, path, both) : fr_fail_memory("a schema", sizeof *both);
    if (status == FR_OK)
        *merged = both;
    else
        json_decref(both);
    return status;
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
static bool only_objects(const json_t *schema) {
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type && strcmp(type, "object") == 0;
}

/* Values that are no objects are of both, unless one of them has objects alone. */
static bool members_disjoint(const json_t *one, const json_t *other) {
    size_t i;
    json_t *name;
    const json_t *mine = json_object_get(one, "properties"), *theirs = json_object_get(other, "properties");
    if (!only_objects(one) && !only_objects(other)) return false;
    json_array_foreach(json_object_get(one, "required"), i, name) {
        const char *key = json_string_value(name);
        if (!key) continue;
        const json_t *their = json_object_get(theirs, key);
        if (their && (constants_disjoint(json_object_get(mine, key), their) ||
                      types_disjoint(json_object_get(mine, key), their)))
            return true;
        bool closed = json_is_false(json_object_get(other, "additionalProperties"));
        if (!their && closed && !json_object_get(other, "patternProperties")) return true;
    }
    return false;
}

bool fr_schemas_disjoint(const json_t *one, const json_t *other) {
    return types_disjoint(one, other) || constants_disjoint(one, other) || members_disjoint(one, other) ||
           members_disjoint(other, one);
}
