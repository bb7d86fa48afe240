/* Writes the events of a stream (answer_parts.h).
 *
 * Each chunk belongs to one choice. If there are several choices, their chunks come in the order in which the ids were
 * generated. */
#include <string.h>

#include "tools/jobs/job_echo.h"
#include "tools/serve/dialects/answer_dialect.h"

json_t *fr_answer_object(const fr_generation_request *request, const char *object, json_t *choices) {
    const char *fingerprint = request->setting->fingerprint;
    json_t *answer = json_object();
    fr_json_put(answer, "id", json_string(request->id));
    fr_json_put(answer, "object", json_string(object));
    fr_json_put(answer, "created", json_integer((json_int_t)request->created));
    fr_json_put(answer, "model", fr_json_bytes(request->model, strlen(request->model)));
    if (fingerprint) fr_json_put(answer, "system_fingerprint", fr_json_bytes(fingerprint, strlen(fingerprint)));
    fr_json_put(answer, "choices", choices);
    return answer;
}

/* ---------------------------------------------------------------------------------------------------------- a chunk */

/* Makes the object of a chunk that contains this choice. choice: NULL if the chunk has no choice. */
static json_t *object_of(const fr_generation_request *request, json_t *choice) {
    json_t *choices = json_array();
    if (choice) json_array_append_new(choices, choice);
    bool chat = request->form == FR_JOB_CHAT;
    json_t *chunk = fr_answer_object(request, chat ? "chat.completion.chunk" : "text_completion", choices);
    if (request->include_usage) fr_json_put(chunk, "usage", json_null());
    return chunk;
}

/* Makes the choice of a chunk. finish: the reason why the choice has ended; NULL: it has not ended. */
static json_t *choice_of(const fr_telling *t, json_t *delta, json_t *logprobs, const char *finish) {
    bool chat = t->request->form == FR_JOB_CHAT;
    json_t *choice = json_object();
    fr_json_put(choice, "index", json_integer((json_int_t)(t->choice - t->request->choices)));
    fr_json_put(choice, chat ? "delta" : "text", delta);
    fr_json_put(choice, "logprobs", logprobs);
    fr_json_put(choice, "finish_reason", finish ? json_string(finish) : json_null());
    return choice;
}

/* Begins the stream of a choice. In a chat the stream begins with the role. */
static void begin(fr_telling *t) {
    if (t->begun) return;
    t->begun = true;
    if (t->request->form != FR_JOB_CHAT) return;
    json_t *role = json_object();
    fr_json_put(role, "role", json_string("assistant"));
    fr_json_put(role, "content", json_null());
    fr_answer_send(t->request, object_of(t->request, choice_of(t, role, json_null(), NULL)));
}

/* Sends an echoed prompt before the first text of the reply. The prompt can't be sent earlier, because its
 * log-probabilities are known only after it has been run. */
static void send_echo(fr_telling *t) {
    const fr_job *job = &t->choice->job;
    const fr_reply *echoed = &t->request->choices[t->choice->prompt * t->request->each].job.echoed;
    if (!job->echo || t->echoed) return;
    t->echoed = true;
    json_t *logprobs = fr_job_echo_logprobs(job, echoed, &t->offset);
    fr_answer_send(t->request, object_of(t->request, choice_of(t, fr_job_echo_text(job), logprobs, NULL)));
}

static json_t *empty_delta(const fr_generation_request *request) {
    return request->form == FR_JOB_CHAT ? json_object() : json_string("");
}

/* Adds "drafted" to a chunk that has text, if the request asked for it. The value of "drafted" is true if the text
 * came from accepted drafts. */
static void put_drafted(const fr_telling *t, json_t *chunk) {
    if (t->request->return_drafted && t->text.length && !t->call)
        fr_json_put(chunk, "drafted", json_boolean(t->drafted));
}

/* Makes a chunk in OpenAI's form. The last chunk of a choice has its timings. They are left out if a further chunk will
 * have the figures of all choices together. */
static json_t *chunk_of(fr_telling *t, json_t *delta, size_t ids, bool end) {
    const fr_job *job = &t->choice->job;
    bool news = t->ids < ids && job->best >= 0;
    json_t *logprobs = news ? fr_job_logprobs(job, t->ids, ids, &t->offset) : json_null();
    const char *finish = end ? fr_job_finish_reason(job, t->calls > 0) : NULL;
    if (finish && t->request->functions && strcmp(finish, "tool_calls") == 0) finish = "function_call";
    json_t *chunk = object_of(t->request, choice_of(t, delta ? delta : empty_delta(t->request), logprobs, finish));
    put_drafted(t, chunk);
    if (t->request->timings_per_token || (end && !t->request->include_usage))
        fr_json_put(chunk, "timings", fr_timings_json(&t->timings));
    return chunk;
}

static void send_native(fr_telling *t, json_t *content, size_t ids, bool end) {
    if (!end || t->ids < ids) {
        json_t *chunk = fr_native_chunk(t, content ? content : json_string(""), ids);
        put_drafted(t, chunk);
        if (t->request->timings_per_token) fr_json_put(chunk, "timings", fr_timings_json(&t->timings));
        fr_answer_send(t->request, chunk);
    }
    if (end) fr_answer_send(t->request, fr_native_end(t));
}

void fr_chunk_send(fr_telling *t, json_t *delta, size_t ids, bool end) {
    if (!t->request->dialect) {
        begin(t);
        send_echo(t);
    }
    if (t->request->timings_per_token || end) fr_timings_take(t);
    if (t->request->dialect)
        fr_items_take(t, delta, ids, end);
    else if (t->request->form == FR_JOB_NATIVE)
        send_native(t, delta, ids, end);
    else
        fr_answer_send(t->request, chunk_of(t, delta, ids, end));
    t->ids = ids;
}

void fr_chunk_send_progress(fr_telling *t) {
    json_t *chunk, *progress = fr_timings_progress(t);
    begin(t);
    if (t->request->form == FR_JOB_NATIVE)
        chunk = fr_native_chunk(t, json_string(""), t->ids);
    else
        chunk = object_of(t->request, choice_of(t, empty_delta(t->request), json_null(), NULL));
    fr_json_put(chunk, "prompt_progress", progress);
    if (t->request->timings_per_token) fr_json_put(chunk, "timings", fr_timings_so_far(t));
    fr_answer_send(t->request, chunk);
}

void fr_chunk_send_usage(fr_generation_request *request) {
    fr_timings all = fr_timings_of_request(request);
    json_t *chunk = object_of(request, NULL);
    fr_json_put(chunk, "usage", fr_timings_usage(&all));
    fr_json_put(chunk, "timings", fr_timings_json(&all));
    fr_answer_send(request, chunk);
}
