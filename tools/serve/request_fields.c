/* Reads the members of a request's body that only a server has (generation_request_parts.h). Members that a batch's
 * line has too are read by tools/jobs/job_request.c.
 *
 * A member that would change the answer and is not implemented is refused, and the error names it. It is accepted if
 * its value means no change. A member that has no effect here is checked and ignored. For example, the number of tokens
 * to keep when a context overflows has no effect, because here a context does not overflow. Unknown members are
 * ignored, as clients expect, and noted once (notes.h). */
#include <math.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/wide_json.h"
#include "tools/jobs/job_choices.h"
#include "tools/serve/adapter_scales.h"
#include "tools/serve/generation_request_parts.h"
#include "tools/serve/notes.h"

enum { CHAT = 1, COMPLETION = 2, NATIVE = 4, ALL = CHAT | COMPLETION | NATIVE };

typedef bool take_member(fr_generation_request *request, fr_job *job, const char *key, const json_t *value);

static bool must_be(fr_job *job, const char *key, const char *what) {
    return fr_job_refuse(job, FR_USAGE, "%s must be %s", key, what);
}

static bool is_given(const fr_job *job, const char *key) {
    const json_t *value = json_object_get(job->request, key);
    return value && !json_is_null(value);
}

/* ------------------------------------------------------------------------------------------------ flags and numbers */

#define REUSE "cache_prompt"

/* Members that are flags. Each has the offset of its variable in the request. The flag REUSE has no such variable,
 * because it is a setting of the session. */
static const struct {
    const char *key;
    size_t offset; /* 0: the flag has no variable, because it is a setting of the session */
} flags[] = {{"stream", offsetof(fr_generation_request, stream)},
             {"return_tokens", offsetof(fr_generation_request, return_tokens)},
             {"return_progress", offsetof(fr_generation_request, return_progress)},
             {"return_drafted", offsetof(fr_generation_request, return_drafted)},
             {"timings_per_token", offsetof(fr_generation_request, timings_per_token)},
             {REUSE, 0}};
enum { FLAGS = sizeof flags / sizeof *flags };

/* Gives the index of the flag with this name. FLAGS: there is no such flag. */
static size_t find_flag(const char *key) {
    size_t i = 0;
    while (i < FLAGS && strcmp(flags[i].key, key) != 0) i++;
    return i;
}

static bool take_flag(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    size_t offset = flags[find_flag(key)].offset;
    if (!json_is_boolean(value)) return must_be(job, key, "true or false");
    if (offset) *(bool *)((char *)request + offset) = json_is_true(value);
    return offset || fr_job_check(job, fr_options_set(job->options, FR_OPT_PROMPT_REUSE, json_is_true(value)));
}

/* Members that are numbers and are ignored. A value from `low` to `built` is accepted, because it has no effect here. A
 * larger value is refused, because its effect is not implemented. */
static const struct {
    const char *key;
    double low, built;
} numbers[] = {{"n_cache_reuse", 0, HUGE_VAL},
               {"n_keep", -1, HUGE_VAL},
               {"n_discard", 0, HUGE_VAL},
               {"min_keep", 0, 1},
               {"n_indent", 0, 0},
               {"adaptive_target", -HUGE_VAL, -1e-30}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Gives the index of the number with this name. NUMBERS: there is no such number. */
static size_t find_number(const char *key) {
    size_t i = 0;
    while (i < NUMBERS && strcmp(numbers[i].key, key) != 0) i++;
    return i;
}

static bool take_number(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    size_t i = find_number(key);
    if (!json_is_number(value)) return must_be(job, key, "a number");
    if (json_number_value(value) < numbers[i].low)
        return fr_job_refuse(job, FR_USAGE, "%s must be at least %g", key, numbers[i].low);
    return json_number_value(value) <= numbers[i].built || fr_job_unbuilt(job, key);
}

/* Reads the switch of a feature that is not implemented. It must be false. */
static bool take_false(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_boolean(value)) return must_be(job, key, "true or false");
    return json_is_false(value) || fr_job_unbuilt(job, key);
}

static bool take_empty(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    bool empty = fr_job_is_word(value, "") || (json_is_array(value) && json_array_size(value) == 0);
    return empty || fr_job_unbuilt(job, key);
}

/* Accepts a member without reading it. request_messages.c reads it later, together with the last message. */
static bool take_end(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    return fr_job_take_later(job, key, value);
}

static bool take_switch(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    return json_is_boolean(value) || must_be(job, key, "true or false");
}

static bool take_adapters(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    return fr_adapter_scales_take(job, key, value);
}

/* ----------------------------------------------------------------------------------------------- form of the answer */

static bool take_model(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_plain_text(value)) return must_be(job, key, "a name");
    request->model = json_string_value(value);
    return true;
}

static bool take_stream_options(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    const json_t *usage = json_object_get(value, "include_usage");
    if (!json_is_object(value)) return must_be(job, key, "an object");
    if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        return fr_job_refuse(job, FR_USAGE, "include_usage must be true or false");
    request->include_usage = json_is_true(usage);
    return true;
}

/* Reads the names of the members that the answer must have. A path with slashes names a member of an inner object. An
 * empty list means all members. */
static bool take_fields(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    size_t count = json_array_size(value), texts = 0;
    while (texts < count && fr_job_plain_text(json_array_get(value, texts))) texts++;
    if (!json_is_array(value) || texts < count) return must_be(job, key, "an array of texts");
    if (count) request->fields = value;
    return true;
}

static bool take_slot(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, -1, INT32_MAX)) return must_be(job, key, "a slot's number, or -1");
    request->slot = json_integer_value(value);
    return true;
}

static bool take_ping(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, -1, INT32_MAX)) return must_be(job, key, "a whole number of seconds, or -1");
    request->ping = json_integer_value(value) > 0 ? json_integer_value(value) : 0;
    return true;
}

/* Reads the limit of the time for a reply. Editors send it when they ask to fill in code. A value below 1 means no
 * limit. */
static bool take_time(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, INT32_MIN, INT32_MAX)) return must_be(job, key, "a whole number of milliseconds");
    request->most = json_integer_value(value) > 0 ? (double)json_integer_value(value) / 1e3 : 0;
    return true;
}

/* Reads the form of reasoning. Here reasoning is always separated from the content, so only values with this meaning
 * are accepted. */
static bool take_reasoning_format(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_string(value)) return must_be(job, key, "a text");
    return fr_job_is_word(value, "auto") || fr_job_is_word(value, "deepseek") || fr_job_unbuilt(job, key);
}

static bool take_modalities(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_array(value)) return must_be(job, key, "an array");
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!fr_job_is_word(json_array_get(value, i), "text")) return fr_job_unbuilt(job, key);
    return true;
}

/* --------------------------------------------------------------------------------------------------------- sampling */

static bool take_most(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    return fr_job_take_most(job, key, value);
}

/* Reads the number of most likely tokens. It is llama.cpp's "n_probs", or "logprobs" in a request to /completion or
 * /v1/completions. If "logprobs" of /v1/completions is 0, only the chosen tokens get log-probabilities. Everywhere else
 * 0 means no log-probabilities. "n_probs" overrides "logprobs", except in a chat. */
static bool take_probs(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    bool own = strcmp(key, "n_probs") == 0;
    bool passed_over = own ? job->form == FR_JOB_CHAT && json_is_true(json_object_get(job->request, "logprobs"))
                           : is_given(job, "n_probs");
    if (!fr_job_whole(value, 0, FR_LOGPROBS_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number from 0 to %d", key, FR_LOGPROBS_MAX);
    if (passed_over) return true;
    bool none = json_integer_value(value) == 0 && (own || job->form == FR_JOB_NATIVE);
    job->best = none ? -1 : json_integer_value(value);
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_LOGPROBS, job->best));
}

/* Reads the switch that chooses the probabilities after sampling instead of the model's log-probabilities. */
static bool take_chances(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_boolean(value)) return must_be(job, key, "true or false");
    job->chances = json_is_true(value);
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_LOGPROBS_DRAWN, job->chances));
}

/* Reads "top_k". A negative value means all tokens, as 0 does. */
static bool take_top_k(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_integer(value)) return must_be(job, key, "a whole number");
    json_int_t top_k = json_integer_value(value) > 0 ? json_integer_value(value) : 0;
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_TOP_K, top_k));
}

/* Reads "mirostat". Version 1 is not implemented. It is refused here, because the session would refuse it only later,
 * when it begins. */
static bool take_mirostat(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (fr_job_whole(value, 1, 1)) return fr_job_unbuilt(job, key);
    return fr_job_sampler(key)(job, key, value);
}

/* Reads the rule by which drafts are accepted. Rejection sampling is refused. With it, the text would depend on the
 * drafts, and so on other requests that run at the same time. */
static bool take_accept(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    return fr_job_is_word(value, "gumbel") ||
           fr_job_refuse(job, FR_USAGE, "%s must be \"gumbel\": otherwise texts would depend on other requests", key);
}

/* --------------------------------------------------------------------------------------------------------- drafting */

static bool take_draft_max(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    bool automatic = fr_job_is_word(value, "auto");
    if (!automatic && !json_is_integer(value)) return must_be(job, key, "a whole number, or \"auto\"");
    int64_t most = automatic ? FR_DRAFT_AUTO : json_integer_value(value);
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_DRAFT_MAX, most));
}

static bool take_draft_min(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    if (!json_is_integer(value)) return must_be(job, key, "a whole number");
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_DRAFT_MIN, json_integer_value(value)));
}

static bool take_draft_p_min(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    bool automatic = fr_job_is_word(value, "auto");
    if (!automatic && !json_is_number(value)) return must_be(job, key, "a number, or \"auto\"");
    double least = automatic ? FR_DRAFT_P_AUTO : json_number_value(value);
    return fr_job_check(job, fr_options_set_number(job->options, FR_OPT_DRAFT_P_MIN, least));
}

static bool take_draft_type(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    (void)request;
    const char *words = fr_job_plain_text(value);
    if (!words || !*words) return must_be(job, key, "a text");
    if (!fr_job_check(job, fr_options_set_text(job->options, FR_OPT_SPEC_TYPE, words))) return false;
    return !fr_lab_takes_drafter(words) || job->setting->loaded->drafter ||
           fr_job_refuse(job, FR_USAGE, "%s: %.60s needs a drafter, and this model has none", key, words);
}

/* Checks that the least number of drafts does not exceed the largest number of drafts. */
static bool check_drafts(fr_job *job) {
    int64_t least = 0, most = 0;
    fr_options_get(job->options, FR_OPT_DRAFT_MIN, &least);
    fr_options_get(job->options, FR_OPT_DRAFT_MAX, &most);
    if (most <= 0 || least <= most) return true;
    return fr_job_refuse(job, FR_USAGE, "speculative.n_min %lld is more than the %lld drafts of speculative.n_max",
                         (long long)least, (long long)most);
}

/* ------------------------------------------------------------------------------------------------------------ table */

static take_member take_speculative;

static const struct {
    const char *key;
    unsigned forms;
    take_member *take;
} members[] = {
    {"model", ALL, take_model},
    {"stream_options", ALL, take_stream_options},
    {"sse_ping_interval", ALL, take_ping},
    {"id_slot", ALL, take_slot},
    {"echo", CHAT | NATIVE, take_false},
    {"n_predict", ALL, take_most},
    {"t_max_predict_ms", ALL, take_time},
    {"max_completion_tokens", ALL, take_most},
    {"max_tokens", ALL, take_most},
    {"n_probs", ALL, take_probs},
    {"logprobs", COMPLETION | NATIVE, take_probs},
    {"top_k", ALL, take_top_k},
    {"mirostat", ALL, take_mirostat},
    {"accept", ALL, take_accept},
    {"speculative", ALL, take_speculative},
    {"speculative.n_max", ALL, take_draft_max},
    {"speculative.n_min", ALL, take_draft_min},
    {"speculative.p_min", ALL, take_draft_p_min},
    {"speculative.type", ALL, take_draft_type},
    {"add_generation_prompt", CHAT, take_switch},
    {"continue_final_message", CHAT, take_end},
    {"reasoning_format", CHAT, take_reasoning_format},
    {"modalities", CHAT, take_modalities},
    {"images", ALL, take_empty},
    {"functions", CHAT, take_empty},
    {"chat_template", CHAT, take_empty},
    {"documents", CHAT, take_empty},
    {"bad_words", ALL, take_empty},
    {"allowed_token_ids", ALL, take_empty},
    {"use_beam_search", ALL, take_false},
    {"grammar_lazy", ALL, take_false},
    {"grammar_triggers", ALL, take_empty},
    {"preserved_tokens", ALL, take_empty},
    {"lora", ALL, take_adapters},
    {"response_fields", NATIVE, take_fields},
    {"post_sampling_probs", CHAT | NATIVE, take_chances},
    {"post_sampling_probs", COMPLETION, take_false},
    {"reasoning_control", ALL, take_false},
};

/* Finds the function in this file that reads a member. NULL: no function here reads it. */
static take_member *find_member(const fr_job *job, const char *key) {
    unsigned form = job->form == FR_JOB_CHAT ? CHAT : job->form == FR_JOB_COMPLETION ? COMPLETION : NATIVE;
    if (find_flag(key) < FLAGS) return take_flag;
    if (find_number(key) < NUMBERS) return take_number;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].forms & form && strcmp(members[i].key, key) == 0) return members[i].take;
    return NULL;
}

/* Reads the members about drafting, which are in an object of their own. */
static bool take_speculative(fr_generation_request *request, fr_job *job, const char *key, const json_t *value) {
    char name[64];
    const char *inner;
    json_t *one;
    if (!json_is_object(value)) return must_be(job, key, "an object");
    json_object_foreach ((json_t *)(uintptr_t)value, inner, one) {
        snprintf(name, sizeof name, "%s.%.40s", key, inner);
        take_member *take = find_member(job, name);
        job->member = name;
        bool taken = !take || json_is_null(one) || take(request, job, name, one);
        job->member = key;
        if (!taken) return false;
    }
    return true;
}

/* Turns numbers such as 2.0 into integers, if they have no fraction. JSON has only one kind of number, and some clients
 * write all numbers with a decimal point. */
static void make_whole(json_t *body) {
    for (void *at = json_object_iter(body); at; at = json_object_iter_next(body, at)) {
        const json_t *value = json_object_iter_value(at);
        double number = json_real_value(value);
        if (json_is_real(value) && fabs(number) < 0x1p53 && number == floor(number))
            json_object_iter_set_new(body, at, json_integer((json_int_t)number));
    }
}

bool fr_generation_request_take_members(fr_generation_request *request, fr_job *job) {
    const char *key;
    json_t *value;
    make_whole(request->body);
    make_whole(json_object_get(request->body, "speculative"));
    json_object_foreach ((json_t *)(uintptr_t)job->request, key, value) {
        if (json_is_null(value)) continue;
        take_member *own = find_member(job, key);
        fr_job_take_field *take = own ? NULL : fr_job_member(job, key);
        if (!own && !take) {
            fr_notes_say("a request's member \"%.60s\" is not known, and passed over", key);
            continue;
        }
        job->member = key;
        if (!fr_job_check_wide(job, key, value)) return false;
        if (!(own ? own(request, job, key, value) : take(job, key, value))) return false;
    }
    job->member = NULL;
    return fr_job_settle_choices(job, request->stream) && check_drafts(job);
}
