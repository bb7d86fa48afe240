/* Sorts a schema's keywords into three kinds: keywords that constrain values, keywords that constrain values but are
 * not built, and annotations. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_WORDS_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_WORDS_H

#include <jansson.h>

#include "base/error.h"

/* Our own keywords, which replace other keywords when a schema is rewritten. FR_NONE_OF lists values that are excluded.
 * A string must match all patterns of FR_ALL_PATTERNS, and no pattern of FR_NO_PATTERNS. These keywords are not UTF-8,
 * so no keyword in a user's schema can equal one of them. */
#define FR_OWN          "\xFF"
#define FR_NONE_OF      FR_OWN "none of"
#define FR_ALL_PATTERNS FR_OWN "all patterns"
#define FR_NO_PATTERNS  FR_OWN "no patterns"

/* A place in the schema: one step of a JSON pointer, linked to the steps before it. */
typedef struct fr_schema_path {
    const struct fr_schema_path *above; /* NULL: the root */
    const char *key;                    /* NULL: the item `index` */
    size_t index;
} fr_schema_path;

/* Fails with an error line that names the place: "schema, at #/properties/a: WHAT". */
fr_status fr_schema_fail(const fr_schema_path *path, fr_status status, const char *what);

/* fr_schema_describes returns true for a keyword that does not constrain values, such as every keyword that JSON Schema
 * does not define. fr_schema_is_unbuilt returns true for a keyword that constrains values and is not built. */
bool fr_schema_describes(const char *key);
bool fr_schema_is_unbuilt(const char *key);

/* fr_schema_is_word returns true if the word `key` is in a list. fr_schema_has_any returns true if a schema has one of
 * a list's words as a keyword. NULL ends each list. */
bool fr_schema_is_word(const char *key, const char *const *words);
bool fr_schema_has_any(const json_t *schema, const char *const *words);

#endif
