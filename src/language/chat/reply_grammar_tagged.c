/* Makes grammars of arguments that are written one by one (reply_grammar.h). They are written between tags, for the
 * reader reply_call_tagged.c, or in Python's form, for the reader reply_call_python.c.
 *
 * Each argument's value has a grammar of its own. So constraints on single members can be enforced, but not constraints
 * on the whole object. If the schema of a tool's parameters is a choice of schemas, each choice is a "way" to fill the
 * object, and has properties of its own. For a strict tool the ways are exact, and the choices of a oneOf must exclude
 * each other by the members that they require. Other keywords about the whole object are refused for a strict tool, and
 * ignored for any other tool. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/json_pointer.h"
#include "src/language/chat/reply_forms.h"
#include "src/language/chat/reply_grammar.h"

#define WAYS_MAX  64 /* limit on the ways that are kept apart; if there are more, any member of any way is allowed */
#define LOOKS_MAX 8  /* limit on the nested references and choices at the root that are followed */

/* Keywords about the whole object that the grammar enforces, because it allows only properties that the schema has. */
static const char *const KEPT[] = {"type",     "properties", "additionalProperties", "unevaluatedProperties",
                                   "required", NULL};

typedef struct making {
    const fr_reply_plan *plan;
    fr_grammar_rules *rules;
    fr_written_parts parts;
    const json_t *tool, *parameters;
    /* meets: an object may match several choices of a oneOf at once; loose: all ways were joined into one */
    bool strict, meets, loose;
} making;

static fr_expression then(making *m, fr_expression first, fr_expression second) {
    return fr_expression_then(m->rules, first, second);
}

bool fr_tool_is_strict(const json_t *tool) {
    return json_is_true(json_object_get(tool, "strict"));
}

/* ----------------------------------------------------------------------------------------- checks of the parameters */

static fr_status check_required(const json_t *parameters) {
    const json_t *names = json_object_get(parameters, "required"), *all = json_object_get(parameters, "properties");
    const fr_schema_path place = {NULL, "required", 0};
    size_t i;
    json_t *name;
    if (names && !json_is_array(names)) return fr_schema_fail(&place, FR_INPUT, "not a list");
    json_array_foreach (names, i, name) {
        const fr_schema_path at = {&place, NULL, i};
        if (!json_is_string(name)) return fr_schema_fail(&at, FR_INPUT, "not a string");
        if (!json_object_get(all, json_string_value(name)))
            return fr_schema_fail(&at, FR_UNBUILT,
                                  "a name that is not in properties is not built in this model's calls");
    }
    return FR_OK;
}

static const char *const CHOICES[] = {"anyOf", "oneOf", "allOf", "$ref", NULL};

static fr_status check_list(const making *m, const json_t *list, const fr_schema_path *path, size_t depth);

/* Refuses keywords of a strict tool's schema that can't be enforced if a call writes one argument after the other. It
 * also checks the schemas to which a $ref, an allOf or a choice of the root leads. */
static fr_status check_object(const making *m, const json_t *schema, const fr_schema_path *path, size_t depth) {
    const json_t *properties = json_object_get(schema, "properties");
    const char *word;
    json_t *said;
    bool chooses = false;
    if (!fr_grammar_spend(m->rules, 1 + json_object_size(schema))) return fr_schema_check(m->rules, path);
    json_object_foreach ((json_t *)schema, word, said) {
        const fr_schema_path place = {path, word, 0};
        bool choice = fr_schema_is_word(word, CHOICES), inner = depth > 0 && strcmp(word, "unevaluatedProperties") == 0;
        if (!fr_schema_describes(word) && !choice && (inner || !fr_schema_is_word(word, KEPT)))
            return fr_schema_fail(&place, FR_UNBUILT, "not built in this model's calls");
        if (choice && depth == LOOKS_MAX)
            return fr_schema_fail(&place, FR_UNBUILT, "not built for schemas nested so deep");
        const json_t *target = fr_json_refer(m->parameters, json_string_value(said));
        if (choice && *word == '$' && !target)
            return fr_schema_fail(&place, FR_INPUT, "this refers to nothing in the schema");
        if (choice && *word == '$') FR_TRY(check_object(m, target, &place, depth + 1));
        if (choice && *word != '$') FR_TRY(check_list(m, said, &place, depth + 1));
        chooses |= choice;
    }
    const fr_schema_path place = {path, "properties", 0};
    if (properties && !json_is_object(properties)) return fr_schema_fail(&place, FR_INPUT, "not an object");
    return depth || chooses ? FR_OK : check_required(schema);
}

static fr_status check_list(const making *m, const json_t *list, const fr_schema_path *path, size_t depth) {
    size_t i;
    json_t *schema;
    if (!json_array_size(list)) return fr_schema_fail(path, FR_INPUT, "not a list of schemas");
    json_array_foreach (list, i, schema) {
        const fr_schema_path at = {path, NULL, i};
        FR_TRY(check_object(m, schema, &at, depth));
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------ ways to fill the object */

/* Makes the way to fill the object that the schema itself describes, {"properties": {..}, "required": [..]}. If a
 * member is allowed only under a condition, the way allows it always. */
static json_t *own_way(making *m, const json_t *schema) {
    static const char *const conditional[] = {"then", "else"};
    const json_t *properties = json_object_get(schema, "properties"), *names = json_object_get(schema, "required");
    json_t *members = fr_schema_copy(m->rules, json_is_object(properties) ? properties : NULL);
    json_t *required = fr_schema_list(m->rules), *item;
    const char *key;
    size_t i;
    for (size_t k = 0; k < 2; k++)
        json_object_foreach (json_object_get(json_object_get(schema, conditional[k]), "properties"), key, item)
            if (!json_object_get(members, key)) fr_schema_set(m->rules, members, key, json_incref(item));
    json_array_foreach (names, i, item)
        if (json_is_string(item)) fr_schema_add(m->rules, required, json_incref(item));
    json_t *way = fr_schema_pack(m->rules, "{s:o,s:o}", "properties", members, "required", required);
    json_t *others = json_object_get(schema, "additionalProperties");
    if (m->strict && others && !json_is_true(others)) fr_schema_set(m->rules, way, "others", json_incref(others));
    return way;
}

/* Makes a schema that allows what two schemas both allow. */
static json_t *both_of(making *m, json_t *one, json_t *other) {
    if (json_is_false(one) || json_is_false(other)) return json_false();
    if (!one || json_is_true(one)) return json_incref(other);
    if (json_is_true(other) || fr_schema_same(m->rules, one, other)) return json_incref(one);
    return fr_schema_pack(m->rules, "{s:[O,O]}", "allOf", one, other);
}

/* Some members are named by other ways, but not by this way; this way has the schema `others` for them. The function
 * makes each such member's schema require `others` as well. named: the members that this way names. */
static void hold_others(making *m, json_t *members, const json_t *named, json_t *others) {
    const char *key;
    json_t *value, *all = others ? fr_schema_copy(m->rules, members) : NULL;
    json_object_foreach (all, key, value)
        if (!json_object_get(named, key)) fr_schema_set(m->rules, members, key, both_of(m, value, others));
    json_decref(all);
}

/* Joins two ways to fill the object into one way that requires both. If `loose` is true, it allows either of the two
 * instead: a property may have either schema, and no property is required. */
static json_t *join_ways(making *m, const json_t *one, const json_t *other, bool loose) {
    json_t *members = fr_schema_copy(m->rules, json_object_get(one, "properties")), *value, *name;
    json_t *required = loose ? fr_schema_list(m->rules) : fr_schema_copy(m->rules, json_object_get(one, "required"));
    const char *key;
    size_t i;
    json_object_foreach (json_object_get(other, "properties"), key, value) {
        json_t *mine = json_object_get(members, key);
        bool differ = mine && !fr_schema_same(m->rules, mine, value), exact = m->strict && !loose;
        json_t *both = exact && mine ? both_of(m, mine, value)
                       : !differ     ? json_incref(value)
                                     : fr_schema_pack(m->rules, "{s:[O,O]}", loose ? "anyOf" : "allOf", mine, value);
        fr_schema_set(m->rules, members, key, both);
    }
    json_array_foreach (json_object_get(other, "required"), i, name)
        if (!loose && !fr_schema_lists(m->rules, required, name)) fr_schema_add(m->rules, required, json_incref(name));
    json_t *ours = json_object_get(one, "others"), *theirs = json_object_get(other, "others");
    hold_others(m, members, json_object_get(one, "properties"), ours);
    hold_others(m, members, json_object_get(other, "properties"), theirs);
    json_t *way = fr_schema_pack(m->rules, "{s:o,s:o}", "properties", members, "required", required);
    if (ours || theirs) fr_schema_set(m->rules, way, "others", theirs ? both_of(m, ours, theirs) : json_incref(ours));
    return way;
}

/* Returns true if both schemas list values, and the two lists have no value in common. */
static bool lists_differ(making *m, const json_t *one, const json_t *other) {
    const json_t *schemas[] = {one, other};
    json_t *own[2];
    for (size_t i = 0; i < 2; i++) {
        json_t *constant = json_object_get(schemas[i], "const"), *list = json_object_get(schemas[i], "enum");
        own[i] = constant ? fr_schema_pack(m->rules, "[O]", constant) : json_incref(list);
    }
    bool differ = json_is_array(own[0]) && json_is_array(own[1]);
    for (size_t i = 0; differ && i < json_array_size(own[0]); i++)
        differ = !fr_schema_lists(m->rules, own[1], json_array_get(own[0], i));
    json_decref(own[0]);
    json_decref(own[1]);
    return differ;
}

/* Returns true if no object can be filled in both ways. That is so if one way requires a member that the other way
 * excludes, or for which it requires other values. */
static bool ways_differ(making *m, const json_t *one, const json_t *other) {
    const json_t *all = json_object_get(other, "properties");
    bool closed = json_is_false(json_object_get(other, "others"));
    size_t i;
    json_t *name;
    json_array_foreach (json_object_get(one, "required"), i, name) {
        const char *key = json_string_value(name);
        const json_t *theirs = json_object_get(all, key);
        bool required = fr_schema_lists(m->rules, json_object_get(other, "required"), name);
        if (json_is_false(theirs) || (closed && !theirs)) return true;
        if (required && lists_differ(m, json_object_get(json_object_get(one, "properties"), key), theirs)) return true;
    }
    return false;
}

/* Merges all ways to fill the object into one way, which allows each member of any of them and requires none. Takes
 * over the list. */
static json_t *loosen(making *m, json_t *ways) {
    json_t *all = json_incref(json_array_get(ways, 0));
    for (size_t i = 1; i < json_array_size(ways); i++) {
        json_t *more = join_ways(m, all, json_array_get(ways, i), true);
        json_decref(all);
        all = more;
    }
    json_decref(ways);
    return fr_schema_pack(m->rules, "[o]", all);
}

/* Joins each way of one list with each way of the other list. Takes over both lists. */
static json_t *cross(making *m, json_t *ones, json_t *others) {
    size_t i, k;
    json_t *all = fr_schema_list(m->rules), *one, *other;
    if (json_array_size(ones) * json_array_size(others) > WAYS_MAX) {
        m->loose = true;
        ones = loosen(m, ones);
        others = loosen(m, others);
    }
    json_array_foreach (ones, i, one)
        json_array_foreach (others, k, other) fr_schema_add(m->rules, all, join_ways(m, one, other, false));
    json_decref(ones);
    json_decref(others);
    return all;
}

/* Returns true if the schema's type allows objects. Arguments are an object, so a schema without objects can't describe
 * them. */
static bool may_be_object(const json_t *schema) {
    const json_t *type = json_object_get(schema, "type");
    bool found = !type || (json_is_string(type) && strcmp(json_string_value(type), "object") == 0);
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));
        found |= name && strcmp(name, "object") == 0;
    }
    return found && !json_is_false(schema);
}

/* If all that a schema says is that one member is required, gives that member's name; otherwise NULL. */
static const char *only_name(const json_t *schema) {
    const json_t *names = json_object_get(schema, "required");
    const char *word;
    json_t *said;
    json_object_foreach ((json_t *)schema, word, said)
        if (!fr_schema_describes(word) && strcmp(word, "required") != 0) return NULL;
    return json_array_size(names) == 1 ? json_string_value(json_array_get(names, 0)) : NULL;
}

/* Handles a oneOf whose schemas each require one name and say nothing else. Exactly one of these names is in the
 * object. So the way of each schema excludes the names that the other schemas require. */
static void exclude_names(making *m, const json_t *list, size_t own, json_t *way) {
    size_t i;
    json_t *schema;
    const char *mine = only_name(json_array_get(list, own));
    json_array_foreach (list, i, schema)
        if (!only_name(schema)) return;
    json_array_foreach (list, i, schema)
        if (strcmp(only_name(schema), mine) != 0)
            fr_schema_set(m->rules, json_object_get(way, "properties"), only_name(schema), json_false());
}

static json_t *ways_of(making *m, const json_t *schema, size_t depth) {
    static const char *const choices[] = {"anyOf", "oneOf"};
    json_t *item, *ways = fr_schema_list(m->rules);
    const json_t *target = fr_json_refer(m->parameters, json_string_value(json_object_get(schema, "$ref")));
    size_t i;
    if (!may_be_object(schema)) return ways;
    fr_schema_add(m->rules, ways, own_way(m, schema));
    if (depth == LOOKS_MAX || m->rules->status != FR_OK) return ways;
    if (target) ways = cross(m, ways, ways_of(m, target, depth + 1));
    json_array_foreach (json_object_get(schema, "allOf"), i, item) ways = cross(m, ways, ways_of(m, item, depth + 1));
    for (size_t k = 0; k < 2; k++) {
        const json_t *list = json_object_get(schema, choices[k]);
        json_t *any = fr_schema_list(m->rules), *some, *one;
        size_t at, first = 0;
        json_array_foreach (list, i, item) {
            some = ways_of(m, item, depth + 1);
            json_array_foreach (some, at, one) {
                if (k == 1 && m->strict) exclude_names(m, list, i, one);
                for (size_t before = 0; k == 1 && m->strict && before < first; before++)
                    m->meets |= !ways_differ(m, json_array_get(any, before), one) &&
                                !ways_differ(m, one, json_array_get(any, before));
                fr_schema_add(m->rules, any, json_incref(one));
            }
            first = json_array_size(any);
            json_decref(some);
        }
        ways = json_array_size(list) ? cross(m, ways, any) : (json_decref(any), ways);
    }
    return ways;
}

/* -------------------------------------------------------------------------------------------------------- arguments */

static bool is_python(const making *m) {
    return m->plan->format->form->arguments == FR_ARGUMENTS_PYTHON;
}

/* The arguments made so far. some: an expression for at least one argument. may_be_none: the call may also have no
 * argument. */
typedef struct arguments_made {
    fr_expression some;
    bool has_some, may_be_none;
} arguments_made;

/* Adds an argument in Python's form. If other arguments come before it, a comma separates them. */
static void add_python(making *m, arguments_made *made, fr_expression one, bool required) {
    uint32_t rule = fr_grammar_rule(m->rules);
    fr_grammar_define(m->rules, rule, one);
    one = fr_expression_rule(m->rules, rule);
    fr_expression behind = then(m, fr_expression_string(m->rules, ", "), one), some = made->some;
    if (!required) behind = fr_expression_repeat(m->rules, behind, 0, 1);
    if (made->has_some) some = then(m, some, behind);
    if (made->may_be_none) some = made->has_some ? fr_expression_or(m->rules, some, one) : one;
    *made = (arguments_made){some, true, made->may_be_none && !required};
}

/* Makes one argument. In tagged forms, it reaches from the argument's tag to the tag after its value; in Python's form,
 * from its key to its value. */
static fr_status argument(making *m, const char *key, const json_t *schema, fr_expression *made) {
    const fr_schema_path place = {NULL, "properties", 0}, at = {&place, key, 0};
    fr_expression value;
    if (is_python(m)) {
        FR_TRY(fr_json_schema_expression(m->parameters, schema, &at, &m->parts, &value));
        *made = then(m, then(m, fr_expression_string(m->rules, key), fr_expression_string(m->rules, "=")), value);
        return FR_OK;
    }
    FR_TRY(fr_tagged_value(m->plan, m->tool, key, schema, &at, &m->parts, &value));
    const char *form = m->plan->format->form->argument, *mark = m->plan->format->marks[FR_MARK_VALUE_END];
    const char *value_at = strstr(form, "$VALUE"), *behind = strstr(value_at, mark) + strlen(mark);
    const fr_form_word words[] = {{"$KEY", fr_expression_string(m->rules, key)}, {NULL, 0}};
    char before[64];
    snprintf(before, sizeof before, "%.*s", (int)(value_at - form), form);
    *made = then(m, fr_form_text(m->plan, m->rules, before, words), value);
    *made = then(m, *made, fr_form_text(m->plan, m->rules, behind, words));
    return FR_OK;
}

/* Makes the arguments of one way (see the top of this file). If an argument's name can't be written in this form of
 * calls, the argument is left out; for a strict tool, it is refused. */
static fr_status way_arguments(making *m, const json_t *way, fr_expression *arguments) {
    const fr_schema_path place = {NULL, "properties", 0};
    const char *never = is_python(m) ? "=(){}[],:'\"<> \t\n" : "<>\"";
    const json_t *names = json_object_get(way, "required");
    arguments_made made = {.may_be_none = true};
    json_t *schema, *required = fr_schema_pack(m->rules, "{}"), *all, *name;
    const char *key;
    size_t i;
    fr_status status;
    all = fr_schema_copy(m->rules, json_object_get(way, "properties"));
    json_array_foreach (names, i, name) {
        key = json_string_value(name);
        fr_schema_set(m->rules, required, key, json_true());
        if (!json_object_get(all, key)) fr_schema_set(m->rules, all, key, json_true());
    }
    *arguments = 0;
    status = fr_schema_check(m->rules, NULL);
    json_object_foreach (all, key, schema) {
        fr_expression one = 0;
        const fr_schema_path at = {&place, key, 0};
        bool written = *key && !strpbrk(key, never);
        if (status == FR_OK && !written && fr_tool_is_strict(m->tool))
            status = fr_schema_fail(&at, FR_UNBUILT, "this model's calls have no such names");
        if (status != FR_OK || !written || (json_is_false(schema) && m->strict)) continue;
        status = argument(m, key, schema, &one);
        bool needed = json_object_get(required, key) != NULL;
        if (is_python(m))
            add_python(m, &made, one, needed);
        else
            *arguments = then(m, *arguments, needed ? one : fr_expression_repeat(m->rules, one, 0, 1));
        if (status == FR_OK) status = fr_grammar_rules_check(m->rules);
    }
    if (made.has_some) *arguments = made.may_be_none ? fr_expression_repeat(m->rules, made.some, 0, 1) : made.some;
    json_decref(all);
    json_decref(required);
    return status;
}

/* Drops the ways to fill a strict tool's arguments that no object fits. Refuses ways that the grammar can't express
 * exactly. */
static fr_status keep_ways(const making *m, json_t *ways) {
    const fr_schema_path one_of = {NULL, "oneOf", 0}, required = {NULL, "required", 0};
    if (m->meets)
        return fr_schema_fail(&one_of, FR_UNBUILT,
                              "choices that may match the same value are not built in this model's calls");
    if (m->loose) return fr_schema_fail(NULL, FR_UNBUILT, "so many choices are not built in this model's calls");
    for (size_t i = json_array_size(ways); i-- > 0;) {
        const json_t *way = json_array_get(ways, i), *all = json_object_get(way, "properties");
        bool fits = true;
        size_t k;
        json_t *name;
        json_array_foreach (json_object_get(way, "required"), k, name) {
            const json_t *schema = json_object_get(all, json_string_value(name));
            fits &= !json_is_false(schema) && (schema || !json_is_false(json_object_get(way, "others")));
            if (fits && !schema)
                return fr_schema_fail(&required, FR_UNBUILT,
                                      "a name that is not in properties is not built in this model's calls");
        }
        if (!fits) json_array_remove(ways, i);
    }
    return FR_OK;
}

fr_status fr_tagged_arguments(const fr_reply_plan *plan, const json_t *tool, fr_grammar_rules *rules,
                              fr_expression *arguments) {
    bool strict = fr_tool_is_strict(tool);
    making m = {plan, rules, fr_written_parts_of(rules), tool, json_object_get(tool, "parameters"), .strict = strict};
    m.parts.lenient = !strict;
    *arguments = 0;
    if (strict) FR_TRY(check_object(&m, m.parameters, NULL, 0));
    json_t *ways = ways_of(&m, m.parameters ? m.parameters : json_null(), 0), *way;
    size_t i;
    fr_status status = fr_schema_check(rules, NULL);
    if (status == FR_OK && strict) status = keep_ways(&m, ways);
    if (status == FR_OK && strict && !json_array_size(ways))
        status = fr_schema_fail(NULL, FR_INPUT, "this schema allows no value");
    json_array_foreach (ways, i, way) {
        fr_expression made = 0;
        if (status == FR_OK) status = way_arguments(&m, way, &made);
        *arguments = i ? fr_expression_or(rules, *arguments, made) : made;
    }
    json_decref(ways);
    return status;
}
