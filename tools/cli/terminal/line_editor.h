/* Reads a line that a person types on a terminal. The person can move the cursor in the line, recall earlier lines, and
 * drop the line with Ctrl-C.
 *
 * In: keys from standard input, and a prompt. Both are shown on standard error. Out: the line, which may have line ends
 * if it was pasted. While a line is read, the terminal has special settings. Between two lines, and while the command
 * is stopped by Ctrl-Z, the terminal has its usual settings. So Ctrl-C sends a signal to the command if no line is
 * being read. */
#ifndef FR_TOOLS_CLI_TERMINAL_LINE_EDITOR_H
#define FR_TOOLS_CLI_TERMINAL_LINE_EDITOR_H

#include <stddef.h>

typedef struct fr_line_editor fr_line_editor;

/* Opens an editor. Returns NULL if lines can't be edited. This is so if standard input or standard error is not a
 * terminal, or if the terminal can't move its cursor. */
fr_line_editor *fr_line_editor_open(void);
void fr_line_editor_close(fr_line_editor *editor);

typedef enum fr_line {
    FR_LINE_TYPED,   /* the Enter key */
    FR_LINE_DROPPED, /* Ctrl-C */
    FR_LINE_END,     /* Ctrl-D at the beginning of a line, a lost terminal, SIGTERM or SIGHUP */
} fr_line;

/* Puts this text into the next line, as if the person had typed it. */
void fr_line_editor_begin_with(fr_line_editor *editor, const char *text);

/* Reads a line. *line ends with the line end that was typed, and is valid until the next call. prompt: at most 7
 * characters. */
fr_line fr_line_editor_read(fr_line_editor *editor, const char *prompt, const char **line, size_t *length);

/* Stores a line, so that it can be recalled. */
void fr_line_editor_remember(fr_line_editor *editor, const char *line);

#endif
