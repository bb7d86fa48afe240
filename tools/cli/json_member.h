/* A member of a JSON object as it was written: numbers that no type of C holds, spaces and all. */
#ifndef FR_TOOLS_CLI_JSON_MEMBER_H
#define FR_TOOLS_CLI_JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the first member of that name, written without escapes, in the text of an object: *value points to its *size
 * bytes. Whether all of the text is JSON is for a parser to say; of text that is not, any part may be found. */
bool fr_json_member(const char *text, size_t length, const char *name, const char **value, size_t *size);

#endif
