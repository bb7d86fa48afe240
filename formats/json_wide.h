/* Numbers that Python's json keeps and jansson has no value for: integers of any number of digits, as ids and amounts
 * in conversations have, and NaN, Infinity and -Infinity, as configurations have (json_read.h).
 *
 * In: JSON text. Out: jansson values; such a number is a string that begins with a byte that no text has
 * (FR_JSON_WIDE), and then has its digits or its word. Code that takes strings for texts asks fr_json_is_text. */
#ifndef FR_FORMATS_JSON_WIDE_H
#define FR_FORMATS_JSON_WIDE_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_WIDE '\xff'

/* json_loadb. NULL: error says why. */
json_t *fr_json_load_wide(const char *text, size_t size, size_t flags, json_error_t *error);

/* The digits of such an integer, with a sign if it is negative; NULL: the value is none. */
const char *fr_json_wide_digits(const json_t *value, size_t *length);

/* "NaN", "Infinity" or "-Infinity"; NULL: the value is none of them. */
const char *fr_json_not_finite(const json_t *value);

/* True for a string that is a text, not one of these numbers. */
bool fr_json_is_text(const json_t *value);

#endif
