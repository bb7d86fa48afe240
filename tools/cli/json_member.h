/* Finds a member of a JSON object in its original text, so that numbers of any length and blanks are unchanged. */
#ifndef FR_TOOLS_CLI_JSON_MEMBER_H
#define FR_TOOLS_CLI_JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the first member of that name, written without escapes, in the text of an object. *value points to its *size
 * bytes. The text is not checked: if it is not valid JSON, any part of it may be found. */
bool fr_json_member(const char *text, size_t length, const char *name, const char **value, size_t *size);

#endif
