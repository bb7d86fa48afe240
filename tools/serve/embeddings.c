/* Turns texts into rows of numbers (embeddings.h). */
#include "tools/serve/embeddings.h"

#include <stdlib.h>
#include <string.h>

#include "tools/jobs/job_parts.h"
#include "tools/serve/base64.h"
#include "tools/serve/embedder_chore.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"
#include "tools/serve/text_routes.h"

enum { INPUTS_MAX = 2048 }; /* the most inputs of a request, as in OpenAI's API */

typedef enum dialect {
    OPENAI,       /* OpenAI's answer: {"object": "list", "data": [{"embedding"}], "usage"} */
    OLLAMA,       /* ollama's answer to "input": {"model", "embeddings": [[...]]} */
    OLLAMA_OLDER, /* ollama's older answer to "prompt", a single text: {"embedding": [...]} */
} dialect;

/* A request that is being answered. */
typedef struct embedding {
    fr_embedder_chore texts; /* the first member, so that a pointer to it is a pointer to this struct */
    dialect dialect;
    double arrived;
    bool cuts;          /* texts that are too long are cut; this is ollama's default */
    const char *prompt; /* the model's own prompt that is put before each input; NULL: there is none */
    bool base64;
    json_t *rows; /* rows for the answer, as JSON */
} embedding;

static void free_embedding(fr_embedder_chore *chore) {
    embedding *e = (embedding *)chore;
    json_decref(e->rows);
    free(e);
}

/* ---------------------------------------------------------------------------------------------------------- request */

static bool refuse(const embedding *e, fr_status status) {
    fr_http_exchange_refuse(e->texts.exchange, fr_fault_http(status), "%s", fr_last_error());
    return false;
}

/* Returns true if the model can read texts. A folder without a tokenizer can only read ids. */
static bool has_tokenizer(const embedding *e) {
    if (fr_model_tokenizer(e->texts.model->loaded.model)) return true;
    fr_http_exchange_refuse(e->texts.exchange, 501, "the model has no tokenizer: it reads ids alone");
    return false;
}

/* Reads an array of ids and texts. */
static bool take_ids(embedding *e, const json_t *pieces, fr_embedder_text *taken) {
    const fr_model_instance *model = e->texts.model;
    int32_t *all = NULL;
    size_t total = 0;
    bool good = true;
    for (size_t i = 0; i < json_array_size(pieces) && good; i++) {
        const json_t *piece = json_array_get(pieces, i);
        int32_t *ids = NULL, one = (int32_t)json_integer_value(piece);
        size_t count = 1;
        good = json_is_string(piece) || fr_job_whole(piece, 0, INT32_MAX);
        if (!good) {
            fr_http_exchange_refuse(e->texts.exchange, 400, "\"input\"[%zu] is no id", i);
        } else if (json_is_string(piece) && (good = has_tokenizer(e))) {
            fr_status status = fr_tokenize(fr_model_tokenizer(model->loaded.model), json_string_value(piece),
                                           json_string_length(piece), i == 0, false, &ids, &count);
            good = status == FR_OK || refuse(e, status);
        }
        if (!good) break;
        all = fr_resize(all, total + count, sizeof *all);
        if (count) memcpy(all + total, ids ? ids : &one, count * sizeof *all);
        total += count;
        fr_free(ids);
    }
    size_t limit = (size_t)fr_embedder_fact_of(model->embedder, FR_EMBEDDER_LIMIT);
    if (good) {
        fr_status status =
            fr_embedder_encode_ids(model->embedder, all, e->cuts && total > limit ? limit : total, taken);
        good = status == FR_OK || refuse(e, status);
        taken->whole = total;
    }
    free(all);
    return good;
}

/* Joins the texts of a content's parts, [{"type": "text", "text": ...}, ...]. NULL: a part has another type. */
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
    fr_embedder_text *taken = &e->texts.texts[e->texts.count];
    const fr_embedder *embedder = e->texts.model->embedder;
    size_t index = e->texts.count++, limit = (size_t)fr_embedder_fact_of(embedder, FR_EMBEDDER_LIMIT);
    *taken = (fr_embedder_text){0};
    json_t *plain = plain_of(value);
    bool read = false;
    if (json_is_string(plain)) {
        read = has_tokenizer(e);
        fr_status status =
            !read ? FR_OK
                  : fr_embedder_encode(embedder, e->prompt, json_string_value(plain), json_string_length(plain), taken);
        if (status != FR_OK) read = refuse(e, status);
    } else if (json_is_array(plain)) {
        read = take_ids(e, plain, taken);
    } else {
        fr_http_exchange_refuse(e->texts.exchange, 400, "\"input\"[%zu] is neither a text nor an array of ids", index);
    }
    json_decref(plain);
    if (!read) return false;
    if (taken->whole && (e->cuts || taken->whole <= limit)) return true;
    if (taken->whole == 0)
        fr_http_exchange_refuse(e->texts.exchange, 400, "\"input\"[%zu] has no tokens", index);
    else
        fr_http_exchange_refuse(e->texts.exchange, 400,
                                "\"input\"[%zu] is too large: it has %zu tokens, and the model reads %zu", index,
                                taken->whole, limit);
    return false;
}

static bool take_inputs(embedding *e, const json_t *value) {
    bool several = json_is_array(value);
    for (size_t i = 0; i < json_array_size(value); i++) several &= !json_is_integer(json_array_get(value, i));
    size_t count = several ? json_array_size(value) : 1;
    if (!value || count == 0 || count > INPUTS_MAX) {
        if (!value)
            fr_http_exchange_refuse(e->texts.exchange, 400, "\"input\" is missing");
        else
            fr_http_exchange_refuse(e->texts.exchange, 400, "\"input\" must be 1 to %d texts", INPUTS_MAX);
        return false;
    }
    e->texts.texts = fr_resize(NULL, count, sizeof *e->texts.texts);
    for (size_t i = 0; i < count; i++)
        if (!take_input(e, several ? json_array_get(value, i) : value)) return false;
    return true;
}

static bool take_form(embedding *e, const json_t *body) {
    const json_t *format = json_object_get(body, "encoding_format"), *size = json_object_get(body, "dimensions");
    const char *word = json_is_string(format) ? json_string_value(format) : "float";
    if ((format && !json_is_null(format) && !json_is_string(format)) ||
        (strcmp(word, "float") != 0 && strcmp(word, "base64") != 0)) {
        fr_http_exchange_refuse(e->texts.exchange, 400, "\"encoding_format\" must be float or base64");
        return false;
    }
    e->base64 = strcmp(word, "base64") == 0;
    size_t width = (size_t)fr_embedder_fact_of(e->texts.model->embedder, FR_EMBEDDER_WIDTH);
    e->texts.dimensions = width;
    if (!size || json_is_null(size)) return true;
    if (!fr_job_whole(size, 1, (int64_t)width)) {
        fr_http_exchange_refuse(e->texts.exchange, 400, "\"dimensions\" must be 1 to %zu", width);
        return false;
    }
    e->texts.dimensions = (size_t)json_integer_value(size);
    return true;
}

/* Finds the model's prompt that is put before each text. It is the prompt that the request names, or the default
 * prompt. */
static bool take_prompt(embedding *e, const json_t *body) {
    const json_t *name = json_object_get(body, "prompt_name");
    if (name && !json_is_null(name) && !json_is_string(name)) {
        fr_http_exchange_refuse(e->texts.exchange, 400, "\"prompt_name\" must be a text");
        return false;
    }
    e->prompt = fr_embedder_prompt(e->texts.model->embedder, json_string_value(name));
    if (e->prompt || !json_is_string(name)) return true;
    fr_http_exchange_refuse(e->texts.exchange, 400, "\"prompt_name\": the model has no prompt \"%.60s\"",
                            json_string_value(name));
    return false;
}

/* Returns true if the model's file says how its rows are pooled to one embedding. */
static bool can_pool(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (fr_embedder_fact_of(model->embedder, FR_EMBEDDER_WIDTH) > 0) return true;
    fr_http_exchange_refuse(exchange, 501,
                            fr_model_fact(model->loaded.model, FR_FACT_POOLING) == FR_POOLING_RANK
                                ? "the model ranks texts, which is not built"
                                : "the model does not say how its rows are pooled: start the server with --pooling");
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- answer */

static json_t *value_of(const embedding *e, const float *row) {
    size_t width = e->texts.dimensions;
    if (e->base64) {
        char *text = fr_base64_write((const unsigned char *)row, width * sizeof *row);
        json_t *value = json_string(text);
        free(text);
        return value;
    }
    json_t *value = json_array();
    for (size_t i = 0; i < width; i++) json_array_append_new(value, json_real((double)row[i]));
    return value;
}

/* Adds the row of the next text to the answer. */
static void take_row(fr_embedder_chore *chore, const float *row) {
    embedding *e = (embedding *)chore;
    json_t *value = value_of(e, row);
    json_array_append_new(e->rows, e->dialect != OPENAI ? value
                                                        : json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                                                    (json_int_t)chore->done, "embedding", value));
}

static json_t *answer_of(fr_embedder_chore *chore) {
    const embedding *e = (const embedding *)chore;
    json_int_t tokens = (json_int_t)chore->tokens;
    if (e->dialect == OLLAMA_OLDER) return json_pack("{s:O}", "embedding", json_array_get(e->rows, 0));
    if (e->dialect == OLLAMA)
        return json_pack("{s:s, s:O, s:I, s:i, s:I}", "model", chore->model->name, "embeddings", e->rows,
                         "total_duration", (json_int_t)(1e9 * (fr_seconds() - e->arrived)), "load_duration", 0,
                         "prompt_eval_count", tokens);
    return json_pack("{s:s, s:O, s:s, s:{s:I, s:I}}", "object", "list", "data", e->rows, "model", chore->model->name,
                     "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

static void answer(fr_http_exchange *exchange, const fr_model_instance *model, dialect asked) {
    if (!model->embedder) {
        fr_http_exchange_refuse(exchange, 501, "this server was started without --embeddings");
        return;
    }
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    embedding *e = fr_resize(NULL, 1, sizeof *e);
    *e = (embedding){.dialect = asked, .arrived = fr_seconds(), .rows = json_array()};
    fr_embedder_chore_init(&e->texts, exchange, model);
    e->texts.take = take_row;
    e->texts.answer = answer_of;
    e->texts.free = free_embedding;
    e->cuts = asked != OPENAI && !json_is_false(json_object_get(body, "truncate"));
    const json_t *inputs = json_object_get(body, asked == OLLAMA_OLDER ? "prompt" : "input");
    bool one = asked != OLLAMA_OLDER || json_is_string(inputs);
    if (!one) fr_http_exchange_refuse(exchange, 400, "\"prompt\" must be a text");
    bool taken =
        one && can_pool(exchange, model) && take_prompt(e, body) && take_form(e, body) && take_inputs(e, inputs);
    json_decref(body);
    if (taken)
        fr_embedder_chore_start(&e->texts);
    else
        fr_embedder_chore_free(&e->texts);
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
