/* Defines the public fr_grammar_open_reply, which makes the grammar of a reply that the caller asks for
 * (reply_grammar.h). */
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
#include "src/language/chat/reply.h"
#include "src/language/chat/reply_begin.h"
#include "src/language/chat/reply_grammar.h"
#include "src/language/grammar/grammar.h"

static fr_reply_plan plan_of(const fr_reply_rule *rule, const fr_reply_format *format, const json_t *options) {
    fr_text written = fr_reply_written(format, rule->prompt, options);
    return (fr_reply_plan){.format = format,
                           .thinks = fr_reply_opens_reasoning(format, written.bytes, written.length),
                           .thought = fr_reply_ends_reasoning(format, written.bytes, written.length),
                           .tools = rule->calls == FR_REPLY_CALLS_NONE ? NULL : json_object_get(options, "tools"),
                           .tool = rule->tool,
                           .several = rule->several,
                           .has_content = rule->calls != FR_REPLY_CALLS_MUST};
}

static fr_status open(const fr_token_tree *tree, const fr_reply_rule *rule, const json_t *options,
                      fr_grammar_rules *rules, fr_grammar **grammar) {
    fr_reply_format format = fr_reply_format_for(tree->tokenizer, options);
    fr_reply_plan plan = plan_of(rule, &format, options);
    if (plan.has_content) FR_TRY(fr_grammar_read(rule->kind, (fr_text){rule->text, rule->length}, rules));
    FR_TRY(fr_reply_rules(&plan, rules));
    FR_TRY(fr_grammar_of_rules(tree, rules, grammar));
    return fr_grammar_keep_apart(*grammar, format.ids, FR_MARK_COUNT);
}

fr_status fr_grammar_open_reply(const fr_token_tree *tree, const fr_reply_rule *rule, fr_grammar **grammar) {
    if (!grammar) return fr_fail_null("fr_grammar_open_reply", "a place for the grammar");
    *grammar = NULL;
    if (!tree || !rule) return fr_fail_null("fr_grammar_open_reply", "a tree of tokens and a rule");
    if (rule->calls != FR_REPLY_CALLS_MUST && !rule->text)
        return fr_fail_null("fr_grammar_open_reply", "a grammar of the content");
    json_t *options = NULL;
    fr_grammar_rules rules = {0};
    fr_status status = FR_OK;
    if (rule->options_json)
        status = fr_json_parse_texts(rule->options_json, strlen(rule->options_json), "chat options", &options);
    if (status == FR_OK && rule->calls != FR_REPLY_CALLS_NONE && !json_array_size(json_object_get(options, "tools")))
        status = fr_fail(FR_INPUT, "there is no tool to be called");
    if (status == FR_OK) status = open(tree, rule, options, &rules, grammar);
    fr_grammar_rules_free(&rules);
    json_decref(options);
    return status;
}
