/* Scores documents for a query (rerank.h). */
#include "tools/serve/rerank.h"

#include <stdlib.h>

#include "tools/jobs/job_parts.h"
#include "tools/serve/embedder_chore.h"
#include "tools/serve/fault.h"
#include "tools/serve/text_routes.h"

enum { DOCUMENTS_MAX = 2048 };

typedef struct ranked {
    size_t document;
    float score;
} ranked;

/* A request that is being answered. */
typedef struct reranking {
    fr_embedder_chore pairs; /* the first member, so that a pointer to it is a pointer to this struct */
    json_t *body;
    ranked *list;    /* [pairs.count] */
    size_t top;      /* number of documents that the answer shows */
    bool texts_only; /* the request has "texts" */
    bool returns;    /* the answer has the documents */
} reranking;

static void free_reranking(fr_embedder_chore *chore) {
    reranking *r = (reranking *)chore;
    json_decref(r->body);
    free(r->list);
    free(r);
}

static const json_t *list_of(const reranking *r) {
    return json_object_get(r->body, r->texts_only ? "texts" : "documents");
}

static const json_t *document_of(const reranking *r, size_t index) {
    const json_t *document = json_array_get(list_of(r), index);
    return json_is_object(document) ? json_object_get(document, "text") : document;
}

/* Comparison for qsort: the highest score comes first. Documents with equal scores keep their order. */
static int compare(const void *one, const void *other) {
    const ranked *a = one, *b = other;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return a->document < b->document ? -1 : a->document > b->document;
}

static void take_score(fr_embedder_chore *chore, const float *score) {
    ((reranking *)chore)->list[chore->done] = (ranked){chore->done, *score};
}

static json_t *answer_of(fr_embedder_chore *chore) {
    reranking *r = (reranking *)chore;
    json_t *results = json_array();
    qsort(r->list, chore->count, sizeof *r->list, compare);
    for (size_t i = 0; i < chore->count && i < r->top; i++) {
        json_t *one = json_pack("{s:I, s:f}", "index", (json_int_t)r->list[i].document,
                                r->texts_only ? "score" : "relevance_score", (double)r->list[i].score);
        const json_t *text = document_of(r, r->list[i].document);
        if (r->returns && r->texts_only) json_object_set(one, "text", (json_t *)(uintptr_t)text);
        if (r->returns && !r->texts_only)
            json_object_set_new(one, "document", json_pack("{s:O}", "text", (json_t *)(uintptr_t)text));
        json_array_append_new(results, one);
    }
    json_int_t tokens = (json_int_t)chore->tokens;
    if (r->texts_only) return results;
    return json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "model", chore->model->name, "object", "list", "results", results,
                     "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

/* Checks the members of the body. Returns false if the exchange was refused. */
static bool read_body(reranking *r) {
    fr_http_exchange *exchange = r->pairs.exchange;
    r->texts_only = json_object_get(r->body, "texts") != NULL;
    const json_t *list = list_of(r), *query = json_object_get(r->body, "query");
    const json_t *top = json_object_get(r->body, "top_n"), *instruction = json_object_get(r->body, "instruction");
    const char *name = r->texts_only ? "texts" : "documents";
    r->returns = json_is_true(json_object_get(r->body, r->texts_only ? "return_text" : "return_documents"));
    r->pairs.raw = json_is_true(json_object_get(r->body, "raw_scores"));
    r->top = json_array_size(list);
    if (!json_is_string(query))
        fr_http_exchange_refuse(exchange, 400, "\"query\" must be a text");
    else if (!json_is_array(list) || r->top == 0 || r->top > DOCUMENTS_MAX)
        fr_http_exchange_refuse(exchange, 400, "\"%s\" must be 1 to %d texts", name, DOCUMENTS_MAX);
    else if (top && !json_is_null(top) && !fr_job_whole(top, 1, INT32_MAX))
        fr_http_exchange_refuse(exchange, 400, "\"top_n\" must be a whole number from 1 on");
    else if (instruction && !json_is_null(instruction) && !json_is_string(instruction))
        fr_http_exchange_refuse(exchange, 400, "\"instruction\" must be a text");
    else {
        if (json_is_integer(top) && (size_t)json_integer_value(top) < r->top) r->top = (size_t)json_integer_value(top);
        for (size_t i = 0; i < json_array_size(list); i++) {
            if (json_is_string(document_of(r, i))) continue;
            fr_http_exchange_refuse(exchange, 400, "\"%s\"[%zu] is no text", name, i);
            return false;
        }
        return true;
    }
    return false;
}

/* Makes the ids of each pair of the query and a document. Returns false if the exchange was refused. */
static bool encode_pairs(reranking *r) {
    const json_t *query = json_object_get(r->body, "query");
    const char *instruction = json_string_value(json_object_get(r->body, "instruction"));
    size_t count = json_array_size(list_of(r));
    r->list = fr_resize(NULL, count, sizeof *r->list);
    r->pairs.texts = fr_resize(NULL, count, sizeof *r->pairs.texts);
    while (r->pairs.count < count) {
        const json_t *document = document_of(r, r->pairs.count);
        fr_status status = fr_embedder_encode_pair(r->pairs.model->embedder, instruction, json_string_value(query),
                                                   json_string_length(query), json_string_value(document),
                                                   json_string_length(document), &r->pairs.texts[r->pairs.count]);
        if (status != FR_OK) {
            fr_http_exchange_refuse(r->pairs.exchange, fr_fault_http(status), "%s", fr_last_error());
            return false;
        }
        r->pairs.count++;
    }
    return true;
}

/* Returns true if the model can score documents. A model that generates text has an embedder only with --embeddings. */
static bool may_score(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (model->embedder && fr_embedder_fact_of(model->embedder, FR_EMBEDDER_SCORES)) return true;
    fr_http_exchange_refuse(exchange, 501,
                            !model->embedder ? "this server was started without --embeddings"
                            : model->jobs.engine
                                ? "the model's tokenizer has no tokens for yes and no, so it scores no "
                                  "documents"
                                : "the model has no classifier of one label, so it scores no documents");
    return false;
}

void fr_rerank_answer(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (!may_score(exchange, model)) return;
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    reranking *r = fr_resize(NULL, 1, sizeof *r);
    *r = (reranking){.body = body};
    fr_embedder_chore_init(&r->pairs, exchange, model);
    r->pairs.take = take_score;
    r->pairs.answer = answer_of;
    r->pairs.free = free_reranking;
    if (read_body(r) && encode_pairs(r))
        fr_embedder_chore_start(&r->pairs);
    else
        fr_embedder_chore_free(&r->pairs);
}
