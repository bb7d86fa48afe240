/* Lines of standard input, one at a time: of any bytes and any length. On a terminal they can be edited.
 *
 * In: a prompt, which only people are shown. Out: a line without its end, which belongs to the input until the next one
 * is read. Several lines that were pasted at once on a terminal are one, with line ends in it. */
#ifndef FR_TOOLS_CLI_TERMINAL_LINE_INPUT_H
#define FR_TOOLS_CLI_TERMINAL_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/terminal/line_editor.h"

typedef struct fr_line_input {
    char *line; /* NUL-terminated, whatever NULs it has */
    size_t length, capacity;
    bool terminal;
    fr_line_editor *editor; /* NULL: lines are read as they come */
} fr_line_input;

void fr_line_input_open(fr_line_input *input);

/* The next line holds this text before its first key, if it can be edited: false where it can't. */
bool fr_line_input_begin_with(fr_line_input *input, const char *text);

/* The next line. The input ends where a signal comes, but on a terminal, where one drops the line. */
fr_line fr_line_input_read(fr_line_input *input, const char *prompt);

/* Gives the exit status: reading may have ended for want of a device. */
int fr_line_input_close(fr_line_input *input);

#endif
