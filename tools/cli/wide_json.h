/* Reads and writes JSON in which integers may have any number of digits, for conversations, tools and variables of
 * templates.
 *
 * In: JSON text. Out: jansson values, in which an integer beyond int64 is represented as fr_lab_json_load does it; and
 * text again, with the same digits. */
#ifndef FR_TOOLS_CLI_WIDE_JSON_H
#define FR_TOOLS_CLI_WIDE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Loads JSON. Duplicate keys are refused, NULs in strings are allowed. NULL: the text is not JSON, and `error` has the
 * reason. */
json_t *fr_json_load(const char *text, size_t length, json_error_t *error);

/* Loads an object whose text may have been cut off, as much of it as can be closed. NULL: the text is no object. */
json_t *fr_json_load_cut(const char *text, size_t length);

/* Returns true for a string that is a text, and not a wide integer. */
bool fr_is_json_text(const json_t *value);

/* Returns true if a value contains a wide integer anywhere. */
bool fr_json_has_wide(const json_t *value);

/* Gives both texts joined as a new value; if that fails, the first text alone. */
json_t *fr_json_joined(const json_t *text, const json_t *more);

/* Writes a value on one line. Returns false if it can't be written as JSON, or if there is no memory. */
bool fr_json_write(const json_t *value, FILE *out);

#endif
