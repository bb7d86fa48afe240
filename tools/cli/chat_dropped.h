/* Recognizes a picture that was dragged into the terminal. The terminal then types the path of the picture's file, so
 * the whole line is that path.
 *
 * In: a line as terminals write it when a file is dragged into them: a path in quotes or with backslashes before
 * blanks, or a file:// URL. Out: the path. */
#ifndef FR_TOOLS_CLI_CHAT_DROPPED_H
#define FR_TOOLS_CLI_CHAT_DROPPED_H

#include <stddef.h>

/* Returns the path, which the caller frees. NULL: the line is not exactly one absolute path, or the file does not begin
 * with the bytes of a picture. */
char *fr_chat_dropped(const char *line, size_t length);

#endif
