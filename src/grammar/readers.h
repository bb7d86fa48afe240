/* Readers of the languages in which grammars are written: each makes rules of a text.
 *
 * In: a text. Out: rules, also half-made ones where it fails, which the caller frees. The line of a failure says where
 * in the text it is.
 *
 * Time and memory are bounded: a text has at most 1 MiB, its rules 2^20 expressions and as many ranges of characters,
 * which make 2^20 nodes. Parentheses are at most 100 deep, GBNF's rules 16384. Repetitions are counted while a text is
 * read, so bounds cost nothing (FR_MAX_REPEATS). A schema has: 64 schemas in each other, 20000 in all, lists of 4000
 * values, 4096 pairs of a oneOf that may hold at once, automata of 8192 states for what a string is to be at
 * once, and all in 2^22 steps (rules.h), in which the longest that a schema of those that tools use takes is 2^16. */
#ifndef FR_SRC_GRAMMAR_READERS_H
#define FR_SRC_GRAMMAR_READERS_H

#include "src/grammar/rules.h"

/* Times that something is repeated: larger bounds than texts can reach are refused where they are written, and are none
 * in a schema. */
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

/* The expression of a regular expression. whole: it must match all of a text, else a part of it is enough unless ^ and
 * $ say so, as in a schema's `pattern`. Or as it is written, with what looks around in it (*looks). */
fr_status fr_regex_parse(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                         fr_expression *expression, bool *looks);
fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression);

#endif
