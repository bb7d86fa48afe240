/* Runs rows of several sessions in one forward: see batch.h. */
#include "src/engine/session/batch.h"

#include "base/error.h"
#include "src/engine/session/recurrent_points.h"

/* Gives the list of the session's pictures whose rows must all run in the same forward. An entry without rows ends the
 * list. */
static const fr_input_embeddings *find_blocks(const fr_session *s) {
    return s->model->block_rows ? s->embeddings : &fr_no_input_embeddings;
}

size_t fr_batch_cut(const fr_session *s, size_t rows) {
    size_t position = s->cache.kv.length, end = position + rows;
    for (const fr_input_embeddings *block = find_blocks(s); block->count && rows; block++)
        if (block->first < end && end < block->first + block->count)
            return block->first > position ? block->first - position : block->first + block->count - position;
    return rows;
}

/* If a picture that may not be cut contains this position, returns the picture's last position; otherwise returns 0. */
static int32_t find_block_last(const fr_session *s, size_t position) {
    for (const fr_input_embeddings *block = find_blocks(s); block->count; block++)
        if (position >= block->first && position - block->first < block->count)
            return (int32_t)(block->first + block->count - 1);
    return 0;
}

void fr_batch_rows(fr_session *s, size_t position, size_t count, size_t at, int32_t parent) {
    fr_engine *e = s->engine;
    size_t width = fr_spec_picture_width(&s->model->trunk.spec);
    for (size_t r = 0; r < count; r++)
        e->batch[at + r] = (fr_row){.id = s->ids[position + r],
                                    .timeline = (int32_t)s->number,
                                    .position = (int32_t)(position + r),
                                    .parent = r ? (int32_t)(at + r) - 1 : parent,
                                    .block_last = find_block_last(s, position + r),
                                    .rope_position = s->rope_positions[position + r],
                                    .embedding = fr_input_embedding(s->embeddings, position + r, width)};
}

/* Stores each session's adapters in the engine and returns the engine's array of them; NULL if no session has any. */
static const fr_adapter_set *const *note_adapters(fr_engine *e) {
    bool any = false;
    for (size_t i = 0; i < e->capacity; i++) {
        const fr_session *s = e->sessions[i];
        e->adapters[i] = s && s->adapters.count ? &s->adapters : NULL;
        any |= e->adapters[i] != NULL;
    }
    return any ? e->adapters : NULL;
}

fr_forward fr_batch_forward(fr_engine *e, size_t count) {
    bool lends = false;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) lends |= e->drafters[i] && e->drafters[i]->method->borrows;
    e->runs++;
    return (fr_forward){
        .model = e->model,
        .activations = e->activations,
        .batch = {.rows = e->batch, .count = count, .timelines = e->timelines, .adapters = note_adapters(e)},
        .hidden = e->hidden,
        .aux_layers = e->aux_layers,
        .aux_hidden = e->aux_hidden,
        .lends = lends,
        .logits = e->logits,
        .best = e->best,
        .best_stride = e->head_rows};
}

/* Returns true if the slice is a part of a prompt. Otherwise the slice is a timeline's last id and the drafts after
 * it. */
static bool is_prompt(const fr_batch_slice *slice) {
    return slice->session->phase == FR_PHASE_PENDING;
}

/* Counts the slice's rows that will certainly stay on the timeline. If drafts are verified, that is only the row of the
 * last id. In a prompt, these are all rows without logits. The prompt's last row has logits; it does not count, because
 * a fork of the session runs it again. */
static size_t certain_rows(const fr_batch_slice *slice) {
    return is_prompt(slice) ? slice->rows - slice->heads : 1;
}

/* Counts how many of the slice's first rows lie in the frontier's page. If a picture that may not be cut reaches into
 * the next page, its rows do not count. If the slice begins with such a picture, exactly that picture's rows count. */
static size_t near_rows(const fr_batch_slice *slice) {
    size_t position = slice->session->cache.kv.length;
    return fr_batch_cut(slice->session, fr_kv_run(position, position + slice->rows));
}

fr_status fr_batch_admit(const fr_batch_slice *slice) {
    return fr_kv_claim(&slice->session->cache.kv, near_rows(slice));
}

/* Takes pages for the rows for which fr_batch_admit took none. If no pages are free, these rows are left out. */
static void claim_far(fr_batch_slice *slice) {
    size_t near = near_rows(slice);
    if (near == slice->rows || fr_failure_keep(fr_kv_claim(&slice->session->cache.kv, slice->rows)).status == FR_OK)
        return;
    bool too_few = !is_prompt(slice) && near - 1 < slice->session->drafting.min;
    slice->rows = too_few ? 1 : near;
    slice->heads = is_prompt(slice) ? 0 : slice->rows;
}

/* Takes pages for prompts first and then for drafts, so that no draft takes a page that a prompt needs. */
static void claim_pages(fr_batch_slice *slices, size_t count) {
    for (int drafts = 0; drafts < 2; drafts++)
        for (fr_batch_slice *slice = slices; slice < slices + count; slice++)
            if (is_prompt(slice) != drafts) claim_far(slice);
}

/* Places the rows without logits in the batch and returns their number. *keep gets the number of rows whose hidden rows
 * are never read. These are all the placed rows, or none if some session reads hidden rows. */
static size_t place_plain(fr_batch_slice *slices, size_t count, size_t *keep) {
    size_t rows = 0;
    bool read = false;
    for (fr_batch_slice *slice = slices; slice < slices + count; slice++) {
        fr_recurrent_points_plan(slice->session, slice->session->cache.kv.length + certain_rows(slice));
        size_t plain = slice->rows - slice->heads;
        slice->at = rows;
        fr_batch_rows(slice->session, slice->session->cache.kv.length, plain, slice->at, -1);
        rows += plain;
        read |= plain && (slice->session->drafting.draft->follows || slice->session->sampling.score.sink);
    }
    *keep = read ? 0 : rows;
    return rows;
}

static size_t place_heads(fr_engine *e, fr_batch_slice *slices, size_t count, size_t rows) {
    size_t vocab = e->model->trunk.spec.vocab, first = rows;
    for (fr_batch_slice *slice = slices; slice < slices + count; slice++) {
        fr_session *s = slice->session;
        size_t plain = slice->rows - slice->heads;
        slice->heads_at = rows;
        fr_batch_rows(s, s->cache.kv.length + plain, slice->heads, slice->heads_at,
                      plain ? (int32_t)(slice->at + plain) - 1 : -1);
        s->result.logits = e->logits + (rows - first) * vocab;
        s->result.best = e->best + (rows - first);
        s->result.run = e->runs + 1; /* the number that the next forward will have */
        rows += slice->heads;
    }
    return rows;
}

size_t fr_batch_slice_row(const fr_batch_slice *slice, size_t row) {
    size_t plain = slice->rows - slice->heads;
    return row < plain ? slice->at + row : slice->heads_at + (row - plain);
}

void fr_batch_run(fr_engine *e, fr_batch_slice *slices, size_t count) {
    claim_pages(slices, count);
    size_t keep, first = place_plain(slices, count, &keep), rows = place_heads(e, slices, count, first);
    if (rows == 0) return;
    fr_forward f = fr_batch_forward(e, rows);
    f.keep = keep;
    f.head_first = first;
    f.head_rows = rows - first;
    f.best_alone = true;
    for (const fr_batch_slice *slice = slices; slice < slices + count; slice++)
        f.best_alone &= !slice->heads || fr_session_wants_best(slice->session);
    fr_forward_run(e->pool, &f);
}
