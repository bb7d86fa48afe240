/* Recognizes a picture that was dropped into the terminal: a line that is the path of a picture's file and nothing
 * else.
 *
 * In: a line as terminals write a dropped file: a path in quotes or with backslashes before blanks, or a file:// URL.
 * Out: the path. */
#ifndef FR_TOOLS_CLI_CHAT_DROPPED_H
#define FR_TOOLS_CLI_CHAT_DROPPED_H

#include <stddef.h>

/* Returns the path, which the caller frees; NULL if the line is not one whole path, from the root, of a file that
 * begins as pictures do. */
char *fr_chat_dropped(const char *line, size_t length);

#endif
