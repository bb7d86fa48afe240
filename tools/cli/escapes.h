/* llama.cpp's escapes in a text of the command line: \n \r \t \' \" \\ and \xNN; another backslash stays one. */
#ifndef FR_TOOLS_CLI_ESCAPES_H
#define FR_TOOLS_CLI_ESCAPES_H

#include <stddef.h>

/* In place; gives the length behind it, which is no larger. */
size_t fr_escapes_read(char *text, size_t length);

#endif
