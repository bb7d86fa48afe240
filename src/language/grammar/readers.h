/* Readers of the languages in which grammars are written. Each reader makes rules from a text.
 *
 * In: a text. Out: rules; the caller frees them, even after a failure. An error line gives the place in the text.
 *
 * Time and memory are bounded. A text has at most 1 MiB. Its rules have at most 2^20 expressions and 2^20 ranges of
 * characters, from which at most 2^20 nodes are made. Parentheses are at most 100 deep, and GBNF has at most 16384
 * rules. Repetitions are counted while a text is read, so large bounds need no more memory than small ones
 * (FR_REPEATS_MAX). In a schema, at most 64 schemas are nested, and there are at most 20000 schemas in all. A list has
 * at most 4000 values. In a oneOf, at most 4096 pairs of schemas may hold at once. The automaton for all keywords of a
 * string has at most 8192 states. Reading a schema takes at most 2^22 steps (rules.h). The schemas of real tools take
 * at most 2^16 steps. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_READERS_H
#define FR_SRC_LANGUAGE_GRAMMAR_READERS_H

#include "src/language/grammar/rules.h"

/* The largest bound of a repetition. No text can reach a larger bound. GBNF and regular expressions refuse a larger
 * bound, and schemas ignore it. */
#define FR_REPEATS_MAX 2147483647u

/* Reads llama.cpp's GBNF, except for tokens as terminals. The rule `root` defines the text. */
fr_status fr_gbnf_read(fr_text text, fr_grammar_rules *rules);

/* Reads a regular expression. The rules allow the texts that match it as a whole. */
fr_status fr_regex_read(fr_text text, fr_grammar_rules *rules);

/* Reads a JSON schema. The rules allow the schema's values, written as JSON. */
fr_status fr_json_schema_read(fr_text text, fr_grammar_rules *rules);

/* A function that writes characters as they appear in the output: unchanged, or as in a JSON string. ranges, count,
 * except: as in fr_expression_characters. */
typedef fr_expression fr_write_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                          bool except);

/* These functions make a grammar expression from a regular expression. whole: true if the regular expression must match
 * the whole output. If `whole` is false, it may match a part of the output, as a schema's `pattern` does, and ^ and $
 * match the beginning and the end of the output. fr_regex_parse leaves look-arounds in the expression; *looks: true if
 * there are any. */
fr_status fr_regex_parse(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                         fr_expression *expression, bool *looks);
fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression);

#endif
