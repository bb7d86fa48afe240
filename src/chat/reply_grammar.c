/* Rules of a reply: see reply_grammar.h. */
#include "src/chat/reply_grammar.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

typedef struct making {
    const fr_reply_plan *plan;
    fr_grammar_rules *rules;
} making;

static fr_expression then(const making *m, fr_expression first, fr_expression second) {
    return fr_expression_then(m->rules, first, second);
}

static fr_expression text(const making *m, const char *bytes) {
    return fr_expression_string(m->rules, bytes);
}

static fr_expression mark(const making *m, fr_mark which) {
    return fr_reply_mark(m->plan, m->rules, which);
}

static fr_expression any(fr_grammar_rules *rules) {
    return fr_expression_repeat(rules, fr_expression_characters(rules, NULL, 0, true), 0, FR_GRAMMAR_UNBOUND);
}

/* ------------------------------------------------------------------------------------------------------------ marks */

fr_expression fr_reply_mark(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark which) {
    const char *bytes = plan->format->marks[which];
    if (!bytes) return 0;
    return plan->format->ids[which] >= 0 ? fr_expression_token(rules, plan->format->ids[which])
                                         : fr_expression_string(rules, bytes);
}

/* All but one or two ASCII characters. */
static fr_expression all_but(fr_grammar_rules *rules, char one, char other) {
    const fr_character_range two[] = {{(unsigned char)one, (unsigned char)one},
                                      {(unsigned char)other, (unsigned char)other}};
    return fr_expression_characters(rules, two, 2, true);
}

/* Any text without a mark, of ASCII, whose first character is nowhere else in it: of its beginnings none goes on as it
 * does, so each is followed by another beginning, or by a character that neither goes on nor begins it. */
static fr_expression without(fr_grammar_rules *rules, const char *bytes) {
    fr_expression broken = 0, begun = 0;
    bool some = false;
    for (size_t length = 1; bytes[length]; length++) {
        fr_expression part = fr_expression_text(rules, (fr_text){bytes, length});
        fr_expression end = fr_expression_then(rules, part, all_but(rules, bytes[length], bytes[0]));
        begun = some ? fr_expression_or(rules, begun, part) : part;
        broken = some ? fr_expression_or(rules, broken, end) : end;
        some = true;
    }
    begun = fr_expression_repeat(rules, begun, 0, FR_GRAMMAR_UNBOUND);
    fr_expression one =
        fr_expression_or(rules, all_but(rules, bytes[0], bytes[0]), fr_expression_then(rules, begun, broken));
    return fr_expression_then(rules, fr_expression_repeat(rules, one, 0, FR_GRAMMAR_UNBOUND), begun);
}

fr_expression fr_reply_until(const fr_reply_plan *plan, fr_grammar_rules *rules, fr_mark which) {
    bool token = plan->format->ids[which] >= 0;
    return fr_expression_then(rules, token ? any(rules) : without(rules, plan->format->marks[which]),
                              fr_reply_mark(plan, rules, which));
}

/* -------------------------------------------------------------------------------------------------------- reasoning */

/* Between channels, in gpt-oss's. */
static fr_expression analysis(const making *m) {
    fr_expression head = then(m, mark(m, FR_MARK_CHANNEL), then(m, text(m, "analysis"), mark(m, FR_MARK_BODY)));
    fr_expression end = then(m, mark(m, FR_MARK_MESSAGE), text(m, "assistant"));
    return fr_expression_repeat(m->rules,
                                then(m, then(m, head, fr_reply_until(m->plan, m->rules, FR_MARK_BODY_END)), end), 0, 1);
}

static fr_expression reasoning(const making *m) {
    const fr_reply_format *format = m->plan->format;
    if (format->calls == FR_CALLS_HARMONY) return analysis(m);
    if (!format->marks[FR_MARK_THINK] || m->plan->thought) return 0;
    fr_expression breaks = fr_expression_repeat(m->rules, text(m, "\n"), 0, 2);
    fr_expression rest = then(m, fr_reply_until(m->plan, m->rules, FR_MARK_THINK_END), breaks);
    if (m->plan->thinks) return rest;
    if (format->ids[FR_MARK_THINK] < 0) return 0; /* the vocabulary is not of a model that does */
    fr_expression begin = then(m, mark(m, FR_MARK_THINK), text(m, format->channel));
    return fr_expression_repeat(m->rules, then(m, begin, rest), 0, 1);
}

/* ------------------------------------------------------------------------------------------------------------ calls */

/* What stands around the arguments, from the call's first byte to its last, by the form. */
static fr_expression begin_of(const making *m, const char *name) {
    switch (m->plan->format->calls) {
    case FR_CALLS_JSON: {
        fr_expression begin = then(m, mark(m, FR_MARK_CALL), text(m, "\n{\"name\": \""));
        return then(m, then(m, begin, text(m, name)), text(m, "\", \"arguments\": "));
    }
    case FR_CALLS_LLAMA:
        return then(m, then(m, text(m, "{\"name\": \""), text(m, name)), text(m, "\", \"parameters\": "));
    case FR_CALLS_DEEPSEEK: {
        fr_expression begin = mark(m, FR_MARK_CALL), sep = mark(m, FR_MARK_NAME);
        if (!m->plan->fenced) return then(m, then(m, begin, text(m, name)), sep);
        begin = then(m, then(m, begin, text(m, "function")), then(m, sep, text(m, name)));
        return then(m, begin, text(m, "\n```json\n"));
    }
    case FR_CALLS_GLM: return then(m, mark(m, FR_MARK_CALL), then(m, text(m, name), text(m, "\n")));
    case FR_CALLS_XML: {
        fr_expression begin = then(m, mark(m, FR_MARK_CALL), then(m, text(m, "\n"), mark(m, FR_MARK_NAME)));
        return then(m, then(m, begin, text(m, name)), text(m, ">\n"));
    }
    case FR_CALLS_HARMONY: {
        fr_expression begin = then(m, mark(m, FR_MARK_CHANNEL), text(m, "commentary to=functions."));
        begin = then(m, then(m, begin, text(m, name)), text(m, " "));
        return then(m, then(m, begin, mark(m, FR_MARK_TYPE)), then(m, text(m, "json"), mark(m, FR_MARK_BODY)));
    }
    default: return then(m, mark(m, FR_MARK_CALL), then(m, text(m, "call:"), text(m, name)));
    }
}

static fr_expression end_of(const making *m) {
    switch (m->plan->format->calls) {
    case FR_CALLS_JSON: return then(m, text(m, "}\n"), mark(m, FR_MARK_CALL_END));
    case FR_CALLS_LLAMA: return text(m, "}");
    case FR_CALLS_DEEPSEEK: return then(m, text(m, m->plan->fenced ? "\n```" : ""), mark(m, FR_MARK_CALL_END));
    case FR_CALLS_XML: return then(m, mark(m, FR_MARK_NAME_END), then(m, text(m, "\n"), mark(m, FR_MARK_CALL_END)));
    case FR_CALLS_HARMONY: return 0; /* what ends it ends the turn */
    default: return mark(m, FR_MARK_CALL_END);
    }
}

static bool is_name(const json_t *value) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length = json_string_length(value);
    return length && length <= 128 && strspn(json_string_value(value), letters) == length;
}

static fr_status call_of(const making *m, const json_t *tool, const char *name, fr_expression *call) {
    fr_call_form form = m->plan->format->calls;
    fr_written_parts parts = fr_written_parts_of(m->rules);
    fr_expression arguments;
    if (form == FR_CALLS_GEMMA) {
        parts.mark = mark(m, FR_MARK_QUOTE);
        parts.mark_is_text = m->plan->format->ids[FR_MARK_QUOTE] < 0;
    }
    bool tagged = form == FR_CALLS_GLM || form == FR_CALLS_XML;
    parts.lenient = !fr_tool_is_strict(tool);
    json_t *schema;
    FR_TRY(fr_tool_schema(tool, m->rules, &schema));
    fr_status status = tagged ? fr_tagged_arguments(m->plan, tool, m->rules, &arguments)
                              : fr_json_schema_expression(schema, schema, NULL, &parts, &arguments);
    json_decref(schema);
    FR_TRY(status);
    *call = then(m, then(m, begin_of(m, name), arguments), end_of(m));
    return FR_OK;
}

/* Any of the tools, or the one that was named. */
static fr_status one_call(const making *m, fr_expression *call) {
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(m->plan->tools); i++) {
        const json_t *tool = json_array_get(m->plan->tools, i), *inner = json_object_get(tool, "function");
        if (inner) tool = inner;
        const json_t *named = json_object_get(tool, "name");
        const char *name = json_string_value(named);
        fr_expression one;
        if (m->plan->tool && (!name || strcmp(name, m->plan->tool) != 0)) continue;
        if (!is_name(named)) return fr_fail(FR_INPUT, "tools[%zu] has no name of letters, digits, '_', '-' and '.'", i);
        fr_status status = call_of(m, tool, name, &one);
        if (status != FR_OK) {
            char line[400];
            snprintf(line, sizeof line, "%s", fr_last_error());
            return status == FR_MEMORY ? status : fr_fail(status, "tools[%zu].function.parameters: %s", i, line);
        }
        *call = found++ ? fr_expression_or(m->rules, *call, one) : one;
    }
    if (found) return FR_OK;
    return fr_fail(FR_INPUT, m->plan->tool ? "there is no tool \"%.100s\"" : "there is no tool to be called",
                   m->plan->tool ? m->plan->tool : "");
}

static fr_status calls(const making *m, fr_expression *all) {
    const fr_call_form form = m->plan->format->calls;
    fr_expression call, between = 0;
    if (form == FR_CALLS_NONE)
        return fr_fail(FR_INPUT, "the model's chat template has no form of calls that is known here");
    FR_TRY(one_call(m, &call));
    bool lone = form == FR_CALLS_LLAMA || form == FR_CALLS_HARMONY;
    if (form == FR_CALLS_JSON || form == FR_CALLS_XML || form == FR_CALLS_GLM || m->plan->fenced)
        between = text(m, "\n");
    *all = call;
    if (m->plan->several && !lone) {
        uint32_t rule = fr_grammar_rule(m->rules);
        fr_grammar_define(m->rules, rule, call);
        call = fr_expression_rule(m->rules, rule);
        fr_expression more = fr_expression_repeat(m->rules, then(m, between, call), 0, FR_GRAMMAR_UNBOUND);
        *all = then(m, call, more);
    }
    if (form == FR_CALLS_DEEPSEEK) *all = then(m, then(m, mark(m, FR_MARK_CALLS), *all), mark(m, FR_MARK_CALLS_END));
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ reply */

static fr_expression content(const making *m) {
    fr_expression of = fr_expression_rule(m->rules, m->rules->root);
    if (m->plan->format->calls != FR_CALLS_HARMONY) return of;
    return then(m, then(m, mark(m, FR_MARK_CHANNEL), then(m, text(m, "final"), mark(m, FR_MARK_BODY))), of);
}

fr_status fr_reply_rules(const fr_reply_plan *plan, fr_grammar_rules *rules) {
    const making m = {plan, rules};
    fr_expression body = plan->has_content ? content(&m) : 0, called = 0;
    if (plan->tools) {
        FR_TRY(calls(&m, &called));
        body = plan->has_content ? fr_expression_or(rules, body, called) : called;
    }
    fr_expression all = then(&m, reasoning(&m), body);
    rules->root = fr_grammar_rule(rules);
    fr_grammar_define(rules, rules->root, all);
    return fr_grammar_rules_check(rules);
}
