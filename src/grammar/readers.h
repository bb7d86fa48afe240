/* What grammars are written in: each reader makes rules of a text.
 *
 * In: a text. Out: rules, also half-made ones where it fails, which the caller frees. The line of a failure says where
 * in the text it is. */
#ifndef FR_SRC_GRAMMAR_READERS_H
#define FR_SRC_GRAMMAR_READERS_H

#include "src/grammar/rules.h"

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
 * $ say so, as in a schema's `pattern`. */
fr_status fr_regex_expression(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                              fr_expression *expression);

#endif
