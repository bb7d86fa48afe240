/* Scores documents for a query (rerank.h). */
#include "tools/serve/rerank.h"

#include <stdlib.h>
#include <string.h>

#include "tools/jobs/job_parts.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"
#include "tools/serve/text_routes.h"

enum { DOCUMENTS_MAX = 2048, PIECE_TOKENS = 2048 };

typedef struct ranked {
    size_t document;
    float score;
} ranked;

/* A request that is being answered. */
typedef struct reranking {
    fr_chore chore;             /* the first member, so that a pointer to it is a pointer to this struct */
    fr_http_exchange *exchange; /* held while the request waits */
    const fr_model_instance *model;
    json_t *body;
    fr_embedder *own;        /* an embedder on the engine of a model that generates text; NULL: the embedder of a text
                              * encoder is used */
    fr_embedder_text *pairs; /* [count] */
    ranked *list;            /* [count] */
    /* count: number of all documents. Of these, `encoded` were tokenized, `done` were scored, and `top` are shown.
     * tokens: number of all tokens. */
    size_t count, encoded, done, top, tokens;
    bool texts_only;   /* the request has "texts" */
    bool returns, raw; /* returns: the answer has the documents; raw: the answer has the scores without the function
                        * that the model's makers apply last */
    unsigned fault;    /* the HTTP status of an error, whose text is in `line`; 0: none */
    char line[256];
} reranking;

static void free_reranking(reranking *r) {
    for (size_t i = 0; r->pairs && i < r->count; i++) fr_embedder_text_free(&r->pairs[i]);
    fr_embedder_close(r->own);
    json_decref(r->body);
    free(r->pairs);
    free(r->list);
    free(r);
}

static const json_t *document_of(const reranking *r, size_t index) {
    const json_t *list = json_object_get(r->body, r->texts_only ? "texts" : "documents");
    const json_t *document = json_array_get(list, index);
    return json_is_object(document) ? json_object_get(document, "text") : document;
}

/* Orders the highest score first. Documents with equal scores keep their order. */
static int compare(const void *one, const void *other) {
    const ranked *a = one, *b = other;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return a->document < b->document ? -1 : a->document > b->document;
}

static bool fail(reranking *r, fr_status status) {
    r->fault = fr_fault_http(status);
    snprintf(r->line, sizeof r->line, "%s", fr_last_error());
    return false;
}

/* Scores the next pairs. Pairs are tokenized until they have PIECE_TOKENS together. */
static bool run_piece(fr_chore *chore, const fr_job_setting *jobs) {
    reranking *r = (reranking *)chore;
    const char *query = json_string_value(json_object_get(r->body, "query"));
    const char *instruction = json_string_value(json_object_get(r->body, "instruction"));
    fr_embedder *embedder = r->model->embedder;
    fr_status status = FR_OK;
    if (fr_http_exchange_gone(r->exchange)) return false;
    if (!embedder && !r->own)
        status = fr_embedder_open(jobs->loaded->model, jobs->engine, jobs->loaded->options, FR_POOLING_NONE, &r->own);
    if (status != FR_OK) return fail(r, status);
    if (!embedder) embedder = r->own;
    double begun = fr_seconds();
    size_t first = r->done, tokens = 0;
    for (; r->encoded < r->count && tokens < PIECE_TOKENS && status == FR_OK; r->encoded++) {
        const json_t *document = document_of(r, r->encoded);
        status = fr_embedder_encode_pair(embedder, instruction, query, strlen(query), json_string_value(document),
                                         json_string_length(document), &r->pairs[r->encoded]);
        tokens += r->pairs[r->encoded].count;
    }
    float *scores = fr_resize(NULL, r->count, sizeof *scores);
    if (status == FR_OK) status = fr_embedder_scores(embedder, r->pairs + first, r->encoded - first, r->raw, scores);
    for (; status == FR_OK && r->done < r->encoded; r->done++)
        r->list[r->done] = (ranked){r->done, scores[r->done - first]};
    free(scores);
    if (status != FR_OK) return fail(r, status);
    r->tokens += tokens;
    fr_scheduler_count_tokens(r->model->scheduler, tokens, fr_seconds() - begun);
    return r->done < r->count;
}

static json_t *answer_of(reranking *r) {
    json_t *results = json_array();
    qsort(r->list, r->count, sizeof *r->list, compare);
    for (size_t i = 0; i < r->count && i < r->top; i++) {
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)r->list[i].document,
                                r->texts_only ? "score" : "relevance_score", (double)r->list[i].score);
        const json_t *text = document_of(r, r->list[i].document);
        if (r->returns && r->texts_only) json_object_set(one, "text", (json_t *)(uintptr_t)text);
        if (r->returns && !r->texts_only)
            json_object_set_new(one, "document", json_pack("{s:O}", "text", (json_t *)(uintptr_t)text));
        json_array_append_new(results, one);
    }
    json_int_t tokens = (json_int_t)r->tokens;
    if (r->texts_only) return results;
    return json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "model", r->model->name, "object", "list", "results", results,
                     "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

static void end(fr_chore *chore) {
    reranking *r = (reranking *)chore;
    if (r->fault)
        fr_http_exchange_refuse(r->exchange, r->fault, "%s", r->line);
    else if (r->done < r->count)
        fr_http_exchange_refuse(r->exchange, 503, "the server is stopping");
    else
        fr_http_exchange_answer_json(r->exchange, 200, answer_of(r));
    fr_http_exchange_release(r->exchange);
    free_reranking(r);
}

/* Checks the members of the body. Returns false if the exchange was refused. */
static bool read_body(reranking *r) {
    const json_t *texts = json_object_get(r->body, "texts"), *query = json_object_get(r->body, "query");
    const json_t *list = texts ? texts : json_object_get(r->body, "documents");
    const json_t *top = json_object_get(r->body, "top_n"), *instruction = json_object_get(r->body, "instruction");
    const char *name = texts ? "texts" : "documents";
    r->texts_only = texts != NULL;
    r->returns = json_is_true(json_object_get(r->body, texts ? "return_text" : "return_documents"));
    r->raw = json_is_true(json_object_get(r->body, "raw_scores"));
    r->count = json_array_size(list);
    r->top = r->count;
    if (!json_is_string(query))
        fr_http_exchange_refuse(r->exchange, 400, "\"query\" must be a text");
    else if (!json_is_array(list) || r->count == 0 || r->count > DOCUMENTS_MAX)
        fr_http_exchange_refuse(r->exchange, 400, "\"%s\" must be 1 to %d texts", name, DOCUMENTS_MAX);
    else if (top && !json_is_null(top) && !fr_job_whole(top, 1, INT32_MAX))
        fr_http_exchange_refuse(r->exchange, 400, "\"top_n\" must be a whole number from 1 on");
    else if (instruction && !json_is_null(instruction) && !json_is_string(instruction))
        fr_http_exchange_refuse(r->exchange, 400, "\"instruction\" must be a text");
    else {
        if (json_is_integer(top) && (size_t)json_integer_value(top) < r->count)
            r->top = (size_t)json_integer_value(top);
        for (size_t i = 0; i < r->count; i++) {
            if (json_is_string(document_of(r, i))) continue;
            fr_http_exchange_refuse(r->exchange, 400, "\"%s\"[%zu] is no text", name, i);
            return false;
        }
        return true;
    }
    return false;
}

/* Returns true if the model can score documents. A model that generates text has a session for scoring only with
 * --embeddings. */
static bool may_score(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (model->embedder && fr_embedder_fact_of(model->embedder, FR_EMBEDDER_SCORES)) return true;
    if (!model->embedder && model->args->given[FR_ARG_EMBEDDINGS]) return true;
    fr_http_exchange_refuse(exchange, 501,
                            model->embedder ? "the model has no classifier of one label, so it scores no documents"
                                            : "this server was started without --embeddings");
    return false;
}

void fr_rerank_answer(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (!may_score(exchange, model)) return;
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    reranking *r = fr_resize(NULL, 1, sizeof *r);
    *r = (reranking){.chore = {.piece = run_piece, .end = end}, .exchange = exchange, .model = model, .body = body};
    if (read_body(r)) {
        r->pairs = fr_resize(NULL, r->count, sizeof *r->pairs);
        memset(r->pairs, 0, r->count * sizeof *r->pairs);
        r->list = fr_resize(NULL, r->count, sizeof *r->list);
        fr_http_exchange_hold(exchange);
        if (fr_scheduler_add_chore(model->scheduler, &r->chore)) return;
        fr_http_exchange_set_header(exchange, "Retry-After", "1");
        fr_http_exchange_refuse(exchange, 503, "too many requests wait already");
        fr_http_exchange_release(exchange);
    }
    free_reranking(r);
}
