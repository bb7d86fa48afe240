/* Readers of the languages in which grammars are written: each makes rules of a text.
 *
 * In: a text. Out: rules, which the caller frees, after a failure too. The line of a failure gives its place in the
 * text.
 *
 * Time and memory are bounded: a text has at most 1 MiB, its rules 2^20 expressions and as many ranges of characters,
 * which make 2^20 nodes. Parentheses are at most 100 deep, GBNF's rules 16384. Repetitions are counted while a text is
 * read, so bounds cost nothing (FR_MAX_REPEATS). A schema has: 64 schemas in each other, 20000 in all, lists of 4000
 * values, 4096 pairs of a oneOf that may hold at once, automata of 8192 states for all keywords of a string, and 2^22
 * steps in all (rules.h); of the schemas that tools use, none takes more than 2^16. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_READERS_H
#define FR_SRC_LANGUAGE_GRAMMAR_READERS_H

#include "src/language/grammar/rules.h"

/* The largest bound of a repetition. No text reaches a larger one, which GBNF and regular expressions refuse and
 * schemas ignore. */
#define FR_MAX_REPEATS 2147483647u

/* llama.cpp's GBNF, but for tokens as terminals. The text is a text of the rule `root`. */
fr_status fr_gbnf_read(fr_text text, fr_grammar_rules *rules);

/* A regular expression that the whole text matches. */
fr_status fr_regex_read(fr_text text, fr_grammar_rules *rules);

/* A JSON schema: its values, written as JSON. */
fr_status fr_json_schema_read(fr_text text, fr_grammar_rules *rules);

/* How an expression's characters are written where it stands: as they are, or as inside a JSON string. */
typedef fr_expression fr_write_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                          bool except);

/* Make an expression of a regular expression. whole: it must match the whole text; otherwise a part of the text is
 * enough, unless ^ and $ are used, as in a schema's `pattern`. fr_regex_parse leaves look-arounds in it; *looks: there
 * are some. */
fr_status fr_regex_parse(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                         fr_expression *expression, bool *looks);
fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression);

#endif
