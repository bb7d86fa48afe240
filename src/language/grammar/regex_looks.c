/* Makes grammar expressions of regular expressions (readers.h). A grammar has no look-arounds. But the language of an
 * expression with look-arounds is regular, so its automaton is made first, and the automaton becomes a grammar
 * expression. */
#include "base/error.h"
#include "src/language/grammar/language.h"

fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression) {
    bool looks;
    fr_language *language;
    FR_TRY(fr_regex_parse(text, whole, write, rules, expression, &looks));
    if (!looks) return FR_OK;
    size_t work;
    fr_status status = fr_language_of_regex(text, whole, &work, &language);
    fr_grammar_spend(rules, work / 4);
    FR_TRY(status);
    *expression = fr_language_is_empty(language) ? fr_expression_characters(rules, NULL, 0, false)
                                                 : fr_language_expression(language, write, rules);
    fr_language_free(language);
    return FR_OK;
}

fr_status fr_regex_read(fr_text text, fr_grammar_rules *rules) {
    fr_expression expression;
    FR_TRY(fr_regex_expression(text, true, fr_expression_characters, rules, &expression));
    rules->root = fr_grammar_rule(rules);
    fr_grammar_define(rules, rules->root, expression);
    return fr_grammar_rules_check(rules);
}
