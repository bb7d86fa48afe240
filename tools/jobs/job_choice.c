/* Makes a choice of an answer from a job's reply (job_choice.h). */
#include "tools/jobs/job_choice.h"

#include "tools/jobs/job_parts.h"

static void put_integer(json_t *object, const char *key, size_t value) {
    fr_json_put(object, key, json_integer((json_int_t)value));
}

const char *fr_job_finish_reason(const fr_job *job, bool calls) {
    if (job->reply.end != FR_END_EOS && job->reply.end != FR_END_STOP) return "length";
    return calls ? "tool_calls" : "stop";
}

json_t *fr_job_usage(size_t prompt, size_t cached, size_t completion) {
    json_t *usage = json_object(), *details = json_object();
    put_integer(usage, "prompt_tokens", prompt);
    put_integer(usage, "completion_tokens", completion);
    put_integer(usage, "total_tokens", prompt + completion);
    put_integer(details, "cached_tokens", cached);
    fr_json_put(usage, "prompt_tokens_details", details);
    return usage;
}

json_t *fr_job_logprobs(const fr_job *job, size_t from, size_t to, size_t *offset) {
    bool chat = job->form == FR_JOB_CHAT;
    json_t *all =
        chat ? fr_reply_logprobs(&job->reply, from, to) : fr_reply_logprobs_lists(&job->reply, from, to, offset);
    if (!all) return json_null();
    if (!chat) return all;
    json_t *logprobs = json_object();
    fr_json_put(logprobs, "content", all);
    return logprobs;
}

/* Makes the message. If the reply consists only of calls, its content is null. */
static json_t *message_of(fr_job *job) {
    json_t *message = json_object();
    fr_job_check(job, fr_reply_view_add(&job->view, message));
    bool silent = json_object_get(message, "tool_calls") && job->text.length == 0;
    fr_json_put(message, "role", json_string("assistant"));
    fr_json_put(message, "content", silent ? json_null() : fr_json_bytes(job->text.bytes, job->text.length));
    return message;
}

json_t *fr_job_choice(fr_job *job, size_t index) {
    json_t *choice = json_object();
    size_t offset = 0;
    put_integer(choice, "index", index);
    if (job->form == FR_JOB_CHAT)
        fr_json_put(choice, "message", message_of(job));
    else
        fr_json_put(choice, "text", fr_json_bytes(job->text.bytes, job->text.length));
    bool calls = json_object_get(json_object_get(choice, "message"), "tool_calls") != NULL;
    fr_json_put(choice, "logprobs", fr_job_logprobs(job, 0, job->reply.kept, &offset));
    fr_json_put(choice, "finish_reason", json_string(fr_job_finish_reason(job, calls)));
    return choice;
}

fr_figures fr_job_figures(const fr_job *job) {
    fr_figures figures = fr_figures_take(job->session);
    figures.of[FR_STAT_GENERATED_TOKENS] = (double)job->reply.kept;
    return figures;
}

bool fr_job_is_too_long(const fr_job *job) {
    return job->session && job->prompt.count >= fr_session_context(job->session);
}
