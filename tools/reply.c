/* The loop around fr_session_step (reply.h). */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

typedef struct fr_replying {
    fr_reply *reply;
    fr_loaded *loaded;
    const fr_arguments *args;
    fr_stream *text;
    fr_reply_view *view; /* NULL: the text is not taken apart */
    fr_decoder *decoder; /* NULL without text, or with a view */
} fr_replying;

static bool ends_sequence(const fr_replying *r, int32_t id) {
    const int32_t *eos;
    size_t count = r->args->given[FR_ARG_IGNORE_EOS] ? 0 : fr_model_eos(r->loaded->model, &eos);
    for (size_t i = 0; i < count; i++) {
        if (eos[i] == id) return true;
    }
    return false;
}

/* An id that is no token (a model may have more rows than its vocabulary has words) is U+FFFD. */
static bool put_text(fr_replying *r, int32_t id, bool accepted) {
    const char *bytes;
    size_t length;
    bool known = fr_decoder_feed(r->decoder, id, &bytes, &length) == FR_OK;
    if (!known) fr_decoder_finish(r->decoder, &bytes, &length);
    bool stopped = fr_stream_feed(r->text, bytes, length, accepted);
    return stopped || (!known && fr_stream_feed(r->text, FR_NO_TOKEN, strlen(FR_NO_TOKEN), accepted));
}

/* An end of sequence is an id of the reply, but no text. */
static fr_status take_id(fr_replying *r, int32_t id, bool accepted) {
    fr_status status = FR_OK;
    bool stopped = false;
    r->reply->kept++;
    if (ends_sequence(r, id)) r->reply->end = FR_END_EOS;
    else if (r->view) status = fr_reply_view_feed(r->view, id, accepted, &stopped);
    else if (r->text) stopped = put_text(r, id, accepted);
    if (stopped) r->reply->end = FR_END_STOP;
    return status;
}

/* Room for as many tokens as the reply has, where log-probabilities are wanted. */
static fr_reply_logprob *grow_logprobs(fr_replying *r) {
    fr_reply *reply = r->reply;
    if (!r->args->given[FR_ARG_LOGPROBS]) return NULL;
    int64_t best = r->args->number[FR_ARG_LOGPROBS], vocab = fr_model_fact(r->loaded->model, FR_FACT_VOCAB);
    reply->best = (size_t)(best < vocab ? best : vocab);
    return fr_resize(reply->logprobs, reply->capacity * (reply->best + 1), sizeof(*reply->logprobs));
}

/* Of the id at `index` of the last step. */
static void take_logprobs(fr_replying *r, size_t index, int32_t id) {
    fr_reply_logprob *row = r->reply->logprobs + r->reply->count * (r->reply->best + 1);
    const int32_t *ids;
    const float *values;
    row->id = id;
    size_t best = fr_session_logprobs(r->loaded->session, index, &row->value, &ids, &values);
    for (size_t i = 0; i < best; i++) row[1 + i] = (fr_reply_logprob){ids[i], values[i]};
}

/* The ids of one step: the first that ends the reply decides, whichever step it came in. */
static fr_status take_step(fr_replying *r, const int32_t *ids, size_t count, size_t accepted) {
    fr_status status = FR_OK;
    fr_reply *reply = r->reply;
    if (reply->capacity - reply->count < count) {
        reply->capacity = 2 * reply->capacity + FR_STEP_MAX;
        reply->ids = fr_resize(reply->ids, reply->capacity, sizeof(*reply->ids));
        reply->logprobs = grow_logprobs(r);
    }
    for (size_t i = 0; i < count; i++) {
        if (reply->logprobs) take_logprobs(r, i, ids[i]);
        reply->ids[reply->count++] = ids[i];
        if (reply->end == FR_END_NONE && status == FR_OK) status = take_id(r, ids[i], i < accepted);
    }
    return status;
}

static fr_status run_steps(fr_replying *r) {
    fr_reply *reply = r->reply;
    int64_t most = r->args->number[FR_ARG_PREDICT];
    while (reply->end == FR_END_NONE) {
        int32_t ids[FR_STEP_MAX];
        size_t limit = FR_STEP_MAX, count, accepted;
        if (most > 0 && (size_t)most - reply->count < limit) limit = (size_t)most - reply->count;
        fr_status status = fr_session_step(r->loaded->session, ids, limit, &count, &accepted);
        if (status == FR_ABORTED) {
            reply->end = FR_END_INTERRUPT;
            break;
        }
        if (status == FR_OK) status = fr_tracer_text(&r->loaded->trace, "reply", ids, count, false);
        if (status == FR_OK) status = take_step(r, ids, count, accepted);
        if (status != FR_OK) return status;
        if (r->text) fr_stream_flush(r->text);
        if (reply->end != FR_END_NONE) break;
        if (most > 0 && reply->count == (size_t)most) reply->end = FR_END_LENGTH;
        else if (count == 0) reply->end = FR_END_CONTEXT;
    }
    return FR_OK;
}

/* What the decoder still holds of a character that was never completed. */
static fr_status finish_text(fr_replying *r) {
    if (r->view) {
        bool stopped = false;
        fr_status status = fr_reply_view_finish(r->view, &stopped);
        if (stopped) r->reply->end = FR_END_STOP;
        return status;
    }
    if (r->reply->end != FR_END_STOP) {
        const char *bytes;
        size_t length;
        fr_status status = fr_decoder_finish(r->decoder, &bytes, &length);
        if (status != FR_OK) return status;
        if (fr_stream_feed(r->text, bytes, length, false)) r->reply->end = FR_END_STOP;
    }
    fr_stream_end(r->text);
    return FR_OK;
}

int fr_reply_run(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, fr_stream *text, fr_reply_view *view) {
    *reply = (fr_reply){0};
    fr_replying r = {.reply = reply, .loaded = loaded, .args = args, .text = text, .view = view};
    fr_status status = FR_OK;
    if (text && !view) {
        const fr_tokenizer *tokenizer;
        int code = fr_loaded_tokenizer(loaded, args, &tokenizer);
        if (code) return code;
        status = fr_decoder_new(tokenizer, false, &r.decoder);
    }
    if (status == FR_OK) status = run_steps(&r);
    if (status == FR_OK) status = fr_tracer_text(&loaded->trace, "reply", NULL, 0, true);
    if (status == FR_OK && text) status = finish_text(&r);
    fr_decoder_free(r.decoder);
    return fr_exit_status(status);
}

void fr_reply_free(fr_reply *reply) {
    free(reply->ids);
    free(reply->logprobs);
    *reply = (fr_reply){0};
}

const char *fr_end_name(fr_end end) {
    switch (end) {
    case FR_END_EOS: return "eos";
    case FR_END_STOP: return "stop";
    case FR_END_CONTEXT: return "context";
    case FR_END_INTERRUPT: return "interrupt";
    default: return "length";
    }
}

void fr_reply_remark(const fr_reply *reply, const fr_loaded *loaded, const fr_arguments *args) {
    if (args->given[FR_ARG_QUIET] || reply->end != FR_END_CONTEXT) return;
    fr_note("the context is full: it holds %zu tokens (-c N; this model's own limit is %lld)",
            fr_session_context(loaded->session), (long long)fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT));
}
