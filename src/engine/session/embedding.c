/* Pools hidden rows: see embedding.h. */
#include "src/engine/session/embedding.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/scoring.h"
#include "src/engine/session/session.h"

typedef struct pool {
    fr_pooling pooling;
    size_t seen;  /* number of rows so far */
    double *sums; /* [hidden] sum of the rows so far */
} pool;

static fr_status take(void *context, const float *rows, size_t count, size_t width) {
    pool *p = context;
    for (size_t r = 0; r < count; r++, p->seen++) {
        bool all = p->pooling == FR_POOLING_MEAN, first = p->seen == 0;
        if (p->pooling == FR_POOLING_CLS && !first) continue;
        for (size_t i = 0; i < width; i++)
            p->sums[i] = (all && !first ? p->sums[i] : 0.0) + (double)rows[r * width + i];
    }
    return FR_OK;
}

/* Scales the row to length 1 and checks that it is finite. A row of zeros has no direction and stays as it is. */
static fr_status finish(const pool *p, const fr_model *model, float *values) {
    size_t width = model->trunk.spec.hidden;
    double squares = 0;
    for (size_t i = 0; i < width; i++) squares += p->sums[i] * p->sums[i];
    double scale = squares > 0 ? 1.0 / sqrt(squares) : 0.0;
    for (size_t i = 0; i < width; i++) values[i] = (float)(p->sums[i] * scale);
    for (size_t i = 0; i < width; i++)
        if (!isfinite(values[i]))
            return fr_fail(FR_INPUT, "%s: an embedding has a value that is not finite", model->files.path);
    return FR_OK;
}

static fr_status open_pool(const fr_model *model, fr_pooling pooling, pool *p) {
    size_t width = model->trunk.spec.hidden;
    *p = (pool){.pooling = pooling, .sums = calloc(width, sizeof *p->sums)};
    return p->sums ? FR_OK : fr_fail_memory("an embedding", width * sizeof *p->sums);
}

fr_status fr_embedding_of(fr_session *s, const int32_t *ids, size_t count, fr_pooling pooling, float *values) {
    pool p;
    FR_TRY(open_pool(s->model, pooling, &p));
    double start = fr_clock();
    fr_status status = fr_scoring_rows(s, ids, count, NULL, take, &p);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    if (status == FR_OK) s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)count;
    if (status == FR_OK) status = finish(&p, s->model, values);
    free(p.sums);
    return status;
}

/* Texts whose rows are pooled one text after the other, as the group gives them. */
typedef struct pooled_texts {
    pool pool;
    const fr_model *model;
    const fr_group_text *texts;
    float *values;
    size_t done;
} pooled_texts;

static fr_status take_group_rows(void *context, size_t text, const float *rows, size_t count, size_t width) {
    pooled_texts *t = context;
    FR_TRY(take(&t->pool, rows, count, width));
    if (t->pool.seen < t->texts[text].count) return FR_OK;
    t->pool.seen = 0;
    FR_TRY(finish(&t->pool, t->model, t->values + text * width));
    t->done = text + 1;
    return FR_OK;
}

fr_status fr_embedding_of_texts(fr_session *s, const fr_group_text *texts, size_t count, fr_pooling pooling,
                                float *values, size_t *done) {
    pooled_texts t = {.model = s->model, .texts = texts, .values = values};
    fr_text_group group = {.sessions = {s}, .count = 1};
    size_t most = fr_smaller(count, FR_TEXT_GROUP_MAX);
    *done = 0;
    FR_TRY(open_pool(s->model, pooling, &t.pool));
    double start = fr_clock();
    fr_session_clear(s);
    /* If there is no place or no memory for a further session, fewer texts are run at the same time. */
    while (group.count < most && fr_session_copy(s, &s->options, &group.sessions[group.count]) == FR_OK) group.count++;
    fr_status status = fr_text_group_run(&group, texts, count, false, take_group_rows, &t);
    while (group.count > 1) fr_session_destroy(group.sessions[--group.count]);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    for (size_t i = 0; i < t.done; i++) s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)texts[i].count;
    *done = t.done;
    free(t.pool.sums);
    return status;
}
