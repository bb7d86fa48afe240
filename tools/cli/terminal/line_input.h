/* Reads lines of standard input one at a time. A line may have any bytes and any length. On a terminal the person can
 * edit the line.
 *
 * In: a prompt, which is shown on a terminal only. Out: a line without its end, which stays valid until the next call.
 * If several lines are pasted at once on a terminal, they count as one line that contains line ends. */
#ifndef FR_TOOLS_CLI_TERMINAL_LINE_INPUT_H
#define FR_TOOLS_CLI_TERMINAL_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/terminal/line_editor.h"

typedef struct fr_line_input {
    char *line; /* NUL-terminated; it may also contain NULs */
    size_t length, capacity;
    bool terminal;
    fr_line_editor *editor; /* NULL: lines are not edited */
} fr_line_input;

void fr_line_input_open(fr_line_input *input);

/* Puts this text into the next line, as if the person had typed it. Returns false if lines can't be edited. */
bool fr_line_input_begin_with(fr_line_input *input, const char *text);

/* Reads the next line. A signal ends the input, with one exception: Ctrl-C on a terminal only drops the line. */
fr_line fr_line_input_read(fr_line_input *input, const char *prompt);

/* Closes the input. Gives the exit status, which is 1 if a read has failed. */
int fr_line_input_close(fr_line_input *input);

#endif
