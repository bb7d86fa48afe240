/* Echoes the prompt at the beginning of its answer (job_echo.h). */
#include "tools/jobs/job_echo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

/* ---------------------------------------------------------------------------------------------------------- scoring */

static fr_status take_id(void *context, int32_t id, float own, const int32_t *ids, const float *values, size_t best) {
    fr_reply *echoed = context;
    fr_reply_logprob *row = echoed->logprobs + echoed->count++ * (echoed->best + 1);
    row[0] = (fr_reply_logprob){id, own};
    for (size_t i = 0; i < best; i++) row[1 + i] = (fr_reply_logprob){ids[i], values[i]};
    return FR_OK;
}

/* Starts to score the prompt. Each id gets a log-probability, except the first id, because no row predicts it. */
fr_status fr_job_echo_begin(fr_job *job) {
    const fr_prompt *prompt = &job->prompt;
    const fr_model *model = job->setting->loaded->model;
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_reply *echoed = &job->echoed;
    *echoed = (fr_reply){.setting.model = model, .count = 1};
    echoed->best = (size_t)job->best < vocab ? (size_t)job->best : vocab;
    echoed->logprobs = fr_resize(NULL, prompt->count * (echoed->best + 1), sizeof *echoed->logprobs);
    echoed->logprobs[0] = (fr_reply_logprob){prompt->ids[0], NAN};
    return fr_session_put_scored(job->session, prompt->ids, prompt->count, take_id, echoed);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Gives the prompt's text as it was sent. If the prompt was sent as ids, gives the text of these ids. */
json_t *fr_job_echo_text(const fr_job *job) {
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

/* Makes the log-probabilities of the prompt. The tokenizer may put a <bos> or a blank before the text that was sent.
 * The tokens then have more text than was sent. Offsets count from the beginning of the text that was sent, so they are
 * shifted. */
json_t *fr_job_echo_logprobs(const fr_job *job, const fr_reply *echoed, size_t *offset) {
    size_t printed = 0, i;
    json_t *lists, *text = fr_job_echo_text(job), *at;
    *offset = fr_json_characters(text);
    json_decref(text);
    if (!echoed->logprobs) return json_null();
    lists = fr_reply_logprobs_lists(echoed, 0, echoed->count, &printed);
    json_int_t more = printed > *offset ? (json_int_t)(printed - *offset) : 0;
    json_array_foreach (json_object_get(lists, "text_offset"), i, at)
        json_integer_set(at, json_integer_value(at) > more ? json_integer_value(at) - more : 0);
    return lists;
}

void fr_job_echo_put(const fr_job *job, const fr_reply *echoed, json_t *choice) {
    size_t offset, i;
    const char *name;
    const fr_stream *said = &job->text;
    fr_stream whole = {0};
    json_t *logprobs = fr_job_echo_logprobs(job, echoed, &offset), *text = fr_job_echo_text(job), *list, *at;
    json_t *more = json_object_get(choice, "logprobs");
    json_array_foreach (json_object_get(more, "text_offset"), i, at)
        json_integer_set(at, json_integer_value(at) + (json_int_t)offset);
    json_object_foreach (logprobs, name, list) json_array_extend(list, json_object_get(more, name));
    fr_json_put(choice, "logprobs", logprobs);
    fr_stream_feed(&whole, json_string_value(text), json_string_length(text), false);
    fr_stream_feed(&whole, said->bytes, said->length, false);
    fr_json_put(choice, "text", fr_json_bytes(whole.bytes, whole.length));
    fr_stream_free(&whole);
    json_decref(text);
}
