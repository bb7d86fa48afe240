/* JSON from a file, bounded, with getters that check type and range and name the file and key at fault.
 *
 * In: bytes. Out: a jansson value (json_decref it). Depth is limited to 64, values to 2^23, duplicate keys are refused.
 * An integer beyond int64 is an error in fr_json_parse; in fr_json_read it is a real (tokenizer_config.json has such a
 * number, model_max_length, 1e30 written out); in fr_json_parse_texts it is kept (json_wide.h). NaN, Infinity and
 * -Infinity, which Python's json writes, are read by fr_json_read alone; getters refuse them wherever they are used. */
#ifndef FR_FORMATS_JSON_H
#define FR_FORMATS_JSON_H

#include <jansson.h>

#include "formats/notes.h"
#include "forerun.h"

/* where: how an error line names the text, "config.json" say. */
fr_status fr_json_parse(const char *text, size_t size, const char *where, json_t **root);

/* The same for what people and models say: strings may have NULs in them (\u0000), json_string_length says how long
 * they are; integers may be wide (json_wide.h); of members with one key the last counts, as for Python. */
fr_status fr_json_parse_texts(const char *text, size_t size, const char *where, json_t **root);
fr_status fr_json_read(const char *path, size_t limit, json_t **root);

/* A value as JSON text, malloc'd; flags: jansson's, but a value with wide integers is written without blanks. A value
 * that is NULL, as one that could not be made, is FR_MEMORY. */
fr_status fr_json_dump(const json_t *value, size_t flags, const char *what, char **text, size_t *length);

/* An object's integer in [low, high]. A missing or null key gives the fallback; FR_JSON_REQUIRED as the fallback makes
 * it an error. A number with a fraction is an error unless the fraction is 0. */
#define FR_JSON_REQUIRED INT64_MIN
fr_status fr_json_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                      const char *where, int64_t *value);

/* The same for counts and widths; low >= 0. */
fr_status fr_json_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                       const char *where, size_t *value);

/* A finite real in [low, high]; missing or null gives the fallback; NAN as the fallback makes it an error. */
fr_status fr_json_real(const json_t *object, const char *key, double low, double high, double fallback,
                       const char *where, double *value);

fr_status fr_json_bool(const json_t *object, const char *key, bool fallback, const char *where, bool *value);

/* A string that belongs to the object; missing or null gives NULL. */
fr_status fr_json_text(const json_t *object, const char *key, const char *where, const char **value);

/* A member object; missing or null gives NULL, another type is an error. */
fr_status fr_json_object(const json_t *object, const char *key, const char *where, json_t **value);

/* A member that is one integer or an array of them: those in [0, high] are appended to the set ids[*count] (no
 * duplicates, at most capacity), others name nothing and are noted, where there are notes. Missing or null appends
 * nothing. */
fr_status fr_json_ids(const json_t *object, const char *key, int64_t high, const char *where, fr_notes *notes,
                      int32_t *ids, size_t capacity, size_t *count);

/* A member that is an array of at most `capacity` integers: those in [0, high] become the `count` ids, others name
 * nothing and are passed over. Missing or null gives none. */
fr_status fr_json_id_list(const json_t *object, const char *key, int64_t high, const char *where, int32_t *ids,
                          size_t capacity, size_t *count);

#endif
