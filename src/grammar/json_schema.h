/* A JSON schema as an expression: what readers.h makes a grammar of, as part of a larger one. */
#ifndef FR_SRC_GRAMMAR_JSON_SCHEMA_H
#define FR_SRC_GRAMMAR_JSON_SCHEMA_H

#include "src/grammar/json_parts.h"
#include "src/grammar/json_schema_words.h"

/* Values of a schema, written as the parts write them. root: what its references are relative to; path: where in it the
 * schema is, NULL: it is the root. */
fr_status fr_json_schema_expression(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    fr_written_parts *parts, fr_expression *expression);

/* Strings of a schema as they are, without quotes and escapes. without: no such text is in them; NULL: any may be. */
fr_status fr_json_schema_plain_text(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    const char *without, fr_grammar_rules *rules, fr_expression *expression);

/* Whether a schema says something of strings that is held: their length, a pattern, a format that is known. */
bool fr_json_schema_limits_text(const json_t *schema);

#endif
