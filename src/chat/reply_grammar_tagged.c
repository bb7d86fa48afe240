/* Arguments that stand one by one between tags (reply_grammar.h), as reply_call_tagged.c reads them: GLM's and Qwen's.
 * A value that is a text is written as it is; others are JSON. */
#include <string.h>

#include "base/error.h"
#include "src/chat/reply_grammar.h"
#include "src/chat/reply_schema.h"

static const char *const TEXT_WORDS[] = {"pattern", "format", "minLength", "maxLength", "allOf",
                                         "anyOf",   "oneOf",  "not",       NULL};

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

/* One of some texts, as they are. */
static fr_expression constants(making *m, const json_t *list) {
    fr_expression all = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        fr_text bytes = {json_string_value(item), json_string_length(item)};
        fr_expression one = bytes.bytes ? fr_expression_text(m->rules, bytes) : fr_written_literal(&m->parts, item);
        all = i ? fr_expression_or(m->rules, all, one) : one;
    }
    return all;
}

/* Behind a value: Qwen's has a line break before its tag. */
static fr_expression end_of(making *m) {
    bool glm = m->plan->format->calls == FR_CALLS_GLM;
    return then(m, text(m, glm ? "" : "\n"), fr_reply_mark(m->plan, m->rules, FR_MARK_VALUE_END));
}

/* Of a text only which ones it may be is built. */
static fr_status text_value(making *m, const char *key, const json_t *schema, fr_expression *value) {
    const json_t *list = json_object_get(schema, "enum");
    json_t *constant = json_object_get(schema, "const"), *one;
    for (const char *const *word = TEXT_WORDS; *word; word++)
        if (json_object_get(schema, *word))
            return fr_fail(FR_UNBUILT, "schema, at #/properties/%.100s/%s: not built for texts in this model's calls",
                           key, *word);
    one = constant ? json_pack("[O]", constant) : NULL;
    if (constant && !one) return fr_fail_memory("a tool's schema", 64);
    if (one || json_array_size(list))
        *value = then(m, constants(m, one ? one : list), end_of(m));
    else
        *value = fr_reply_until(m->plan, m->rules, FR_MARK_VALUE_END);
    json_decref(one);
    return FR_OK;
}

/* From its tag to the one behind its value, and a line break. */
static fr_status argument(making *m, const char *key, const json_t *schema, fr_expression *made) {
    const json_t *parameters = json_object_get(m->tool, "parameters");
    fr_expression begin = then(m, fr_reply_mark(m->plan, m->rules, FR_MARK_KEY), text(m, key)), value;
    if (fr_tool_parameter_types(m->tool, key) == FR_VALUE_STRING) {
        FR_TRY(text_value(m, key, schema, &value));
    } else {
        FR_TRY(fr_json_schema_expression(parameters, schema, &m->parts, &value));
        value = then(m, value, end_of(m));
    }
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
    static const char *const whole[] = {"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if", "not", NULL};
    const json_t *parameters = json_object_get(tool, "parameters");
    const json_t *required = json_object_get(parameters, "required");
    making m = {plan, rules, fr_written_parts_of(rules), tool};
    const char *key;
    json_t *schema;
    *arguments = 0;
    for (const char *const *word = whole; *word; word++)
        if (json_object_get(parameters, *word))
            return fr_fail(FR_UNBUILT, "schema, at #/%s: not built in this model's calls", *word);
    json_object_foreach(json_object_get(parameters, "properties"), key, schema) {
        fr_expression one;
        if (!fr_grammar_spend(rules, 1 + json_array_size(required) / 2)) return fr_grammar_rules_check(rules);
        FR_TRY(argument(&m, key, schema, &one));
        if (!fr_json_schema_requires(parameters, key)) one = fr_expression_repeat(rules, one, 0, 1);
        *arguments = then(&m, *arguments, one);
    }
    return FR_OK;
}
