/* Reads the answers of an earlier run, and saves the answers that the next run would overwrite (batch_kept.h). */
#include "tools/cli/batch_kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/jobs/job_line.h"

/* OUT.before has a line for each line of the batch. If OUT.before holds the answer to a line of the batch, the answer
 * is the whole line. Otherwise the line is NOT_RUN. That means that the answer is in OUT, or that the batch's line was
 * never run. OUT.before always begins with NOT_RUN, which shows that forerun wrote the file. */
#define NOT_RUN "{\"error\": \"not run yet\"}\n"

typedef struct reader {
    fr_batch_kept *kept;
    const char *path;
    FILE *file;
    bool before; /* the file is OUT.before, not OUT */
    size_t row;  /* number of the file's current line, from 1 */
} reader;

/* Returns true if the answer is complete. It is not complete if it is an error, or if an interrupt cut it off. In
 * forerun's own form "stop" says that an interrupt came. In OpenAI's form there is an "error" instead. */
static bool is_finished(const fr_job_text *answer) {
    const json_t *error = json_object_get(answer->value, "error");
    const char *stop = json_string_value(json_object_get(answer->value, "stop"));
    return (!error || json_is_null(error)) && !(stop && strcmp(stop, "interrupt") == 0);
}

/* Returns true if the answer has the same id as the line of the batch. The ids are compared as they were written,
 * because parsing would make two spellings of a number equal. */
static bool answers_line(const fr_job_text *answer, const fr_job_line *line) {
    json_error_t error;
    fr_job_text asked = fr_job_text_read(line->text, line->length, &error);
    const char *id = asked.id ? asked.id : "null";
    bool same = answer->id && strcmp(answer->id, id) == 0;
    fr_job_text_free(&asked);
    return same;
}

static void keep(reader *r, const fr_job_line *line, const char *text, size_t length) {
    if (line->number < r->kept->first || r->kept->answers[line->number]) return;
    if (!r->before && line->number == r->kept->first) {
        r->kept->first++;
        r->kept->bytes += (off_t)length;
        return;
    }
    char *copy = fr_resize(NULL, length, 1);
    memcpy(copy, text, length - 1);
    copy[length - 1] = '\0';
    r->kept->answers[line->number] = copy;
}

/* Checks one line of the file of answers; `text` includes its line end. If the answer is finished and has the id of
 * `line`, it is kept. If it is finished and has another id, the file belongs to another batch and is refused. */
static int take_answer(reader *r, fr_batch_input *input, const fr_job_line *line, const char *text, size_t length) {
    json_error_t error;
    fr_job_text answer = fr_job_text_read(text, length - 1, &error);
    bool object = json_is_object(answer.value), finished = object && is_finished(&answer);
    bool fits = !finished || answers_line(&answer, line);
    fr_job_text_free(&answer);
    if (!object)
        return fr_bad_input("%s:%zu: this is no JSON object, so --resume can't continue after it", r->path, r->row);
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

static int read_file(reader *r, fr_batch_input *input) {
    r->file = fopen(r->path, "rb");
    if (!r->file) return fr_bad_input("%s: %s", r->path, strerror(errno));
    int code = read_all(r, input);
    fclose(r->file);
    fr_batch_input_rewind(input);
    return code;
}

/* Gives the path of OUT.before, to be freed. */
static char *before_of(const char *path) {
    static const char end[] = ".before";
    size_t length = strlen(path);
    char *before = fr_resize(NULL, length + sizeof end, 1);
    memcpy(before, path, length);
    memcpy(before + length, end, sizeof end);
    return before;
}

/* Returns true if forerun wrote this file, so that it may be replaced. */
static bool is_ours(const char *before) {
    char row[sizeof NOT_RUN - 1];
    struct stat info;
    FILE *file = stat(before, &info) == 0 && S_ISREG(info.st_mode) ? fopen(before, "rb") : NULL;
    bool ours = file && fread(row, 1, sizeof row, file) == sizeof row && memcmp(row, NOT_RUN, sizeof row) == 0;
    if (file) fclose(file);
    return ours;
}

int fr_batch_kept_read(fr_batch_kept *kept, const char *path, fr_batch_input *input) {
    struct stat info;
    bool found = stat(path, &info) == 0;
    if (!found && errno == ENOENT) return 0;
    /* A pipe is not opened, because opening it would wait for a writer. */
    if (found && !S_ISREG(info.st_mode)) return fr_bad_input("%s: --resume needs a regular file", path);
    int code = read_file(&(reader){.kept = kept, .path = path}, input);
    char *before = before_of(path);
    if (!code && is_ours(before)) code = read_file(&(reader){.kept = kept, .path = before, .before = true}, input);
    free(before);
    return code;
}

/* Writes OUT.before. This file gets the mode of OUT, so that only those who can read OUT can read the answers in
 * OUT.before. */
static int write_before(const fr_batch_kept *kept, size_t count, const char *path, const char *before) {
    struct stat info;
    fr_writer writer;
    if (stat(before, &info) == 0 && !is_ours(before))
        return fr_bad_input("%s: --resume needs this name for a file of its own", before);
    int code = fr_writer_open(&writer, before);
    if (code) return code;
    if (stat(path, &info) == 0) fchmod(writer.fd, info.st_mode & 0777);
    for (size_t i = 0; i < count; i++)
        if (kept->answers[i])
            fprintf(writer.file, "%s\n", kept->answers[i]);
        else
            fputs(NOT_RUN, writer.file);
    return fr_writer_close(&writer);
}

int fr_batch_kept_save(const fr_batch_kept *kept, size_t total, const char *path) {
    size_t count = total;
    while (count && !kept->answers[count - 1]) count--;
    if (!count) {
        fr_batch_kept_drop(path);
        return 0;
    }
    char *before = before_of(path);
    int code = write_before(kept, count, path, before);
    free(before);
    return code;
}

void fr_batch_kept_drop(const char *path) {
    char *before = before_of(path);
    if (is_ours(before)) unlink(before);
    free(before);
}
