/* Echoes the prompt at the beginning of its answer (answer_echo.h). */
#include "tools/serve/answer_echo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

/* Gives the prompt's first choice, which holds what all choices of the prompt share. */
static const fr_choice *first_of(const fr_generation_request *request, const fr_choice *choice) {
    return request->choices + choice->prompt * request->each;
}

/* ---------------------------------------------------------------------------------------------------------- scoring */

bool fr_echo_is_due(const fr_generation_request *request, const fr_choice *choice) {
    const fr_job *job = &choice->job;
    bool wanted = request->echo && job->best >= 0 && job->session && !job->error[0];
    return wanted && choice == first_of(request, choice) && !choice->echo.logprobs;
}

static fr_status take_id(void *context, int32_t id, float own, const int32_t *ids, const float *values, size_t best) {
    fr_reply *echo = context;
    fr_reply_logprob *row = echo->logprobs + echo->count++ * (echo->best + 1);
    row[0] = (fr_reply_logprob){id, own};
    for (size_t i = 0; i < best; i++) row[1 + i] = (fr_reply_logprob){ids[i], values[i]};
    return FR_OK;
}

static bool is_gone(void *exchange) {
    return exchange && fr_http_exchange_gone(exchange);
}

/* Scores all ids except the first, which has nothing before it. */
fr_status fr_echo_score(const fr_generation_request *request, fr_choice *choice) {
    fr_job *job = &choice->job;
    const fr_prompt *prompt = &job->prompt;
    size_t vocab = (size_t)fr_model_fact(job->setting->loaded->model, FR_FACT_VOCAB);
    fr_reply echo = {.setting.model = job->setting->loaded->model, .count = 1};
    echo.best = (size_t)job->best < vocab ? (size_t)job->best : vocab;
    echo.logprobs = fr_resize(NULL, prompt->count * (echo.best + 1), sizeof *echo.logprobs);
    echo.logprobs[0] = (fr_reply_logprob){prompt->ids[0], NAN};
    fr_session_set_abort(job->session, is_gone, request->exchange);
    fr_status status = fr_session_score(job->session, prompt->ids, prompt->count, take_id, &echo);
    fr_session_set_abort(job->session, NULL, NULL);
    if (status == FR_OK) status = fr_session_put(job->session, prompt->ids, prompt->count);
    if (status == FR_OK) status = fr_job_resume(job);
    if (status == FR_OK) {
        choice->echo = echo;
        return FR_OK;
    }
    fr_reply_free(&echo);
    if (status != FR_MEMORY) return status;
    fr_session_reset(job->session);
    fr_status put = fr_session_put(job->session, prompt->ids, prompt->count);
    return put == FR_OK ? status : put;
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Gives the prompt's text as it was sent; ids are converted to text. */
json_t *fr_echo_text(const fr_choice *choice) {
    const fr_job *job = &choice->job;
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    char *text = NULL;
    size_t length = 0;
    if (job->prompt.bytes) return fr_json_bytes(job->prompt.bytes, job->prompt.length);
    if (!tokenizer || fr_detokenize(tokenizer, job->prompt.ids, job->prompt.count, &text, &length) != FR_OK)
        return json_string("");
    json_t *prompt = fr_json_bytes(text, length);
    fr_free(text);
    return prompt;
}

/* The printed tokens may be longer than the text that was sent, because the tokenizer may add a <bos> or a blank in
 * front; offsets count from the text. */
json_t *fr_echo_logprobs(const fr_generation_request *request, const fr_choice *choice, size_t *offset) {
    const fr_reply *echo = &first_of(request, choice)->echo;
    size_t printed = 0, i;
    json_t *lists, *text = fr_echo_text(choice), *at;
    *offset = fr_json_characters(text);
    json_decref(text);
    if (!echo->logprobs || request->hides_logprobs) return json_null();
    lists = fr_reply_logprobs_lists(echo, 0, echo->count, &printed);
    json_int_t more = printed > *offset ? (json_int_t)(printed - *offset) : 0;
    json_array_foreach(json_object_get(lists, "text_offset"), i, at)
        json_integer_set(at, json_integer_value(at) > more ? json_integer_value(at) - more : 0);
    return lists;
}

void fr_echo_put(const fr_generation_request *request, const fr_choice *choice, json_t *answer) {
    size_t offset, i;
    const char *name;
    const fr_stream *said = &choice->job.text;
    fr_stream whole = {0};
    json_t *logprobs = fr_echo_logprobs(request, choice, &offset), *text = fr_echo_text(choice), *list, *at;
    json_t *more = json_object_get(answer, "logprobs");
    json_array_foreach(json_object_get(more, "text_offset"), i, at)
        json_integer_set(at, json_integer_value(at) + (json_int_t)offset);
    json_object_foreach(logprobs, name, list) json_array_extend(list, json_object_get(more, name));
    fr_json_put(answer, "logprobs", logprobs);
    fr_stream_feed(&whole, json_string_value(text), json_string_length(text), false);
    fr_stream_feed(&whole, said->bytes, said->length, false);
    fr_json_put(answer, "text", fr_json_bytes(whole.bytes, whole.length));
    fr_stream_free(&whole);
    json_decref(text);
}
