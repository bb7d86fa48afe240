/* Reads and writes JSON whose integers may have any number of digits: conversations, tools and variables of templates.
 *
 * In: JSON text. Out: jansson values, in which an integer beyond int64 is a marked string (fr_lab_json_load); and from
 * such values JSON text with the same digits. */
#ifndef FR_TOOLS_CLI_WIDE_JSON_H
#define FR_TOOLS_CLI_WIDE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Parses JSON. Duplicate keys are refused, but NULs in strings are allowed. NULL: the text is not JSON, and `error`
 * has the reason. */
json_t *fr_json_load(const char *text, size_t length, json_error_t *error);

/* Parses an object whose text may have been cut off. As much of the text is used as can be completed by closing
 * brackets. NULL: there is no such object. */
json_t *fr_json_load_cut(const char *text, size_t length);

/* Returns true for a string that stands for itself, and not for a wide integer. */
bool fr_is_json_text(const json_t *value);

/* Returns true if a value contains a wide integer anywhere. */
bool fr_json_has_wide(const json_t *value);

/* Joins two texts to a new value. If that fails, the result is the first text alone. */
json_t *fr_json_joined(const json_t *text, const json_t *more);

/* Writes a value on one line. Returns false if it can't be represented as JSON, or if there is no memory. */
bool fr_json_write(const json_t *value, FILE *out);

#endif
