/* Reads a request for text (generation_request.h). The members are read once, and each prompt is read once. Then each
 * choice of each prompt gets a job. */
#include "tools/serve/generation_request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tools/cli/output.h"
#include "tools/jobs/job_budget.h"
#include "tools/jobs/job_choices.h"
#include "tools/jobs/job_grammar.h"
#include "tools/serve/adapter_scales.h"
#include "tools/serve/answer.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/generation_request_parts.h"
#include "tools/serve/notes.h"
#include "tools/serve/seconds.h"
#include "tools/serve/tool_kinds.h"

/* Gives the request an id, which is "chatcmpl-" or "cmpl-" and 32 random hexadecimal digits. So no other answer has the
 * same id. */
static void name_request(fr_generation_request *request) {
    unsigned char drawn[16] = {0};
    int at =
        snprintf(request->id, sizeof request->id, "%s", request->form == FR_JOB_COMPLETION ? "cmpl-" : "chatcmpl-");
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) memcpy(drawn, &request->arrived, sizeof request->arrived);
    for (size_t i = 0; i < sizeof drawn; i++)
        at += snprintf(request->id + at, sizeof request->id - (size_t)at, "%02x", drawn[i]);
}

/* ---------------------------------------------------------------------------------------------------------- prompts */

/* Returns true if the prompt is a list of prompts. An array that contains an id is one prompt, as in llama.cpp. In any
 * other array each element is a prompt. */
static bool has_several(const json_t *prompt) {
    for (size_t i = 0; i < json_array_size(prompt); i++)
        if (json_is_integer(json_array_get(prompt, i))) return false;
    return json_is_array(prompt);
}

/* Checks the prompt's length and ids. The engine would refuse a wrong prompt too, but only later, when the request
 * begins to run. */
static bool check_prompt(fr_generation_request *request, fr_job *job) {
    int64_t context = request->setting->context, vocab = fr_model_fact(request->setting->loaded->model, FR_FACT_VOCAB);
    size_t count = job->prompt.count;
    for (size_t i = 0; i < count; i++)
        if (job->prompt.ids[i] >= vocab)
            return fr_job_refuse(job, FR_INPUT, "prompt: id %d is outside the vocabulary of %lld", job->prompt.ids[i],
                                 (long long)vocab);
    if (context == 0 || count < (size_t)context) return true;
    request->too_long = count;
    return fr_job_refuse(job, FR_INPUT, "the prompt has %zu tokens and " FR_JOB_TOO_LONG, count, (long long)context);
}

static bool take_prompt(fr_generation_request *request, fr_job *job, size_t index) {
    json_t *prompts = json_object_get(request->body, "prompt");
    json_t *prompt = has_several(prompts) ? json_array_get(prompts, index) : prompts;
    bool chat = request->form == FR_JOB_CHAT;
    if (!chat && !fr_generation_request_take_media(request, job, prompt)) return false;
    bool taken = chat          ? fr_generation_request_take_messages(request, job)
                 : job->suffix ? fr_job_take_around(job, prompt)
                               : fr_job_take_text_or_ids(job, prompt);
    if (job->doubled) fr_notes_say(FR_DOUBLED_NOTE, job->doubled);
    request->too_long = job->too_long;
    return taken && check_prompt(request, job) && fr_job_make_grammar(job) && fr_job_make_budget(job) &&
           fr_job_check_least(job);
}

/* ---------------------------------------------------------------------------------------------------------- choices */

/* If neither the request nor the command line gives a seed, draws a random one, so that answers differ. */
static bool settle_seed(fr_job *job) {
    const fr_arguments *args = job->setting->args;
    const json_t *seed = json_object_get(job->request, "seed");
    bool given = (seed && !json_is_null(seed)) || (args->given[FR_ARG_SEED] && !args->seed_drawn);
    if (given) return true;
    job->seed = fr_draw_seed();
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_SEED, job->seed));
}

/* Makes the jobs of all choices. Returns the first job that was refused. NULL: all jobs were accepted. */
static const fr_job *take_choices(fr_generation_request *request, fr_job *members) {
    for (size_t i = 0; i < request->count; i++) {
        fr_choice *choice = &request->choices[i];
        size_t index = i / request->each, nth = i % request->each;
        fr_job *job = &choice->job;
        choice->prompt = index;
        fr_job_copy(job, nth ? &choice[-(ptrdiff_t)nth].job : members);
        if (!job->ended && nth == 0) take_prompt(request, job, index);
        if (nth) job->scores = false;
        if (!job->ended && nth) fr_job_move_seed(job, nth);
        if (job->ended) return job;
    }
    return NULL;
}

static bool count_choices(fr_generation_request *request, fr_job *members) {
    const json_t *prompt = json_object_get(request->body, "prompt");
    size_t prompts = request->form != FR_JOB_CHAT && has_several(prompt) ? json_array_size(prompt) : 1;
    request->each = members->each;
    request->shown = members->shown;
    if (prompts == 0) return fr_job_refuse(members, FR_USAGE, "prompt is empty");
    if (prompts > FR_CHOICES_MAX / request->each)
        return fr_job_refuse(members, FR_USAGE, "prompt: %zu prompts, each with %zu choices, are more than %d in all",
                             prompts, request->each, FR_CHOICES_MAX);
    request->count = prompts * request->each;
    request->choices = fr_resize(NULL, request->count, sizeof *request->choices);
    memset(request->choices, 0, request->count * sizeof *request->choices);
    return true;
}

static void end_choices(fr_generation_request *request) {
    for (size_t i = 0; i < request->count; i++) {
        fr_answer_forget(&request->choices[i]);
        if (request->choices[i].job.setting) fr_job_end(&request->choices[i].job);
    }
    free(request->choices);
    request->choices = NULL;
    request->count = 0;
}

static void read_body(fr_generation_request *request, fr_job *members) {
    const fr_job *refused = members;
    bool object = json_is_object(request->body);
    if (!members->ended && !object) fr_job_refuse(members, FR_USAGE, "the body must be a JSON object");
    if (!members->ended && request->form == FR_JOB_CHAT) {
        /* Custom tools become functions in "tools". "functions", OpenAI's older form, are moved to "tools" too */
        char error[FR_DIALECT_ERROR];
        request->called = json_object();
        request->functions = fr_functions_of_chat(request->body);
        if (!fr_tools_of_chat(request->body, request->called, error, sizeof error))
            fr_job_refuse(members, FR_USAGE, "%s", error);
    }
    if (!members->ended && fr_generation_request_take_members(request, members) && settle_seed(members) &&
        count_choices(request, members))
        refused = take_choices(request, members);
    if (!refused) return;
    snprintf(request->error, sizeof request->error, "%s", refused->error);
    request->why = refused->why;
    end_choices(request);
}

/* ---------------------------------------------------------------------------------------------------------- request */

fr_generation_request *fr_generation_request_read(fr_http_exchange *exchange, const fr_job_setting *setting,
                                                  fr_job_form form, json_t *body) {
    fr_job members;
    fr_generation_request *request = fr_resize(NULL, 1, sizeof *request);
    *request = (fr_generation_request){.exchange = exchange,
                                       .setting = setting,
                                       .form = form,
                                       .body = body,
                                       .model = setting->model,
                                       .slot = -1,
                                       .ping = -1,
                                       .each = 1,
                                       .created = time(NULL),
                                       .arrived = fr_seconds()};
    if (exchange) fr_http_exchange_hold(exchange);
    name_request(request);
    fr_job_open(&members, setting, form, body);
    fr_adapter_scales_copy(&setting->loaded->adapters, members.adapter_scales);
    read_body(request, &members);
    fr_job_end(&members);
    return request;
}

void fr_generation_request_free(fr_generation_request *request) {
    if (!request) return;
    end_choices(request);
    json_decref(request->dialect_body);
    json_decref(request->called);
    json_decref(request->body);
    if (request->exchange) fr_http_exchange_release(request->exchange);
    free(request);
}
