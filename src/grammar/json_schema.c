/* JSON schemas: see readers.h. What is made is values of the schema, not all of them: members come in the order in
 * which `properties` has them, keywords of one type say that a value is of that type, numbers are short. What a schema
 * asks for that isn't built is refused by its place. */
#include <stdlib.h>

#include "formats/json_read.h"
#include "src/grammar/json_schema.h"
#include "src/grammar/json_schema_words.h"

#define MAX_DEPTH   64 /* of schemas in schemas */
#define MAX_SCHEMAS 20000
#define MAX_LENGTH  10000 /* of strings and lists, where they have one */

typedef struct reference {
    const json_t *schema;
    uint32_t rule;
} reference;

typedef struct reader {
    const json_t *root;
    fr_written_parts *parts;
    reference *references; /* what was made a rule of: where `$ref` leads */
    size_t reference_count, schemas, depth;
} reader;

static fr_status read_schema(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression);

static fr_expression then(reader *r, fr_expression first, fr_expression second) {
    return fr_expression_then(r->parts->rules, first, second);
}

static fr_expression or (reader * r, fr_expression first, fr_expression second) {
    return fr_expression_or(r->parts->rules, first, second);
}

static fr_schema_path below(const fr_schema_path *path, const char *key) {
    return (fr_schema_path){path, key, 0};
}

static fr_status nothing(const fr_schema_path *path) {
    return fr_schema_fail(path, FR_INPUT, "no value is of this schema, or none that can be written here");
}

/* ----------------------------------------------------------------------------------------------------------- counts */

/* *value is left as it is where there is no such keyword. */
static fr_status read_count(const json_t *schema, const char *key, const fr_schema_path *path, uint32_t *value) {
    const json_t *number = json_object_get(schema, key);
    const fr_schema_path place = below(path, key);
    if (!number) return FR_OK;
    double count = json_number_value(number);
    if (!json_is_number(number) || count < 0 || count != (double)(uint64_t)count)
        return fr_schema_fail(&place, FR_INPUT, "not a count");
    if (count > MAX_LENGTH) return fr_schema_fail(&place, FR_UNBUILT, "more than 10000 is not built");
    *value = (uint32_t)count;
    return FR_OK;
}

static fr_status read_counts(const json_t *schema, const char *least_key, const char *most_key,
                             const fr_schema_path *path, uint32_t *least, uint32_t *most) {
    *least = 0;
    *most = FR_GRAMMAR_UNBOUND;
    FR_TRY(read_count(schema, least_key, path, least));
    FR_TRY(read_count(schema, most_key, path, most));
    return *least <= *most ? FR_OK : nothing(path);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static fr_status read_bound(const json_t *schema, const char *key, const char *strict_key, const fr_schema_path *path,
                            bool upper, bool *has, bool *strict, double *bound) {
    const json_t *plain = json_object_get(schema, key), *tight = json_object_get(schema, strict_key);
    const fr_schema_path place = below(path, tight && !json_is_boolean(tight) ? strict_key : key);
    bool number = json_is_number(tight);
    if ((plain && !json_is_number(plain)) || (tight && !number && !json_is_boolean(tight)))
        return fr_schema_fail(&place, FR_INPUT, "not a number");
    *has = plain || number;
    *bound = json_number_value(plain);
    *strict = json_is_true(tight); /* draft 4 */
    bool tighter = !plain || (upper ? json_number_value(tight) <= *bound : json_number_value(tight) >= *bound);
    if (number && tighter) {
        *bound = json_number_value(tight);
        *strict = true;
    }
    return FR_OK;
}

static fr_status read_number(reader *r, const json_t *schema, bool whole, const fr_schema_path *path,
                             fr_expression *expression) {
    fr_written_bounds b;
    FR_TRY(read_bound(schema, "minimum", "exclusiveMinimum", path, false, &b.has_least, &b.above_least, &b.least));
    FR_TRY(read_bound(schema, "maximum", "exclusiveMaximum", path, true, &b.has_most, &b.below_most, &b.most));
    bool some = whole ? fr_written_integer(r->parts, &b, expression) : fr_written_number(r->parts, &b, expression);
    return some ? FR_OK : nothing(path);
}

/* ---------------------------------------------------------------------------------------------------------- strings */

#define YEAR "[1-9][0-9]{3}"
#define DAY                                                                                                            \
    YEAR "-(((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))|((0[469]|11)-(0[1-9]|[12][0-9]|30))|(02-(0[1-9]|1[0-9]|2[0-8]" \
         ")))"
#define CLOCK "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define BYTE  "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"

/* Formats that are kept, each by an expression of some of its texts; others say nothing, as in the standard. */
static const struct format {
    const char *name, *expression;
} FORMATS[] = {
    {"date", DAY},
    {"time", CLOCK},
    {"date-time", DAY "T" CLOCK},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"ipv4", BYTE "(\\." BYTE "){3}"},
    {"email", "[a-zA-Z0-9_+-]+(\\.[a-zA-Z0-9_+-]+)*@(" LABEL "\\.)+[a-z]{2,8}"},
    {"hostname", "(" LABEL "\\.){0,5}" LABEL},
    {"uri", "https?://(" LABEL "\\.)+[a-z]{2,8}(/[a-zA-Z0-9_~.-]*)*(\\?[a-zA-Z0-9_=&~.-]*)?"},
};

static fr_status read_expression(reader *r, const char *text, size_t length, bool whole, const fr_schema_path *path,
                                 fr_expression *expression) {
    fr_status status =
        fr_regex_expression((fr_text){text, length}, whole, fr_written_writer(r->parts), r->parts->rules, expression);
    if (status != FR_OK && status != FR_MEMORY) {
        char line[200];
        snprintf(line, sizeof line, "%s", fr_last_error());
        return fr_schema_fail(path, status, line);
    }
    fr_expression quote = fr_written_quote(r->parts);
    *expression = then(r, then(r, quote, *expression), quote);
    return status;
}

static fr_status read_string(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *pattern = json_object_get(schema, "pattern"), *format = json_object_get(schema, "format");
    fr_schema_path place = below(path, "pattern");
    uint32_t least, most;
    FR_TRY(read_counts(schema, "minLength", "maxLength", path, &least, &most));
    bool counted = least > 0 || most != FR_GRAMMAR_UNBOUND;
    const char *known = NULL;
    for (size_t i = 0; json_is_string(format) && i < sizeof FORMATS / sizeof *FORMATS; i++)
        if (strcmp(json_string_value(format), FORMATS[i].name) == 0) known = FORMATS[i].expression;
    if ((pattern != NULL) + (known != NULL) + counted > 1)
        return fr_schema_fail(path, FR_UNBUILT, "of pattern, format and a length only one at once is built");
    if (pattern && !json_is_string(pattern)) return fr_schema_fail(&place, FR_INPUT, "not a string");
    if (pattern)
        return read_expression(r, json_string_value(pattern), json_string_length(pattern), false, &place, expression);
    place = below(path, "format");
    if (known) return read_expression(r, known, strlen(known), true, &place, expression);
    *expression = counted ? fr_written_string_of_length(r->parts, least, most) : fr_written_string(r->parts);
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- arrays */

/* Behind the items that have schemas of their own: so many more of one schema. given: they are among the counts. */
static fr_status read_tuple(reader *r, const json_t *first, const json_t *rest, uint32_t least, uint32_t most,
                            const fr_schema_path *path, fr_expression *expression) {
    uint32_t given = (uint32_t)json_array_size(first);
    fr_expression all = fr_expression_string(r->parts->rules, "["), item, end = 0;
    const fr_schema_path place = below(path, "prefixItems");
    if (most < given) given = most;
    if (least < given) least = given; /* as many as there are schemas */
    for (uint32_t i = 0; i < given; i++) {
        const fr_schema_path at = {&place, NULL, i};
        FR_TRY(read_schema(r, json_array_get(first, i), &at, &item));
        all = then(r, then(r, all, i ? fr_written_comma(r->parts) : fr_written_blank(r->parts)), item);
    }
    if (!json_is_false(rest) && most > given) {
        const fr_schema_path at = below(path, "items");
        if (rest)
            FR_TRY(read_schema(r, rest, &at, &item));
        else
            item = fr_written_any(r->parts);
        uint32_t more = most == FR_GRAMMAR_UNBOUND ? most : most - given;
        end = fr_expression_repeat(r->parts->rules, then(r, fr_written_comma(r->parts), item), least - given, more);
    } else if (least > given) {
        return nothing(path);
    }
    end = then(r, end, then(r, fr_written_blank(r->parts), fr_expression_string(r->parts->rules, "]")));
    *expression = then(r, all, end);
    return FR_OK;
}

static fr_status read_array(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *items = json_object_get(schema, "items"), *first = json_object_get(schema, "prefixItems");
    const fr_schema_path place = below(path, "items");
    uint32_t least, most;
    FR_TRY(read_counts(schema, "minItems", "maxItems", path, &least, &most));
    if (json_is_array(items)) { /* before 2020-12 */
        first = items;
        items = json_object_get(schema, "additionalItems");
    }
    if (json_array_size(first) && most > 0) return read_tuple(r, first, items, least, most, path, expression);
    fr_expression item = 0;
    if (json_is_false(items) || most == 0) {
        if (least > 0) return nothing(path);
        most = 0;
    } else if (!items || json_is_true(items)) {
        item = fr_written_any(r->parts);
    } else {
        FR_TRY(read_schema(r, items, &place, &item));
    }
    *expression = fr_written_list(r->parts, "[", item, least, most, "]");
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- objects */

bool fr_json_schema_requires(const json_t *schema, const char *name) {
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(schema, "required"), i,
                       item) if (json_is_string(item) && strcmp(json_string_value(item), name) == 0) return true;
    return false;
}

/* `properties`, and behind them what is required without being one. */
static json_t *all_properties(const json_t *schema) {
    json_t *all = json_object(), *item;
    const json_t *other = json_object_get(schema, "additionalProperties");
    size_t i;
    if (json_is_object(json_object_get(schema, "properties")))
        json_object_update(all, json_object_get(schema, "properties"));
    json_array_foreach(json_object_get(schema, "required"), i, item) {
        const char *name = json_string_value(item);
        if (name && !json_object_get(all, name))
            json_object_set_new(all, name, other ? json_incref((json_t *)other) : json_true());
    }
    return all;
}

/* Members that are no properties, each behind a comma, but the first of all. */
static fr_status read_others(reader *r, const json_t *schema, const json_t *properties, const fr_schema_path *path,
                             fr_expression *member) {
    const json_t *others = json_object_get(schema, "additionalProperties");
    const fr_schema_path place = below(path, "additionalProperties");
    size_t count = json_object_size(properties), i = 0;
    const char **names = malloc((count + 1) * sizeof *names), *key;
    fr_expression value;
    json_t *property;
    if (!names) return fr_fail_memory("a schema", count * sizeof *names);
    json_object_foreach((json_t *)properties, key, property) names[i++] = key;
    fr_expression name = fr_written_other_string(r->parts, names, count);
    free(names);
    FR_TRY(read_schema(r, others, &place, &value));
    fr_expression colon = then(r, fr_expression_string(r->parts->rules, ":"), fr_written_blank(r->parts));
    *member = then(r, then(r, name, colon), value);
    return FR_OK;
}

/* Rules of what may come from a member on: `begun` behind others, `first` where there is none yet. Made from the last
 * member to the first. */
typedef struct members {
    uint32_t first, begun;
} members;

static members new_members(reader *r, fr_expression first, fr_expression begun) {
    members m = {fr_grammar_rule(r->parts->rules), fr_grammar_rule(r->parts->rules)};
    fr_grammar_define(r->parts->rules, m.first, first);
    fr_grammar_define(r->parts->rules, m.begun, begun);
    return m;
}

static members no_more(reader *r, fr_expression other) {
    fr_grammar_rules *rules = r->parts->rules;
    if (!other) return new_members(r, 0, 0);
    fr_expression more =
        fr_expression_repeat(rules, then(r, fr_written_comma(r->parts), other), 0, FR_GRAMMAR_UNBOUND);
    return new_members(r, fr_expression_repeat(rules, then(r, other, more), 0, 1), more);
}

static members with_member(reader *r, members rest, fr_expression member, bool required) {
    fr_grammar_rules *rules = r->parts->rules;
    fr_expression first = then(r, member, fr_expression_rule(rules, rest.begun));
    fr_expression begun = then(r, fr_written_comma(r->parts), first);
    if (required) return new_members(r, first, begun);
    return new_members(r, or (r, first, fr_expression_rule(rules, rest.first)),
                       or (r, begun, fr_expression_rule(rules, rest.begun)));
}

static fr_status read_member(reader *r, const char *name, const json_t *value, const fr_schema_path *path,
                             fr_expression *member) {
    const fr_schema_path place = below(path, "properties"), at = below(&place, name);
    uint32_t rule = fr_grammar_rule(r->parts->rules);
    fr_expression body;
    FR_TRY(read_schema(r, value, &at, &body));
    fr_grammar_define(r->parts->rules, rule, body);
    *member = fr_written_member(r->parts, name, fr_expression_rule(r->parts->rules, rule));
    return FR_OK;
}

static fr_status read_members(reader *r, const json_t *schema, const json_t *properties, const fr_schema_path *path,
                              members *all) {
    size_t count = json_object_size(properties), i = 0;
    const char **names = malloc((count + 1) * sizeof *names), *key;
    json_t *value;
    fr_status status = names ? FR_OK : fr_fail_memory("a schema", count * sizeof *names);
    if (names) json_object_foreach((json_t *)properties, key, value) names[i++] = key;
    while (status == FR_OK && i-- > 0) {
        fr_expression member;
        const json_t *property = json_object_get(properties, names[i]);
        bool required = fr_json_schema_requires(schema, names[i]);
        if (json_is_false(property) && !required) continue;
        status = read_member(r, names[i], property, path, &member);
        if (status == FR_OK) *all = with_member(r, *all, member, required);
    }
    free(names);
    return status;
}

static fr_status read_object(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *others = json_object_get(schema, "additionalProperties");
    json_t *properties = all_properties(schema);
    fr_expression other = 0;
    fr_status status = properties ? FR_OK : fr_fail_memory("a schema", sizeof *properties);
    bool open = json_object_size(properties) == 0 && (!others || json_is_true(others));
    bool takes_others = others && !json_is_false(others) && (!r->parts->mark || json_object_size(properties) == 0);
    if (status == FR_OK && open) *expression = fr_written_any_object(r->parts);
    if (status == FR_OK && !open && takes_others) status = read_others(r, schema, properties, path, &other);
    if (status == FR_OK && !open) {
        members all = no_more(r, other);
        status = read_members(r, schema, properties, path, &all);
        fr_expression begin = then(r, fr_expression_string(r->parts->rules, "{"), fr_written_blank(r->parts));
        fr_expression end = then(r, fr_written_blank(r->parts), fr_expression_string(r->parts->rules, "}"));
        *expression = then(r, then(r, begin, fr_expression_rule(r->parts->rules, all.first)), end);
    }
    json_decref(properties);
    return status;
}

/* ------------------------------------------------------------------------------------------------- types, constants */

static const struct type {
    const char *name, *words[5]; /* keywords that say that a value is of it, where nothing else does */
} TYPES[] = {
    {"object", {"properties", "required", "additionalProperties"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems"}},
    {"string", {"minLength", "maxLength", "pattern", "format"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
};

static fr_status read_type(reader *r, const char *type, const json_t *schema, const fr_schema_path *path,
                           fr_expression *expression) {
    fr_grammar_rules *rules = r->parts->rules;
    if (strcmp(type, "object") == 0) return read_object(r, schema, path, expression);
    if (strcmp(type, "array") == 0) return read_array(r, schema, path, expression);
    if (strcmp(type, "string") == 0) return read_string(r, schema, path, expression);
    if (strcmp(type, "number") == 0) return read_number(r, schema, false, path, expression);
    if (strcmp(type, "integer") == 0) return read_number(r, schema, true, path, expression);
    bool boolean = strcmp(type, "boolean") == 0;
    if (!boolean && strcmp(type, "null") != 0) {
        const fr_schema_path place = below(path, "type");
        return fr_schema_fail(&place, FR_INPUT, "no type of JSON");
    }
    *expression = boolean ? or (r, fr_expression_string(rules, "true"), fr_expression_string(rules, "false"))
                          : fr_expression_string(rules, "null");
    return FR_OK;
}

static void add_choice(reader *r, fr_expression one, fr_expression *all, bool *some) {
    *all = *some ? or (r, *all, one) : one;
    *some = true;
}

static fr_status read_types(reader *r, const json_t *types, const json_t *schema, const fr_schema_path *path,
                            fr_expression *expression) {
    size_t i;
    json_t *type;
    bool some = false;
    json_array_foreach(types, i, type) {
        fr_expression one;
        if (!json_is_string(type)) return fr_schema_fail(path, FR_INPUT, "no type of JSON");
        FR_TRY(read_type(r, json_string_value(type), schema, path, &one));
        add_choice(r, one, expression, &some);
    }
    return some ? FR_OK : nothing(path);
}

static bool is_of_type(const json_t *value, const char *type) {
    if (strcmp(type, "object") == 0) return json_is_object(value);
    if (strcmp(type, "array") == 0) return json_is_array(value);
    if (strcmp(type, "string") == 0) return json_is_string(value);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "null") == 0) return json_is_null(value);
    if (strcmp(type, "number") == 0) return json_is_number(value);
    return strcmp(type, "integer") == 0 && json_is_number(value) &&
           json_number_value(value) == (double)(int64_t)json_number_value(value);
}

static bool is_of_types(const json_t *value, const json_t *types) {
    size_t i;
    json_t *type;
    if (!types) return true;
    if (json_is_string(types)) return is_of_type(value, json_string_value(types));
    json_array_foreach(types, i,
                       type) if (json_is_string(type) && is_of_type(value, json_string_value(type))) return true;
    return false;
}

/* Constants, of those that are of the types; what else is said of them is refused. */
static fr_status read_constants(reader *r, const json_t *schema, const json_t *values, const fr_schema_path *path,
                                fr_expression *expression) {
    const char *key;
    json_t *value;
    size_t i;
    bool some = false;
    json_object_foreach((json_t *)schema, key, value) {
        bool ours = strcmp(key, "enum") == 0 || strcmp(key, "const") == 0 || strcmp(key, "type") == 0;
        const fr_schema_path place = below(path, key);
        if (!ours && !fr_schema_describes(key)) return fr_schema_fail(&place, FR_UNBUILT, "not built beside constants");
    }
    const json_t *constant = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    json_array_foreach(values, i, value) {
        if (!is_of_types(value, json_object_get(schema, "type"))) continue;
        if (constant && list && !json_equal(value, constant)) continue;
        add_choice(r, fr_written_literal(r->parts, value), expression, &some);
    }
    return some ? FR_OK : nothing(path);
}

static const char *implied_type(const json_t *schema) {
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        for (const char *const *word = TYPES[i].words; *word; word++)
            if (json_object_get(schema, *word)) return TYPES[i].name;
    return NULL;
}

/* A schema without choices and references. */
static fr_status read_plain(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    const json_t *list = json_object_get(schema, "enum"), *type = json_object_get(schema, "type");
    json_t *constant = json_object_get(schema, "const");
    if (list && !json_is_array(list)) return fr_schema_fail(path, FR_INPUT, "enum is not a list");
    if (list) return read_constants(r, schema, list, path, expression);
    if (constant) {
        json_t *values = json_pack("[O]", constant);
        fr_status status =
            values ? read_constants(r, schema, values, path, expression) : fr_fail_memory("a schema", 64);
        json_decref(values);
        return status;
    }
    if (json_is_array(type)) return read_types(r, type, schema, path, expression);
    if (type && !json_is_string(type)) return fr_schema_fail(path, FR_INPUT, "no type of JSON");
    const char *only = type ? json_string_value(type) : implied_type(schema);
    if (only) return read_type(r, only, schema, path, expression);
    *expression = fr_written_any(r->parts);
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------- choices, combinations */

static json_t *without(const json_t *schema, const char *key) {
    json_t *rest = json_copy((json_t *)schema);
    if (rest) json_object_del(rest, key);
    return rest;
}

/* Whether a schema says anything but by one keyword. */
static bool says_more(const json_t *schema, const char *than) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key,
                        value) if (strcmp(key, than) != 0 && !fr_schema_describes(key)) return true;
    return false;
}

/* Where a $ref leads. */
static fr_status find(const reader *r, const char *pointer, const fr_schema_path *path, const json_t **found) {
    char name[256];
    *found = r->root;
    if (*pointer != '#') return fr_schema_fail(path, FR_UNBUILT, "references to other schemas are not built");
    for (pointer++; *pointer == '/' && *found;) {
        size_t length = 0;
        for (pointer++; *pointer && *pointer != '/' && length < sizeof name - 1; pointer++) {
            bool escaped = *pointer == '~' && (pointer[1] == '0' || pointer[1] == '1');
            name[length++] = escaped ? (*++pointer == '0' ? '~' : '/') : *pointer;
        }
        name[length] = '\0';
        *found =
            json_is_array(*found) ? json_array_get(*found, strtoul(name, NULL, 10)) : json_object_get(*found, name);
    }
    if (*pointer || !*found) return fr_schema_fail(path, FR_INPUT, "this leads nowhere");
    return FR_OK;
}

/* One rule for all references to a schema, so that it may refer to itself. */
static fr_status read_reference(reader *r, const json_t *target, const fr_schema_path *path,
                                fr_expression *expression) {
    for (size_t i = 0; i < r->reference_count; i++)
        if (r->references[i].schema == target) {
            *expression = fr_expression_rule(r->parts->rules, r->references[i].rule);
            return FR_OK;
        }
    reference *more = realloc(r->references, (r->reference_count + 1) * sizeof *more);
    if (!more) return fr_fail_memory("a schema", (r->reference_count + 1) * sizeof *more);
    r->references = more;
    uint32_t rule = fr_grammar_rule(r->parts->rules);
    more[r->reference_count++] = (reference){target, rule};
    fr_expression body;
    FR_TRY(read_schema(r, target, path, &body));
    fr_grammar_define(r->parts->rules, rule, body);
    *expression = fr_expression_rule(r->parts->rules, rule);
    return FR_OK;
}

/* A schema and the rest of the one that it stands in. Takes `rest`. */
static fr_status read_merged(reader *r, json_t *rest, const json_t *with, const fr_schema_path *path,
                             fr_expression *expression) {
    json_t *merged = NULL;
    fr_status status = rest ? fr_schema_merge(rest, with, path, &merged) : fr_fail_memory("a schema", 64);
    json_decref(rest);
    if (status == FR_OK) status = read_schema(r, merged, path, expression);
    json_decref(merged);
    return status;
}

static fr_status read_ref(reader *r, const json_t *schema, const json_t *ref, const fr_schema_path *path,
                          fr_expression *expression) {
    const fr_schema_path place = below(path, "$ref");
    const json_t *target;
    if (!json_is_string(ref)) return fr_schema_fail(&place, FR_INPUT, "not a string");
    FR_TRY(find(r, json_string_value(ref), &place, &target));
    if (!says_more(schema, "$ref")) return read_reference(r, target, &place, expression);
    return read_merged(r, without(schema, "$ref"), target, &place, expression);
}

static fr_status read_all_of(reader *r, const json_t *schema, const json_t *list, const fr_schema_path *path,
                             fr_expression *expression) {
    const fr_schema_path place = below(path, "allOf");
    size_t i;
    json_t *one, *merged = without(schema, "allOf");
    fr_status status = merged ? FR_OK : fr_fail_memory("a schema", 64);
    if (!json_is_array(list)) status = fr_schema_fail(&place, FR_INPUT, "not a list");
    json_array_foreach(list, i, one) {
        const fr_schema_path at = {&place, NULL, i};
        json_t *both = NULL;
        const json_t *target = one;
        const json_t *ref = json_object_get(one, "$ref");
        if (status == FR_OK && json_is_string(ref) && !says_more(one, "$ref"))
            status = find(r, json_string_value(ref), &at, &target);
        if (status == FR_OK) status = fr_schema_merge(merged, target, &at, &both);
        if (status != FR_OK) break;
        json_decref(merged);
        merged = both;
    }
    if (status == FR_OK) status = read_schema(r, merged, path, expression);
    json_decref(merged);
    return status;
}

/* What a schema of a choice says, through a reference that is all of it. */
static const json_t *look_through(const reader *r, const json_t *schema, const fr_schema_path *path) {
    const json_t *target = schema, *ref = json_object_get(schema, "$ref");
    if (json_is_string(ref) && find(r, json_string_value(ref), path, &target) != FR_OK) return schema;
    return target;
}

/* oneOf is built where no value is of two of them. */
static fr_status check_disjoint(const reader *r, const json_t *list, const fr_schema_path *path) {
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (!fr_schemas_disjoint(look_through(r, json_array_get(list, i), path),
                                     look_through(r, json_array_get(list, k), path)))
                return fr_schema_fail(path, FR_UNBUILT, "schemas that a value may be two of are not built: use anyOf");
    return FR_OK;
}

static fr_status read_choice(reader *r, const json_t *schema, const char *key, const fr_schema_path *path,
                             fr_expression *expression) {
    const json_t *list = json_object_get(schema, key);
    const fr_schema_path place = below(path, key);
    bool some = false, more = says_more(schema, key);
    size_t i;
    json_t *one;
    if (!json_is_array(list)) return fr_schema_fail(&place, FR_INPUT, "not a list");
    if (strcmp(key, "oneOf") == 0) FR_TRY(check_disjoint(r, list, &place));
    json_array_foreach(list, i, one) {
        const fr_schema_path at = {&place, NULL, i};
        fr_expression made;
        if (json_is_false(one)) continue;
        FR_TRY(more ? read_merged(r, without(schema, key), look_through(r, one, &at), &at, &made)
                    : read_schema(r, one, &at, &made));
        add_choice(r, made, expression, &some);
    }
    return some ? FR_OK : nothing(path);
}

static fr_status read_object_schema(reader *r, const json_t *schema, const fr_schema_path *path,
                                    fr_expression *expression) {
    const json_t *ref = json_object_get(schema, "$ref"), *all = json_object_get(schema, "allOf");
    FR_TRY(fr_schema_check_words(schema, path));
    if (all) return read_all_of(r, schema, all, path, expression);
    if (ref) return read_ref(r, schema, ref, path, expression);
    if (json_object_get(schema, "anyOf")) return read_choice(r, schema, "anyOf", path, expression);
    if (json_object_get(schema, "oneOf")) return read_choice(r, schema, "oneOf", path, expression);
    return read_plain(r, schema, path, expression);
}

static fr_status read_schema(reader *r, const json_t *schema, const fr_schema_path *path, fr_expression *expression) {
    fr_status status;
    *expression = 0;
    if (json_is_true(schema)) *expression = fr_written_any(r->parts);
    if (json_is_true(schema)) return FR_OK;
    if (json_is_false(schema)) return nothing(path);
    if (!json_is_object(schema)) return fr_schema_fail(path, FR_INPUT, "a schema is an object or a bool");
    if (++r->schemas > MAX_SCHEMAS) return fr_schema_fail(path, FR_INPUT, "the schema is too large");
    if (++r->depth > MAX_DEPTH) return fr_schema_fail(path, FR_INPUT, "schemas are nested more than 64 deep");
    status = read_object_schema(r, schema, path, expression);
    r->depth--;
    return status;
}

fr_status fr_json_schema_expression(const json_t *root, const json_t *schema, fr_written_parts *parts,
                                    fr_expression *expression) {
    reader r = {.root = root, .parts = parts};
    fr_status status = read_schema(&r, schema, NULL, expression);
    free(r.references);
    return status;
}

fr_status fr_json_schema_read(fr_text text, fr_grammar_rules *rules) {
    bool lost;
    json_t *root = fr_json_read_text(text.bytes, text.length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &lost);
    if (!root) return lost ? fr_fail_memory("a schema", text.length) : fr_fail(FR_INPUT, "the schema is not JSON");
    fr_written_parts parts = fr_written_parts_of(rules);
    fr_expression expression;
    fr_status status = fr_json_schema_expression(root, root, &parts, &expression);
    if (status == FR_OK) {
        rules->root = fr_grammar_rule(rules);
        fr_grammar_define(rules, rules->root, expression);
        status = fr_grammar_rules_check(rules);
    }
    json_decref(root);
    return status;
}
