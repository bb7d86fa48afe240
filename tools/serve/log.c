/* Writes a server's log to standard error (log.h). */
#include "tools/serve/log.h"

#include <stdlib.h>
#include <string.h>

#include "tools/serve/answer_parts.h"
#include "tools/serve/seconds.h"

enum { NOTHING, ERROR, WARN, INFO, DEBUG };

#define LONGEST 300 /* the most bytes of a client's text that a line repeats */

fr_request_log fr_log_of(const fr_arguments *args) {
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    const char *level = args->text[FR_ARG_LOG_LEVEL], *format = args->text[FR_ARG_LOG_FORMAT];
    fr_request_log log = {.level = INFO, .json = format && strcmp(format, "json") == 0};
    for (size_t i = 0; level && i < sizeof levels / sizeof *levels; i++)
        if (strcmp(level, levels[i]) == 0) log.level = ERROR + (int)i;
    if (args->given[FR_ARG_QUIET]) log.level = NOTHING;
    return log;
}

/* Gives the level of an exchange's line. Health checks are frequent, and they fail while a model is loading, so they
 * always get the lowest level. Files of the chat page get the lowest level if they do not fail. */
static int level_of(const fr_http_exchange_report *report) {
    if (strcmp(report->path, "/health") == 0 || strcmp(report->path, "/v1/health") == 0) return DEBUG;
    if (report->status >= 500) return ERROR;
    if (report->status >= 400) return WARN;
    return strcmp(report->method, "GET") == 0 || strcmp(report->method, "OPTIONS") == 0 ? DEBUG : INFO;
}

static void put_printable(FILE *line, const char *text) {
    size_t length = strnlen(text, LONGEST);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c >= 0x7f || c == '\\')
            fprintf(line, "\\x%02x", c);
        else
            fputc(c, line);
    }
    if (text[length]) fputs("...", line);
}

static void write_text(FILE *line, const fr_http_exchange_report *report, const char *time) {
    const fr_http_exchange_texts *texts = report->texts;
    fprintf(line, "%s %s ", time, *report->client ? report->client : "-");
    put_printable(line, report->method);
    fputc(' ', line);
    put_printable(line, report->path);
    fprintf(line, " %u ", report->status);
    if (texts) fprintf(line, "%zu + %zu tokens (%zu cached) ", texts->prompt, texts->generated, texts->cached);
    fprintf(line, "%.2f s", report->seconds);
    if (texts && texts->first > 0) fprintf(line, " (first %.2f)", texts->first);
    if (texts) fprintf(line, " %s", texts->end);
    if (*report->error) fputs(": ", line);
    put_printable(line, report->error);
    fputc('\n', line);
}

static void write_json(FILE *line, const fr_http_exchange_report *report, const char *time) {
    const fr_http_exchange_texts *texts = report->texts;
    json_t *object = json_object();
    fr_json_put(object, "time", json_string(time));
    fr_json_put(object, "client", json_string(report->client));
    fr_json_put(object, "method", fr_json_bytes(report->method, strnlen(report->method, LONGEST)));
    fr_json_put(object, "path", fr_json_bytes(report->path, strnlen(report->path, LONGEST)));
    fr_json_put(object, "status", json_integer(report->status));
    fr_json_put(object, "seconds", json_real(report->seconds));
    if (texts) {
        fr_json_put(object, "prompt_tokens", json_integer((json_int_t)texts->prompt));
        fr_json_put(object, "cached_tokens", json_integer((json_int_t)texts->cached));
        fr_json_put(object, "completion_tokens", json_integer((json_int_t)texts->generated));
        fr_json_put(object, "first_token_seconds", texts->first > 0 ? json_real(texts->first) : json_null());
        fr_json_put(object, "end", json_string(texts->end));
    }
    if (*report->error) fr_json_put(object, "error", fr_json_bytes(report->error, strnlen(report->error, LONGEST)));
    char *text = fr_json_line(object);
    fprintf(line, "%s\n", text);
    free(text);
    json_decref(object);
}

/* Writes the line by a single call of write, so that the lines of several threads don't mix. */
void fr_log_http_exchange(const fr_request_log *log, const fr_http_exchange_report *report) {
    if (level_of(report) > log->level) return;
    char *bytes = NULL, time_text[32];
    size_t length = 0;
    time_t now = time(NULL);
    struct tm utc;
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    FILE *line = open_memstream(&bytes, &length);
    if (!line) return;
    (log->json ? write_json : write_text)(line, report, time_text);
    fclose(line);
    fwrite(bytes, 1, length, stderr);
    free(bytes);
}

/* Gives the reason why the texts ended. If a text has not ended, the reason is that the client left. If a text has
 * failed, the reason is the kind of the failure. Otherwise the reason is that of the first choice. A failure's error
 * line is not logged, because it may contain text from the client. */
static const char *end_of(const fr_generation_request *request) {
    for (size_t i = 0; i < request->count; i++) {
        const fr_job *job = &request->choices[i].job;
        if (!job->ended) return "the client went away";
        if (job->error[0]) return fr_status_name(job->why);
    }
    return fr_end_name(request->choices[0].job.reply.end);
}

static void show_contents(const fr_generation_request *request) {
    char *body = fr_json_line(request->body);
    fr_note("  asked: %s", body);
    free(body);
    for (size_t i = 0; i < request->count; i++) {
        const fr_stream *text = &request->choices[i].job.text;
        json_t *said = fr_json_bytes(text->bytes ? text->bytes : "", text->length);
        char *line = json_dumps(said, JSON_ENCODE_ANY);
        fr_note("  said: %s", line ? line : "");
        free(line);
        json_decref(said);
    }
}

void fr_log_generation_request(const fr_generation_request *request) {
    const fr_arguments *args = request->setting->args;
    fr_timings all = fr_timings_of_request(request);
    fr_http_exchange_texts texts = {.cached = all.cached, .end = end_of(request)};
    for (size_t i = 0; i < request->count; i++) {
        if (i % request->each == 0) texts.prompt += request->choices[i].job.prompt.count;
        texts.generated += request->choices[i].job.reply.kept;
    }
    if (all.first > 0) texts.first = all.first - request->arrived;
    fr_http_exchange_note_texts(request->exchange, &texts);
    if (args->given[FR_ARG_LOG_CONTENTS] && !args->given[FR_ARG_QUIET]) show_contents(request);
}
