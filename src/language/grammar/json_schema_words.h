/* What a schema's keywords are to us: which say something of values, and which of those are built. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_WORDS_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_WORDS_H

#include <jansson.h>

#include "base/error.h"

/* Keywords of our own, for what others come to: a list of what the value is none of; lists of patterns of which a
 * string matches all, or none. They are no UTF-8, so that none of them is a user's. */
#define FR_OWN          "\xFF"
#define FR_NONE_OF      FR_OWN "none of"
#define FR_ALL_PATTERNS FR_OWN "all patterns"
#define FR_NO_PATTERNS  FR_OWN "no patterns"

/* Where in the schema we are: a JSON pointer, from its end to its root. */
typedef struct fr_schema_path {
    const struct fr_schema_path *above; /* NULL: the root */
    const char *key;                    /* NULL: the item `index` */
    size_t index;
} fr_schema_path;

/* A failure that names the place: "schema, at #/properties/a: WHAT". */
fr_status fr_schema_fail(const fr_schema_path *path, fr_status status, const char *what);

/* Whether a keyword only describes, as those do that JSON Schema does not know; whether it says something and is not
 * built at all. */
bool fr_schema_describes(const char *key);
bool fr_schema_is_unbuilt(const char *key);

/* Whether a list, ended by NULL, has a word; whether a schema has one of its words. */
bool fr_schema_is_word(const char *key, const char *const *words);
bool fr_schema_has_any(const json_t *schema, const char *const *words);

#endif
