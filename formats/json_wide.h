/* JSON whose integers may have any number of digits: ids and amounts in conversations do, and Python keeps them.
 *
 * In: JSON text. Out: jansson values; an integer beyond int64 is a string of its digits behind a byte that no text has
 * (FR_JSON_WIDE), since jansson has no value for it. Whoever takes strings for texts asks fr_json_is_text. */
#ifndef FR_FORMATS_JSON_WIDE_H
#define FR_FORMATS_JSON_WIDE_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_WIDE '\xff'

/* json_loadb. NULL: error says why. */
json_t *fr_json_load_wide(const char *text, size_t size, size_t flags, json_error_t *error);

/* The digits of such an integer, with a sign if it is negative; NULL: the value is none. */
const char *fr_json_wide_digits(const json_t *value, size_t *length);

/* Whether a value is a string that is a text. */
bool fr_json_is_text(const json_t *value);

#endif
