/* Merges two schemas into one that holds if both hold (json_schema_reader.h). */
#include <stdio.h>
#include <string.h>

#include "formats/json_wide.h"
#include "src/language/grammar/json_schema_reader.h"

#define CHOICES_MAX 256 /* limit on the choices that result from combining two lists of choices */

/* ------------------------------------------------------------------------------------------------------------ lists */

/* Gives `value` as a list. A list is unchanged, and a single word becomes a list of one. */
static json_t *as_list(fr_grammar_rules *rules, const json_t *value) {
    return json_is_array(value) ? json_incref((json_t *)value) : fr_schema_pack(rules, "[O]", value);
}

/* Lists the types that both schemas allow. The type integer is a part of the type number. */
static json_t *common_types(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    json_t *a = as_list(rules, one), *b = as_list(rules, other), *both = fr_schema_list(rules), *item;
    json_t *number = fr_schema_pack(rules, "s", "number"), *integer = fr_schema_pack(rules, "s", "integer");
    bool numbers = fr_schema_lists(rules, b, number), integers = fr_schema_lists(rules, b, integer);
    size_t i;
    json_array_foreach (a, i, item) {
        bool is_integer = json_equal(item, integer), is_number = json_equal(item, number);
        if (fr_schema_lists(rules, b, item) || (is_integer && numbers))
            fr_schema_add(rules, both, json_incref(item));
        else if (is_number && integers)
            fr_schema_add(rules, both, json_incref(integer));
    }
    json_decref(a);
    json_decref(b);
    json_decref(number);
    json_decref(integer);
    return both;
}

static json_t *common_items(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    json_t *both = fr_schema_list(rules), *item;
    size_t i;
    json_array_foreach (one, i, item)
        if (fr_schema_lists(rules, other, item)) fr_schema_add(rules, both, json_incref(item));
    return both;
}

static json_t *all_items(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    json_t *all = fr_schema_copy(rules, one), *item;
    size_t i;
    json_array_foreach (other, i, item)
        if (!fr_schema_lists(rules, all, item)) fr_schema_add(rules, all, json_incref(item));
    return all;
}

/* Makes a schema that requires both schemas. If one of them is `true` or `false`, or if both are equal, the result is
 * the stricter of the two. */
static json_t *both_of(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    if (json_is_true(one) || json_is_false(other)) return json_incref((json_t *)other);
    if (json_is_true(other) || json_is_false(one)) return json_incref((json_t *)one);
    if (fr_schema_same(rules, one, other)) return json_incref((json_t *)other);
    return fr_schema_pack(rules, "{s:[OO]}", "allOf", one, other);
}

/* Combines each schema of one list with each schema of the other list; NULL: there are too many pairs. */
static json_t *all_pairs(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    if (json_array_size(one) * json_array_size(other) > CHOICES_MAX) return NULL;
    json_t *all = fr_schema_list(rules), *a, *b;
    size_t i, k;
    json_array_foreach (one, i, a)
        json_array_foreach (other, k, b) {
            json_t *both = both_of(rules, a, b);
            if (json_is_false(both))
                json_decref(both);
            else
                fr_schema_add(rules, all, both);
        }
    return all;
}

/* ---------------------------------------------------------------------------------------------------------- members */

/* Gives the schema that additionalProperties requires of this member. NULL: the member is one of the properties, or
 * additionalProperties allows anything. */
static const json_t *said_of_others(const json_t *schema, const char *name) {
    const json_t *others = json_object_get(schema, "additionalProperties");
    if (!others || json_is_true(others) || json_object_get(json_object_get(schema, "properties"), name)) return NULL;
    return others;
}

/* Adds the members of `one` to `all`. Each member's schema is merged with what `other` requires of that member. */
static void add_members(fr_grammar_rules *rules, json_t *all, const json_t *one, const json_t *other) {
    const char *key;
    json_t *value;
    json_object_foreach (json_object_get(one, "properties"), key, value) {
        const json_t *there = json_object_get(json_object_get(other, "properties"), key);
        if (!there) there = said_of_others(other, key);
        if (!json_object_get(all, key))
            fr_schema_set(rules, all, key, there ? both_of(rules, value, there) : json_incref(value));
    }
}

static json_t *all_patterns(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    json_t *all = fr_schema_copy(rules, one), *value;
    const char *key;
    json_object_foreach ((json_t *)other, key, value) {
        const json_t *mine = json_object_get(one, key);
        fr_schema_set(rules, all, key, mine ? both_of(rules, mine, value) : json_incref(value));
    }
    return all;
}

/* Returns true if the two schemas can't be merged, because additionalProperties of `one` would then apply to other
 * members than before. additionalProperties applies to the members that are not in `properties` and match no pattern in
 * the same schema. In the merged schema, the properties and patterns of `other` would change which members these
 * are. */
static bool crosses(const json_t *one, const json_t *other) {
    const json_t *others = json_object_get(one, "additionalProperties");
    if (!others || json_is_true(others)) return false;
    if (json_object_get(other, "patternProperties")) return true;
    return json_object_get(one, "patternProperties") && json_object_get(other, "properties");
}

/* Returns true if `one` lists schemas for its first items, and `other` constrains its items in another way. In the
 * merged schema, the schema that `one` has for further items would then apply to items to which it did not apply
 * before. */
static bool lists_differ(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    static const char *const of_items[] = {"items", "prefixItems", "additionalItems", "unevaluatedItems"};
    const json_t *first = json_object_get(one, "prefixItems");
    bool tuple = first || json_is_array(json_object_get(one, "items"));
    if (!tuple || fr_schema_same(rules, first, json_object_get(other, "prefixItems"))) return false;
    for (size_t i = 0; i < sizeof of_items / sizeof *of_items; i++)
        if (json_object_get(other, of_items[i])) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------------------- keywords */

/* Gives the larger of two numbers if `larger` is true, otherwise the smaller. */
static json_t *choose(const json_t *one, const json_t *other, bool larger) {
    bool first = (fr_schema_compare(one, other) > 0) == larger;
    return json_incref((json_t *)(first ? one : other));
}

/* Gives the least common multiple of two numbers. NULL: one of them is not an integer from 1 to 1000000. */
static json_t *common_multiple(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    json_int_t a = json_integer_value(one), b = json_integer_value(other), rest = a, next = b;
    if (a < 1 || b < 1 || a > 1000000 || b > 1000000) return NULL;
    while (next) {
        json_int_t left = rest % next;
        rest = next;
        next = left;
    }
    return fr_schema_pack(rules, "I", a / rest * b);
}

static json_t *merge_numbers(fr_grammar_rules *rules, const char *key, const json_t *one, const json_t *other) {
    static const char *const least[] = {"minimum",     "minItems",         "minLength", "minProperties",
                                        "minContains", "exclusiveMinimum", NULL};
    static const char *const most[] = {"maximum",     "maxItems",         "maxLength", "maxProperties",
                                       "maxContains", "exclusiveMaximum", NULL};
    if (fr_schema_is_word(key, least)) return choose(one, other, true);
    if (fr_schema_is_word(key, most)) return choose(one, other, false);
    return strcmp(key, "multipleOf") == 0 ? common_multiple(rules, one, other) : NULL;
}

static json_t *merge_lists(fr_grammar_rules *rules, const char *key, const json_t *one, const json_t *other) {
    static const char *const all[] = {"required", "allOf", FR_NONE_OF, FR_ALL_PATTERNS, FR_NO_PATTERNS, NULL};
    if (strcmp(key, "enum") == 0) return common_items(rules, one, other);
    if (strcmp(key, "anyOf") == 0) return all_pairs(rules, one, other);
    return fr_schema_is_word(key, all) ? all_items(rules, one, other) : NULL;
}

static bool is_schema(const json_t *value) {
    return json_is_object(value) || json_is_boolean(value);
}

/* Merges two different values of a keyword. NULL: no single value expresses both. */
static json_t *merge_values(fr_grammar_rules *rules, const char *key, const json_t *one, const json_t *other) {
    static const char *const schemas[] = {"items", "additionalProperties", "propertyNames", NULL};
    if (strcmp(key, "type") == 0) return common_types(rules, one, other);
    if (json_is_array(one) && json_is_array(other)) return merge_lists(rules, key, one, other);
    if (fr_schema_is_number(one) && fr_schema_is_number(other)) return merge_numbers(rules, key, one, other);
    if (strcmp(key, "uniqueItems") == 0) return json_true();
    if (strcmp(key, "patternProperties") == 0 && json_is_object(one) && json_is_object(other))
        return all_patterns(rules, one, other);
    if (!is_schema(one) || !is_schema(other)) return NULL;
    if (strcmp(key, "not") == 0) return fr_schema_pack(rules, "{s:[OO]}", "anyOf", one, other);
    return fr_schema_is_word(key, schemas) ? both_of(rules, one, other) : NULL;
}

/* Writes a second pattern or constant under one of our own keywords, because `pattern` and `const` hold only one. For
 * any other `key`, returns false. */
static bool said_otherwise(fr_grammar_rules *rules, json_t *both, const char *key, const json_t *mine,
                           const json_t *value) {
    if (strcmp(key, "pattern") == 0 && fr_json_is_text(mine) && fr_json_is_text(value)) {
        const json_t *more = json_object_get(both, FR_ALL_PATTERNS);
        json_t *list = more ? fr_schema_copy(rules, more) : fr_schema_list(rules);
        fr_schema_add(rules, list, json_incref((json_t *)value));
        fr_schema_set(rules, both, FR_ALL_PATTERNS, list);
        return true;
    }
    if (strcmp(key, "const") != 0) return false;
    fr_schema_set(rules, both, "enum", fr_schema_list(rules)); /* no value equals both constants */
    return true;
}

/* Returns true if merging would change the meaning of `contains` in `one`. If `one` has no minContains, its `contains`
 * requires one item. In the merged schema, minContains of `other` would change that number. */
static bool counts_for(const json_t *one, const json_t *other) {
    return json_object_get(one, "contains") && !json_object_get(one, "minContains") &&
           json_object_get(other, "minContains");
}

static fr_status merge_words(fr_grammar_rules *rules, const json_t *one, const json_t *other,
                             const fr_schema_path *path, json_t *both) {
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)other, key, value) {
        const json_t *mine = json_object_get(both, key);
        if (strcmp(key, "properties") == 0) continue;
        if (mine && fr_schema_same(rules, mine, value)) continue;
        if (mine && said_otherwise(rules, both, key, mine, value)) continue;
        json_t *made = !mine || fr_schema_describes(key) ? json_incref(value) : merge_values(rules, key, mine, value);
        if (!made && rules->status == FR_OK)
            return fr_schema_fail(&(fr_schema_path){path, key, 0}, FR_UNBUILT,
                                  "two of these for one value are not built");
        fr_schema_set(rules, both, key, made);
    }
    if (json_object_get(one, "properties") || json_object_get(other, "properties")) {
        json_t *all = fr_schema_pack(rules, "{}");
        add_members(rules, all, one, other);
        add_members(rules, all, other, one);
        fr_schema_set(rules, both, "properties", all);
    }
    return fr_schema_check(rules, path);
}

fr_status fr_schema_merge(fr_grammar_rules *rules, const json_t *one, const json_t *other, const fr_schema_path *path,
                          json_t **merged) {
    *merged = NULL;
    if (json_is_true(one) || json_is_false(other)) *merged = json_incref((json_t *)other);
    if (!*merged && (json_is_true(other) || json_is_false(one))) *merged = json_incref((json_t *)one);
    if (*merged) return FR_OK;
    /* the meaning of these keywords depends on other keywords of the same schema */
    bool around = json_object_get(other, "unevaluatedProperties") || json_object_get(other, "unevaluatedItems");
    if (around || crosses(one, other) || crosses(other, one) || lists_differ(rules, one, other) ||
        lists_differ(rules, other, one) || counts_for(one, other) || counts_for(other, one))
        return fr_schema_fail(
            path, FR_UNBUILT,
            "a combination of schemas where one names members that the other calls additional is not built");
    json_t *both = fr_schema_copy(rules, one);
    fr_grammar_spend(rules, json_object_size(other));
    fr_status status = both ? merge_words(rules, one, other, path, both) : fr_schema_check(rules, path);
    if (status == FR_OK)
        *merged = both;
    else
        json_decref(both);
    return status;
}

/* ------------------------------------------------------------------------------------------------- disjoint schemas */

/* Lists the values that a schema allows by `const` or `enum`; NULL: it has neither. */
static json_t *constants(fr_grammar_rules *rules, const json_t *schema) {
    const json_t *constant = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    if (constant) return fr_schema_pack(rules, "[O]", constant);
    return json_is_array(list) ? json_incref((json_t *)list) : NULL;
}

static bool constants_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    const json_t *mine = json_object_get(one, "const"), *theirs = json_object_get(other, "const");
    if (mine && theirs) return !fr_schema_same(rules, mine, theirs);
    json_t *a = constants(rules, one), *b = constants(rules, other);
    json_t *both = a && b ? common_items(rules, a, b) : NULL;
    bool apart = both && json_array_size(both) == 0;
    json_decref(a);
    json_decref(b);
    json_decref(both);
    return apart;
}

static bool types_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    const json_t *a = json_object_get(one, "type"), *b = json_object_get(other, "type");
    json_t *both = a && b ? common_types(rules, a, b) : NULL;
    bool apart = both && json_array_size(both) == 0;
    json_decref(both);
    return apart;
}

/* Returns true if a schema allows only objects. */
static bool only_objects(const json_t *schema) {
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type && strcmp(type, "object") == 0;
}

/* Returns true if one schema requires a member that the other schema excludes, or for which the other schema has
 * another constant or type. At least one of the schemas must allow only objects: values of other types have no members,
 * so they might match both schemas. */
static bool members_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    size_t i;
    json_t *name;
    const json_t *mine = json_object_get(one, "properties"), *theirs = json_object_get(other, "properties");
    if (!only_objects(one) && !only_objects(other)) return false;
    fr_grammar_spend(rules, json_array_size(json_object_get(one, "required")));
    json_array_foreach (json_object_get(one, "required"), i, name) {
        const char *key = json_string_value(name);
        if (!key) continue;
        const json_t *their = json_object_get(theirs, key);
        if (their && (constants_disjoint(rules, json_object_get(mine, key), their) ||
                      types_disjoint(rules, json_object_get(mine, key), their)))
            return true;
        bool closed = json_is_false(json_object_get(other, "additionalProperties"));
        if (!their && closed && !json_object_get(other, "patternProperties")) return true;
    }
    return false;
}

bool fr_schemas_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    return types_disjoint(rules, one, other) || constants_disjoint(rules, one, other) ||
           members_disjoint(rules, one, other) || members_disjoint(rules, other, one);
}
