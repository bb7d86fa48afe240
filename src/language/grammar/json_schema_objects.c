/* Makes expressions of a schema's objects (json_schema_reader.h). Members come in the order of `properties`. Other
 * members come after them. */
#include <stdlib.h>

#include "src/language/grammar/json_schema_reader.h"

#define PATTERNS_MAX 4     /* limit on the patterns of names; there is a schema of members for each set of patterns */
#define COUNTED_MAX  200   /* limit on the members of an object whose number of members is bounded */
#define RULES_MAX    20000 /* limit on the rules: one for each member and each number of members before it */

/* ------------------------------------------------------------------------------------------------------- the schema */

typedef struct shape {
    fr_schema_reader *r;
    /* others: additionalProperties; if it is missing, unevaluatedProperties; if that is missing too, NULL */
    const json_t *schema, *patterns, *others;
    const fr_schema_path *path;
    /* objects whose keys are names of members. `properties` has the schema's own properties first, and then the
     * required names that are not among them. */
    json_t *properties, *required;
    fr_language *of_pattern[PATTERNS_MAX]; /* for each pattern, the language of the names that it matches */
    fr_language *names;                    /* the language of allowed names; NULL: all are allowed */
    size_t pattern_count;
    uint32_t least, most; /* bounds on the number of members */
} shape;

static fr_grammar_rules *rules_of(const shape *s) {
    return s->r->parts->rules;
}

static fr_status read_required(shape *s) {
    size_t i;
    json_t *name;
    s->required = fr_schema_pack(rules_of(s), "{}");
    json_array_foreach (json_object_get(s->schema, "required"), i, name)
        fr_schema_set(rules_of(s), s->required, json_string_value(name), json_true());
    return fr_schema_check(rules_of(s), s->path);
}

static fr_status read_patterns(shape *s) {
    const fr_schema_path place = {s->path, "patternProperties", 0};
    const char *pattern;
    json_t *value;
    s->patterns = json_object_get(s->schema, "patternProperties");
    if (json_object_size(s->patterns) > PATTERNS_MAX)
        return fr_schema_fail(&place, FR_UNBUILT, "more than 4 patterns are not built");
    json_object_foreach ((json_t *)s->patterns, pattern, value) {
        const fr_schema_path at = {&place, pattern, 0};
        FR_TRY(fr_schema_pattern(rules_of(s), pattern, strlen(pattern), false, &at, &s->of_pattern[s->pattern_count]));
        s->pattern_count++;
    }
    return FR_OK;
}

/* Refuses the schema of names (propertyNames) if it uses keywords that fr_schema_language does not read. */
static fr_status check_names(const json_t *schema, const fr_schema_path *path) {
    static const char *const choices[] = {"anyOf", "oneOf", "allOf", "not", "if", "$ref"};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (json_object_get(schema, choices[i]))
            return fr_schema_fail(path, FR_UNBUILT,
                                  "names can only have patterns, lengths, formats and constants: others are not built");
    return FR_OK;
}

/* Returns true if the schema allows strings, because names are strings. That is so if it has no type, or if its types
 * include strings. */
static bool may_be_strings(fr_grammar_rules *rules, const json_t *schema) {
    const json_t *type = json_object_get(schema, "type");
    json_t *string = type ? fr_schema_pack(rules, "s", "string") : NULL;
    bool may = !type || fr_schema_same(rules, type, string) || fr_schema_lists(rules, type, string);
    json_decref(string);
    return may;
}

static fr_status read_names(shape *s) {
    const json_t *schema = json_object_get(s->schema, "propertyNames");
    const fr_schema_path place = {s->path, "propertyNames", 0};
    json_t *listed = NULL;
    if (!schema || json_is_true(schema)) return FR_OK;
    if (json_is_false(schema)) return fr_schema_texts(rules_of(s), NULL, &s->names);
    schema = fr_schema_look_through(s->r, schema, &place);
    FR_TRY(fr_schema_check_words(s->r, schema, &place));
    FR_TRY(fr_schema_constants(s->r, schema, &place, &listed));
    fr_status status = FR_OK;
    if (!listed) status = check_names(schema, &place);
    if (status == FR_OK && (listed || !may_be_strings(rules_of(s), schema)))
        status = fr_schema_texts(rules_of(s), listed, &s->names);
    else if (status == FR_OK)
        status = fr_schema_language(s->r, schema, &place, &s->names);
    json_decref(listed);
    return status;
}

/* Gives the schema of a member, combined with the schemas of all patterns that the member's name matches. A name that
 * is not allowed gets the schema `false`. */
static json_t *with_patterns(const shape *s, const char *name, json_t *value) {
    const fr_text text = {name, strlen(name)};
    if (s->names && !fr_language_has(s->names, text)) return json_false();
    json_t *all = NULL, *schema;
    const char *pattern;
    size_t i = 0;
    json_object_foreach ((json_t *)s->patterns, pattern, schema) {
        if (!fr_language_has(s->of_pattern[i++], text)) continue;
        if (!all) all = value ? fr_schema_pack(rules_of(s), "[O]", value) : fr_schema_list(rules_of(s));
        fr_schema_add(rules_of(s), all, json_incref(schema));
    }
    if (all) return fr_schema_said(rules_of(s), "allOf", all);
    if (value) return json_incref(value);
    return s->others ? json_incref((json_t *)s->others) : json_true();
}

static fr_status read_properties(shape *s) {
    const json_t *given = json_object_get(s->schema, "properties");
    const char *name;
    json_t *value;
    size_t i;
    const fr_schema_path place = {s->path, "properties", 0};
    s->properties = fr_schema_pack(rules_of(s), "{}");
    json_object_foreach ((json_t *)given, name, value)
        fr_schema_set(rules_of(s), s->properties, name, with_patterns(s, name, value));
    json_array_foreach (json_object_get(s->schema, "required"), i, value) {
        const char *required = json_string_value(value);
        if (!json_object_get(s->properties, required))
            fr_schema_set(rules_of(s), s->properties, required, with_patterns(s, required, NULL));
    }
    return fr_schema_check(rules_of(s), &place);
}

static fr_status read_shape(shape *s) {
    s->others = json_object_get(s->schema, "additionalProperties");
    if (!s->others) s->others = json_object_get(s->schema, "unevaluatedProperties");
    FR_TRY(read_required(s));
    FR_TRY(read_patterns(s));
    FR_TRY(read_names(s));
    return read_properties(s);
}

/* ---------------------------------------------------------------------------------------------------- other members */

static fr_expression named(const shape *s, fr_expression name, fr_expression value) {
    fr_schema_reader *r = s->r;
    fr_expression colon = fr_schema_then(r, fr_expression_string(r->parts->rules, ":"), fr_written_blank(r->parts));
    return fr_schema_then(r, fr_schema_then(r, name, colon), value);
}

/* Allows all names that are not properties. These names may have any characters. */
static fr_status any_other_name(const shape *s, fr_expression *name) {
    size_t count = json_object_size(s->properties), i = 0;
    const char **names = malloc((count + 1) * sizeof *names), *key;
    json_t *property;
    if (!names) return fr_fail_memory("a schema", count * sizeof *names);
    json_object_foreach (s->properties, key, property) names[i++] = key;
    *name = fr_written_other_string(s->r->parts, names, count);
    free(names);
    return FR_OK;
}

static const fr_character_range PRINTED[] = {{' ', '~'}};

static fr_status narrow_to_others(fr_grammar_rules *rules, fr_language **names, const fr_language *than) {
    fr_language *others;
    FR_TRY(fr_schema_except(rules, than, PRINTED, 1, &others));
    return fr_schema_narrow(rules, names, others);
}

static fr_status narrow_to(fr_grammar_rules *rules, fr_language **names, const fr_language *also) {
    fr_language *both = NULL;
    fr_status status = fr_schema_both(rules, *names, also, &both);
    fr_language_free(*names);
    *names = both;
    return status;
}

/* Makes the automaton of the names that are not properties, match all patterns of a set, and match no other pattern. */
static fr_status names_of_set(const shape *s, uint32_t set, fr_language **names) {
    static const char bare[] = "[a-zA-Z_0-9][a-zA-Z_0-9.-]{0,40}", printed[] = "[ -~]*";
    const char *form = s->r->parts->mark ? bare : printed;
    fr_grammar_rules *rules = rules_of(s);
    fr_language *properties = NULL;
    json_t *list = fr_schema_list(rules);
    const char *key;
    json_t *property;
    json_object_foreach (s->properties, key, property) fr_schema_add(rules, list, fr_schema_pack(rules, "s", key));
    *names = NULL;
    fr_status status = fr_schema_pattern(rules, form, strlen(form), true, s->path, names);
    if (status == FR_OK) status = fr_schema_texts(rules, list, &properties);
    if (status == FR_OK) status = narrow_to_others(rules, names, properties);
    if (status == FR_OK && s->names) status = narrow_to(rules, names, s->names);
    for (size_t i = 0; status == FR_OK && i < s->pattern_count; i++)
        status =
            set >> i & 1 ? narrow_to(rules, names, s->of_pattern[i]) : narrow_to_others(rules, names, s->of_pattern[i]);
    fr_language_free(properties);
    json_decref(list);
    return status;
}

/* Combines the schemas of a set of patterns into one schema. */
static json_t *values_of_set(const shape *s, uint32_t set) {
    json_t *all, *schema, *only = NULL;
    const char *pattern;
    size_t i = 0;
    if (set == 0) return s->others ? json_incref((json_t *)s->others) : json_true();
    all = fr_schema_list(rules_of(s));
    json_object_foreach ((json_t *)s->patterns, pattern, schema)
        if (set >> i++ & 1) fr_schema_add(rules_of(s), all, json_incref(schema));
    if (json_array_size(all) > 1) return fr_schema_said(rules_of(s), "allOf", all);
    only = json_incref(json_array_get(all, 0));
    json_decref(all);
    return only;
}

static fr_status read_set(const shape *s, uint32_t set, const fr_schema_path *place, fr_expression *member,
                          bool *some) {
    fr_language *names = NULL;
    fr_expression value;
    bool there = false;
    fr_status status = names_of_set(s, set, &names);
    if (status == FR_UNBUILT)
        status = fr_schema_fail(place, status, "these names take too large an automaton: not built");
    if (status == FR_OK && !fr_language_is_empty(names)) {
        json_t *schema = values_of_set(s, set);
        status = fr_schema_check(rules_of(s), place);
        if (status == FR_OK) status = fr_schema_read_some(s->r, schema, place, &value, &there);
        json_decref(schema);
    }
    if (status == FR_OK && there) {
        fr_expression quote = s->r->parts->mark ? 0 : fr_written_quote(s->r->parts);
        fr_expression inside = fr_language_expression(names, fr_written_writer(s->r->parts), s->r->parts->rules);
        fr_expression name = fr_schema_then(s->r, fr_schema_then(s->r, quote, inside), quote);
        fr_schema_or(s->r, named(s, name, value), member, some);
    }
    fr_language_free(names);
    return status;
}

/* Reads the schemas of the members that are not properties. */
static fr_status read_others(const shape *s, bool wanted, fr_expression *member, bool *some) {
    const fr_schema_path place = {s->path, "additionalProperties", 0}, patterns = {s->path, "patternProperties", 0};
    fr_schema_reader *r = s->r;
    *some = false;
    for (uint32_t set = 1; set < 1u << s->pattern_count; set++) FR_TRY(read_set(s, set, &patterns, member, some));
    if (!wanted || json_is_false(s->others)) return FR_OK;
    if (s->names || s->pattern_count) return read_set(s, 0, &place, member, some);
    fr_expression name = 0, value;
    bool there;
    FR_TRY(fr_schema_read_some(r, s->others ? s->others : json_true(), &place, &value, &there));
    if (!there) return FR_OK;
    FR_TRY(any_other_name(s, &name));
    *member = named(s, name, value);
    *some = true;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- members */

/* The rules for the rest of an object, for one of its properties and all later ones. There is one rule for each number
 * of members before that property. The last rule is also for all larger numbers. Rules are made from the last property
 * to the first. */
typedef struct members {
    uint32_t first, counts;
} members;

static fr_expression impossible(const shape *s) {
    return fr_expression_characters(s->r->parts->rules, NULL, 0, false);
}

static members new_members(const shape *s, uint32_t counts) {
    members m = {(uint32_t)s->r->parts->rules->rule_count, counts};
    for (uint32_t i = 0; i < counts; i++) fr_grammar_rule(s->r->parts->rules);
    return m;
}

/* Writes the members that follow all properties. The grammar can't ensure that the names of these members differ from
 * each other. So only one of them is certain to count towards the least number of members. */
static fr_expression write_others(const shape *s, uint32_t there, fr_expression other, bool some) {
    fr_grammar_rules *rules = s->r->parts->rules;
    uint32_t lack = there < s->least ? s->least - there : 0;
    uint32_t most = s->most == FR_GRAMMAR_UNBOUND ? s->most : s->most - there;
    if (!some || most == 0) return lack ? impossible(s) : 0;
    if (lack > 1) return impossible(s);
    fr_expression more = fr_schema_then(s->r, fr_written_comma(s->r->parts), other);
    if (there > 0) return fr_expression_repeat(rules, more, lack, most);
    fr_expression rest = fr_expression_repeat(rules, more, 0, most == FR_GRAMMAR_UNBOUND ? most : most - 1);
    return fr_expression_repeat(rules, fr_schema_then(s->r, other, rest), lack, 1);
}

static members write_member(const shape *s, members rest, fr_expression member, bool required) {
    fr_grammar_rules *rules = s->r->parts->rules;
    members m = new_members(s, rest.counts);
    for (uint32_t i = 0; i < m.counts && rules->status == FR_OK; i++) {
        fr_expression all = 0;
        bool some = false;
        uint32_t after = rest.first + (i + 1 < rest.counts ? i + 1 : rest.counts - 1);
        fr_expression with = fr_schema_then(s->r, member, fr_expression_rule(rules, after));
        if (i > 0) with = fr_schema_then(s->r, fr_written_comma(s->r->parts), with);
        if (i < s->most) fr_schema_or(s->r, with, &all, &some);
        if (!required) fr_schema_or(s->r, fr_expression_rule(rules, rest.first + i), &all, &some);
        fr_grammar_define(rules, m.first + i, some ? all : impossible(s));
    }
    return m;
}

static fr_status read_member(const shape *s, const char *name, const json_t *value, bool required, members *all) {
    const fr_schema_path place = {s->path, "properties", 0}, at = {&place, name, 0};
    fr_grammar_rules *rules = s->r->parts->rules;
    fr_expression body;
    bool some = true;
    if (json_is_false(value) && !required) return FR_OK;
    FR_TRY(fr_schema_read_some(s->r, value, &at, &body, &some));
    if (!some && required) return fr_schema_nothing(s->r, &at);
    if (!some) return FR_OK;
    uint32_t rule = fr_grammar_rule(rules);
    fr_grammar_define(rules, rule, body);
    *all = write_member(s, *all, fr_written_member(s->r->parts, name, fr_expression_rule(rules, rule)), required);
    return FR_OK;
}

static fr_status read_members(const shape *s, members *all) {
    size_t count = json_object_size(s->properties), i = 0;
    const char **names = malloc((count + 1) * sizeof *names), *key;
    json_t *value;
    fr_status status = names ? FR_OK : fr_fail_memory("a schema", count * sizeof *names);
    if (names)
        json_object_foreach (s->properties, key, value) names[i++] = key;
    while (status == FR_OK && i-- > 0) {
        bool required = json_object_get(s->required, names[i]);
        status = read_member(s, names[i], json_object_get(s->properties, names[i]), required, all);
    }
    free(names);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- objects */

/* Finds how many rules are needed for the same part of an object: one for each number of members that may be written
 * before that part. If a bound on the number of members always holds, drops the bound. */
static fr_status count_rules(shape *s, bool others, uint32_t *counts) {
    size_t properties = json_object_size(s->properties), required = 0;
    const fr_schema_path least = {s->path, "minProperties", 0}, most = {s->path, "maxProperties", 0};
    const char *name;
    json_t *value;
    json_object_foreach (s->properties, name, value) required += json_object_get(s->required, name) != NULL;
    if (s->least > s->most || required > s->most) return fr_schema_nothing(s->r, s->path);
    if (s->least <= required) s->least = 0;
    if (!others && s->most >= properties) s->most = FR_GRAMMAR_UNBOUND;
    if (s->least > properties + 1)
        return fr_schema_fail(&least, FR_UNBUILT,
                              "not built where more than one member must be named outside properties");
    if (s->least > properties && !others) return fr_schema_nothing(s->r, s->path);
    /* Other members come after the properties, so only properties must be counted. If there are many properties, and
     * the properties alone can't exceed the upper bound, the bound is dropped. */
    uint32_t before = properties > 1 ? (uint32_t)properties : 1, wanted = s->least > 1 ? s->least : 1;
    if (properties >= COUNTED_MAX && s->most >= properties) s->most = FR_GRAMMAR_UNBOUND;
    if (s->most != FR_GRAMMAR_UNBOUND) wanted = s->most;
    *counts = 1 + (wanted < before ? wanted : before);
    if (*counts > COUNTED_MAX || (properties + 1) * *counts > RULES_MAX)
        return fr_schema_fail(s->most != FR_GRAMMAR_UNBOUND ? &most : &least, FR_UNBUILT,
                              "not built for so many members");
    return FR_OK;
}

static fr_status read_closed(shape *s, bool others, fr_expression *expression) {
    fr_schema_reader *r = s->r;
    fr_expression other = 0;
    bool some = false;
    uint32_t counts = 0;
    FR_TRY(read_others(s, others, &other, &some));
    FR_TRY(count_rules(s, some, &counts));
    members all = new_members(s, counts);
    for (uint32_t i = 0; i < counts && r->parts->rules->status == FR_OK; i++)
        fr_grammar_define(r->parts->rules, all.first + i, write_others(s, i, other, some));
    FR_TRY(read_members(s, &all));
    fr_expression begin = fr_schema_then(r, fr_expression_string(r->parts->rules, "{"), fr_written_blank(r->parts));
    fr_expression end = fr_schema_then(r, fr_written_blank(r->parts), fr_expression_string(r->parts->rules, "}"));
    *expression = fr_schema_then(r, fr_schema_then(r, begin, fr_expression_rule(r->parts->rules, all.first)), end);
    return FR_OK;
}

static fr_status read(shape *s, fr_expression *expression) {
    FR_TRY(fr_schema_read_counts(s->r, s->schema, "minProperties", "maxProperties", s->path, &s->least, &s->most));
    FR_TRY(read_shape(s));
    size_t properties = json_object_size(s->properties);
    bool counted = s->least > 0 || s->most != FR_GRAMMAR_UNBOUND, any = !s->others || json_is_true(s->others);
    if (properties == 0 && any && !counted && !s->names && !s->pattern_count) {
        *expression = fr_written_any_object(s->r->parts);
        return FR_OK;
    }
    /* Without additionalProperties, a schema with patterns allows no further members. A schema without patterns allows
     * further members if it has no properties, or has fewer properties than minProperties. */
    bool wanted = s->others ? !json_is_false(s->others) : !s->pattern_count && (!properties || s->least > properties);
    return read_closed(s, wanted && (!s->r->parts->mark || properties == 0), expression);
}

fr_status fr_schema_read_object(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                fr_expression *expression) {
    shape s = {.r = r, .schema = schema, .path = path};
    fr_status status = read(&s, expression);
    json_decref(s.properties);
    json_decref(s.required);
    fr_language_free(s.names);
    for (size_t i = 0; i < PATTERNS_MAX; i++) fr_language_free(s.of_pattern[i]);
    return status;
}
