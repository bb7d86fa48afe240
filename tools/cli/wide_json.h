/* Reads and writes JSON whose integers may have any number of digits. It is used for conversations, tools and variables
 * of templates.
 *
 * In: JSON text. Out: jansson values, in which an integer that does not fit into an int64 is a marked string
 * (fr_lab_json_load). In the other direction, such values give JSON text with the same digits. */
#ifndef FR_TOOLS_CLI_WIDE_JSON_H
#define FR_TOOLS_CLI_WIDE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Parses JSON. Duplicate keys are refused, but NULs in strings are allowed. NULL: the text is not JSON, and `error`
 * has the reason. */
json_t *fr_json_load(const char *text, size_t length, json_error_t *error);

/* Parses an object whose text may have been cut off. It uses the longest part of the text from which closing quotes and
 * brackets make an object. NULL: there is no such part. */
json_t *fr_json_load_cut(const char *text, size_t length);

/* Returns true for a text. A wide integer is stored as a string too, but is not a text. */
bool fr_is_json_text(const json_t *value);

/* Returns true if a value contains a wide integer anywhere. */
bool fr_json_has_wide(const json_t *value);

/* Joins two texts to a new value. If that fails, the result is the first text alone. */
json_t *fr_json_joined(const json_t *text, const json_t *more);

/* Writes a value on one line. Returns false if the value has no form in JSON, or if there is no memory. */
bool fr_json_write(const json_t *value, FILE *out);

#endif
