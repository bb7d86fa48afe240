/* Collects the tokens of a reply, and steps the session until the reply ends (reply.h). */
#include "tools/cli/reply.h"

#include <stdlib.h>
#include <string.h>

static bool ends_sequence(const fr_reply *r, int32_t id) {
    const int32_t *eos;
    size_t count = r->setting.ignore_eos ? 0 : fr_model_eos(r->setting.model, &eos);
    for (size_t i = 0; i < count; i++) {
        if (eos[i] == id) return true;
    }
    return false;
}

static bool is_stop(const fr_reply *r, int32_t id) {
    for (size_t i = 0; i < r->setting.stop_id_count; i++)
        if (r->setting.stop_ids[i] == id) return true;
    return false;
}

/* Adds the text of an id. An id that has no token becomes U+FFFD. Such ids can occur because a model may have more
 * logits than its vocabulary has tokens. */
static bool put_text(fr_reply *r, int32_t id, bool accepted) {
    const char *bytes;
    size_t length;
    fr_stream *text = r->setting.text;
    bool known = fr_decoder_feed(r->decoder, id, &bytes, &length) == FR_OK;
    if (!known) fr_decoder_finish(r->decoder, &bytes, &length);
    bool stopped = fr_stream_feed(text, bytes, length, accepted);
    return stopped || (!known && fr_stream_feed(text, FR_NO_TOKEN, strlen(FR_NO_TOKEN), accepted));
}

/* Adds an id. An end-of-sequence token or a stop id is counted as one of the reply's ids, but adds no text. */
static fr_status take_id(fr_reply *r, int32_t id, bool accepted) {
    fr_status status = FR_OK;
    bool stopped = false;
    r->kept++;
    if (ends_sequence(r, id))
        r->end = FR_END_EOS;
    else if (is_stop(r, id))
        stopped = true;
    else if (r->setting.view)
        status = fr_reply_view_feed(r->setting.view, id, accepted, &stopped);
    else if (r->setting.text)
        stopped = put_text(r, id, accepted);
    if (stopped) r->end = FR_END_STOP;
    return status;
}

/* Allocates the log-probabilities for all ids that the reply has room for. Returns NULL if no log-probabilities are
 * wanted. */
static fr_reply_logprob *grow_logprobs(fr_reply *r) {
    int64_t best = r->setting.best, vocab = fr_model_fact(r->setting.model, FR_FACT_VOCAB);
    if (best < 0) return NULL;
    r->best = (size_t)(best < vocab ? best : vocab);
    return fr_resize(r->logprobs, r->capacity * (r->best + 1), sizeof(*r->logprobs));
}

/* Stores the log-probabilities of the id at `index` of the last step. */
static void take_logprobs(fr_reply *r, size_t index, int32_t id) {
    fr_reply_logprob *row = r->logprobs + r->count * (r->best + 1);
    const int32_t *ids;
    const float *values;
    row->id = id;
    size_t best = fr_session_logprobs(r->setting.session, index, &row->value, &ids, &values);
    for (size_t i = 0; i < best; i++) row[1 + i] = (fr_reply_logprob){ids[i], values[i]};
}

fr_status fr_reply_begin(fr_reply *r, const fr_reply_setting *setting) {
    *r = (fr_reply){.setting = *setting};
    if (!setting->text || setting->view) return FR_OK;
    fr_status status = fr_decoder_new(fr_model_tokenizer(setting->model), false, &r->decoder);
    fr_decoder_follow(r->decoder); /* the reply is not split into parts, so its text continues the prompt's text */
    return status;
}

size_t fr_reply_room(const fr_reply *r) {
    size_t most = r->setting.most > 0 ? (size_t)r->setting.most : SIZE_MAX;
    return most - r->count < FR_STEP_MAX ? most - r->count : FR_STEP_MAX;
}

/* Adds the ids of a step. If several ids of the step would end the reply, the first one of them decides the reason. */
fr_status fr_reply_take(fr_reply *r, const int32_t *ids, size_t count, size_t accepted) {
    fr_status status = FR_OK;
    if (r->capacity - r->count < count) {
        r->capacity = 2 * r->capacity + FR_STEP_MAX;
        r->ids = fr_resize(r->ids, r->capacity, sizeof(*r->ids));
        r->begins = fr_resize(r->begins, r->capacity, sizeof(*r->begins));
        r->logprobs = grow_logprobs(r);
    }
    for (size_t i = 0; i < count; i++) {
        if (r->logprobs) take_logprobs(r, i, ids[i]);
        r->begins[r->count] = r->setting.text ? r->setting.text->length : 0;
        r->ids[r->count++] = ids[i];
        if (r->end == FR_END_NONE && status == FR_OK) status = take_id(r, ids[i], i < accepted);
    }
    if (status != FR_OK || r->end != FR_END_NONE) return status;
    if (fr_reply_room(r) == 0)
        r->end = FR_END_LENGTH;
    else if (count == 0)
        r->end = FR_END_CONTEXT;
    return FR_OK;
}

/* Ends the text. If the last character is incomplete, the decoder holds its first bytes, and they are added. */
fr_status fr_reply_finish(fr_reply *r) {
    fr_stream *text = r->setting.text;
    if (!text) return FR_OK;
    if (r->setting.view) {
        bool stopped = false, cut = r->end != FR_END_EOS && r->end != FR_END_STOP;
        fr_status status = fr_reply_view_finish(r->setting.view, cut, &stopped);
        if (stopped) r->end = FR_END_STOP;
        return status;
    }
    if (r->end != FR_END_STOP) {
        const char *bytes;
        size_t length;
        fr_status status = fr_decoder_finish(r->decoder, &bytes, &length);
        if (status != FR_OK) return status;
        if (fr_stream_feed(text, bytes, length, false)) r->end = FR_END_STOP;
    }
    fr_stream_end(text);
    return FR_OK;
}

json_t *fr_reply_ids(const fr_reply *r, size_t from, size_t to) {
    json_t *ids = json_array();
    for (size_t i = from; i < to; i++) json_array_append_new(ids, json_integer(r->ids[i]));
    return ids;
}

fr_status fr_reply_put(const fr_reply *r, json_t *object) {
    const fr_stream *text = r->setting.text;
    fr_json_put(object, "ids", fr_reply_ids(r, 0, r->kept));
    if (text) fr_json_put(object, "text", fr_json_bytes(text->bytes, text->length));
    fr_status status = r->setting.view ? fr_reply_view_add(r->setting.view, object) : FR_OK;
    fr_json_put(object, "stop", json_string(fr_end_name(r->end)));
    json_t *logprobs = fr_reply_logprobs(r, 0, r->kept);
    if (logprobs) fr_json_put(object, "logprobs", logprobs);
    return status;
}

void fr_reply_free(fr_reply *reply) {
    fr_decoder_free(reply->decoder);
    free(reply->ids);
    free(reply->begins);
    free(reply->logprobs);
    *reply = (fr_reply){0};
}

/* ----------------------------------------------------------------------------------------- the command line's reply */

static fr_status run_step(fr_reply *reply, fr_tracer *trace) {
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    fr_status status = fr_session_step(reply->setting.session, ids, fr_reply_room(reply), &count, &accepted);
    if (status == FR_OK) status = fr_tracer_text(trace, "reply", ids, count, false);
    if (status == FR_OK) status = fr_reply_take(reply, ids, count, accepted);
    if (status == FR_OK && reply->setting.text) fr_stream_flush(reply->setting.text);
    return status;
}

/* If the context is full, tries to make room so that the reply can continue. */
static fr_status go_on(fr_reply *reply, const fr_reply_shift *shift) {
    bool made = false;
    if (!shift || reply->end != FR_END_CONTEXT) return FR_OK;
    fr_status status = shift->make_room(shift->context, reply, &made);
    if (made) reply->end = FR_END_NONE;
    return status;
}

static fr_status run_steps(fr_reply *reply, fr_tracer *trace, const fr_reply_shift *shift) {
    fr_status status = FR_OK;
    while (reply->end == FR_END_NONE && status == FR_OK) {
        status = run_step(reply, trace);
        if (status == FR_OK) status = go_on(reply, shift);
    }
    if (status != FR_ABORTED) return status;
    reply->end = FR_END_INTERRUPT;
    return FR_OK;
}

int fr_reply_run(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, fr_stream *text, fr_reply_view *view,
                 const fr_reply_shift *shift) {
    const fr_tokenizer *tokenizer;
    int code = text ? fr_loaded_tokenizer(loaded, args, &tokenizer) : 0;
    if (code) return code;
    const fr_reply_setting setting = {.model = loaded->model,
                                      .session = loaded->session,
                                      .most = args->number[FR_ARG_PREDICT],
                                      .best = args->given[FR_ARG_LOGPROBS] ? args->number[FR_ARG_LOGPROBS] : -1,
                                      .ignore_eos = args->given[FR_ARG_IGNORE_EOS] && !loaded->grammar,
                                      .text = text,
                                      .view = view};
    fr_status status = fr_reply_begin(reply, &setting);
    if (status == FR_OK) status = run_steps(reply, &loaded->trace, shift);
    if (status == FR_OK) status = fr_tracer_text(&loaded->trace, "reply", NULL, 0, true);
    if (status == FR_OK) status = fr_reply_finish(reply);
    return fr_exit_status(status);
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
    bool offers = args->verb->bit == FR_VERB_CHAT && !args->given[FR_ARG_CONTEXT_SHIFT];
    fr_note("the context is full: it holds %zu tokens (-c N; this model's own limit is %lld)%s",
            fr_session_context(loaded->session), (long long)fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT),
            offers ? "; /undo or /clear makes room, and --context-shift drops the oldest turns" : "");
}
