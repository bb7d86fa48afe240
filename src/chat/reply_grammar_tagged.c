/* Arguments that stand one by one between tags (reply_grammar.h), as reply_call_tagged.c reads them: GLM's and Qwen's.
 *
 * A value stands alone here, so of what a schema says of the object only that is kept which is said of one property or
 * another; the rest is refused. */
#include <string.h>

#include "base/error.h"
#include "src/chat/reply_grammar.h"

/* Words of the whole object that hold of what is written: no member comes that is no property. */
static const char *const KEPT[] = {"type",     "properties", "additionalProperties", "unevaluatedProperties",
                                   "required", NULL};

typedef struct making {
    const fr_reply_plan *plan;
    fr_grammar_rules *rules;
    fr_written_parts parts;
    const json_t *tool;
} making;

static fr_expression then(making *m, fr_expression first, fr_expression second) {
    return fr_expression_then(m->rules, first, second);
}

static fr_expression text(making *m, const char *bytes) {
    return fr_expression_string(m->rules, bytes);
}

/* ---------------------------------------------------------------------------------------------------- what is asked */

static fr_status check_required(const json_t *parameters) {
    const json_t *names = json_object_get(parameters, "required"), *all = json_object_get(parameters, "properties");
    const fr_schema_path place = {NULL, "required", 0};
    size_t i;
    json_t *name;
    if (names && !json_is_array(names)) return fr_schema_fail(&place, FR_INPUT, "not a list");
    json_array_foreach(names, i, name) {
        const fr_schema_path at = {&place, NULL, i};
        if (!json_is_string(name)) return fr_schema_fail(&at, FR_INPUT, "not a string");
        if (!json_object_get(all, json_string_value(name)))
            return fr_schema_fail(&at, FR_UNBUILT, "what is no property is not built in this model's calls");
    }
    return FR_OK;
}

static fr_status check_object(const json_t *parameters) {
    const json_t *properties = json_object_get(parameters, "properties");
    const char *word;
    json_t *said;
    json_object_foreach((json_t *)parameters, word, said) {
        const fr_schema_path place = {NULL, word, 0};
        if (!fr_schema_describes(word) && !fr_schema_is_word(word, KEPT))
            return fr_schema_fail(&place, FR_UNBUILT, "not built in this model's calls");
    }
    const fr_schema_path place = {NULL, "properties", 0};
    if (properties && !json_is_object(properties)) return fr_schema_fail(&place, FR_INPUT, "not an object");
    return check_required(parameters);
}

/* ------------------------------------------------------------------------------------------------------ what is put */

/* From its tag to the one behind its value, and a line break. */
static fr_status argument(making *m, const char *key, const json_t *schema, fr_expression *made) {
    const fr_schema_path place = {NULL, "properties", 0}, at = {&place, key, 0};
    if (!*key || strpbrk(key, "<>")) return fr_schema_fail(&at, FR_UNBUILT, "this model's calls have no such names");
    fr_expression begin = then(m, fr_reply_mark(m->plan, m->rules, FR_MARK_KEY), text(m, key)), value;
    FR_TRY(fr_tagged_value(m->plan, m->tool, key, schema, &at, &m->parts, &value));
    if (m->plan->format->calls == FR_CALLS_GLM) {
        begin = then(m, then(m, begin, fr_reply_mark(m->plan, m->rules, FR_MARK_KEY_END)), text(m, "\n"));
        begin = then(m, begin, fr_reply_mark(m->plan, m->rules, FR_MARK_VALUE));
    } else {
        begin = then(m, begin, text(m, ">\n"));
    }
    *made = then(m, then(m, begin, value), text(m, "\n"));
    return FR_OK;
}

fr_status fr_tagged_arguments(const fr_reply_plan *plan, const json_t *tool, fr_grammar_rules *rules,
                              fr_expression *arguments) {
    const json_t *parameters = json_object_get(tool, "parameters");
    const json_t *required = json_object_get(parameters, "required");
    making m = {plan, rules, fr_written_parts_of(rules), tool};
    const char *key;
    json_t *schema;
    *arguments = 0;
    FR_TRY(check_object(parameters));
    json_object_foreach(json_object_get(parameters, "properties"), key, schema) {
        fr_expression one = 0;
        if (!fr_grammar_spend(rules, 1 + json_array_size(required) / 2)) return fr_grammar_rules_check(rules);
        FR_TRY(argument(&m, key, schema, &one));
        if (!fr_json_schema_requires(parameters, key)) one = fr_expression_repeat(rules, one, 0, 1);
        *arguments = then(&m, *arguments, one);
    }
    return FR_OK;
}
