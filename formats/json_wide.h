/* Keeps numbers that Python's json has and jansson does not: integers of any length, NaN, Infinity and -Infinity.
 *
 * Long integers occur as ids and amounts in conversations, the other numbers in configurations (json_read.h). In: JSON
 * text. Out: jansson values, in which a number of these kinds is a string: the byte FR_JSON_WIDE, which no text
 * contains, and then the number's digits or its word. So code that expects a text must call fr_json_is_text. */
#ifndef FR_FORMATS_JSON_WIDE_H
#define FR_FORMATS_JSON_WIDE_H

#include <jansson.h>

#include "forerun.h"

#define FR_JSON_WIDE '\xff'

/* Works like json_loadb. If it returns NULL, `error` has the reason. */
json_t *fr_json_load_wide(const char *text, size_t size, size_t flags, json_error_t *error);

/* Gives the digits of an integer of any length, with a minus first if it is negative; NULL for any other value. */
const char *fr_json_wide_digits(const json_t *value, size_t *length);

/* Gives the word of a number that is not finite, "NaN", "Infinity" or "-Infinity"; NULL for any other value. */
const char *fr_json_not_finite(const json_t *value);

/* Returns true for a string that is a text, and not one of the numbers that this file keeps as strings. */
bool fr_json_is_text(const json_t *value);

#endif
