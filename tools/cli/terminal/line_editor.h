/* A line of a terminal, typed by a person: moved about in, taken from the lines before it, dropped with Ctrl-C.
 *
 * In: keys of standard input, a prompt; both are shown on standard error. Out: the line, in which what was pasted may
 * have line ends. The terminal is as it was between lines, and while Ctrl-Z has stopped the command; Ctrl-C is then for
 * who runs it. */
#ifndef FR_TOOLS_CLI_TERMINAL_LINE_EDITOR_H
#define FR_TOOLS_CLI_TERMINAL_LINE_EDITOR_H

#include <stddef.h>

typedef struct fr_line_editor fr_line_editor;

/* NULL where there is nothing to edit on: standard input or error is no terminal, or one that can't move its cursor. */
fr_line_editor *fr_line_editor_open(void);
void fr_line_editor_close(fr_line_editor *editor);

typedef enum fr_line {
    FR_LINE_TYPED,
    FR_LINE_DROPPED, /* Ctrl-C */
    FR_LINE_END,     /* Ctrl-D at the beginning of a line, no terminal any more, SIGTERM or SIGHUP */
} fr_line;

/* The next line holds this text before its first key. */
void fr_line_editor_begin_with(fr_line_editor *editor, const char *text);

/* *line, with the end that was typed, belongs to the editor until the next one. prompt: at most 7 characters. */
fr_line fr_line_editor_read(fr_line_editor *editor, const char *prompt, const char **line, size_t *length);

/* Keeps a line among those that can be gone back to. */
void fr_line_editor_remember(fr_line_editor *editor, const char *line);

#endif
