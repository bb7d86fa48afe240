/* Lines of standard input (line_input.h). */
#include "line_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

void fr_line_input_open(fr_line_input *input) {
    *input = (fr_line_input){.terminal = isatty(STDIN_FILENO)};
}

bool fr_line_input_read(fr_line_input *input, const char *prompt) {
    if (input->terminal) fputs(prompt, stderr);
    ssize_t got = getline(&input->line, &input->capacity, stdin);
    if (got < 0) return false;
    while (got > 0 && (input->line[got - 1] == '\n' || input->line[got - 1] == '\r')) got--;
    input->length = (size_t)got;
    input->line[got] = '\0';
    return true;
}

int fr_line_input_close(fr_line_input *input) {
    int code = ferror(stdin) && errno != EINTR ? fr_bad_input("standard input: %s", strerror(errno)) : 0;
    if (input->terminal) fputc('\n', stderr);
    free(input->line);
    *input = (fr_line_input){0};
    return code;
}
