/* Reads one field of a line or a request (job_field.h). */
#include "tools/jobs/job_field.h"

#include <stdarg.h>
#include <string.h>

#include "tools/cli/wide_json.h"

bool fr_job_refuse(fr_job *job, fr_status why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *file = job->setting->file;
    int at = file ? snprintf(job->error, sizeof(job->error), "%.300s:%zu: ", file, job->row) : 0;
    vsnprintf(job->error + at, sizeof(job->error) - (size_t)at, format, args);
    va_end(args);
    job->ended = true;
    job->why = why;
    return false;
}

/* Returns the part of an error line after the option's name, such as "must be ..." for "top-k must be ...". If the line
 * does not begin with an option's name, the whole line is returned. */
static const char *behind_option(const char *line) {
    size_t length = strcspn(line, " :");
    for (fr_option option = 0; option < FR_OPT_COUNT; option++) {
        const char *name = fr_option_name(option);
        if (strlen(name) == length && strncmp(line, name, length) == 0) return line + length;
    }
    return line;
}

/* Refuses the job with the library's error line. A server's client knows neither the command's options nor its paths.
 * So the line gets the member's name instead of the option's name, and the model's name instead of the model's path. */
bool fr_job_check(fr_job *job, fr_status status) {
    if (status == FR_OK) return true;
    const fr_job_setting *setting = job->setting;
    const char *line = fr_last_error(), *rest = job->member ? behind_option(line) : line;
    const char *path = setting->file ? NULL : setting->args->text[FR_ARG_MODEL], *at = path ? strstr(rest, path) : NULL;
    if (at) return fr_job_refuse(job, status, "%.*s%s%s", (int)(at - rest), rest, setting->model, at + strlen(path));
    return fr_job_refuse(job, status, "%s%s%s", rest != line ? job->member : "", rest,
                         setting->file ? fr_failure_hint() : "");
}

bool fr_job_unbuilt(fr_job *job, const char *key) {
    return fr_job_refuse(job, FR_UNBUILT, "this \"%.60s\" is not built yet", key);
}

bool fr_job_is_word(const json_t *value, const char *word) {
    return json_is_string(value) && strcmp(json_string_value(value), word) == 0;
}

bool fr_job_whole(const json_t *value, json_int_t low, json_int_t high) {
    return json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high;
}

const char *fr_job_plain_text(const json_t *value) {
    const char *text = fr_is_json_text(value) ? json_string_value(value) : NULL;
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}
