/* Rows of several sessions in one forward: see batch.h. */
#include "src/engine/session/batch.h"

#include "base/error.h"
#include "src/engine/session/recurrent_points.h"

void fr_batch_rows(fr_session *s, size_t position, size_t count, size_t at, int32_t parent) {
    fr_engine *e = s->engine;
    size_t hidden = s->model->trunk.spec.hidden;
    for (size_t r = 0; r < count; r++)
        e->batch[at + r] = (fr_row){.id = s->ids[position + r],
                                    .timeline = (int32_t)s->number,
                                    .position = (int32_t)(position + r),
                                    .parent = r ? (int32_t)(at + r) - 1 : parent,
                                    .rope_position = s->rope_positions[position + r],
                                    .embedding = fr_input_embedding(s->embeddings, position + r, hidden)};
}

fr_forward fr_batch_forward(fr_engine *e, size_t count) {
    e->runs++;
    return (fr_forward){.model = e->model,
                        .activations = e->activations,
                        .batch = {.rows = e->batch, .count = count, .timelines = e->timelines},
                        .hidden = e->hidden,
                        .aux_layers = e->aux_layers,
                        .aux_hidden = e->aux_hidden,
                        .lends = e->drafts && e->drafter->method->borrows,
                        .logits = e->logits,
                        .best = e->best,
                        .best_stride = e->head_rows};
}

/* What of a part stands whatever its logits say: of drafts behind a timeline the row of its last id; of a prompt all
 * but its last row, which a copy of the session runs once more. */
static size_t certain_rows(const fr_part *p) {
    return p->session->pending ? p->rows - p->heads : 1;
}

/* Its rows in the page that the frontier is in. */
static size_t near_rows(const fr_part *p) {
    size_t position = p->session->kv.length;
    return fr_kv_run(position, position + p->rows);
}

fr_status fr_batch_admit(const fr_part *p) {
    return fr_kv_claim(&p->session->kv, near_rows(p));
}

/* Pages for the rows behind the frontier's, which are left out where there are none. */
static void claim_far(fr_part *p) {
    size_t near = near_rows(p);
    if (near == p->rows || fr_failure_keep(fr_kv_claim(&p->session->kv, p->rows)).status == FR_OK) return;
    bool too_few = !p->session->pending && near - 1 < p->session->draft_min;
    p->rows = too_few ? 1 : near;
    p->heads = p->session->pending ? 0 : p->rows;
}

/* Drafts come last: they take no page that a row needs which would be run without them. */
static void claim_pages(fr_part *parts, size_t count) {
    for (int drafts = 0; drafts < 2; drafts++)
        for (fr_part *p = parts; p < parts + count; p++)
            if (p->session->pending != drafts) claim_far(p);
}

/* Rows without logits. Gives how many there are; *keep: those whose hidden rows nobody reads. */
static size_t place_plain(fr_part *parts, size_t count, size_t *keep) {
    size_t rows = 0;
    bool read = false;
    for (fr_part *p = parts; p < parts + count; p++) {
        fr_recurrent_points_plan(p->session, p->session->kv.length + certain_rows(p));
        size_t plain = p->rows - p->heads;
        p->at = rows;
        fr_batch_rows(p->session, p->session->kv.length, plain, p->at, -1);
        rows += plain;
        read |= plain && (p->session->draft->follows || p->session->score.sink);
    }
    *keep = read ? 0 : rows;
    return rows;
}

static size_t place_heads(fr_engine *e, fr_part *parts, size_t count, size_t rows) {
    size_t vocab = e->model->trunk.spec.vocab, first = rows;
    for (fr_part *p = parts; p < parts + count; p++) {
        fr_session *s = p->session;
        size_t plain = p->rows - p->heads;
        p->heads_at = rows;
        fr_batch_rows(s, s->kv.length + plain, p->heads, p->heads_at, plain ? (int32_t)(p->at + plain) - 1 : -1);
        s->logits = e->logits + (rows - first) * vocab;
        s->best = e->best + (rows - first);
        s->run = e->runs + 1; /* the forward that is about to be */
        rows += p->heads;
    }
    return rows;
}

const float *fr_part_hidden(const fr_part *p, size_t row) {
    const fr_engine *e = p->session->engine;
    size_t plain = p->rows - p->heads, at = row < plain ? p->at + row : p->heads_at + (row - plain);
    return e->seen + at * e->seen_width;
}

void fr_batch_run(fr_engine *e, fr_part *parts, size_t count) {
    claim_pages(parts, count);
    size_t keep, first = place_plain(parts, count, &keep), rows = place_heads(e, parts, count, first);
    if (rows == 0) return;
    fr_forward f = fr_batch_forward(e, rows);
    f.keep = keep;
    f.head_first = first;
    f.head_rows = rows - first;
    f.best_alone = true;
    for (const fr_part *p = parts; p < parts + count; p++)
        f.best_alone &= !p->heads || fr_session_wants_best(p->session);
    fr_forward_run(e->pool, &f);
}
