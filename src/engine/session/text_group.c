/* Runs several texts side by side: see text_group.h. */
#include "src/engine/session/text_group.h"

#include <math.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/batch.h"
#include "src/engine/session/timeline.h"

/* A text's rows in a forward. */
typedef struct piece {
    fr_session *session;
    size_t rows, at; /* rows: number of rows; at: batch index of the first row */
    size_t last_at;  /* if `ends`: the batch index of the last row, which is not next to the text's other rows */
    bool ends;       /* the forward has the text's last row */
} piece;

/* The texts, and how far they have been run. Text t is run in session t % group->count. The texts [done, begun) are
 * being run; there are at most group->count of them, so each has a session of its own. Only the last text of a forward
 * may get fewer rows than it has left. */
typedef struct run {
    const fr_text_group *group;
    const fr_group_text *texts;
    size_t count;
    size_t begun, done; /* begun: texts whose ids are in their sessions; done: texts that have ended */
    bool logits;        /* logits are wanted, otherwise hidden rows */
    fr_group_fn *sink;
    void *context;
    piece pieces[FR_TEXT_GROUP_MAX];
    size_t piece_count;
} run;

/* Puts a text's ids into its session. */
static fr_status begin_text(run *r, size_t text) {
    fr_session *s = r->group->sessions[text % r->group->count];
    FR_TRY(fr_timeline_extend(s, r->texts[text].ids, r->texts[text].count));
    fr_timeline_choose_rope(s);
    r->begun = text + 1;
    return FR_OK;
}

/* Chooses the next rows. The first are those of the text that did not fit whole into the last forward; rows of the
 * texts after it follow. No more rows are chosen when the forward is full, all sessions have a text, or no page is
 * free. A failure is an error only if it is the first text's. A later text is tried again when it is the first. */
static fr_status choose_pieces(run *r) {
    size_t chunk = r->group->sessions[0]->engine->chunk, rows = 0;
    r->piece_count = 0;
    for (size_t t = r->done; t < r->count && r->piece_count < r->group->count && rows < chunk; t++) {
        fr_session *s = r->group->sessions[t % r->group->count];
        fr_status status = t < r->begun ? FR_OK : begin_text(r, t);
        size_t position = s->cache.kv.length, left = s->length - position, next = fr_smaller(chunk - rows, left);
        if (status == FR_OK) status = fr_kv_claim(&s->cache.kv, next);
        if (status != FR_OK && r->piece_count) break;
        FR_TRY(status);
        fr_recurrent_certain(&s->cache.kv.recurrent, fr_smaller(position + next, s->length - 1));
        r->pieces[r->piece_count++] = (piece){.session = s, .rows = next, .ends = next == left};
        rows += next;
    }
    return FR_OK;
}

/* Puts the rows into the batch. The last rows of texts come after all other rows, because the rows with logits must be
 * next to each other. Returns the number of these other rows; *count gets the number of all rows. */
static size_t place_rows(run *r, size_t *count) {
    size_t at = 0;
    for (piece *p = r->pieces; p < r->pieces + r->piece_count; p++) {
        size_t plain = p->rows - p->ends;
        p->at = at;
        fr_batch_rows(p->session, p->session->cache.kv.length, plain, at, -1);
        at += plain;
    }
    size_t others = at;
    for (piece *p = r->pieces; p < r->pieces + r->piece_count; p++) {
        if (!p->ends) continue;
        size_t plain = p->rows - 1;
        p->last_at = at;
        fr_batch_rows(p->session, p->session->cache.kv.length + plain, 1, at++,
                      plain ? (int32_t)(p->at + plain) - 1 : -1);
    }
    *count = at;
    return others;
}

/* Gives hidden rows to the sink, after checking that they are finite. In other calls the check of the logits would find
 * rows that are not finite, but here no logits are computed. */
static fr_status give_rows(const run *r, size_t text, const piece *p, size_t at, size_t count, size_t before) {
    size_t width = p->session->model->trunk.spec.hidden;
    const float *rows = p->session->engine->hidden + at * width;
    for (size_t i = 0; i < count * width; i++)
        if (!isfinite(rows[i]))
            return fr_session_not_finite(p->session, p->session->cache.kv.length + before + i / width);
    return count ? r->sink(r->context, text, rows, count, width) : FR_OK;
}

/* Gives the sink the results of a forward, and moves the sessions' frontiers. A session whose text has ended is
 * emptied, so that its pages are free for the texts after it. */
static fr_status take_results(run *r, const fr_forward *f) {
    size_t first_text = r->done, vocab = f->model->trunk.spec.vocab, head = 0;
    for (size_t i = 0; i < r->piece_count; i++) {
        const piece *p = &r->pieces[i];
        fr_session *s = p->session;
        size_t text = first_text + i, plain = p->rows - p->ends;
        if (!r->logits) {
            FR_TRY(give_rows(r, text, p, p->at, plain, 0));
            if (p->ends) FR_TRY(give_rows(r, text, p, p->last_at, 1, plain));
        } else if (p->ends) {
            if (f->best[head] < 0) return fr_session_not_finite(s, s->length - 1);
            FR_TRY(r->sink(r->context, text, f->logits + head++ * vocab, 1, vocab));
        }
        fr_timeline_advance(s, s->cache.kv.length + p->rows, false);
        if (!p->ends) continue;
        fr_session_clear(s);
        r->done++;
    }
    return FR_OK;
}

static fr_status run_forward(run *r) {
    fr_engine *e = r->group->sessions[0]->engine;
    FR_TRY(fr_session_check_abort(r->group->sessions[0]));
    FR_TRY(choose_pieces(r));
    size_t count, others = place_rows(r, &count);
    fr_forward f = fr_batch_forward(e, count);
    if (r->logits) {
        f.keep = f.head_first = others;
        f.head_rows = count - others;
    }
    fr_forward_run(e->pool, &f);
    return take_results(r, &f);
}

fr_status fr_text_group_run(const fr_text_group *group, const fr_group_text *texts, size_t count, bool logits,
                            fr_group_fn *sink, void *context) {
    run r = {.group = group, .texts = texts, .count = count, .logits = logits, .sink = sink, .context = context};
    fr_status status = FR_OK;
    while (r.done < count && status == FR_OK) status = run_forward(&r);
    for (size_t i = 0; i < group->count && status != FR_OK; i++) fr_session_clear(group->sessions[i]);
    return status;
}
