/* Turns texts into rows of numbers (embeddings.h). */
#include "tools/serve/embeddings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/base64.h"
#include "tools/serve/adapter_scales.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"
#include "tools/serve/text_routes.h"

/* PIECE_TEXTS: the most texts that are run between two rounds of generation. ENCODER_TOKENS: a text encoder gets no
 * further text once its texts have this many tokens together. DECODER_TOKENS: the same for a model that generates
 * text. It is smaller, so that the texts fill few forwards. */
enum { PIECE_TEXTS = 256, ENCODER_TOKENS = 2048, DECODER_TOKENS = 256 };
enum { INPUTS_MAX = 2048 }; /* the most inputs of a request, as in OpenAI's API */

typedef enum dialect {
    OPENAI,       /* OpenAI's answer: {"object": "list", "data": [{"embedding"}], "usage"} */
    OLLAMA,       /* ollama's answer to "input": {"model", "embeddings": [[...]]} */
    OLLAMA_OLDER, /* ollama's older answer to "prompt", a single text: {"embedding": [...]} */
} dialect;

typedef struct input {
    int32_t *ids; /* allocated by the library, or by malloc if `given` */
    size_t count;
    size_t prompt; /* number of leading ids that are the prompt's, which some text encoders do not pool */
    bool given;    /* the input was an array of ids, not a text */
} input;

/* A request that is being answered. */
typedef struct embedding {
    fr_chore chore;             /* the first member, so that a pointer to it is a pointer to this struct */
    fr_http_exchange *exchange; /* held while the request waits */
    const fr_model_instance *model;
    dialect dialect;
    double arrived;
    bool cuts; /* texts that are too long are cut to the context, as ollama does by default */
    input *inputs;
    size_t count, done;
    fr_pooling pooling; /* used for a model that generates text */
    const char *prompt; /* the text that a text encoder reads before each input; NULL: none */
    size_t width, kept; /* width: number of values in a row; kept: how many of them the answer has */
    bool base64;
    fr_session *session;                   /* the session that runs the texts, opened for the first piece; NULL: it is
                                            * not open */
    double scales[FR_LOADED_ADAPTERS_MAX]; /* scales of the adapters; used for a model that generates text */
    json_t *rows;                          /* rows for the answer, as JSON */
    size_t tokens;
    unsigned fault; /* HTTP status of an error, whose text is in `line`; 0: no error */
    char line[256];
} embedding;

static void free_embedding(embedding *e) {
    for (size_t i = 0; i < e->count; i++) {
        if (e->inputs[i].given)
            free(e->inputs[i].ids);
        else
            fr_free(e->inputs[i].ids);
    }
    json_decref(e->rows);
    fr_session_close(e->session);
    free(e->inputs);
    free(e);
}

/* ---------------------------------------------------------------------------------------------------------- request */

/* Tokenizes a text for a text encoder. A text that is too long for the encoder is cut or refused. */
static bool encode(embedding *e, const json_t *text, input *taken) {
    fr_embedder_text encoded;
    fr_status status =
        fr_embedder_encode(e->model->embedder, e->prompt, json_string_value(text), json_string_length(text), &encoded);
    if (status != FR_OK) {
        fr_http_exchange_refuse(e->exchange, fr_fault_http(status), "%s", fr_last_error());
        return false;
    }
    bool fits = e->cuts || encoded.whole == encoded.count;
    if (!fits)
        fr_http_exchange_refuse(e->exchange, 400,
                                "\"input\"[%zu] is too large: it has %zu tokens, and the model reads %zu", e->count - 1,
                                encoded.whole, encoded.count);
    taken->ids = fr_resize(NULL, encoded.count, sizeof *taken->ids);
    memcpy(taken->ids, encoded.ids, encoded.count * sizeof *taken->ids);
    taken->count = encoded.count;
    taken->prompt = encoded.prompt;
    fr_embedder_text_free(&encoded);
    return fits;
}

static bool tokenize(embedding *e, const json_t *text, bool begins, int32_t **ids, size_t *count) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(e->model->loaded.model);
    fr_status status =
        fr_tokenize(tokenizer, json_string_value(text), json_string_length(text), begins, false, ids, count);
    if (status != FR_OK)
        fr_http_exchange_refuse(e->exchange, tokenizer ? fr_fault_http(status) : 501, "%s", fr_last_error());
    return status == FR_OK;
}

/* Reads an array of ids and texts. */
static bool take_ids(embedding *e, const json_t *pieces, input *taken) {
    taken->given = true;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        int32_t *ids, one = (int32_t)json_integer_value(piece);
        size_t count = 1;
        if (!json_is_string(piece) && !fr_job_whole(piece, 0, INT32_MAX)) {
            fr_http_exchange_refuse(e->exchange, 400, "\"input\"[%zu] is no id", i);
            return false;
        }
        if (json_is_string(piece) && !tokenize(e, piece, i == 0, &ids, &count)) return false;
        taken->ids = fr_resize(taken->ids, taken->count + count, sizeof *ids);
        if (count) memcpy(taken->ids + taken->count, json_is_string(piece) ? ids : &one, count * sizeof *ids);
        taken->count += count;
        if (json_is_string(piece)) fr_free(ids);
    }
    return true;
}

/* Joins the texts of a content's parts, [{"type": "text", "text": ...}, ...]; NULL if a part is of another type. */
static json_t *joined(const json_t *parts) {
    fr_stream text = {0};
    bool good = json_array_size(parts) > 0;
    for (size_t i = 0; i < json_array_size(parts) && good; i++) {
        const json_t *part = json_array_get(parts, i), *one = json_object_get(part, "text");
        good = fr_job_is_word(json_object_get(part, "type"), "text") && json_is_string(one);
        if (good) fr_stream_feed(&text, json_string_value(one), json_string_length(one), false);
    }
    json_t *value = good ? fr_json_bytes(text.bytes ? text.bytes : "", text.length) : NULL;
    fr_stream_free(&text);
    return value;
}

/* Gives the text or the ids of an input, as a new reference. If the input is an object, its text is in "content", in
 * llama.cpp's "prompt_string", or in "text". */
static json_t *plain_of(const json_t *value) {
    const json_t *content = json_object_get(value, "content"), *text = json_object_get(value, "prompt_string");
    if (content) return joined(content);
    if (!text && fr_job_is_word(json_object_get(value, "type"), "text")) text = json_object_get(value, "text");
    return json_incref((json_t *)(uintptr_t)(text ? text : value));
}

/* Reads one input: a text, or an array of ids. */
static bool take_input(embedding *e, const json_t *value) {
    input *taken = &e->inputs[e->count++];
    *taken = (input){.ids = NULL};
    json_t *plain = plain_of(value);
    bool text = json_is_string(plain), known = text || json_is_array(plain);
    if (!known)
        fr_http_exchange_refuse(e->exchange, 400, "\"input\"[%zu] is neither a text nor an array of ids", e->count - 1);
    bool encodes = text && e->model->embedder;
    taken->given = encodes;
    bool read = known && (encodes ? encode(e, plain, taken)
                          : text  ? tokenize(e, plain, true, &taken->ids, &taken->count)
                                  : take_ids(e, plain, taken));
    json_decref(plain);
    if (!read) return false;
    if (e->cuts && taken->count > (size_t)e->model->jobs.context) taken->count = (size_t)e->model->jobs.context;
    if (taken->count == 0)
        fr_http_exchange_refuse(e->exchange, 400, "\"input\"[%zu] has no tokens", e->count - 1);
    else if (taken->count > (size_t)e->model->jobs.context)
        fr_http_exchange_refuse(e->exchange, 400,
                                "\"input\"[%zu] is too large: it has %zu tokens, and the context holds %lld",
                                e->count - 1, taken->count, (long long)e->model->jobs.context);
    else
        return true;
    return false;
}

static bool take_inputs(embedding *e, const json_t *value) {
    bool several = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value); i++) several &= !json_is_integer(json_array_get(value, i));
    size_t count = several ? json_array_size(value) : 1;
    if (!value || count == 0 || count > INPUTS_MAX) {
        if (!value)
            fr_http_exchange_refuse(e->exchange, 400, "\"input\" is missing");
        else
            fr_http_exchange_refuse(e->exchange, 400, "\"input\" must be 1 to %d texts", INPUTS_MAX);
        return false;
    }
    e->inputs = fr_resize(NULL, count, sizeof *e->inputs);
    for (size_t i = 0; i < count; i++)
        if (!take_input(e, several ? json_array_get(value, i) : value)) return false;
    return true;
}

static bool take_form(embedding *e, const json_t *body) {
    const json_t *format = json_object_get(body, "encoding_format"), *size = json_object_get(body, "dimensions");
    const char *word = json_is_string(format) ? json_string_value(format) : "float";
    if ((format && !json_is_null(format) && !json_is_string(format)) ||
        (strcmp(word, "float") != 0 && strcmp(word, "base64") != 0)) {
        fr_http_exchange_refuse(e->exchange, 400, "\"encoding_format\" must be float or base64");
        return false;
    }
    e->base64 = strcmp(word, "base64") == 0;
    e->kept = e->width;
    if (!size || json_is_null(size)) return true;
    if (!fr_job_whole(size, 1, (int64_t)e->width)) {
        fr_http_exchange_refuse(e->exchange, 400, "\"dimensions\" must be 1 to %zu", e->width);
        return false;
    }
    e->kept = (size_t)json_integer_value(size);
    return true;
}

/* Finds the prompt of the model that the request names, or the default one. The prompt is put before each text. */
static bool take_prompt(embedding *e, const json_t *body) {
    const json_t *name = json_object_get(body, "prompt_name");
    if (!e->model->embedder) return true;
    if (name && !json_is_null(name) && !json_is_string(name)) {
        fr_http_exchange_refuse(e->exchange, 400, "\"prompt_name\" must be a text");
        return false;
    }
    e->prompt = fr_embedder_prompt(e->model->embedder, json_string_value(name));
    if (e->prompt || !json_is_string(name)) return true;
    fr_http_exchange_refuse(e->exchange, 400, "\"prompt_name\": the model has no prompt \"%.60s\"",
                            json_string_value(name));
    return false;
}

static bool take_pooling(embedding *e) {
    static const char *const words[] = {"", "mean", "cls", "last"};
    const char *word = e->model->args->text[FR_ARG_POOLING];
    if (e->model->embedder) return true;
    e->pooling = (fr_pooling)fr_model_fact(e->model->loaded.model, FR_FACT_POOLING);
    for (int i = FR_POOLING_MEAN; word && i <= FR_POOLING_LAST; i++)
        if (strcmp(words[i], word) == 0) e->pooling = (fr_pooling)i;
    if (e->pooling != FR_POOLING_NONE && e->pooling != FR_POOLING_RANK) return true;
    fr_http_exchange_refuse(e->exchange, 501,
                            e->pooling
                                ? "the model ranks texts, which is not built"
                                : "the model does not say how its rows are pooled: start the server with --pooling");
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- pieces */

static json_t *value_of(const embedding *e, const float *row) {
    if (e->base64) {
        char *text = fr_base64_write((const unsigned char *)row, e->kept * sizeof *row);
        json_t *value = json_string(text);
        free(text);
        return value;
    }
    json_t *value = json_array();
    for (size_t i = 0; i < e->kept; i++) json_array_append_new(value, json_real((double)row[i]));
    return value;
}

/* Keeps the error of a failed call for the answer. Returns false. */
static bool fail(embedding *e, fr_status status) {
    e->fault = fr_fault_http(status);
    snprintf(e->line, sizeof e->line, "%s", fr_last_error());
    return false;
}

/* Adds the row of the next text to the answer. A row that is shortened here is scaled to length 1 again. */
static void push_row(embedding *e, float *row, size_t width) {
    double squares = 0;
    for (size_t i = 0; i < e->kept; i++) squares += (double)row[i] * (double)row[i];
    for (size_t i = 0; i < e->kept && e->kept < width && squares > 0; i++)
        row[i] = (float)((double)row[i] / sqrt(squares));
    json_t *value = value_of(e, row);
    json_array_append_new(e->rows, e->dialect != OPENAI ? value
                                                        : json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                                                    (json_int_t)e->done, "embedding", value));
    e->tokens += e->inputs[e->done].count;
    e->done++;
}

/* The texts that are run together: the next texts of the first request in the queue, and texts of the requests behind
 * it. */
typedef struct batch {
    embedding *owner[PIECE_TEXTS];
    const input *texts[PIECE_TEXTS];
    size_t count, tokens;
} batch;

static bool run_piece(fr_chore *chore, const fr_job_setting *jobs);

/* Returns true if the texts of a request that waits can be run beside those of the first request. */
static bool is_alike(const embedding *first, const embedding *other) {
    if (other->fault || fr_http_exchange_gone(other->exchange)) return false;
    if (first->model->embedder) return other->kept == first->kept;
    return memcmp(other->scales, first->scales, sizeof first->scales) == 0;
}

static void gather(embedding *first, bool alone, batch *b) {
    size_t most = first->model->embedder ? ENCODER_TOKENS : DECODER_TOKENS;
    *b = (batch){.count = 0};
    for (fr_chore *c = &first->chore; c; c = alone ? NULL : fr_scheduler_next_chore(first->model->scheduler, c)) {
        embedding *e = (embedding *)c;
        if (c->piece != run_piece || (e != first && !is_alike(first, e))) continue;
        for (size_t i = e->done; i < e->count; i++) {
            if (b->count == PIECE_TEXTS || (b->count && b->tokens >= most)) return;
            b->owner[b->count] = e;
            b->texts[b->count++] = &e->inputs[i];
            b->tokens += e->inputs[i].count;
        }
    }
}

static fr_status open_session(embedding *e, const fr_job_setting *jobs) {
    fr_options *options = fr_options_copy(jobs->loaded->options);
    fr_status status = options ? fr_options_set_text(options, FR_OPT_SPEC_TYPE, "none") : FR_MEMORY;
    if (status == FR_OK) status = fr_engine_session(jobs->engine, options, &e->session);
    if (status == FR_OK) status = fr_adapters_use(&jobs->loaded->adapters, e->scales, e->session);
    fr_options_free(options);
    return status;
}

/* Runs the texts of a batch through a text encoder. If one of the texts fails, no row is computed for any of them. */
static fr_status run_encoder(const embedding *first, const batch *b, float *rows, size_t *done) {
    fr_embedder_text texts[PIECE_TEXTS];
    for (size_t i = 0; i < b->count; i++) {
        const input *text = b->texts[i];
        texts[i] =
            (fr_embedder_text){.ids = text->ids, .count = text->count, .prompt = text->prompt, .whole = text->count};
    }
    fr_status status = fr_embedder_rows(first->model->embedder, texts, b->count, first->kept, 1, rows);
    *done = status == FR_OK ? b->count : 0;
    return status;
}

static fr_status run_decoder(const embedding *first, const batch *b, float *rows, size_t *done) {
    fr_lab_ids texts[PIECE_TEXTS];
    for (size_t i = 0; i < b->count; i++) texts[i] = (fr_lab_ids){b->texts[i]->ids, b->texts[i]->count};
    return fr_lab_session_embed_texts(first->session, texts, b->count, first->pooling, rows, done);
}

/* Runs the next texts of a request, together with texts of requests behind it in the queue. If a text encoder fails, a
 * text of another request may be the reason. Then the texts of this request are run again without the others. */
static bool run_piece(fr_chore *chore, const fr_job_setting *jobs) {
    embedding *e = (embedding *)chore;
    batch b;
    size_t done, width = e->model->embedder ? e->kept : e->width;
    fr_status status = FR_OK;
    /* all texts of this request may have been run already, beside those of earlier requests */
    if (e->fault || e->done == e->count || fr_http_exchange_gone(e->exchange)) return false;
    if (!e->model->embedder && !e->session) status = open_session(e, jobs);
    if (status != FR_OK) return fail(e, status);
    gather(e, false, &b);
    double begun = fr_seconds();
    float *rows = fr_resize(NULL, b.count * width, sizeof *rows);
    status = (e->model->embedder ? run_encoder : run_decoder)(e, &b, rows, &done);
    if (status != FR_OK && e->model->embedder && b.owner[b.count - 1] != e) {
        gather(e, true, &b);
        status = run_encoder(e, &b, rows, &done);
    }
    size_t tokens = 0;
    for (size_t i = 0; i < done; i++) {
        push_row(b.owner[i], rows + i * width, width);
        tokens += b.texts[i]->count;
    }
    if (done) fr_scheduler_count_tokens(e->model->scheduler, tokens, fr_seconds() - begun);
    if (status != FR_OK) fail(b.owner[done], status);
    free(rows);
    return !e->fault && e->done < e->count;
}

static json_t *answer_of(const embedding *e) {
    json_int_t tokens = (json_int_t)e->tokens;
    if (e->dialect == OLLAMA_OLDER) return json_pack("{s:O}", "embedding", json_array_get(e->rows, 0));
    if (e->dialect == OLLAMA)
        return json_pack("{s:s, s:O, s:I, s:i, s:I}", "model", e->model->name, "embeddings", e->rows, "total_duration",
                         (json_int_t)(1e9 * (fr_seconds() - e->arrived)), "load_duration", 0, "prompt_eval_count",
                         tokens);
    return json_pack("{s:s, s:O, s:s, s:{s:I, s:I}}", "object", "list", "data", e->rows, "model", e->model->name,
                     "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

static void end(fr_chore *chore) {
    embedding *e = (embedding *)chore;
    if (e->fault)
        fr_http_exchange_refuse(e->exchange, e->fault, "%s", e->line);
    else if (e->done < e->count)
        fr_http_exchange_refuse(e->exchange, 503, "the server is stopping");
    else
        fr_http_exchange_answer_json(e->exchange, 200, answer_of(e));
    fr_http_exchange_release(e->exchange);
    free_embedding(e);
}

static void answer(fr_http_exchange *exchange, const fr_model_instance *model, dialect asked) {
    if (!model->embedder && !model->args->given[FR_ARG_EMBEDDINGS]) {
        fr_http_exchange_refuse(exchange, 501, "this server was started without --embeddings");
        return;
    }
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    embedding *e = fr_resize(NULL, 1, sizeof *e);
    *e = (embedding){.chore = {.piece = run_piece, .end = end}, .exchange = exchange, .model = model, .dialect = asked};
    e->arrived = fr_seconds();
    fr_adapter_scales_copy(&model->loaded.adapters, e->scales);
    e->cuts = asked != OPENAI && !json_is_false(json_object_get(body, "truncate"));
    e->width = (size_t)(model->embedder ? fr_embedder_fact_of(model->embedder, FR_EMBEDDER_WIDTH)
                                        : fr_model_fact(model->loaded.model, FR_FACT_HIDDEN));
    const json_t *inputs = json_object_get(body, asked == OLLAMA_OLDER ? "prompt" : "input");
    bool one = asked != OLLAMA_OLDER || json_is_string(inputs);
    if (!one) fr_http_exchange_refuse(exchange, 400, "\"prompt\" must be a text");
    bool taken = one && take_pooling(e) && take_prompt(e, body) && take_form(e, body) && take_inputs(e, inputs);
    json_decref(body);
    if (taken) {
        e->rows = json_array();
        fr_http_exchange_hold(exchange);
        if (fr_scheduler_add_chore(model->scheduler, &e->chore)) return;
        fr_http_exchange_set_header(exchange, "Retry-After", "1");
        fr_http_exchange_refuse(exchange, 503, "too many requests wait already");
        fr_http_exchange_release(exchange);
    }
    free_embedding(e);
}

void fr_embeddings_answer(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer(exchange, model, OPENAI);
}

void fr_embeddings_answer_ollama(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer(exchange, model, OLLAMA);
}

void fr_embeddings_answer_ollama_older(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer(exchange, model, OLLAMA_OLDER);
}
