/* Makes expressions of a schema's arrays (json_schema_reader.h). Arrays whose items must all differ are built only if
 * the possible values of the items are known. If there are few values, they may come in any order. If there are more,
 * they may come only in the order of the schema. Other such arrays are refused, because no automaton can compare
 * arbitrary strings with each other. */
#include <stdlib.h>
#include <string.h>

#include "src/language/grammar/automaton_nodes.h"
#include "src/language/grammar/json_schema_reader.h"

#define SHUFFLED_MAX 8     /* limit on the values that may come in any order */
#define RULES_MAX    20000 /* limit on the rules for values that may come only in the schema's order */
#define HITS_MAX     64    /* limit on the items that `contains` may require */
#define CHOICES_MAX  8     /* limit on nested choices */
/* limit on the integers that are listed; BOUND_MAX limits their bounds */
#define INTEGERS_MAX 100
#define BOUND_MAX    1000000000000000
#define TEXTS_MAX    100 /* limit on the strings that are listed; each has at most LENGTH_MAX bytes */
#define LENGTH_MAX   64  /* limit on the bytes of a listed string */

/* ----------------------------------------------------------------------------------------------------------- tuples */

/* Reads the items that have schemas of their own, at least `least` of them. end: the expression that may follow the
 * last of them. The expression is made from the last item to the first. */
static fr_status read_given(fr_schema_reader *r, const json_t *first, uint32_t least, uint32_t given,
                            const fr_schema_path *path, fr_expression end, fr_expression *expression) {
    const fr_schema_path place = {path, "prefixItems", 0};
    fr_grammar_rules *rules = r->parts->rules;
    fr_expression close = fr_schema_then(r, fr_written_blank(r->parts), fr_expression_string(rules, "]"));
    fr_expression all = fr_schema_then(r, end, close);
    for (uint32_t i = given; i-- > 0;) {
        const fr_schema_path at = {&place, NULL, i};
        fr_expression item;
        bool some;
        FR_TRY(fr_schema_read_some(r, json_array_get(first, i), &at, &item, &some));
        if (!some && i < least) return fr_schema_nothing(r, &at);
        fr_expression before = i ? fr_written_comma(r->parts) : fr_written_blank(r->parts);
        fr_expression on = some ? fr_schema_then(r, fr_schema_then(r, before, item), all) : close;
        all = some && i >= least ? fr_expression_or(rules, on, close) : on;
    }
    *expression = fr_schema_then(r, fr_expression_string(rules, "["), all);
    return FR_OK;
}

/* Reads the items that have schemas of their own, and then further items, which all have the schema `rest`. A further
 * item may come only after all items with schemas of their own. */
static fr_status read_tuple(fr_schema_reader *r, const json_t *first, const json_t *rest, uint32_t least, uint32_t most,
                            const fr_schema_path *path, fr_expression *expression) {
    uint32_t given = (uint32_t)json_array_size(first);
    const fr_schema_path at = {path, "items", 0};
    fr_expression end = 0, item = 0;
    bool some = !json_is_false(rest);
    if (most < given) given = most;
    uint32_t behind = least > given ? least - given : 0;
    if (some && most > given && rest) FR_TRY(fr_schema_read_some(r, rest, &at, &item, &some));
    if (some && most > given && !rest) item = fr_written_any(r->parts);
    if (some && most > given) {
        uint32_t more = most == FR_GRAMMAR_UNBOUND ? most : most - given;
        item = fr_schema_then(r, fr_written_comma(r->parts), item);
        end = fr_expression_repeat(r->parts->rules, item, behind, more);
    } else if (behind > 0) {
        return fr_schema_nothing(r, path);
    }
    return read_given(r, first, least < given ? least : given, given, path, end, expression);
}

/* ---------------------------------------------------------------------------------------------- all items different */

typedef struct choice {
    fr_schema_reader *r;
    const json_t *values;
    uint32_t count, least, most, first_rule;
} choice;

/* Writes a value. If it is not the first, a comma comes before it. */
static fr_expression write_value(const choice *c, size_t value, bool first) {
    fr_expression literal = fr_written_literal(c->r->parts, json_array_get(c->values, value));
    return first ? literal : fr_schema_then(c->r, fr_written_comma(c->r->parts), literal);
}

static void define(const choice *c, uint32_t rule, fr_expression body, bool some) {
    fr_grammar_rules *rules = c->r->parts->rules;
    fr_grammar_define(rules, c->first_rule + rule, some ? body : fr_expression_characters(rules, NULL, 0, false));
}

/* Writes values in any order. There is one rule for each set of values that may already have been written. */
static void write_shuffled(const choice *c) {
    fr_grammar_rules *rules = c->r->parts->rules;
    for (uint32_t set = 0; set < 1u << c->count; set++) {
        uint32_t there = (uint32_t)__builtin_popcount(set);
        bool some = there >= c->least;
        fr_expression all = 0;
        for (uint32_t value = 0; value < c->count && there < c->most; value++) {
            if (set >> value & 1) continue;
            fr_schema_or(c->r,
                         fr_schema_then(c->r, write_value(c, value, there == 0),
                                        fr_expression_rule(rules, c->first_rule + (set | 1u << value))),
                         &all, &some);
        }
        define(c, set, all, some);
    }
}

/* Writes values in the order of the schema. There is one rule for each pair of a value that may be next and a number of
 * values that were already written. */
static void write_in_order(const choice *c) {
    fr_grammar_rules *rules = c->r->parts->rules;
    uint32_t counts = c->count + 1;
    for (uint32_t next = 0; next <= c->count; next++)
        for (uint32_t there = 0; there <= next; there++) {
            bool some = there >= c->least;
            fr_expression all = 0;
            if (next < c->count && there < c->most) {
                fr_schema_or(c->r,
                             fr_schema_then(c->r, write_value(c, next, there == 0),
                                            fr_expression_rule(rules, c->first_rule + (next + 1) * counts + there + 1)),
                             &all, &some);
                fr_schema_or(c->r, fr_expression_rule(rules, c->first_rule + (next + 1) * counts + there), &all, &some);
            }
            define(c, next * counts + there, all, some);
        }
    for (uint32_t next = 0; next <= c->count; next++)
        for (uint32_t there = next + 1; there < counts; there++) define(c, next * counts + there, 0, false);
}

static fr_status write_different(fr_schema_reader *r, const json_t *values, uint32_t least, uint32_t most,
                                 const fr_schema_path *path, fr_expression *expression) {
    fr_grammar_rules *rules = r->parts->rules;
    choice c = {r, values, (uint32_t)json_array_size(values), least, most, (uint32_t)rules->rule_count};
    bool shuffled = c.count <= SHUFFLED_MAX;
    size_t needed = shuffled ? (size_t)1 << c.count : (size_t)(c.count + 1) * (c.count + 1);
    const fr_schema_path place = {path, "uniqueItems", 0};
    if (least > c.count) return fr_schema_nothing(r, path);
    if (needed > RULES_MAX) return fr_schema_fail(&place, FR_UNBUILT, "not built for so many values");
    for (size_t i = 0; i < needed; i++) fr_grammar_rule(rules);
    if (rules->status != FR_OK) return fr_grammar_rules_check(rules);
    if (shuffled)
        write_shuffled(&c);
    else
        write_in_order(&c);
    fr_expression begin = fr_schema_then(r, fr_expression_string(rules, "["), fr_written_blank(r->parts));
    fr_expression end = fr_schema_then(r, fr_written_blank(r->parts), fr_expression_string(rules, "]"));
    *expression = fr_schema_then(r, fr_schema_then(r, begin, fr_expression_rule(rules, c.first_rule)), end);
    return FR_OK;
}

/* Adds all values of a type to a list. That is possible for booleans, null, and integers whose bounds are close to each
 * other. Returns false if the type has too many values. */
static bool add_values_of_type(fr_grammar_rules *rules, const char *type, const json_t *schema, json_t *list) {
    const json_t *least = json_object_get(schema, "minimum"), *most = json_object_get(schema, "maximum");
    if (strcmp(type, "boolean") == 0) {
        fr_schema_add(rules, list, json_true());
        fr_schema_add(rules, list, json_false());
        return true;
    }
    if (strcmp(type, "null") == 0) fr_schema_add(rules, list, json_null());
    if (strcmp(type, "null") == 0) return true;
    if (strcmp(type, "integer") != 0 || !json_is_integer(least) || !json_is_integer(most)) return false;
    json_int_t low = json_integer_value(least), high = json_integer_value(most);
    if (low < -BOUND_MAX || high > BOUND_MAX || high - low >= INTEGERS_MAX) return false;
    for (json_int_t value = low; value <= high; value++) fr_schema_add(rules, list, fr_schema_pack(rules, "I", value));
    return true;
}

/* Adds the texts of a language that begin with `text` and continue from state `at`. Returns false if there are too many
 * such texts, or if they are too long. */
static bool add_texts_from(fr_grammar_rules *rules, const fr_language *language, uint32_t at, char *text, size_t length,
                           json_t *list) {
    const fr_language_state *state = &language->states[at];
    if (json_array_size(list) >= TEXTS_MAX || length + 4 > LENGTH_MAX || !fr_grammar_spend(rules, 1)) return false;
    if (state->ends) fr_schema_add(rules, list, json_stringn(text, length));
    for (uint32_t i = 0; i < state->count; i++) {
        const fr_language_edge *edge = &language->edges[state->first + i];
        for (uint32_t code = edge->low; code <= edge->high; code++) {
            size_t more = fr_utf8_encode(code, (uint8_t *)text + length);
            if (!add_texts_from(rules, language, edge->to, text, length + more, list)) return false;
        }
    }
    return true;
}

/* Adds the strings of a schema if its pattern or format allows only a few. */
static fr_status add_texts(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, json_t *list,
                           bool *known) {
    fr_language *language;
    char text[LENGTH_MAX];
    json_t *texts = fr_schema_list(r->parts->rules), *one;
    size_t i;
    fr_status status = fr_schema_check(r->parts->rules, path);
    if (status == FR_OK) status = fr_schema_language(r, schema, path, &language);
    if (status == FR_OK && language) {
        *known = fr_language_is_empty(language) || add_texts_from(r->parts->rules, language, 0, text, 0, texts);
        fr_language_free(language);
    }
    json_array_foreach (texts, i, one)
        if (*known) fr_schema_add(r->parts->rules, list, json_incref(one));
    json_decref(texts);
    return status == FR_OK ? fr_schema_check(r->parts->rules, path) : status;
}

/* Adds those values of `list` that match the schema to `kept`, each only once. */
static fr_status keep_different(fr_schema_reader *r, const json_t *list, const json_t *schema,
                                const fr_schema_path *path, json_t *kept) {
    fr_grammar_rules *rules = r->parts->rules;
    size_t i;
    json_t *value;
    json_array_foreach (list, i, value) {
        bool holds;
        FR_TRY(fr_schema_holds(r, schema, value, path, 0, &holds));
        if (holds && !fr_schema_lists(rules, kept, value)) fr_schema_add(rules, kept, json_incref(value));
    }
    return fr_schema_check(rules, path);
}

/* Adds the values of one type, or of all types in a list. Returns false if they can't all be listed. */
static bool add_values_of_types(fr_grammar_rules *rules, const json_t *types, const json_t *schema, json_t *list) {
    bool known = json_is_string(types) && add_values_of_type(rules, json_string_value(types), schema, list);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        known = (i == 0 || known) && add_values_of_type(rules, type, schema, list);
    }
    return known;
}

/* Adds all values that match a schema, and perhaps some that do not match it. *known: true if the list is complete. */
static fr_status add_values(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, size_t depth,
                            json_t *list, bool *known) {
    fr_grammar_rules *rules = r->parts->rules;
    const json_t *said = fr_schema_look_through(r, schema, path), *choices = json_object_get(said, "anyOf");
    json_t *listed = NULL, *item;
    size_t i;
    if (!choices) choices = json_object_get(said, "oneOf");
    FR_TRY(fr_schema_check_words(r, said, path));
    FR_TRY(fr_schema_constants(r, said, path, &listed));
    json_array_foreach (listed, i, item) fr_schema_add(rules, list, json_incref(item));
    *known = listed || add_values_of_types(rules, json_object_get(said, "type"), said, list);
    json_decref(listed);
    const char *type = json_string_value(json_object_get(said, "type"));
    if (!*known && type && strcmp(type, "string") == 0 && !choices) return add_texts(r, said, path, list, known);
    if (*known || !choices || depth == CHOICES_MAX) return fr_schema_check(rules, path);
    *known = true;
    json_array_foreach (choices, i, item)
        if (*known) FR_TRY(add_values(r, item, path, depth + 1, list, known));
    return fr_schema_check(rules, path);
}

/* Lists the values that items may have, each only once. NULL: the values are not known. */
static fr_status values_of_items(fr_schema_reader *r, const json_t *items, const fr_schema_path *path,
                                 json_t **values) {
    const fr_schema_path place = {path, "items", 0};
    fr_grammar_rules *rules = r->parts->rules;
    bool known = false;
    *values = NULL;
    if (!items) return FR_OK;
    json_t *listed = fr_schema_list(rules), *kept = fr_schema_list(rules);
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK) status = add_values(r, items, &place, 0, listed, &known);
    if (status == FR_OK && known) status = keep_different(r, listed, items, &place, kept);
    json_decref(listed);
    if (status == FR_OK && known)
        *values = kept;
    else
        json_decref(kept);
    return status;
}

static bool all_disjoint(fr_schema_reader *r, const json_t *schemas, const fr_schema_path *path) {
    fr_grammar_rules *rules = r->parts->rules;
    size_t count = json_array_size(schemas);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (!fr_grammar_spend(rules, 1) ||
                !fr_schemas_disjoint(rules, fr_schema_look_through(r, json_array_get(schemas, i), path),
                                     fr_schema_look_through(r, json_array_get(schemas, k), path)))
                return false;
    return true;
}

static fr_status read_different(fr_schema_reader *r, const json_t *items, uint32_t least, uint32_t most,
                                const fr_schema_path *path, fr_expression *expression) {
    const fr_schema_path place = {path, "uniqueItems", 0};
    json_t *values = NULL;
    FR_TRY(values_of_items(r, items, path, &values));
    if (!values)
        return fr_schema_fail(&place, FR_UNBUILT,
                              "built only for items of an enum, constants, booleans, integers between bounds and "
                              "strings of a pattern that a few match");
    fr_status status = write_different(r, values, least, most, path, expression);
    json_decref(values);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- arrays */

static fr_status read_items(fr_schema_reader *r, const json_t *items, uint32_t least, uint32_t most,
                            const fr_schema_path *path, fr_expression *expression) {
    const fr_schema_path place = {path, "items", 0};
    fr_expression item = 0;
    bool some = most > 0;
    if (!items || json_is_true(items))
        item = fr_written_any(r->parts);
    else if (some)
        FR_TRY(fr_schema_read_some(r, items, &place, &item, &some));
    if (!some && least > 0) return fr_schema_nothing(r, path);
    *expression = fr_written_list(r->parts, "[", item, least, some ? most : 0, "]");
    return FR_OK;
}

/* Makes the arrays of a schema with `contains`. The items that match `contains` come first. */
static fr_status read_hits(fr_schema_reader *r, const json_t *schema, const json_t *items, uint32_t least,
                           uint32_t most, const fr_schema_path *path, fr_expression *expression) {
    const json_t *hit = json_object_get(schema, "contains");
    const fr_schema_path place = {path, "contains", 0};
    uint32_t hits = 1, no_most;
    if (json_object_get(schema, "minContains"))
        FR_TRY(fr_schema_read_counts(r, schema, "minContains", NULL, path, &hits, &no_most));
    if (hits > most) return fr_schema_nothing(r, path);
    if (hits == 0) return read_items(r, items, least, most, path, expression);
    if (hits > HITS_MAX) return fr_schema_fail(&place, FR_UNBUILT, "more than 64 times is not built");
    fr_grammar_rules *rules = r->parts->rules;
    json_t *both = items ? fr_schema_pack(rules, "{s:[O,O]}", "allOf", items, hit) : json_incref((json_t *)hit);
    json_t *first = fr_schema_list(rules);
    for (uint32_t i = 0; i < hits; i++) fr_schema_add(rules, first, json_incref(both));
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK) status = read_tuple(r, first, items, least > hits ? least : hits, most, path, expression);
    json_decref(both);
    json_decref(first);
    return status;
}

fr_status fr_schema_read_array(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                               fr_expression *expression) {
    const json_t *items = json_object_get(schema, "items"), *first = json_object_get(schema, "prefixItems");
    const json_t *hit = json_object_get(schema, "contains");
    const fr_schema_path unique = {path, "uniqueItems", 0}, place = {path, "contains", 0};
    uint32_t least, most;
    FR_TRY(fr_schema_read_counts(r, schema, "minItems", "maxItems", path, &least, &most));
    if (json_is_array(items)) { /* before draft 2020-12, schemas had tuples in this form */
        first = items;
        items = json_object_get(schema, "additionalItems");
    }
    if (!items) items = json_object_get(schema, "unevaluatedItems");
    bool tuple = json_array_size(first) && most > 0, different = json_is_true(json_object_get(schema, "uniqueItems"));
    bool closed = json_is_false(items) || most <= json_array_size(first);
    if (hit && (tuple || different || json_object_get(schema, "maxContains")))
        return fr_schema_fail(&place, FR_UNBUILT, "not built beside prefixItems, uniqueItems or maxContains");
    bool apart = tuple && different && closed && all_disjoint(r, first, path);
    FR_TRY(fr_schema_check(r->parts->rules, path));
    if (tuple && different && !apart)
        return fr_schema_fail(&unique, FR_UNBUILT, "not built beside prefixItems that may be equal");
    if (tuple) return read_tuple(r, first, items, least, most, path, expression);
    if (different && most > 1) return read_different(r, items, least, most, path, expression);
    if (hit) return read_hits(r, schema, items, least, most, path, expression);
    return read_items(r, items, least, most, path, expression);
}
