/* Replaces llama.cpp's escapes in a text of the command line: \n \r \t \' \" \\ and \xNN. Any other backslash is left
 * as it is. */
#ifndef FR_TOOLS_CLI_ESCAPES_H
#define FR_TOOLS_CLI_ESCAPES_H

#include <stddef.h>

/* Replaces the escapes in place; gives the new length, which is never larger. */
size_t fr_escapes_read(char *text, size_t length);

#endif
