/* Runs a model's forward on a pool of threads: see model.h. */
#include "base/hash.h"
#include "base/ranks.h"
#include "src/engine/layers/head.h"
#include "src/engine/model/model.h"

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
    fr_team split = *team;
    split.ranks = f->model->ranks;
    fr_head_rows(&split, &head, f);
}

static void run_forward(void *context, const fr_team *team) {
    fr_forward *f = context;
    fr_team split = *team;
    split.ranks = f->model->trunk.stages ? NULL : f->model->ranks;
    fr_trunk_run(&split, f);
    if (f->head_rows) run_head(f, team);
}

/* A summary of a forward's rows, in their order. Ranks compare their summaries before they run the forward. */
typedef struct outline {
    uint64_t rows, keep, head_first, head_rows, best_alone, hash;
} outline;

static outline outline_of(const fr_forward *f) {
    outline o = {f->batch.count, f->keep, f->head_first, f->head_rows, f->best_alone, 0};
    for (size_t r = 0; r < f->batch.count; r++) {
        const fr_row *row = &f->batch.rows[r];
        const int32_t words[] = {row->id, row->timeline, row->position, row->parent};
        o.hash = fr_hash(o.hash, words, sizeof words);
    }
    return o;
}

/* Returns true if all ranks are about to run the same rows. If the rows differ, the ranks' messages would not fit
 * together, so the forward is not run. The session sees this in two ways: by fr_session_check_abort before its next
 * round, or by logits that are all not finite. */
static bool ranks_agree(const fr_forward *f) {
    if (!f->model->ranks) return true;
    outline o = outline_of(f);
    return fr_ranks_agree(f->model->ranks, &o, sizeof o, "its next forward") == FR_OK;
}

static void spoil_if_failed(const fr_forward *f) {
    if (!f->model->ranks || fr_ranks_check(f->model->ranks) == FR_OK) return;
    for (size_t r = 0; r < f->head_rows; r++) f->best[r] = -1;
}

/* The pool compares the times of forwards of equal size (fr_pool_run_some). A forward's size is its number of rows plus
 * HEAD_ROW for each row of logits. So only forwards with the same number of logits are compared. */
enum { HEAD_ROW = 1 << 16 };

void fr_forward_run(fr_pool *pool, fr_forward *forward) {
    const fr_batch *batch = &forward->batch;
    size_t rows = batch->count + forward->head_rows * HEAD_ROW;
    if (ranks_agree(forward)) fr_pool_run_some(pool, forward->model, rows, run_forward, forward);
    spoil_if_failed(forward);
    for (size_t r = 0; r < batch->count; r++) fr_kv_ran(batch->timelines[batch->rows[r].timeline]);
}

void fr_head_run(fr_pool *pool, fr_forward *forward) {
    fr_pool_run_some(pool, forward->model, forward->head_rows * HEAD_ROW, run_head, forward);
    spoil_if_failed(forward);
}
