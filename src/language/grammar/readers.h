/* Readers of the languages in which grammars are written: each makes rules of a text.
 *
 * In: a text. Out: rules, which the caller frees, also after a failure. An error line gives the place in the text.
 *
 * Time and memory are bounded: a text has at most 1 MiB, its rules have at most 2^20 expressions and as many ranges of
 * characters, which make at most 2^20 nodes. Parentheses are at most 100 deep, and GBNF has at most 16384 rules.
 * Repetitions are counted while a text is read, so large bounds need no more memory than small ones (FR_REPEATS_MAX).
 * A schema has at most 64 schemas within each other, 20000 in all, lists of 4000 values, 4096 pairs of a oneOf that
 * may hold at once, automata of 8192 states for all keywords of a string, and 2^22 steps in all (rules.h). The schemas
 * of real tools take at most 2^16 steps. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_READERS_H
#define FR_SRC_LANGUAGE_GRAMMAR_READERS_H

#include "src/language/grammar/rules.h"

/* The largest bound of a repetition. No text can reach a larger one: GBNF and regular expressions refuse it, and
 * schemas ignore it. */
#define FR_REPEATS_MAX 2147483647u

/* Reads llama.cpp's GBNF, except for tokens as terminals. The rule `root` defines the text. */
fr_status fr_gbnf_read(fr_text text, fr_grammar_rules *rules);

/* Reads a regular expression. The rules allow the texts that match it as a whole. */
fr_status fr_regex_read(fr_text text, fr_grammar_rules *rules);

/* Reads a JSON schema. The rules allow the schema's values, written as JSON. */
fr_status fr_json_schema_read(fr_text text, fr_grammar_rules *rules);

/* Writes characters as they appear in the output: unchanged, or as a JSON string spells them. ranges, count, except:
 * as for fr_expression_characters. */
typedef fr_expression fr_write_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                          bool except);

/* Make a grammar expression of a regular expression. whole: the regular expression must match the whole output. If
 * `whole` is false, it may match a part of the output, as a schema's `pattern` does, and ^ and $ stand for the ends of
 * the output. fr_regex_parse leaves look-arounds in the expression; *looks: there are some. */
fr_status fr_regex_parse(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                         fr_expression *expression, bool *looks);
fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression);

#endif
