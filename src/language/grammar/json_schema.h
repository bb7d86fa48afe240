/* Makes an expression of a JSON schema that is part of a larger grammar. (readers.h makes a whole grammar of a
 * schema.) */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_H

#include "src/language/grammar/json_parts.h"
#include "src/language/grammar/json_schema_words.h"

/* Makes an expression of a schema's values, in the form that `parts` describes. root: the schema to which references
 * are relative. path: the place of the schema in the root; NULL: the schema is the root. */
fr_status fr_json_schema_expression(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    fr_written_parts *parts, fr_expression *expression);

/* Makes an expression of a schema's strings as plain text, without quotes and escapes. without: a text that no string
 * may contain; NULL: strings may contain any text. */
fr_status fr_json_schema_plain_text(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    const char *without, fr_grammar_rules *rules, fr_expression *expression);

/* Returns true if the schema limits strings by a keyword that is enforced: their length, a pattern, or a known
 * format. */
bool fr_json_schema_limits_text(const json_t *schema);

#endif
