/* Pools hidden rows: see embedding.h. */
#include "src/engine/session/embedding.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
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

fr_status fr_embedding_of(fr_session *s, const int32_t *ids, size_t count, fr_pooling pooling, float *values) {
    size_t width = s->model->trunk.spec.hidden;
    pool p = {.pooling = pooling, .sums = calloc(width, sizeof *p.sums)};
    if (!p.sums) return fr_fail_memory("an embedding", width * sizeof *p.sums);
    double start = fr_clock();
    fr_status status = fr_scoring_rows(s, ids, count, NULL, take, &p);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    if (status == FR_OK) s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)count;
    if (status == FR_OK) status = finish(&p, s->model, values);
    free(p.sums);
    return status;
}
