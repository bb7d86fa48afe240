/* Reads the lines of a batch's file (batch_input.h). */
#include "tools/jobs/batch_input.h"

#include <string.h>

/* Returns true if a line has only blanks. A NUL is not a blank, so a line with a NUL goes to the JSON reader, which
 * refuses it. */
static bool is_blank(const char *line, size_t length) {
    enum { BLANKS = 3 };
    while (length && memchr(" \t\r", line[length - 1], BLANKS)) length--;
    return length == 0;
}

void fr_batch_input_rewind(fr_batch_input *input) {
    static const char mark[] = "\xef\xbb\xbf";
    size_t size = sizeof mark - 1;
    bool marked = input->file.length >= size && memcmp(input->file.bytes, mark, size) == 0;
    input->at = marked ? size : 0;
    input->row = input->number = 0;
}

int fr_batch_input_open(fr_batch_input *input, const char *path) {
    *input = (fr_batch_input){.name = strcmp(path, "-") == 0 ? "standard input" : path};
    int code = fr_prompt_read_file(&input->file, path);
    if (code) return code;
    fr_job_line line;
    fr_batch_input_rewind(input);
    while (fr_batch_input_next(input, &line)) input->total++;
    fr_batch_input_rewind(input);
    return 0;
}

bool fr_batch_input_next(fr_batch_input *input, fr_job_line *line) {
    const fr_prompt *file = &input->file;
    while (input->at < file->length) {
        const char *text = file->bytes + input->at, *end = memchr(text, '\n', file->length - input->at);
        size_t length = end ? (size_t)(end - text) : file->length - input->at;
        input->at += length + 1;
        *line = (fr_job_line){.text = text, .length = length, .row = ++input->row, .number = input->number};
        if (is_blank(text, length)) continue;
        input->number++;
        return true;
    }
    return false;
}

void fr_batch_input_close(fr_batch_input *input) {
    fr_prompt_free(&input->file);
}
