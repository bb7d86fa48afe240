/* Finds a member of a JSON object and gives its value as it was written, so that long numbers and blanks do not
 * change. */
#ifndef FR_TOOLS_CLI_JSON_MEMBER_H
#define FR_TOOLS_CLI_JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the first member of that name in the text of an object. A name that is written with escapes is not found.
 * *value points to the *size bytes of the member's value. The text is not checked: if it is not valid JSON, the result
 * may be any part of it. */
bool fr_json_member(const char *text, size_t length, const char *name, const char **value, size_t *size);

#endif
