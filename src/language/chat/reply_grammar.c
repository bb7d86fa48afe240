/* Makes the grammar of a whole reply (reply_grammar.h). */
#include "src/language/chat/reply_grammar.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/language/chat/reply_forms.h"

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

/* Allows any character except one or two ASCII characters. */
static fr_expression all_but(fr_grammar_rules *rules, char one, char other) {
    const fr_character_range two[] = {{(unsigned char)one, (unsigned char)one},
                                      {(unsigned char)other, (unsigned char)other}};
    return fr_expression_characters(rules, two, 2, true);
}

/* Allows any text that does not contain `bytes`, an ASCII text whose first character occurs only at its beginning.
 * Wherever such a text contains a beginning of `bytes`, either another beginning of `bytes` follows, or a character
 * that neither continues `bytes` nor begins it. */
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

/* Finds the mark with which a text begins; FR_MARK_NONE: the text begins with no mark. */
static fr_mark mark_at(const fr_reply_format *format, const char *text) {
    for (size_t i = 1; i < FR_MARK_COUNT; i++)
        if (format->marks[i] && strncmp(text, format->marks[i], strlen(format->marks[i])) == 0) return (fr_mark)i;
    return FR_MARK_NONE;
}

fr_expression fr_form_text(const fr_reply_plan *plan, fr_grammar_rules *rules, const char *text,
                           const fr_form_word *words) {
    fr_expression all = 0;
    for (size_t length; *text; text += length) {
        const fr_form_word *word = words;
        fr_mark which = mark_at(plan->format, text);
        fr_expression part;
        while (word->word && strncmp(text, word->word, strlen(word->word)) != 0) word++;
        length = 1;
        if (word->word) {
            part = word->meaning;
            length = strlen(word->word);
        } else if (which != FR_MARK_NONE) {
            part = fr_reply_mark(plan, rules, which);
            length = strlen(plan->format->marks[which]);
        } else {
            while (text[length] && text[length] != '$' && !mark_at(plan->format, text + length)) length++;
            part = fr_expression_text(rules, (fr_text){text, length});
        }
        all = fr_expression_then(rules, all, part);
    }
    return all;
}

/* -------------------------------------------------------------------------------------------------------- reasoning */

/* Makes the reasoning of gpt-oss, which is a channel. */
static fr_expression analysis(const making *m) {
    fr_expression head = then(m, mark(m, FR_MARK_CHANNEL), then(m, text(m, "analysis"), mark(m, FR_MARK_BODY)));
    fr_expression end = then(m, mark(m, FR_MARK_MESSAGE), text(m, "assistant"));
    return fr_expression_repeat(m->rules,
                                then(m, then(m, head, fr_reply_until(m->plan, m->rules, FR_MARK_BODY_END)), end), 0, 1);
}

static fr_expression reasoning(const making *m) {
    const fr_reply_format *format = m->plan->format;
    if (format->marks[FR_MARK_CHANNEL]) return analysis(m);
    if (!format->marks[FR_MARK_THINK] || m->plan->thought) return 0;
    fr_expression breaks = fr_expression_repeat(m->rules, text(m, "\n"), 0, 2);
    fr_expression rest = then(m, fr_reply_until(m->plan, m->rules, FR_MARK_THINK_END), breaks);
    if (m->plan->thinks) return rest;
    /* a model does not reason if the mark that begins reasoning is not a token of its vocabulary */
    if (format->ids[FR_MARK_THINK] < 0) return 0;
    fr_expression begin = then(m, mark(m, FR_MARK_THINK), text(m, format->channel));
    return fr_expression_repeat(m->rules, then(m, begin, rest), 0, 1);
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static fr_expression repeated(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count, uint32_t least,
                              uint32_t most) {
    return fr_expression_repeat(rules, fr_expression_characters(rules, ranges, count, false), least, most);
}

static fr_expression call_text(const making *m, const char *name, fr_expression arguments) {
    static const fr_character_range alphanumeric[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    const fr_form_word words[] = {{"$NAME", text(m, name)},
                                  {"$ARGUMENTS", arguments},
                                  {"$NUMBER", repeated(m->rules, alphanumeric, 1, 1, 3)},
                                  {"$ID", repeated(m->rules, alphanumeric, 3, 9, 9)},
                                  {NULL, 0}};
    return fr_form_text(m->plan, m->rules, m->plan->format->form->call, words);
}

static bool is_name(const json_t *value) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    size_t length = json_string_length(value);
    return length && length <= 128 && strspn(json_string_value(value), letters) == length;
}

/* Makes a call of one tool. parts: the rules of JSON's parts; all tools use the same rules. */
static fr_status call_of(const making *m, const json_t *tool, const char *name, fr_written_parts *parts,
                         fr_expression *call) {
    const fr_arguments_form form = m->plan->format->form->arguments;
    bool tagged = form == FR_ARGUMENTS_TAGGED || form == FR_ARGUMENTS_PYTHON;
    fr_expression arguments;
    parts->lenient = !fr_tool_is_strict(tool);
    json_t *schema;
    FR_TRY(fr_tool_schema(tool, m->rules, &schema));
    fr_status status = tagged ? fr_tagged_arguments(m->plan, tool, m->rules, &arguments)
                              : fr_json_schema_expression(schema, schema, NULL, parts, &arguments);
    json_decref(schema);
    if (parts->lenient && !tagged && (status == FR_INPUT || status == FR_UNBUILT) && m->rules->status == FR_OK) {
        arguments = fr_written_any_object(parts);
        status = FR_OK;
    }
    FR_TRY(status);
    *call = call_text(m, name, arguments);
    return FR_OK;
}

/* Allows a call of any tool, or, if the caller named a tool, only of that tool. */
static fr_status one_call(const making *m, fr_expression *call) {
    size_t found = 0;
    fr_written_parts parts = fr_written_parts_of(m->rules);
    if (m->plan->format->form->arguments == FR_ARGUMENTS_QUOTED) {
        parts.mark = mark(m, FR_MARK_QUOTE);
        parts.mark_is_text = m->plan->format->ids[FR_MARK_QUOTE] < 0;
    }
    for (size_t i = 0; i < json_array_size(m->plan->tools); i++) {
        const json_t *tool = json_array_get(m->plan->tools, i), *inner = json_object_get(tool, "function");
        if (inner) tool = inner;
        const json_t *named = json_object_get(tool, "name");
        const char *name = json_string_value(named);
        fr_expression one;
        if (m->plan->tool && (!name || strcmp(name, m->plan->tool) != 0)) continue;
        if (!is_name(named)) return fr_fail(FR_INPUT, "tools[%zu] has no name of letters, digits, '_', '-' and '.'", i);
        fr_status status = call_of(m, tool, name, &parts, &one);
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
    static const fr_form_word none = {NULL, 0};
    const fr_call_form *form = m->plan->format->form;
    fr_expression call;
    if (!form) return fr_fail(FR_INPUT, "the model's chat template has no form of calls that is known here");
    FR_TRY(one_call(m, &call));
    *all = call;
    if (m->plan->several && form->between) {
        uint32_t rule = fr_grammar_rule(m->rules);
        fr_grammar_define(m->rules, rule, call);
        call = fr_expression_rule(m->rules, rule);
        fr_expression between = fr_form_text(m->plan, m->rules, form->between, &none);
        fr_expression more = fr_expression_repeat(m->rules, then(m, between, call), 0, FR_GRAMMAR_UNBOUND);
        *all = then(m, call, more);
    }
    if (form->before) *all = then(m, fr_form_text(m->plan, m->rules, form->before, &none), *all);
    if (form->after) *all = then(m, *all, fr_form_text(m->plan, m->rules, form->after, &none));
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ reply */

static fr_expression content(const making *m) {
    fr_expression of = fr_expression_rule(m->rules, m->rules->root);
    if (!m->plan->format->marks[FR_MARK_CHANNEL]) return of;
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
