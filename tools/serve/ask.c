/* A request for text, read (ask.h): its members once, its prompts each once, and a job for each choice of each. */
#include "tools/serve/ask.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tools/cli/output.h"
#include "tools/jobs/job_budget.h"
#include "tools/jobs/job_grammar.h"
#include "tools/serve/answer.h"
#include "tools/serve/ask_parts.h"
#include "tools/serve/dialects/ask_dialects.h"
#include "tools/serve/infill.h"
#include "tools/serve/notes.h"
#include "tools/serve/seconds.h"
#include "tools/serve/tool_kinds.h"

/* "chatcmpl-" and 32 hexadecimal digits that no other answer has. */
static void name_ask(fr_ask *ask) {
    unsigned char drawn[16] = {0};
    int at = snprintf(ask->id, sizeof ask->id, "%s", ask->form == FR_JOB_COMPLETION ? "cmpl-" : "chatcmpl-");
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) memcpy(drawn, &ask->arrived, sizeof ask->arrived);
    for (size_t i = 0; i < sizeof drawn; i++)
        at += snprintf(ask->id + at, sizeof ask->id - (size_t)at, "%02x", drawn[i]);
}

/* ---------------------------------------------------------------------------------------------------------- prompts */

/* llama.cpp's rule: an array with an id in it is one prompt, any other one has a prompt for each of its elements. */
static bool has_several(const json_t *prompt) {
    for (size_t i = 0; i < json_array_size(prompt); i++)
        if (json_is_integer(json_array_get(prompt, i))) return false;
    return json_is_array(prompt);
}

static size_t count_prompts(const fr_ask *ask) {
    const json_t *prompt = json_object_get(ask->body, "prompt");
    return ask->form != FR_JOB_CHAT && has_several(prompt) ? json_array_size(prompt) : 1;
}

static const json_t *prompt_at(const fr_ask *ask, size_t index) {
    const json_t *prompt = json_object_get(ask->body, "prompt");
    return has_several(prompt) ? json_array_get(prompt, index) : prompt;
}

/* The engine would refuse both, but only once it has the time. */
static bool check_prompt(fr_ask *ask, fr_job *job) {
    int64_t context = ask->setting->context, vocab = fr_model_fact(ask->setting->loaded->model, FR_FACT_VOCAB);
    size_t count = job->prompt.count;
    for (size_t i = 0; i < count; i++)
        if (job->prompt.ids[i] >= vocab)
            return fr_job_refuse(job, FR_INPUT, "prompt: id %d is outside the vocabulary of %lld", job->prompt.ids[i],
                                 (long long)vocab);
    if (context == 0 || count < (size_t)context) return true;
    ask->too_long = count;
    return fr_job_refuse(job, FR_INPUT, "the prompt has %zu tokens and " FR_JOB_TOO_LONG, count, (long long)context);
}

/* Takes a prompt with the suffix that stands behind the text which is asked for. */
static bool take_around(fr_ask *ask, fr_job *job, const json_t *prompt) {
    char error[FR_INFILL_ERROR];
    json_t *ids = fr_infill_around(fr_model_tokenizer(ask->setting->loaded->model), prompt, ask->suffix, error);
    bool taken = ids ? fr_job_take_text_or_ids(job, ids) : fr_job_refuse(job, FR_UNBUILT, "%s", error);
    json_decref(ids);
    return taken;
}

static bool take_prompt(fr_ask *ask, fr_job *job, size_t index) {
    const json_t *prompt = prompt_at(ask, index);
    bool chat = ask->form == FR_JOB_CHAT;
    bool taken = chat          ? fr_ask_take_messages(ask, job)
                 : ask->suffix ? take_around(ask, job, prompt)
                               : fr_job_take_text_or_ids(job, prompt);
    if (job->doubled) fr_notes_say(FR_DOUBLED_NOTE, job->doubled);
    ask->too_long = job->too_long;
    return taken && check_prompt(ask, job) && fr_job_make_grammar(job) && fr_job_make_budget(job) &&
           fr_job_check_least(job);
}

/* ---------------------------------------------------------------------------------------------------------- choices */

/* A request without a seed, and a command line without one, draws it: answers are to differ. */
static bool settle_seed(fr_job *job) {
    const fr_arguments *args = job->setting->args;
    const json_t *seed = json_object_get(job->request, "seed");
    bool given = (seed && !json_is_null(seed)) || (args->given[FR_ARG_SEED] && !args->seed_drawn);
    if (given) return true;
    job->seed = fr_draw_seed();
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_SEED, job->seed));
}

/* Choice i draws with the seed and i more; behind the largest seed comes the least. */
static bool move_seed(fr_job *job, size_t by) {
    int64_t seed = 0;
    fr_options_get(job->options, FR_OPT_SEED, &seed);
    int64_t moved = (int64_t)(((uint64_t)seed + by) & INT64_MAX);
    if (job->seed >= 0) job->seed = moved;
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_SEED, moved));
}

/* Gives the job that was refused; NULL: all were taken. */
static const fr_job *take_choices(fr_ask *ask, fr_job *members) {
    for (size_t i = 0; i < ask->count; i++) {
        fr_choice *choice = &ask->choices[i];
        size_t index = i / ask->each, place = i % ask->each;
        fr_job *job = &choice->job;
        choice->prompt = index;
        fr_job_copy(job, place ? &choice[-(ptrdiff_t)place].job : members);
        if (!job->ended && place == 0) take_prompt(ask, job, index);
        if (!job->ended && place) move_seed(job, place);
        if (job->ended) return job;
    }
    return NULL;
}

static bool count_choices(fr_ask *ask, fr_job *members) {
    size_t prompts = count_prompts(ask);
    if (prompts == 0) return fr_job_refuse(members, FR_USAGE, "prompt is empty");
    if (prompts > FR_CHOICES_MAX / ask->each)
        return fr_job_refuse(members, FR_USAGE, "prompt: %zu prompts, each with %zu choices, are more than %d in all",
                             prompts, ask->each, FR_CHOICES_MAX);
    ask->count = prompts * ask->each;
    ask->choices = fr_resize(NULL, ask->count, sizeof *ask->choices);
    memset(ask->choices, 0, ask->count * sizeof *ask->choices);
    return true;
}

static void end_choices(fr_ask *ask) {
    for (size_t i = 0; i < ask->count; i++) {
        fr_answer_forget(&ask->choices[i]);
        free(ask->choices[i].echo.logprobs);
        if (ask->choices[i].job.setting) fr_job_end(&ask->choices[i].job);
    }
    free(ask->choices);
    ask->choices = NULL;
    ask->count = 0;
}

/* Makes functions of tools of other kinds. */
static bool take_tools(fr_ask *ask, fr_job *members) {
    char error[FR_DIALECT_ERROR];
    ask->called = json_object();
    return fr_tools_of_chat(ask->body, ask->called, error, sizeof error) ||
           fr_job_refuse(members, FR_USAGE, "%s", error);
}

static void read_body(fr_ask *ask, fr_job *members) {
    const fr_job *refused = members;
    bool object = json_is_object(ask->body);
    if (!members->ended && !object) fr_job_refuse(members, FR_USAGE, "the body must be a JSON object");
    if (!members->ended && ask->form == FR_JOB_CHAT) take_tools(ask, members);
    if (!members->ended && fr_ask_take_members(ask, members) && settle_seed(members) && count_choices(ask, members))
        refused = take_choices(ask, members);
    if (!refused) return;
    snprintf(ask->error, sizeof ask->error, "%s", refused->error);
    ask->why = refused->why;
    end_choices(ask);
}

/* -------------------------------------------------------------------------------------------------------------- ask */

fr_ask *fr_ask_read(fr_call *call, const fr_job_setting *setting, fr_job_form form, json_t *body) {
    fr_job members;
    fr_ask *ask = fr_resize(NULL, 1, sizeof *ask);
    *ask = (fr_ask){.call = call,
                    .setting = setting,
                    .form = form,
                    .body = body,
                    .model = setting->model,
                    .slot = -1,
                    .ping = -1,
                    .each = 1,
                    .created = time(NULL),
                    .arrived = fr_seconds()};
    if (call) fr_call_hold(call);
    name_ask(ask);
    fr_job_open(&members, setting, form, body);
    read_body(ask, &members);
    fr_job_end(&members);
    return ask;
}

void fr_ask_free(fr_ask *ask) {
    if (!ask) return;
    end_choices(ask);
    json_decref(ask->asked);
    json_decref(ask->called);
    json_decref(ask->body);
    if (ask->call) fr_call_release(ask->call);
    free(ask);
}
