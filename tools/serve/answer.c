/* Makes the answer of an exchange from a request's choices while they run (answer.h). */
#include "tools/serve/answer.h"

#include <string.h>

#include "tools/jobs/job_choices.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/dialects/answer_dialect.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"
#include "tools/serve/tool_kinds.h"

/* ----------------------------------------------------------------------------------------------------------- errors */

/* Sends the error as the whole answer, or as the last event of a stream. */
static void fail(fr_generation_request *request, unsigned http, json_t *fault) {
    if (request->dialect) fault = request->dialect->fault(request, fault);
    if (request->streaming) {
        if (request->dialect)
            request->dialect->send(request, fault);
        else
            fr_answer_send(request, fault);
        fr_http_exchange_end(request->exchange);
    } else {
        fr_http_exchange_answer_json(request->exchange, http, fault);
    }
    request->answered = true;
}

/* Answers with an error. too_long: if the prompt exceeds the context, the number of its ids; otherwise 0. Usually the
 * error's "code" is the HTTP status. If the prompt is too long, the "code" is a word, except in llama.cpp's own form,
 * which keeps the status. */
static void fail_by(fr_generation_request *request, fr_status why, const char *message, size_t too_long,
                    size_t context) {
    unsigned http = fr_fault_http(why);
    json_t *fault = fr_fault_json(http, message), *error = json_object_get(fault, "error");
    if (too_long) {
        if (request->form != FR_JOB_NATIVE) fr_json_put(error, "code", json_string(FR_JOB_TOO_LONG_CODE));
        fr_json_put(error, "type", json_string("exceed_context_size_error"));
        fr_json_put(error, "n_prompt_tokens", json_integer((json_int_t)too_long));
        fr_json_put(error, "n_ctx", json_integer((json_int_t)context));
    }
    fail(request, http, fault);
}

static void fail_by_job(fr_generation_request *request, const fr_job *job) {
    char line[sizeof job->error];
    size_t too_long = fr_job_is_too_long(job) ? job->prompt.count : 0;
    size_t context = job->session ? fr_session_context(job->session) : 0;
    snprintf(line, sizeof line, "the prompt has %zu tokens and " FR_JOB_TOO_LONG, too_long, (long long)context);
    fail_by(request, job->why, too_long ? line : job->error, too_long, context);
}

void fr_answer_refuse(fr_generation_request *request) {
    fail_by(request, request->why, request->error, request->too_long, (size_t)request->setting->context);
}

/* -------------------------------------------------------------------------------------------------- running choices */

void fr_answer_in(fr_generation_request *request, const fr_dialect *dialect, json_t *dialect_body) {
    char own[sizeof request->id];
    const char *behind = strchr(request->id, '-');
    snprintf(own, sizeof own, "%s%s", dialect->names, behind ? behind + 1 : request->id);
    memcpy(request->id, own, sizeof own);
    request->dialect = dialect;
    request->dialect_body = dialect_body;
}

void fr_answer_began(fr_generation_request *request, fr_choice *choice) {
    fr_telling *t = fr_telling_of(request, choice);
    if (choice->began == 0) choice->began = fr_seconds();
    fr_timings_take(t);
    if (request->stream || request->dialect) fr_telling_begin(t);
    /* tells the client that no part of the prompt has been run yet */
    if (choice->job.session && !choice->job.ended) fr_answer_progress(request, choice);
}

void fr_answer_progress(fr_generation_request *request, fr_choice *choice) {
    fr_telling *t = fr_telling_of(request, choice);
    if (request->answered || !request->stream || !request->return_progress || !choice->job.session || t->progressed)
        return;
    fr_timings_take(t);
    t->progressed = fr_session_waiting(choice->job.session) == 0;
    fr_chunk_send_progress(t);
}

/* Stores the JSON of a choice that has ended, and the mean log-probability of the choice's ids. Both are needed for an
 * answer that is not a stream. */
static void take_whole(const fr_generation_request *request, fr_choice *choice, fr_telling *t) {
    size_t index = (size_t)(choice - request->choices);
    const fr_reply *echoed = &request->choices[choice->prompt * request->each].job.echoed;
    t->whole = fr_job_whole_choice(&choice->job, echoed, index, &t->likely);
    json_t *message = json_object_get(t->whole, "message"), *calls = json_object_get(message, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++) fr_tool_call_of_chat(request->called, json_array_get(calls, i));
    if (!request->functions || !calls) return;
    fr_function_call_of_chat(message);
    if (fr_job_is_word(json_object_get(t->whole, "finish_reason"), "tool_calls"))
        fr_json_put(t->whole, "finish_reason", json_string("function_call"));
}

void fr_answer_step(fr_generation_request *request, fr_choice *choice) {
    fr_job *job = &choice->job;
    if (request->answered || choice->finished) return;
    fr_telling *t = fr_telling_of(request, choice);
    if (!job->error[0]) {
        fr_answer_progress(request, choice);
        if (choice->first == 0 || job->ended) fr_timings_take(t);
        if (request->stream || request->dialect)
            fr_telling_send(t, job->ended);
        else if (job->ended && request->form == FR_JOB_NATIVE)
            t->whole = fr_native_whole(t);
        else if (job->ended)
            take_whole(request, choice, t);
    }
    if (job->error[0]) fail_by_job(request, job);
    choice->finished = job->ended;
}

/* ---------------------------------------------------------------------------------------------------- whole answers */

/* Finds the choice of a prompt that has this position in the answer. Usually choices have the order in which they were
 * started. With "best_of" the likeliest choice comes first. */
static const fr_choice *choice_at(const fr_generation_request *request, size_t prompt, size_t position) {
    const fr_choice *first = request->choices + prompt * request->each;
    double likely[FR_CHOICES_MAX];
    if (!request->shown) return first + position;
    for (size_t i = 0; i < request->each; i++) likely[i] = first[i].telling->likely;
    return first + fr_job_nth_likeliest(likely, request->each, position);
}

static json_t *choices_of(const fr_generation_request *request) {
    json_t *choices = json_array();
    size_t shown = request->shown ? request->shown : request->each;
    for (size_t prompt = 0; prompt < request->count / request->each; prompt++)
        for (size_t position = 0; position < shown; position++) {
            json_t *whole = choice_at(request, prompt, position)->telling->whole;
            if (request->shown) fr_json_put(whole, "index", json_integer((json_int_t)(prompt * shown + position)));
            json_array_append(choices, whole);
        }
    return choices;
}

/* Makes the answer of a request that does not stream. In llama.cpp's form the answer is a list of choices. If there is
 * only one choice, the answer is that choice. */
static json_t *whole_of(const fr_generation_request *request) {
    if (request->dialect) return request->dialect->whole(request->choices[0].telling);
    json_t *choices = choices_of(request);
    if (request->form == FR_JOB_NATIVE && request->count > 1) return choices;
    if (request->form == FR_JOB_NATIVE) {
        json_decref(choices);
        return json_incref(request->choices[0].telling->whole);
    }
    fr_timings all = fr_timings_of_request(request);
    json_t *answer =
        fr_answer_object(request, request->form == FR_JOB_CHAT ? "chat.completion" : "text_completion", choices);
    fr_json_put(answer, "usage", fr_timings_usage(&all));
    fr_json_put(answer, "timings", fr_timings_json(&all));
    return answer;
}

/* Returns true if all choices are complete. If the server is being stopped, some of them may not be. */
static bool is_whole(const fr_generation_request *request) {
    for (size_t i = 0; i < request->count; i++)
        if (!request->choices[i].finished) return false;
    return true;
}

void fr_answer_end(fr_generation_request *request) {
    if (request->answered) return;
    if (!is_whole(request)) {
        fail(request, 503, fr_fault_json(503, "the server is stopping"));
        return;
    }
    if (!request->stream) {
        fr_http_exchange_answer_json(request->exchange, 200, whole_of(request));
    } else if (request->dialect) {
        request->dialect->end(request->choices[0].telling);
        fr_http_exchange_end(request->exchange);
    } else {
        if (request->include_usage && request->form != FR_JOB_NATIVE) fr_chunk_send_usage(request);
        if (request->form != FR_JOB_NATIVE) fr_answer_send_line(request, "data: [DONE]\n\n");
        fr_http_exchange_end(request->exchange);
    }
    request->answered = true;
}

/* Sends a ping in a stream. While the prompt is still being run, the answer may not have begun. Then the ping begins
 * the stream. If an error follows, it is sent as the last event of the stream. */
void fr_answer_ping(fr_generation_request *request) {
    if (!request->stream || request->answered) return;
    if (!request->dialect)
        fr_answer_send_line(request, ": ping\n\n");
    else if (request->dialect->ping)
        request->dialect->ping(request);
}
