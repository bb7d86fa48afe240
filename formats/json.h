/* Reads JSON within limits and checks members for type and range; errors name the file and the key.
 *
 * In: bytes. Out: a jansson value (json_decref it). Depth is limited to 64, and the number of values to 2^23. Duplicate
 * keys are refused, except by fr_json_parse_texts.
 *
 * The three readers differ in the numbers that they accept. fr_json_parse refuses an integer that does not fit int64.
 * fr_json_read turns such an integer into a real, because tokenizer_config.json has one: model_max_length, which is
 * 1e30 written out. fr_json_parse_texts keeps all its digits (json_wide.h). Python's json also writes NaN, Infinity and
 * -Infinity. Only fr_json_read accepts these words, and the getters refuse the values. */
#ifndef FR_FORMATS_JSON_H
#define FR_FORMATS_JSON_H

#include <jansson.h>

#include "formats/notes.h"
#include "forerun.h"

/* Parses a text. Error lines call the text `where`, "config.json" for instance. */
fr_status fr_json_parse(const char *text, size_t size, const char *where, json_t **root);

/* Parses text that people and models write. Strings may have NULs in them (\u0000), so their length is
 * json_string_length. Integers may be wide (json_wide.h). If a key occurs twice, the last member is used, as in
 * Python. */
fr_status fr_json_parse_texts(const char *text, size_t size, const char *where, json_t **root);
fr_status fr_json_read(const char *path, size_t limit, json_t **root);

/* Writes a value as JSON text, malloc'd. `flags` are jansson's, but a value with wide integers is always written
 * without blanks. If `value` is NULL because the caller had no memory to make it, the call fails with FR_MEMORY. */
fr_status fr_json_dump(const json_t *value, size_t flags, const char *what, char **text, size_t *length);

/* Reads an object's integer in [low, high]. A missing or null key gives the fallback. If the fallback is
 * FR_JSON_REQUIRED, a missing key is an error. A number with a fraction other than 0 is an error. */
#define FR_JSON_REQUIRED INT64_MIN
fr_status fr_json_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                      const char *where, int64_t *value);

/* Like fr_json_int, but for a size_t: reads an object's integer in [low, high], with low >= 0. It is for counts and
 * widths. */
fr_status fr_json_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                       const char *where, size_t *value);

/* Reads a finite real in [low, high]. A missing or null key gives the fallback. If the fallback is NAN, a missing key
 * is an error. */
fr_status fr_json_real(const json_t *object, const char *key, double low, double high, double fallback,
                       const char *where, double *value);

fr_status fr_json_bool(const json_t *object, const char *key, bool fallback, const char *where, bool *value);

/* Gives the name of a key that has two spellings: `first` if the object has that key, otherwise `second`. */
const char *fr_json_spelling(const json_t *object, const char *first, const char *second);

/* Reads a string, which belongs to the object. The result is NULL if the member is missing or null. */
fr_status fr_json_text(const json_t *object, const char *key, const char *where, const char **value);

/* Reads a member that is an object. The result is NULL if the member is missing or null. Any other type is an error. */
fr_status fr_json_object(const json_t *object, const char *key, const char *where, json_t **value);

/* Reads a member that is one integer or an array of integers. Integers in [0, high] are added to `ids`, a set of *count
 * different ids with room for `capacity`. Other integers are not ids of tokens. They are left out, with a note if
 * `notes` is given. A missing or null member adds nothing. */
fr_status fr_json_ids(const json_t *object, const char *key, int64_t high, const char *where, fr_notes *notes,
                      int32_t *ids, size_t capacity, size_t *count);

/* Reads a member that is an array of at most `capacity` integers. Integers in [0, high] are stored in `ids`, and *count
 * gets their number. Other integers are not ids of tokens and are left out. A missing or null member gives no ids. */
fr_status fr_json_id_list(const json_t *object, const char *key, int64_t high, const char *where, int32_t *ids,
                          size_t capacity, size_t *count);

#endif
