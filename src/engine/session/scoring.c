/* Runs texts to look at their rows: see scoring.h. */
#include "src/engine/session/scoring.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/timeline.h"

fr_status fr_scoring_next_logits(fr_session *s, const float **logits) {
    if (s->phase != FR_PHASE_PREDICTED || s->result.run != s->engine->runs) {
        FR_TRY(fr_timeline_again(s));
        FR_TRY(fr_timeline_run(s));
    }
    *logits = s->result.logits;
    return FR_OK;
}

/* Gives the sink the logits of the batch's rows from `first` on, as many rows at a time as there is room for. */
static fr_status hand_out_logits(fr_session *s, fr_forward *f, size_t first, fr_logits_fn *sink, void *context) {
    for (f->head_first = first; f->head_first < f->batch.count; f->head_first += f->head_rows) {
        f->head_rows = fr_smaller(f->best_stride, f->batch.count - f->head_first);
        fr_head_run(s->engine->pool, f);
        for (size_t r = 0; r < f->head_rows; r++)
            if (f->best[r] < 0) return fr_session_not_finite(s, s->cache.kv.length + f->head_first + r);
        FR_TRY(sink(context, f->logits, f->head_rows, s->model->trunk.spec.vocab));
    }
    return FR_OK;
}

/* The values that are wanted of a text: logits of the positions from first_row on, or hidden rows or inputs of
 * layers. */
typedef struct scoring {
    size_t first_row;
    fr_logits_fn *logits; /* NULL: rows are wanted, not logits */
    fr_rows_fn *rows;
    void *context;
    const fr_aux_layers *layers; /* the layers whose inputs are wanted; NULL: hidden rows are wanted */
    float *aux;                  /* [prompt_rows, layers, hidden] the inputs of the layers in `layers` */
} scoring;

/* Gives the sink the wanted rows, which are inputs of layers or hidden rows. First checks that they are finite. Where
 * logits are computed, the logits are checked instead. */
static fr_status hand_out_rows(fr_session *s, const fr_forward *f, const scoring *what) {
    const float *values = what->layers ? what->aux : f->hidden;
    size_t count = f->batch.count, width = (what->layers ? what->layers->count : 1) * s->model->trunk.spec.hidden;
    for (size_t i = 0; i < count * width; i++)
        if (!isfinite(values[i])) return fr_session_not_finite(s, s->cache.kv.length + i / width);
    return what->rows(what->context, values, count, width);
}

/* Runs the next `count` ids and gives the sink the values that are wanted. */
static fr_status score_chunk(fr_session *s, size_t count, const scoring *what) {
    fr_engine *e = s->engine;
    size_t position = s->cache.kv.length;
    size_t first = what->first_row > position ? fr_smaller(what->first_row - position, count) : 0;
    FR_TRY(fr_kv_claim(&s->cache.kv, count));
    fr_recurrent_certain(&s->cache.kv.recurrent, fr_smaller(position + count, s->length - 1));
    fr_batch_rows(s, position, count, 0, -1);
    fr_forward f = fr_batch_forward(e, count);
    f.keep = s->drafting.draft->follows ? 0 : first;
    if (what->layers) {
        f.aux_layers = what->layers;
        f.aux_hidden = what->aux;
    }
    fr_forward_run(e->pool, &f);
    FR_TRY(what->rows ? hand_out_rows(s, &f, what) : hand_out_logits(s, &f, first, what->logits, what->context));
    fr_timeline_advance(s, position + count, false);
    fr_session_keep_rows(s, count - 1, 1);
    return fr_session_see(s, count - 1);
}

/* Moves the frontier to the position before the last id, because that id must be run again for the token after it. */
static void retreat_before_last(fr_session *s) {
    fr_kv_rewind(&s->cache.kv, s->length - 1);
    fr_session_retreat(s);
}

/* Runs a text on an empty timeline. Afterwards, and also if it fails, the ids that were not run are pending. */
static fr_status score(fr_session *s, const int32_t *ids, size_t count, const scoring *what) {
    fr_session_clear(s);
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_timeline_choose_rope(s);
    FR_TRY(fr_session_follow(s));
    while (s->cache.kv.length < count) {
        FR_TRY(fr_session_check_abort(s));
        size_t rows = fr_batch_cut(s, fr_smaller(s->engine->chunk, count - s->cache.kv.length));
        fr_status status = score_chunk(s, rows, what);
        if (status == FR_OK) continue;
        if (s->cache.kv.length == count) retreat_before_last(s);
        fr_timeline_recover(s);
        return status;
    }
    fr_timeline_forget_pictures(s);
    retreat_before_last(s);
    return FR_OK;
}

fr_status fr_scoring_logits(fr_session *s, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context) {
    FR_TRY(fr_model_check_head(s->model));
    return score(s, ids, count, &(scoring){.first_row = first_row, .logits = sink, .context = context});
}

/* A text that is scored. The row of each id gives the log-probability of the id after it. */
typedef struct likelihoods {
    fr_session *session;
    const int32_t *ids; /* ids whose log-probabilities have not been given yet */
    size_t count;       /* number of entries of `ids` */
    fr_score_fn *sink;
    void *context;
    fr_status status; /* first status of the sink that is not FR_OK */
} likelihoods;

/* Gives the log-probabilities of a few rows to the sink. If rank 0's sink ends the scoring while rank 0 leads, the
 * other ranks do not learn this. So the text is run to its end on all ranks. */
static fr_status hand_out_likelihoods(void *context, const float *logits, size_t rows, size_t vocab) {
    likelihoods *t = context;
    fr_session *s = t->session;
    for (size_t r = 0; r < rows && t->count && t->status == FR_OK; r++, t->ids++, t->count--)
        t->status = fr_logprobs_score(&s->sampling.logprobs, logits + r * vocab, *t->ids, t->sink, t->context);
    return s->engine->leader ? FR_OK : t->status;
}

fr_status fr_scoring_ids(fr_session *s, const int32_t *ids, size_t count, fr_score_fn *sink, void *context) {
    likelihoods told = {.session = s, .ids = ids + 1, .count = count - 1, .sink = sink, .context = context};
    double start = fr_clock();
    fr_status status = fr_scoring_logits(s, ids, count, 0, hand_out_likelihoods, &told);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    fr_logprobs_forget(&s->sampling.logprobs);
    s->ran = 0; /* so that a later prompt that continues this text counts these ids as run, not as reused */
    return status == FR_OK ? told.status : status;
}

fr_status fr_scoring_rows(fr_session *s, const int32_t *ids, size_t count, const fr_aux_layers *layers,
                          fr_rows_fn *sink, void *context) {
    if (!layers) return score(s, ids, count, &(scoring){.rows = sink, .context = context});
    size_t rows = fr_smaller(s->engine->prompt_rows, count), width = layers->count * s->model->trunk.spec.hidden;
    float *aux = malloc(rows * width * sizeof *aux);
    if (!aux) return fr_fail_memory("inputs of layers", rows * width * sizeof *aux);
    fr_status status = score(s, ids, count, &(scoring){.rows = sink, .context = context, .layers = layers, .aux = aux});
    free(aux);
    return status;
}

fr_status fr_scoring_drafts(fr_session *s, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                            void *context) {
    int32_t drafts[FR_STEP_MAX];
    float *logits = s->engine->logits;
    s->engine->runs++;
    fr_session_clear(s);
    FR_TRY(fr_timeline_append(s, ids, count - 1));
    FR_TRY(fr_timeline_extend(s, ids + count - 1, 1));
    s->phase = FR_PHASE_BETWEEN; /* so that drafting begins as after a step that gave the last id */
    fr_draft_view view = fr_session_view(s);
    view.picker = NULL; /* drafts are chosen by the largest logit, whatever the sampler would draw */
    fr_proposal proposal = {.draft = s->drafting.draft, .view = &view, .count = steps, .ids = drafts, .logits = logits};
    FR_TRY(fr_draft_propose_one(&proposal));
    return sink(context, logits, proposal.proposed, s->model->trunk.spec.vocab);
}
