/* Reading a file of answers beside the file of its lines (batch_kept.h). */
#include "batch_kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job_line.h"

typedef struct reader {
    fr_batch_kept *kept;
    const char *path;
    FILE *file;
    size_t row; /* of the answers, from 1 */
} reader;

static bool is_stop(const json_t *answer, const char *word) {
    const char *stop = json_string_value(json_object_get(answer, "stop"));
    return stop && strcmp(stop, word) == 0;
}

/* Of either form. */
static bool is_finished(const fr_job_text *answer) {
    const json_t *error = json_object_get(answer->value, "error");
    return (!error || json_is_null(error)) && !is_stop(answer->value, "interrupt");
}

/* Ids are compared as they were written. */
static bool answers_line(const fr_job_text *answer, const fr_job_line *line) {
    json_error_t error;
    fr_job_text asked = fr_job_text_read(line->text, line->length, &error);
    const char *id = asked.id ? asked.id : "null";
    bool same = answer->id && strcmp(answer->id, id) == 0;
    fr_job_text_free(&asked);
    return same;
}

static void keep(reader *r, const fr_job_line *line, const char *text, size_t length) {
    if (r->kept->first == line->number) {
        r->kept->first++;
        r->kept->bytes += (off_t)length;
        return;
    }
    char *copy = fr_resize(NULL, length, 1);
    memcpy(copy, text, length - 1);
    copy[length - 1] = '\0';
    r->kept->answers[line->number] = copy;
}

/* A whole line of the file, its end included. */
static int take_answer(reader *r, fr_batch_input *input, const fr_job_line *line, const char *text, size_t length) {
    json_error_t error;
    fr_job_text answer = fr_job_text_read(text, length - 1, &error);
    bool object = json_is_object(answer.value), finished = object && is_finished(&answer);
    bool fits = !finished || answers_line(&answer, line);
    fr_job_text_free(&answer);
    if (!object) return fr_bad_input("%s:%zu: no JSON object, so no answer to go on behind", r->path, r->row);
    if (!fits)
        return fr_bad_input("%s:%zu: its id is not that of %s:%zu: these are another batch's answers", r->path, r->row,
                            input->name, line->row);
    if (finished) keep(r, line, text, length);
    return 0;
}

static int read_all(reader *r, fr_batch_input *input) {
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    int code = 0;
    while (!code && (length = getline(&text, &capacity, r->file)) > 0 && text[length - 1] == '\n') {
        fr_job_line line;
        r->row++;
        code = fr_batch_input_next(input, &line)
                   ? take_answer(r, input, &line, text, (size_t)length)
                   : fr_bad_input("%s:%zu: %s has fewer lines: these are another batch's answers", r->path, r->row,
                                  input->name);
    }
    if (!code && ferror(r->file)) code = fr_bad_input("%s: %s", r->path, strerror(errno));
    free(text);
    return code;
}

int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input) {
    struct stat info;
    reader r = {.kept = kept, .path = path};
    bool found = stat(path, &info) == 0;
    if (!found && errno == ENOENT) return 0;
    /* Not opened: that of a pipe would wait for its writer. */
    if (found && !S_ISREG(info.st_mode)) return fr_bad_input("%s: --resume needs a regular file", path);
    r.file = fopen(path, "rb");
    if (!r.file) return fr_bad_input("%s: %s", path, strerror(errno));
    int code = read_all(&r, input);
    fclose(r.file);
    fr_batch_input_rewind(input);
    return code;
}
