/* Reads a line in the form of OpenAI's batches (job_parts.h): {"custom_id", "method": "POST", "url", "body"}. The body
 * is that of a request to the url. A server reads the members of its requests here too (tools/serve/request_fields.c).
 * A member that is null counts as missing. A member that would change the reply is either applied or refused. The only
 * members that are ignored say who sent a request or how it is stored. */
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_choices.h"
#include "tools/jobs/job_grammar.h"
#include "tools/jobs/job_parts.h"

enum { CHAT = 1, COMPLETION = 2, NATIVE = 4, EITHER = CHAT | COMPLETION, EVERY = EITHER | NATIVE };

/* ------------------------------------------------------------------------------------------------- fields of a body */

static bool take_model(fr_job *job, const char *key, const json_t *value) {
    return json_is_string(value) || fr_job_refuse(job, FR_USAGE, "%s must be a name", key);
}

/* Reads the largest number of ids of a reply. Several members can give it. If a request has more than one of them, the
 * first in this order is used: n_predict, max_completion_tokens, max_tokens. */
bool fr_job_take_most(fr_job *job, const char *key, const json_t *value) {
    static const char *const names[] = {"n_predict", "max_completion_tokens", "max_tokens"};
    bool passed_over = false;
    for (size_t i = 0; strcmp(names[i], key) != 0; i++) {
        const json_t *other = json_object_get(job->request, names[i]);
        passed_over |= other && !json_is_null(other);
    }
    int64_t before = job->most;
    bool taken = fr_job_take_count(job, key, value);
    if (passed_over) job->most = before;
    return taken;
}

static bool take_logprobs(fr_job *job, const char *key, const json_t *value) {
    if (job->form == FR_JOB_COMPLETION) return fr_job_take_logprobs(job, key, value);
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    const json_t *best = json_object_get(job->request, "top_logprobs");
    json_t *none = json_integer(0);
    bool own = !best || json_is_null(best);
    bool taken = !json_is_true(value) || fr_job_take_logprobs(job, own ? key : "top_logprobs", own ? none : best);
    json_decref(none);
    return taken;
}

static bool take_top_logprobs(fr_job *job, const char *key, const json_t *value) {
    bool none = json_is_integer(value) && json_integer_value(value) == 0;
    return none || json_is_true(json_object_get(job->request, "logprobs")) ||
           fr_job_refuse(job, FR_USAGE, "%s goes with \"logprobs\": true", key);
}

/* Reads the tools. Tools that "tool_choice" forbids are not shown to the model, so that the model can't call them.
 * "none" forbids all tools. */
static bool take_tools(fr_job *job, const char *key, const json_t *value) {
    json_t *kept;
    if (fr_job_is_word(json_object_get(job->request, "tool_choice"), "none")) return true;
    if (!fr_job_keep_allowed_tools(job, value, &kept)) return false;
    bool taken = fr_job_take_tools(job, key, kept);
    json_decref(kept);
    return taken;
}

static bool take_kwargs(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_object(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an object", key);
    json_object_update(job->settings, (json_t *)(uintptr_t)value);
    return true;
}

static bool take_stream(fr_job *job, const char *key, const json_t *value) {
    return json_is_false(value) || fr_job_refuse(job, FR_USAGE, "%s must be false: an answer is one line", key);
}

static const struct {
    const char *key;
    unsigned forms;
    fr_job_take_field *take;
} fields[] = {
    {"model", EITHER, take_model},
    {"messages", CHAT, fr_job_take_later},
    {"prompt", COMPLETION | NATIVE, fr_job_take_later},
    {"images", EITHER, fr_job_take_images},
    {"max_tokens", EITHER, fr_job_take_most},
    {"max_completion_tokens", CHAT, fr_job_take_most},
    {"logit_bias", EVERY, fr_job_take_bias},
    {"seed", EVERY, fr_job_take_seed},
    {"stop", EVERY, fr_job_take_stops},
    {"ignore_eos", EVERY, fr_job_take_switch},
    {"logprobs", EITHER, take_logprobs},
    {"top_logprobs", CHAT, take_top_logprobs},
    {"tools", CHAT, take_tools},
    {"tool_choice", CHAT, fr_job_take_tool_choice},
    {"parallel_tool_calls", CHAT, fr_job_take_parallel},
    {"chat_template_kwargs", CHAT, take_kwargs},
    {"reasoning_effort", CHAT, fr_job_take_effort},
    {"enable_thinking", CHAT, fr_job_take_enable_thinking},
    {"thinking", CHAT, fr_job_take_thinking},
    {"reasoning", CHAT, fr_job_take_reasoning},
    {"reasoning_budget", EVERY, fr_job_take_budget},
    {"reasoning_budget_tokens", EVERY, fr_job_take_budget},
    {"reasoning_budget_if_built", EVERY, fr_job_take_budget},
    {"thinking_budget_tokens", EVERY, fr_job_take_budget},
    {"thinking_token_budget", EVERY, fr_job_take_budget},
    {"response_format", EVERY, fr_job_take_response_format},
    {"grammar", EVERY, fr_job_take_grammar},
    {"json_schema", EVERY, fr_job_take_json_schema},
    {"regex", EVERY, fr_job_take_regex},
    {"guided_json", EVERY, fr_job_take_guided_json},
    {"guided_regex", EVERY, fr_job_take_regex},
    {"guided_choice", EVERY, fr_job_take_guided_choice},
    {"guided_grammar", EVERY, fr_job_take_grammar},
    {"guided_decoding_backend", EVERY, fr_job_take_later},
    {"structured_outputs", EVERY, fr_job_take_structured_outputs},
    {"repetition_penalty", EVERY, fr_job_take_repetition},
    {"stop_token_ids", EVERY, fr_job_take_stop_ids},
    {"include_stop_str_in_output", EVERY, fr_job_take_keep_stop},
    {"min_tokens", EVERY, fr_job_take_least},
    {"n", EVERY, fr_job_take_choices},
    {"n_cmpl", EVERY, fr_job_take_choices},
    {"best_of", COMPLETION, fr_job_take_best_of},
    {"echo", COMPLETION, fr_job_take_echo},
    {"suffix", COMPLETION, fr_job_take_suffix},
    {"stream", EITHER, take_stream},
    {"user", EITHER, fr_job_take_later},
    {"metadata", EITHER, fr_job_take_later},
    {"store", EITHER, fr_job_take_later},
    {"service_tier", EITHER, fr_job_take_later},
    {"safety_identifier", EITHER, fr_job_take_later},
    {"prompt_cache_key", EITHER, fr_job_take_later},
};

/* ---------------------------------------------------------------------------------------------------------- request */

fr_job_take_field *fr_job_member(const fr_job *job, const char *key) {
    unsigned form = job->form == FR_JOB_CHAT ? CHAT : job->form == FR_JOB_COMPLETION ? COMPLETION : NATIVE;
    size_t i = 0, count = sizeof fields / sizeof *fields;
    while (i < count && !(fields[i].forms & form && strcmp(fields[i].key, key) == 0)) i++;
    return i < count ? fields[i].take : fr_job_sampler(key);
}

/* Refuses integers that are too large for 64 bits. Members that a template renders may have such integers, because the
 * template writes them unchanged. */
bool fr_job_check_wide(fr_job *job, const char *key, const json_t *value) {
    static const char *const keys[] = {"messages", "tools", "chat_template_kwargs"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return !fr_json_has_wide(value) || fr_job_refuse(job, FR_INPUT, "no JSON that can be read: too big integer");
}

static bool take_body(fr_job *job) {
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)job->request, key, value) {
        if (json_is_null(value)) continue;
        fr_job_take_field *take = fr_job_member(job, key);
        if (!take) return fr_job_refuse(job, FR_UNBUILT, "\"%.60s\" in the body is not built yet", key);
        if (!fr_job_check_wide(job, key, value) || !take(job, key, value)) return false;
    }
    return fr_job_settle_choices(job, false);
}

static bool check_members(fr_job *job) {
    static const char *const known[] = {"custom_id", "method", "url", "body"};
    enum { KNOWN = sizeof known / sizeof *known };
    const char *key;
    json_t *value;
    json_object_foreach (job->line, key, value) {
        size_t i = 0;
        while (i < KNOWN && strcmp(known[i], key) != 0) i++;
        if (i == KNOWN)
            return fr_job_refuse(job, FR_USAGE, "\"%.60s\" is not known beside custom_id, method, url and body", key);
    }
    if (!job->id || *job->id != '"') return fr_job_refuse(job, FR_USAGE, "custom_id must be a text");
    return true;
}

bool fr_job_take_request(fr_job *job) {
    const json_t *method = json_object_get(job->line, "method"), *url = json_object_get(job->line, "url");
    if (!check_members(job)) return false;
    if (method && !fr_job_is_word(method, "POST")) return fr_job_refuse(job, FR_USAGE, "method must be \"POST\"");
    if (!json_is_string(url)) return fr_job_refuse(job, FR_USAGE, "url must be a text");
    if (fr_job_is_word(url, "/v1/chat/completions")) job->form = FR_JOB_CHAT;
    if (fr_job_is_word(url, "/v1/completions")) job->form = FR_JOB_COMPLETION;
    if (job->form == FR_JOB_REQUEST)
        return fr_job_refuse(job, FR_UNBUILT,
                             "url \"%.60s\" is not built yet: /v1/chat/completions and "
                             "/v1/completions are",
                             json_string_value(url));
    job->request = json_object_get(job->line, "body");
    return json_is_object(job->request) ? take_body(job) : fr_job_refuse(job, FR_USAGE, "body must be an object");
}
