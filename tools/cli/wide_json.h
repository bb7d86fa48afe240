/* JSON in which integers may have any number of digits: what conversations, tools and variables of templates are read
 * from and written to.
 *
 * In: JSON text. Out: jansson values, where an integer beyond int64 is what fr_lab_json_load makes of it; and text
 * again, with the digits that were read. */
#ifndef FR_TOOLS_CLI_WIDE_JSON_H
#define FR_TOOLS_CLI_WIDE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Duplicate keys are refused, NULs in strings are not. NULL: error says why. */
json_t *fr_json_load(const char *text, size_t length, json_error_t *error);

/* Loads an object whose text may have been cut off: of that as much as can be closed. NULL: it is no object. */
json_t *fr_json_load_cut(const char *text, size_t length);

/* A string that is a text, and no such integer. */
bool fr_is_json_text(const json_t *value);

/* Whether there is such an integer anywhere in a value. */
bool fr_json_has_wide(const json_t *value);

/* A text with another one behind it, as a new value; where that can't be, the first one alone. */
json_t *fr_json_joined(const json_t *text, const json_t *more);

/* On one line; false: a value that is no JSON, or no memory. */
bool fr_json_write(const json_t *value, FILE *out);

#endif
