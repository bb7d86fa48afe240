/* Replaces the escapes of llama.cpp's command line in a text: \n \r \t \' \" \\ and \xNN. Any other backslash stays in
 * the text. */
#ifndef FR_TOOLS_CLI_ESCAPES_H
#define FR_TOOLS_CLI_ESCAPES_H

#include <stddef.h>

/* Replaces the escapes in place; gives the new length, which is never larger. */
size_t fr_escapes_read(char *text, size_t length);

#endif
