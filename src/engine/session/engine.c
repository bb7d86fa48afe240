/* Lays out, opens and closes an engine: see engine.h. */
#include "src/engine/session/engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/sizes.h"
#include "kernels/turbo.h"
#include "src/engine/session/batch.h"
#include "src/engine/session/draft_times.h"
#include "src/engine/session/mean_keys.h"
#include "src/engine/vision/mmproj.h"

/* The most rows whose logits are computed at a time. With more rows at a time a row would not take less time, and
 * logits take megabytes. */
enum { HEAD_ROWS_MAX = 64 };

/* Chooses the sizes on which the engine's memory depends. */
static fr_status choose_sizes(fr_engine *e, const fr_options *options) {
    const fr_model *model = e->model;
    const fr_trunk_spec *spec = &model->trunk.spec;
    int64_t context = options->value[FR_OPT_CONTEXT];
    e->context = context > 0 ? (size_t)context : fr_smaller(4096, spec->context_limit);
    if (e->context > spec->context_limit && spec->selected == spec->context_limit)
        return fr_fail_about(
            FR_OPT_CONTEXT, FR_UNBUILT,
            "%s: a context of %zu is not built: beyond %zu positions (index_topk) this model's attention "
            "reads a selection of them",
            model->files.path, e->context, spec->selected);
    if (e->context > spec->context_limit)
        return fr_fail(FR_INPUT, "%s: a context of %zu is beyond the model's %zu", model->files.path, e->context,
                       spec->context_limit);
    e->chunk = fr_smaller(fr_model_chunk(model, options, e->capacity == 1), e->context);
    e->round_chunk = e->chunk;
    e->prompt_rows = fr_larger(e->chunk, fr_smaller(model->block_rows, e->context));
    e->head_rows = fr_larger(e->capacity, fr_smaller(e->capacity * FR_STEP_MAX, HEAD_ROWS_MAX));
    e->rows = e->capacity == 1 ? fr_larger(e->prompt_rows, FR_STEP_MAX) : e->prompt_rows + e->head_rows;
    e->kv_memory = e->shares ? (size_t)options->value[FR_OPT_KV_MEMORY] : 0;
    e->swa_full = options->value[FR_OPT_SWA_FULL] != 0;
    e->checkpoints = (size_t)options->value[FR_OPT_CTX_CHECKPOINTS];
    e->kv_types = fr_model_kv_types(model, options);
    return fr_model_check_kv_types(model, e->kv_types);
}

fr_draft_sizes fr_engine_draft_sizes(const fr_engine *e) {
    return (fr_draft_sizes){.threads = e->model->plan.threads,
                            .context = e->context,
                            .sessions = e->capacity,
                            .rows = e->rows,
                            .pages = e->kv.page_count[FR_KV_FULL],
                            .checkpoints = e->checkpoints,
                            .kv_types = e->kv_types,
                            .workspace = NULL};
}

/* Reduces a KV layer to the heads that this rank stores. These are the heads that the rank computes, or all heads if
 * the drafter reads the layer. */
static void keep_heads(const fr_engine *e, size_t kv, fr_kv_shape *shape) {
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_drafter *drafter = fr_drafter_at(e->drafter, i);
        if (drafter && fr_drafter_borrows(drafter, kv)) return;
    }
    fr_trunk_keep_heads(&e->model->trunk, e->model->ranks, kv, shape);
}

/* Gives the target's KV shapes, malloc'd. They have the heads that this rank stores, and windows as long as the drafter
 * looks back. */
static fr_kv_shape *kv_shapes(const fr_engine *e) {
    const fr_trunk *trunk = &e->model->trunk;
    fr_kv_shape *shapes = malloc(trunk->kv_count * sizeof *shapes);
    for (size_t i = 0; shapes && i < trunk->kv_count; i++) {
        shapes[i] = trunk->kv_shapes[i];
        if (shapes[i].window && e->drafter) shapes[i].window = fr_larger(shapes[i].window, e->drafter->lookback);
        keep_heads(e, i, &shapes[i]);
    }
    return shapes;
}

/* Takes all memory from the arena. choose_drafting must be called first, because it decides how much memory drafting
 * needs. */
static void layout(fr_engine *e, const fr_kv_shape *shapes) {
    const fr_trunk *trunk = &e->model->trunk;
    size_t threads = e->model->plan.threads;
    const fr_kv_sizes kv_sizes = {.context = e->context,
                                  .batch = e->swa_full ? e->context : e->rows,
                                  .checkpoints = e->checkpoints,
                                  .timelines = e->capacity,
                                  .bytes = e->kv_memory,
                                  .recurrent = trunk->recurrent_shapes,
                                  .recurrent_count = trunk->recurrent_count};
    fr_kv_layout(&e->kv, &e->arena, shapes, trunk->kv_count, e->kv_types, kv_sizes);
    e->kv_bytes = e->arena.used;
    e->spare_bytes = fr_kv_spare_bytes(&e->kv);
    fr_mean_keys_layout(e);
    e->activations = fr_model_layout(e->model, &e->arena, e->rows, threads);
    e->batch = fr_arena_take(&e->arena, e->rows, sizeof *e->batch);
    e->slices = fr_arena_take(&e->arena, e->capacity, sizeof *e->slices);
    e->depth_parts = fr_arena_take(&e->arena, e->capacity, sizeof *e->depth_parts);
    e->proposals = fr_arena_take(&e->arena, e->capacity, sizeof *e->proposals);
    e->views = fr_arena_take(&e->arena, e->capacity, sizeof *e->views);
    e->timelines = fr_arena_take(&e->arena, e->capacity, sizeof *e->timelines);
    e->adapters = fr_arena_take(&e->arena, e->capacity, sizeof *e->adapters);
    e->sessions = fr_arena_take(&e->arena, e->capacity, sizeof(fr_session *));
    e->hidden = fr_arena_take(&e->arena, e->rows * trunk->spec.hidden, sizeof *e->hidden);
    e->aux_hidden = e->aux_layers ? fr_arena_take(&e->arena, e->rows * e->aux_width, sizeof *e->aux_hidden) : NULL;
    e->logits = fr_arena_take(&e->arena, e->head_rows * trunk->spec.vocab, sizeof *e->logits);
    e->best = fr_arena_take(&e->arena, threads * e->head_rows, sizeof *e->best);
    const fr_draft_sizes sizes = fr_engine_draft_sizes(e);
    const fr_kv *caches[FR_DRAFTERS_MAX] = {NULL};
    size_t before = e->arena.used;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_draft_method *method = e->drafters[i] ? e->drafters[i]->method : &fr_draft_none;
        if (method->workspace) e->draft_workspaces[i] = method->workspace(e->drafters[i], &e->arena, &sizes);
        if (method->workspace_kv && e->draft_workspaces[i]) caches[i] = method->workspace_kv(e->draft_workspaces[i]);
    }
    e->drafting_bytes = e->arena.used - before;
    if (e->shares) fr_kv_prefixes_layout(&e->prefixes, &e->arena, &e->kv, caches);
}

/* Determines whether sessions with these options draft with the drafter's weights, and which rows drafting reads. */
static fr_status choose_drafting(fr_engine *e, const fr_options *options) {
    fr_draft_list methods;
    FR_TRY(fr_draft_list_choose(options->value[FR_OPT_DRAFT_MAX] ? options->spec_type : "none", e->drafter, &methods));
    size_t readers = 0, hidden = e->model->trunk.spec.hidden;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_drafter *drafter = fr_draft_list_uses(&methods, i) ? fr_drafter_at(e->drafter, i) : NULL;
        e->drafters[i] = drafter;
        if (drafter && drafter->aux_layers.count) e->aux_layers = &drafter->aux_layers;
        readers += drafter && !drafter->aux_layers.count;
    }
    e->aux_width = e->aux_layers ? hidden * e->aux_layers->count : 0;
    e->hidden_width = e->aux_layers && readers == 0 ? 0 : hidden;
    return FR_OK;
}

/* Measures the engine's memory with an arena that only counts bytes. Then takes the memory and lays the engine out
 * again. */
static fr_status take_memory(fr_engine *e, bool measure_only) {
    fr_status status = FR_OK;
    fr_kv_shape *shapes = kv_shapes(e);
    if (!shapes) return fr_fail_memory("KV shapes", e->model->trunk.kv_count * sizeof *shapes);
    layout(e, shapes);
    if (e->kv_memory && e->kv_memory < e->kv.fewest_bytes)
        status = fr_fail_about(FR_OPT_KV_MEMORY, FR_INPUT,
                               "%zu bytes of keys and values: a context of %zu needs at least %zu", e->kv_memory,
                               e->context, e->kv.fewest_bytes);
    else if (e->arena.overflow)
        status = fr_fail(FR_MEMORY, "a context of %zu does not fit this machine's memory", e->context);
    if (status == FR_OK && !measure_only) {
        status = fr_arena_open(&e->arena, e->arena.used, "session");
        /* each rank fills only its part of each row, so huge pages would waste memory */
        if (e->model->ranks) fr_arena_small_pages(&e->arena, e->kv_bytes);
        if (status == FR_OK) layout(e, shapes);
        if (status == FR_OK) status = fr_arena_check(&e->arena, "session");
        if (status == FR_OK && e->shares) fr_kv_prefixes_serve(&e->prefixes);
    }
    free(shapes);
    return status;
}

static fr_status prepare(fr_engine *e, const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                         size_t sessions, bool measure_only) {
    *e = (fr_engine){.model = model,
                     .drafter = drafter,
                     .capacity = fr_larger(sessions, 1),
                     .shares = sessions > 0,
                     .process = getpid()};
    FR_TRY(fr_model_check_generates(model));
    FR_TRY(choose_sizes(e, options));
    FR_TRY(choose_drafting(e, options));
    return take_memory(e, measure_only);
}

fr_status fr_engine_measure(fr_engine *e, const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                            size_t sessions) {
    return prepare(e, model, drafter, options, sessions, true);
}

static bool is_foreign(const fr_engine *e) {
    return e->process != getpid();
}

fr_status fr_engine_check_process(const fr_engine *e) {
    if (!is_foreign(e)) return FR_OK;
    return fr_fail(FR_USAGE, "process %d opened the session, and its threads are there: open one here, in process %d",
                   (int)e->process, (int)getpid());
}

static fr_status learn_mean_keys(fr_engine *e) {
    fr_kv_shape *shapes = kv_shapes(e);
    if (!shapes) return fr_fail_memory("KV shapes", e->model->trunk.kv_count * sizeof *shapes);
    fr_status status = fr_mean_keys_learn(e, shapes);
    free(shapes);
    return status;
}

fr_status fr_engine_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                           fr_engine **engine) {
    *engine = NULL;
    fr_engine *e = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("engine", sizeof *e);
    fr_status status = prepare(e, model, drafter, options, sessions, false);
    if (status == FR_OK) {
        fr_draft_depth_reset(&e->draft_depth);
        /* Ranks use no stored times. Each rank would read a folder of its own, but all ranks must decide alike. */
        if (*options->draft_times && !model->ranks) e->draft_times = strdup(options->draft_times);
        if (e->draft_times) fr_draft_times_load(e, e->draft_times);
        e->plan = model->plan;
        fr_cores_claim(&model->machine, &e->plan);
        status = fr_pool_open(&e->plan, &e->pool);
    }
    if (status == FR_OK && fr_turbo(e->kv_types.k)) status = learn_mean_keys(e);
    if (status == FR_OK)
        *engine = e;
    else
        fr_engine_destroy(e);
    return status;
}

fr_status fr_files_check(const fr_model *model, const fr_drafter *drafter) {
    FR_TRY(fr_checkpoint_check(&model->files));
    if (model->mmproj) FR_TRY(fr_checkpoint_check(&model->mmproj->files));
    return drafter ? fr_checkpoint_check(&drafter->files) : FR_OK;
}

#define FILES_SECONDS 0.01 /* least number of seconds between two checks of the model's and drafter's files */

fr_status fr_engine_check_files(fr_engine *e) {
    double now = fr_clock();
    if (now < e->files_checked + FILES_SECONDS) return FR_OK;
    FR_TRY(fr_files_check(e->model, e->drafter));
    e->files_checked = now;
    return FR_OK;
}

void fr_engine_destroy(fr_engine *e) {
    if (!e) return;
    if (e->draft_times && !is_foreign(e)) fr_draft_times_store(e, e->draft_times);
    free(e->draft_times);
    if (!is_foreign(e)) fr_pool_close(e->pool); /* a process made by fork(2) does not have the threads */
    fr_cores_release(&e->plan);
    fr_arena_close(&e->arena);
    fr_kept_pictures_free(&e->pictures);
    free(e);
}

void fr_engine_settle(fr_engine *e) {
    if (e->drafting && !is_foreign(e)) fr_worker_wait(e->drafting);
    e->drafting = NULL;
}
