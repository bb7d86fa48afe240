/* A model's forward on a pool of threads: see model.h. */
#include "src/layers/head.h"
#include "src/model/model.h"

void *fr_model_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads) {
    fr_activations a, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations_layout(&a, &model->trunk, model->kernels, model->weights.has_packed, arena, max_rows, 0, threads);
    a.reads_ahead = model->weights.exceed;
    if (place) *place = a;
    return place;
}

void fr_model_embed(const fr_model *model, int32_t id, float *row) {
    fr_trunk_embed(&model->trunk, model->kernels, id, row);
}

fr_expert_use fr_model_expert_use(const void *activations) {
    const fr_activations *a = activations;
    return a->experts ? a->experts->use : (fr_expert_use){0};
}

static void run_head(void *context, const fr_team *team) {
    fr_forward *f = context;
    fr_head head = fr_trunk_head(f, &f->model->trunk);
    fr_head_rows(team, &head, f);
}

static void run_forward(void *context, const fr_team *team) {
    fr_forward *f = context;
    fr_trunk_run(team, f);
    if (f->head_rows) run_head(f, team);
}

/* A row of logits among rows of a batch, so that forwards are told apart that take different times. */
enum { HEAD_ROW = 1 << 16 };

void fr_forward_run(fr_pool *pool, fr_forward *forward) {
    const fr_batch *batch = &forward->batch;
    size_t rows = batch->count + forward->head_rows * HEAD_ROW;
    fr_pool_run_some(pool, forward->model, rows, run_forward, forward);
    for (size_t r = 0; r < batch->count; r++)
        for (int32_t i = 0; i <= batch->rows[r].also; i++) fr_kv_ran(batch->timelines[batch->rows[r].timeline + i]);
}

void fr_head_run(fr_pool *pool, fr_forward *forward) {
    fr_pool_run_some(pool, forward->model, forward->head_rows * HEAD_ROW, run_head, forward);
}
