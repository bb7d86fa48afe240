/* Runs texts of requests through an embedder (embedder_chore.h). */
#include "tools/serve/embedder_chore.h"

#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/serve/adapter_scales.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"

/* PIECE_TEXTS: at most this many texts are run between two rounds of generation. PIECE_TOKENS: when the texts have this
 * many tokens together, no further text is added. DECODER_TOKENS: the same limit for embeddings by a model that
 * generates text. It is smaller, so that the texts fill few forwards. A pair to be scored has hundreds of tokens,
 * because it contains the question. */
enum { PIECE_TEXTS = 256, PIECE_TOKENS = 2048, DECODER_TOKENS = 256 };

/* The texts that are run together. They are the next texts of the first request in the queue, and texts of later
 * requests in the queue. */
typedef struct batch {
    fr_embedder_chore *owner[PIECE_TEXTS];
    fr_embedder_text texts[PIECE_TEXTS];
    size_t count, tokens;
} batch;

static bool run_piece(fr_chore *chore, const fr_job_setting *jobs);

/* Returns true if the texts of a waiting request can be run together with those of the first request. */
static bool is_alike(const fr_embedder_chore *first, const fr_embedder_chore *other) {
    return !other->fault && !fr_http_exchange_gone(other->exchange) && other->dimensions == first->dimensions &&
           other->raw == first->raw && memcmp(other->scales, first->scales, sizeof first->scales) == 0;
}

static void gather(fr_embedder_chore *first, batch *b) {
    size_t most = first->model->jobs.engine && first->dimensions ? DECODER_TOKENS : PIECE_TOKENS;
    *b = (batch){.count = 0};
    for (fr_chore *c = &first->chore; c; c = fr_scheduler_next_chore(first->model->scheduler, c)) {
        fr_embedder_chore *e = (fr_embedder_chore *)c;
        if (c->piece != run_piece || (e != first && !is_alike(first, e))) continue;
        for (size_t i = e->done; i < e->count; i++) {
            if (b->count == PIECE_TEXTS || (b->count && b->tokens >= most)) return;
            b->owner[b->count] = e;
            b->texts[b->count++] = e->texts[i];
            b->tokens += e->texts[i].count;
        }
    }
}

/* Runs the texts of a batch. *done: the number of texts that have got their values. If the call fails, this is the
 * index of the text that failed. */
static fr_status run_batch(const fr_embedder_chore *first, const batch *b, float *values, size_t *done) {
    fr_embedder *embedder = first->model->embedder;
    fr_status status = FR_OK;
    *done = 0;
    if (first->model->jobs.engine) {
        fr_session *session;
        status = fr_lab_embedder_session(embedder, &session);
        if (status == FR_OK) status = fr_adapters_use(&first->model->loaded.adapters, first->scales, session);
        if (status != FR_OK) return status;
    }
    status = first->dimensions ? fr_embedder_rows(embedder, b->texts, b->count, first->dimensions, 1, values)
                               : fr_embedder_scores(embedder, b->texts, b->count, first->raw, values);
    *done = fr_lab_embedder_done(embedder);
    return status;
}

/* Runs the next texts of a request, together with texts of later requests in the queue. */
static bool run_piece(fr_chore *chore, const fr_job_setting *jobs) {
    fr_embedder_chore *e = (fr_embedder_chore *)chore;
    batch b;
    (void)jobs;
    /* all texts of this request may already have been run together with those of earlier requests */
    if (e->fault || e->done == e->count || fr_http_exchange_gone(e->exchange)) return false;
    gather(e, &b);
    double begun = fr_seconds();
    size_t width = e->dimensions ? e->dimensions : 1, tokens = 0, done;
    float *values = fr_resize(NULL, b.count * width, sizeof *values);
    fr_status status = run_batch(e, &b, values, &done);
    for (size_t i = 0; i < done; i++) {
        b.owner[i]->take(b.owner[i], values + i * width);
        b.owner[i]->tokens += b.texts[i].count;
        b.owner[i]->done++;
        tokens += b.texts[i].count;
    }
    if (done) fr_scheduler_count_tokens(e->model->scheduler, tokens, fr_seconds() - begun);
    if (status != FR_OK) {
        fr_embedder_chore *failed = b.owner[done];
        failed->fault = fr_fault_http(status);
        snprintf(failed->line, sizeof failed->line, "%s", fr_last_error());
    }
    free(values);
    return !e->fault && e->done < e->count;
}

static void end(fr_chore *chore) {
    fr_embedder_chore *e = (fr_embedder_chore *)chore;
    if (e->fault)
        fr_http_exchange_refuse(e->exchange, e->fault, "%s", e->line);
    else if (e->done < e->count)
        fr_http_exchange_refuse(e->exchange, 503, "the server is stopping");
    else
        fr_http_exchange_answer_json(e->exchange, 200, e->answer(e));
    fr_http_exchange_release(e->exchange);
    fr_embedder_chore_free(e);
}

void fr_embedder_chore_init(fr_embedder_chore *e, fr_http_exchange *exchange, const fr_model_instance *model) {
    *e = (fr_embedder_chore){.chore = {.piece = run_piece, .end = end}, .exchange = exchange, .model = model};
    fr_adapter_scales_copy(&model->loaded.adapters, e->scales);
}

void fr_embedder_chore_start(fr_embedder_chore *e) {
    fr_http_exchange_hold(e->exchange);
    if (fr_scheduler_add_chore(e->model->scheduler, &e->chore)) return;
    fr_http_exchange_set_header(e->exchange, "Retry-After", "1");
    fr_http_exchange_refuse(e->exchange, 503, "too many requests wait already");
    fr_http_exchange_release(e->exchange);
    fr_embedder_chore_free(e);
}

void fr_embedder_chore_free(fr_embedder_chore *e) {
    for (size_t i = 0; i < e->count; i++) fr_embedder_text_free(&e->texts[i]);
    free(e->texts);
    e->free(e);
}
