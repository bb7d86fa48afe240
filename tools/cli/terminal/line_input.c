/* Reads lines of standard input (line_input.h). */
#include "tools/cli/terminal/line_input.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/cli/terminal/key_wait.h"

void fr_line_input_open(fr_line_input *input) {
    *input = (fr_line_input){.terminal = isatty(STDIN_FILENO), .editor = fr_line_editor_open()};
}

static fr_line read_typed(fr_line_input *input, const char *prompt) {
    const char *typed;
    fr_line got = fr_line_editor_read(input->editor, prompt, &typed, &input->length);
    if (got != FR_LINE_TYPED) return got;
    if (input->capacity <= input->length) {
        input->capacity = 2 * input->length + 256;
        input->line = fr_resize(input->line, input->capacity, 1);
    }
    memcpy(input->line, typed, input->length);
    return FR_LINE_TYPED;
}

static fr_line read_plain(fr_line_input *input) {
    ssize_t got = getline(&input->line, &input->capacity, stdin);
    if (got < 0) return FR_LINE_END;
    input->length = (size_t)got;
    return FR_LINE_TYPED;
}

/* Reads a line from a terminal without an editor. The terminal itself collects the line, and Ctrl-C makes the terminal
 * drop it. */
static fr_line read_terminal(fr_line_input *input, const char *prompt) {
    int came;
    if (!fr_key_wait_begin()) return FR_LINE_END;
    fputs(prompt, stderr);
    do {
        came = fr_key_wait(-1);
        if (came == SIGTSTP) fr_key_wait_stop();
        if (came == SIGCONT) fputs(prompt, stderr);
    } while (came == SIGWINCH || came == SIGTSTP || came == SIGCONT);
    fr_key_wait_end();
    if (came == FR_KEY_TYPED) return read_plain(input);
    if (came != SIGINT) return FR_LINE_END;
    fputc('\n', stderr);
    return FR_LINE_DROPPED;
}

bool fr_line_input_begin_with(fr_line_input *input, const char *text) {
    if (input->editor) fr_line_editor_begin_with(input->editor, text);
    return input->editor != NULL;
}

fr_line fr_line_input_read(fr_line_input *input, const char *prompt) {
    fr_line got = input->editor     ? read_typed(input, prompt)
                  : input->terminal ? read_terminal(input, prompt)
                                    : read_plain(input);
    if (got != FR_LINE_TYPED) return got;
    size_t length = input->length;
    while (length > 0 && (input->line[length - 1] == '\n' || input->line[length - 1] == '\r')) length--;
    input->length = length;
    input->line[length] = '\0';
    if (input->editor) fr_line_editor_remember(input->editor, input->line);
    return FR_LINE_TYPED;
}

int fr_line_input_close(fr_line_input *input) {
    int code = ferror(stdin) && errno != EINTR ? fr_bad_input("standard input: %s", strerror(errno)) : 0;
    if (input->terminal) fputc('\n', stderr);
    fr_line_editor_close(input->editor);
    free(input->line);
    *input = (fr_line_input){0};
    return code;
}
