/* The line of a request (log.h). */
#include "tools/serve/log.h"

#include <stdlib.h>

#include "tools/serve/seconds.h"

/* How it ended; a client that went away, or what failed, goes before the first choice's reason. A failure's line may
 * have bytes of the client's, its kind has not. */
static const char *end_of(const fr_ask *ask) {
    for (size_t i = 0; i < ask->count; i++) {
        const fr_job *job = &ask->choices[i].job;
        if (!job->ended) return "the client went away";
        if (job->error[0]) return fr_status_name(job->why);
    }
    return fr_end_name(ask->choices[0].job.reply.end);
}

static void show_contents(const fr_ask *ask) {
    char *body = fr_json_line(ask->body);
    fr_note("  asked: %s", body);
    free(body);
    for (size_t i = 0; i < ask->count; i++) {
        const fr_stream *text = &ask->choices[i].job.text;
        json_t *said = fr_json_bytes(text->bytes ? text->bytes : "", text->length);
        char *line = json_dumps(said, JSON_ENCODE_ANY);
        fr_note("  said: %s", line ? line : "");
        free(line);
        json_decref(said);
    }
}

void fr_log_ask(const fr_ask *ask) {
    const fr_arguments *args = ask->setting->args;
    size_t prompt = 0, generated = 0;
    if (args->given[FR_ARG_QUIET]) return;
    for (size_t i = 0; i < ask->count; i++) {
        if (i % ask->each == 0) prompt += ask->choices[i].job.prompt.count;
        generated += ask->choices[i].job.reply.kept;
    }
    fr_note("%s %s: %zu + %zu tokens, %.2f s, %s", fr_call_method(ask->call), fr_call_path(ask->call), prompt,
            generated, fr_seconds() - ask->arrived, end_of(ask));
    if (args->given[FR_ARG_LOG_CONTENTS]) show_contents(ask);
}
