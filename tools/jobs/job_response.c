/* Writes the answer to a line in the form of OpenAI's batches (job_parts.h). If the line can't be run, the answer has
 * the HTTP status that a server would give. The reason is in the error of the body, and also in the error of the
 * answer itself. */
#include <string.h>
#include <time.h>

#include "tools/jobs/job_choices.h"
#include "tools/jobs/job_parts.h"

/* Adds a name such as "batch_req_17". Instead of random digits the name has the line's number, so it is the same in
 * every run. */
static void put_name(json_t *object, const char *key, const char *kind, const fr_job *job) {
    char name[64];
    snprintf(name, sizeof name, "%s%zu", kind, job->row);
    fr_json_put(object, key, json_string(name));
}

static void put_integer(json_t *object, const char *key, size_t value) {
    fr_json_put(object, key, json_integer((json_int_t)value));
}

/* ------------------------------------------------------------------------------------------------------------ reply */

/* Gives the model's name as the request has it. If the request names no model, gives the path of the model. */
static json_t *model_of(const fr_job *job) {
    const json_t *asked = json_object_get(job->request, "model");
    const char *path = job->setting->args->text[FR_ARG_MODEL];
    return json_is_string(asked) ? json_incref((json_t *)(uintptr_t)asked) : fr_json_bytes(path, strlen(path));
}

static json_t *body_of(fr_job *job) {
    bool chat = job->form == FR_JOB_CHAT;
    json_t *body = json_object();
    size_t ids;
    fr_figures figures = fr_job_choices_figures(job);
    json_t *choices = fr_job_choices(job, &ids);
    put_name(body, "id", chat ? "chatcmpl-" : "cmpl-", job);
    fr_json_put(body, "object", json_string(chat ? "chat.completion" : "text_completion"));
    put_integer(body, "created", (size_t)time(NULL));
    fr_json_put(body, "model", model_of(job));
    fr_json_put(body, "choices", choices);
    size_t reused = (size_t)figures.of[FR_STAT_REUSED_TOKENS];
    fr_json_put(body, "usage", fr_job_usage(job->prompt.count, reused, ids));
    if (job->setting->fingerprint) fr_json_put(body, "system_fingerprint", json_string(job->setting->fingerprint));
    fr_json_put(body, "stats", fr_figures_json(&figures, job->session));
    if (job->seed >= 0) fr_json_put(body, "seed", json_integer(job->seed));
    return body;
}

/* ------------------------------------------------------------------------------------------------------------ error */

typedef struct failure {
    size_t code;
    const char *type;
} failure;

static failure failure_of(const fr_job *job) {
    if (fr_job_is_too_long(job)) return (failure){400, "exceed_context_size_error"};
    if (job->why == FR_INPUT || job->why == FR_USAGE) return (failure){400, "invalid_request_error"};
    return job->why == FR_UNBUILT ? (failure){501, "not_supported_error"} : (failure){500, "server_error"};
}

static json_t *error_of(const fr_job *job, const char *type) {
    json_t *error = json_object();
    fr_json_put(error, "message", fr_json_bytes(job->error, strlen(job->error)));
    fr_json_put(error, "type", json_string(type));
    fr_json_put(error, "param", json_null());
    fr_json_put(error, "code", fr_job_is_too_long(job) ? json_string(FR_JOB_TOO_LONG_CODE) : json_null());
    return error;
}

static json_t *line_error(const char *code, const char *message) {
    json_t *error = json_object();
    fr_json_put(error, "code", json_string(code));
    fr_json_put(error, "message", fr_json_bytes(message, strlen(message)));
    return error;
}

/* ------------------------------------------------------------------------------------------------------------- line */

static json_t *response_of(const fr_job *job, size_t code, json_t *body) {
    json_t *response = json_object();
    put_integer(response, "status_code", code);
    put_name(response, "request_id", "req_", job);
    fr_json_put(response, "body", body);
    return response;
}

json_t *fr_job_response(fr_job *job) {
    json_t *answer = json_object();
    bool failed = job->error[0] != '\0', interrupted = !failed && job->reply.end == FR_END_INTERRUPT;
    if (interrupted) {
        fr_json_put(answer, "response", json_null());
        fr_json_put(answer, "error", line_error("batch_cancelled", "interrupted before it had ended"));
        return answer;
    }
    json_t *body = failed ? NULL : body_of(job);
    if (!job->error[0]) {
        fr_json_put(answer, "response", response_of(job, 200, body));
        fr_json_put(answer, "error", json_null());
        return answer;
    }
    failure failed_by = failure_of(job);
    json_decref(body);
    body = json_object();
    fr_json_put(body, "error", error_of(job, failed_by.type));
    fr_json_put(answer, "response", response_of(job, failed_by.code, body));
    fr_json_put(answer, "error", line_error(failed_by.type, job->error));
    return answer;
}
