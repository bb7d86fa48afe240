/* Makes the grammar of one argument's value between tags (reply_grammar.h).
 *
 * Between tags, a string has no quotes. If the text is JSON of one of the schema's types, the call's reader reads it as
 * that JSON value; otherwise as a string (fr_value_put). So a value that may be a string has one of three grammars: any
 * text, a text of some length, pattern or format, or a listed value that the reader reads as the same value. Other
 * keywords about such a value are refused for a strict tool, and ignored for any other tool. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
#include "formats/json_pointer.h"
#include "formats/json_wide.h"
#include "src/language/chat/reply_forms.h"
#include "src/language/chat/reply_grammar.h"
#include "src/language/chat/reply_value.h"

#define LOOKS_MAX 8 /* limit on the references that are followed, and on nested choices */

typedef struct making {
    const fr_reply_plan *plan;
    const json_t *parameters;
    fr_value_types types; /* the types as which the call's reader may read the value; 0: any type */
    fr_written_parts *parts;
    bool strict;
} making;

/* The expression for the alternatives of one argument's value that were made so far. */
typedef struct choice {
    fr_expression made;
    bool some;
} choice;

static void add(const making *m, choice *all, fr_expression one) {
    all->made = all->some ? fr_expression_or(m->parts->rules, all->made, one) : one;
    all->some = true;
}

/* ------------------------------------------------------------------------------------------- keywords of the schema */

/* Finds the first keyword in a schema that constrains values and is not one of these words; NULL: there is none. */
static const char *other_word(const json_t *schema, const char *const *words) {
    const char *word;
    json_t *said;
    json_object_foreach ((json_t *)schema, word, said)
        if (!fr_schema_describes(word) && !fr_schema_is_word(word, words)) return word;
    return NULL;
}

static fr_status check_words(const json_t *schema, const char *const *words, const fr_schema_path *path) {
    const fr_schema_path at = {path, other_word(schema, words), 0};
    return at.key ? fr_schema_fail(&at, FR_UNBUILT, "not built for texts in this model's calls") : FR_OK;
}

/* Follows a reference, or a list with a single schema, to the schema in it, as long as there is no other keyword. */
static const json_t *look_through(const making *m, const json_t *schema) {
    static const char *const reference[] = {"$ref", NULL}, *const list[] = {"allOf", NULL};
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        const json_t *ref = json_object_get(schema, "$ref"), *all = json_object_get(schema, "allOf"), *inner = NULL;
        if (!fr_grammar_spend(m->parts->rules, 1 + json_object_size(schema))) break;
        if (ref && !other_word(schema, reference)) inner = fr_json_refer(m->parameters, json_string_value(ref));
        if (json_array_size(all) == 1 && !other_word(schema, list)) inner = json_array_get(all, 0);
        if (!inner) break;
        schema = inner;
    }
    return schema;
}

static bool is_of_type(const json_t *value, const char *type) {
    double real = json_real_value(value); /* json_real_value gives 0 for an integer */
    if (strcmp(type, "string") == 0) return fr_json_is_text(value);
    if (strcmp(type, "number") == 0) return fr_schema_is_number(value);
    if (strcmp(type, "integer") == 0) return fr_schema_is_number(value) && real == floor(real);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "null") == 0) return json_is_null(value);
    return strcmp(type, "object") == 0 ? json_is_object(value) : json_is_array(value);
}

static bool is_of_types(const json_t *value, const json_t *types) {
    bool found = !types || (json_is_string(types) && is_of_type(value, json_string_value(types)));
    for (size_t i = 0; i < json_array_size(types); i++)
        found |= is_of_type(value, json_string_value(json_array_get(types, i)));
    return found;
}

static fr_status check_types(const json_t *schema, const fr_schema_path *path) {
    static const char *const names[] = {"string", "number", "integer", "boolean", "null", "object", "array", NULL};
    const json_t *types = json_object_get(schema, "type");
    const fr_schema_path place = {path, "type", 0};
    bool list = json_is_array(types), good = !types || list || json_is_string(types);
    for (size_t i = 0; good && i < (list ? json_array_size(types) : types != NULL); i++) {
        const char *name = json_string_value(list ? json_array_get(types, i) : types);
        good = name && fr_schema_is_word(name, names);
    }
    return good ? FR_OK : fr_schema_fail(&place, FR_INPUT, "this is not a type of JSON");
}

/* Gives the type that the other keywords imply if a schema has no type; the reader of JSON schemas implies the same
 * type. NULL: no type is implied. */
static const char *implied_type(const json_t *schema) {
    if (json_object_get(schema, "type")) return NULL;
    if (json_object_get(schema, "properties")) return "object";
    return json_object_get(schema, "items") ? "array" : NULL;
}

static bool names_text(const json_t *types) {
    bool found = !types || (json_is_string(types) && strcmp(json_string_value(types), "string") == 0);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *name = json_string_value(json_array_get(types, i));
        found |= name && strcmp(name, "string") == 0;
    }
    return found;
}

static bool admits_text(const json_t *schema) {
    return json_is_object(schema) && names_text(json_object_get(schema, "type")) && !implied_type(schema);
}

static const char *name_of_choices(const json_t *schema) {
    return json_object_get(schema, "anyOf") ? "anyOf" : "oneOf";
}

/* Gives the schema's list of choices. oneOf is read as anyOf: the grammar can't enforce that only one choice matches,
 * so a strict tool must not use oneOf. */
static const json_t *choices_of(const making *m, const json_t *schema) {
    const json_t *any = json_object_get(schema, "anyOf");
    return any || m->strict ? any : json_object_get(schema, "oneOf");
}

/* -------------------------------------------------------------------------------------- values that may be any text */

/* Returns true if the schema allows any text. Once the work that a grammar may take is used up, the answer is false for
 * every schema. */
static bool is_free(const making *m, const json_t *schema, size_t depth) {
    schema = look_through(m, schema);
    if (!fr_grammar_spend(m->parts->rules, 1)) return false;
    const json_t *choices = choices_of(m, schema);
    bool some = false;
    if (json_is_true(schema)) return true;
    if (!admits_text(schema) || json_object_get(schema, "enum") || json_object_get(schema, "const")) return false;
    if (fr_json_schema_limits_text(schema)) return false;
    for (size_t i = 0; !some && i < json_array_size(choices) && depth < LOOKS_MAX; i++)
        some = is_free(m, json_array_get(choices, i), depth + 1);
    return some || !choices;
}

static fr_status too_deep(const fr_schema_path *choices) {
    return fr_schema_fail(choices, FR_UNBUILT, "choices nested so deep are not built");
}

/* Refuses further keywords in a schema that allows any text. The reader may read such a text as a value of any allowed
 * type, so constraints on the other types could not be enforced. */
static fr_status check_free(const making *m, const json_t *schema, const fr_schema_path *path, size_t depth) {
    static const char *const words[] = {"type", "anyOf", NULL};
    const fr_schema_path place = {path, "anyOf", 0};
    schema = look_through(m, schema);
    const json_t *choices = json_object_get(schema, "anyOf");
    FR_TRY(check_words(schema, words, path));
    FR_TRY(check_types(schema, path));
    if (choices && json_object_get(schema, "type")) return check_words(schema, words + 1, path);
    if (choices && depth == LOOKS_MAX) return too_deep(&place);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const fr_schema_path at = {&place, NULL, i};
        if (!fr_grammar_spend(m->parts->rules, 1)) return fr_schema_check(m->parts->rules, &at);
        FR_TRY(check_free(m, json_array_get(choices, i), &at, depth + 1));
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------- listed values */

static bool holds_end(const making *m, fr_text written) {
    const char *end = m->plan->format->marks[FR_MARK_VALUE_END];
    return memmem(written.bytes, written.length, end, strlen(end)) != NULL;
}

/* Finds out if the call's reader reads this text as the value from which the text was written. */
static fr_status reads_back(const making *m, const json_t *value, fr_text written, bool *same) {
    fr_text_buffer read = {0};
    json_t *back = NULL;
    bool text = m->types == FR_VALUE_STRING;
    fr_text_append_string(&read, text ? "[\"" : "[");
    if (text)
        fr_value_put_escaped(&read, written.bytes, written.length);
    else
        fr_value_put(&read, written.bytes, written.length, m->types);
    fr_text_append_string(&read, text ? "\"]" : "]");
    fr_status status = fr_text_check(&read, "a tool's schema");
    if (status == FR_OK) status = fr_json_parse_texts(read.bytes, read.length, "a tool's schema", &back);
    *same = back && json_equal(json_array_get(back, 0), value) && !holds_end(m, written);
    json_decref(back);
    fr_text_free(&read);
    return status;
}

static fr_status add_constant(const making *m, const json_t *value, const fr_schema_path *at, choice *all) {
    char *dumped = NULL;
    size_t length = json_string_length(value);
    bool same = false;
    fr_status status = fr_json_is_text(value)
                           ? FR_OK
                           : fr_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT, "a tool's schema", &dumped, &length);
    const fr_text written = {dumped ? dumped : json_string_value(value), length};
    if (status == FR_OK) status = reads_back(m, value, written, &same);
    if (status == FR_OK && !same && (m->strict || holds_end(m, written)))
        status = fr_schema_fail(at, FR_UNBUILT, "this value would be read as another one in this model's calls");
    if (status == FR_OK) add(m, all, fr_expression_text(m->parts->rules, written));
    free(dumped);
    return status;
}

static fr_status add_listed(const making *m, const json_t *schema, const fr_schema_path *path, choice *all) {
    const json_t *list = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    const json_t *types = json_object_get(schema, "type");
    const fr_schema_path place = {path, "enum", 0}, only = {path, "const", 0};
    size_t i;
    json_t *value;
    FR_TRY(check_types(schema, path));
    if (list && !json_is_array(list)) return fr_schema_fail(&place, FR_INPUT, "not a list");
    if (!list && constant && is_of_types(constant, types)) return add_constant(m, constant, &only, all);
    json_array_foreach (list, i, value) {
        const fr_schema_path at = {&place, NULL, i};
        if (!fr_grammar_spend(m->parts->rules, 1)) return fr_schema_check(m->parts->rules, &at);
        if (is_of_types(value, types) && (!constant || fr_schema_same(m->parts->rules, value, constant)))
            FR_TRY(add_constant(m, value, &at, all));
    }
    return FR_OK;
}

/* Adds the schema's values that are not texts, written as JSON. */
static fr_status add_json(const making *m, const json_t *schema, const fr_schema_path *path, choice *all) {
    fr_grammar_rules *rules = m->parts->rules;
    const char *type = implied_type(schema);
    json_t *typed = type ? fr_schema_copy(rules, schema) : NULL;
    fr_expression made;
    if (type) fr_schema_set(rules, typed, "type", json_string(type));
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK)
        status = fr_json_schema_expression(m->parameters, typed ? typed : schema, path, m->parts, &made);
    if (status == FR_OK) add(m, all, made);
    json_decref(typed);
    return status;
}

/* Adds the types in the schema's list of types, except "string", as JSON values. */
static fr_status add_other_types(const making *m, const json_t *schema, const fr_schema_path *path, choice *all) {
    fr_grammar_rules *rules = m->parts->rules;
    json_t *others = fr_schema_list(rules), *less = fr_schema_copy(rules, schema), *type;
    size_t i;
    json_array_foreach (json_object_get(schema, "type"), i, type)
        if (strcmp(json_string_value(type), "string") != 0) fr_schema_add(rules, others, json_incref(type));
    bool some = json_array_size(others) > 0;
    fr_schema_set(rules, less, "type", others);
    fr_status status = fr_schema_check(rules, path);
    if (status == FR_OK && some) status = add_json(m, less, path, all);
    json_decref(less);
    return status;
}

/* Adds the texts that the schema's length, pattern or format allows. If the closing mark is written as text, these
 * texts must not contain it. The reader may still read one of these texts as a value of another type. */
static fr_status add_texts(const making *m, const json_t *schema, const fr_schema_path *path, choice *all) {
    static const char *const words[] = {"type", "pattern", "format", "minLength", "maxLength", NULL};
    static const char *const type_alone[] = {"type", NULL};
    const fr_reply_format *format = m->plan->format;
    bool token = format->ids[FR_MARK_VALUE_END] >= 0;
    fr_expression made;
    FR_TRY(check_words(schema, m->strict && m->types != FR_VALUE_STRING ? type_alone : words, path));
    FR_TRY(check_types(schema, path));
    FR_TRY(fr_json_schema_plain_text(m->parameters, schema, path, token ? NULL : format->marks[FR_MARK_VALUE_END],
                                     m->parts->rules, &made));
    add(m, all, made);
    return add_other_types(m, schema, path, all);
}

static fr_status add_values(const making *m, const json_t *schema, const fr_schema_path *path, size_t depth,
                            choice *all) {
    static const char *const words[] = {"type", "enum", "const", "format", NULL};
    const json_t *said = look_through(m, schema), *choices = choices_of(m, said);
    const fr_schema_path place = {path, name_of_choices(said), 0};
    const char *const choice_words[] = {place.key, NULL};
    bool listed = json_object_get(said, "enum") || json_object_get(said, "const");
    if (!admits_text(said)) return add_json(m, schema, path, all);
    if (!choices && !listed && fr_json_schema_limits_text(said)) return add_texts(m, said, path, all);
    if (!choices) {
        if (m->strict) FR_TRY(check_words(said, words, path));
        return add_listed(m, said, path, all);
    }
    if (m->strict) FR_TRY(check_words(said, choice_words, path));
    if (depth == LOOKS_MAX) return too_deep(&place);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const fr_schema_path at = {&place, NULL, i};
        if (!fr_grammar_spend(m->parts->rules, 1)) return fr_schema_check(m->parts->rules, &at);
        FR_TRY(add_values(m, json_array_get(choices, i), &at, depth + 1, all));
    }
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------- the whole value */

/* Makes the closing mark of a value, with the line break that some forms write before it. */
static fr_expression end_of(const making *m) {
    fr_grammar_rules *rules = m->parts->rules;
    bool lines = strstr(m->plan->format->form->argument, "$VALUE\n") != NULL;
    return fr_expression_then(rules, fr_expression_string(rules, lines ? "\n" : ""),
                              fr_reply_mark(m->plan, rules, FR_MARK_VALUE_END));
}

fr_status fr_tagged_value(const fr_reply_plan *plan, const json_t *tool, const char *key, const json_t *schema,
                          const fr_schema_path *path, fr_written_parts *parts, fr_expression *value) {
    const fr_value_types types = fr_tool_parameter_types(tool, key);
    const making m = {plan, json_object_get(tool, "parameters"), types, parts, fr_tool_is_strict(tool)};
    bool may_be_text = !types || types & FR_VALUE_STRING, free = may_be_text && is_free(&m, schema, 0);
    choice all = {0};
    FR_TRY(fr_schema_check(parts->rules, path));
    fr_status status = free          ? check_free(&m, schema, path, 0)
                       : may_be_text ? add_values(&m, schema, path, 0, &all)
                                     : add_json(&m, schema, path, &all);
    if (status == FR_OK && !free && !all.some) status = fr_schema_fail(path, FR_INPUT, "this schema allows no value");
    bool less = !m.strict && (status == FR_UNBUILT || status == FR_INPUT) && parts->rules->status == FR_OK;
    if (!less) FR_TRY(status);
    if (free || (less && may_be_text)) {
        *value = fr_reply_until(plan, parts->rules, FR_MARK_VALUE_END);
        return FR_OK;
    }
    if (less) all.made = fr_written_any(parts);
    *value = fr_expression_then(parts->rules, all.made, end_of(&m));
    return FR_OK;
}
