/* A JSON schema as an expression: what readers.h makes a grammar of, as part of a larger one. */
#ifndef FR_SRC_GRAMMAR_JSON_SCHEMA_H
#define FR_SRC_GRAMMAR_JSON_SCHEMA_H

#include "src/grammar/json_parts.h"
#include "src/grammar/json_schema_words.h"

/* Values of a schema, written as the parts write them. root: what its references are relative to; path: where in it the
 * schema is, NULL: it is the root. */
fr_status fr_json_schema_expression(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    fr_written_parts *parts, fr_expression *expression);

/* Whether an object of that schema must have the member. */
bool fr_json_schema_requires(const json_t *schema, const char *name);

#endif
