/* Scores prompts in rounds: see prompt_score.h. */
#include "src/engine/session/prompt_score.h"

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/timeline.h"

fr_status fr_prompt_score_put(fr_session *s, const int32_t *ids, size_t count, fr_score_fn *sink, void *context) {
    FR_TRY(fr_timeline_put_anew(s, ids, count));
    s->sampling.score = (fr_prompt_score){.sink = sink, .context = context, .next = 1};
    return FR_OK;
}

fr_status fr_prompt_score_drop(void *context, int32_t id, float own, const int32_t *ids, const float *values,
                               size_t best) {
    (void)context;
    (void)id;
    (void)own;
    (void)ids;
    (void)values;
    (void)best;
    return FR_OK;
}

/* Scores the ids after the part's rows without logits: the row of position p gives the log-probability of the id at p +
 * 1. The part's row with logits is the last one of the prompt, so no id follows it. If rank 0's sink ends the scoring
 * while rank 0 leads, the other ranks do not learn this. So rank 0 computes the remaining rows with them. */
static fr_status score_rows(const fr_batch_slice *part, size_t plain) {
    fr_session *s = part->session;
    fr_status status = FR_OK;
    fr_engine *e = s->engine;
    fr_prompt_score *score = &s->sampling.score;
    size_t first = (size_t)e->batch[part->at].position + 1, vocab = s->model->trunk.spec.vocab;
    fr_forward f = fr_batch_forward(e, part->at + plain);
    for (size_t done; (done = fr_larger(score->next, first) - first) < plain;) {
        f.head_first = part->at + done;
        f.head_rows = fr_smaller(f.best_stride, plain - done);
        fr_head_run(e->pool, &f);
        for (size_t r = 0; r < f.head_rows; r++) {
            if (f.best[r] < 0) {
                score->sink = NULL;
                return fr_session_not_finite(s, first + done + r - 1);
            }
            int32_t id = s->ids[score->next++];
            fr_status taken =
                fr_logprobs_score(&s->sampling.logprobs, f.logits + r * vocab, id, score->sink, score->context);
            if (taken == FR_OK) continue;
            status = taken;
            score->sink = e->leader ? fr_prompt_score_drop : NULL;
            if (!e->leader) return status;
        }
    }
    return status;
}

fr_status fr_prompt_score_take(const fr_batch_slice *part) {
    fr_session *s = part->session;
    size_t plain = part->rows - part->heads;
    fr_status status = s->sampling.score.sink && plain ? score_rows(part, plain) : FR_OK;
    if (s->phase != FR_PHASE_PENDING) s->sampling.score.sink = NULL;
    return status;
}
