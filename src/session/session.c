/* A session opened, shown pictures, closed: see session.h. */
#include "src/session/session.h"

#include <stdlib.h>

#include "formats/error.h"
#include "src/base/cores.h"
#include "src/base/sizes.h"

/* --------------------------------------------------------------------------------------------------- open and close */

static size_t batch_rows(const fr_session *s) {
    return fr_larger(s->chunk, FR_STEP_MAX);
}

/* The target's KV shapes, its windows as long as the drafter looks back. malloc'd. */
static fr_kv_shape *kv_shapes(const fr_session *s) {
    const fr_model *model = s->model;
    fr_kv_shape *shapes = malloc(model->trunk.kv_count * sizeof *shapes);
    for (size_t i = 0; shapes && i < model->trunk.kv_count; i++) {
        shapes[i] = model->trunk.kv_shapes[i];
        if (shapes[i].window && s->drafter) shapes[i].window = fr_larger(shapes[i].window, s->drafter->lookback);
    }
    return shapes;
}

/* NULL: there is no drafter. */
static const char *drafter_path(const fr_session *s) {
    return s->drafter ? fr_drafter_path(s->drafter) : NULL;
}

/* Everything the session works in; called twice, with a measuring arena and a real one. */
static void layout(fr_session *s, const fr_kv_shape *shapes) {
    const fr_model *model = s->model;
    size_t rows = batch_rows(s), threads = model->plan.threads, before = s->arena.used;
    const fr_kv_room room = {s->context, s->swa_full ? s->context : rows, s->checkpoints_max, 0};
    fr_kv_layout(&s->kv, &s->arena, shapes, model->trunk.kv_count, s->kv_types, room);
    size_t after_kv = s->arena.used;
    size_t spare = fr_kv_spare_bytes(&s->kv);
    fr_kv_checkpoints_layout(&s->kv_checkpoints, &s->arena, &s->kv);
    size_t after_checkpoints = s->arena.used;
    s->activations = fr_model_layout(model, &s->arena, rows, threads);
    s->rows = fr_arena_take(&s->arena, rows, sizeof *s->rows);
    const fr_draft_sizes sizes = {threads, s->context, rows, s->kv_types};
    s->draft = fr_draft_list_open(&s->methods, s->drafter, &s->arena, &sizes);
    s->ids = fr_arena_take(&s->arena, s->context, sizeof *s->ids);
    s->places = fr_arena_take(&s->arena, s->context + FR_STEP_MAX, sizeof *s->places);
    s->hidden = fr_arena_take(&s->arena, rows * model->trunk.spec.hidden, sizeof *s->hidden);
    s->logits = fr_arena_take(&s->arena, FR_STEP_MAX * model->trunk.spec.vocab, sizeof *s->logits);
    s->best = fr_arena_take(&s->arena, threads * FR_STEP_MAX, sizeof *s->best);
    fr_sampler_layout(&s->sampler, &s->arena, s->drafter ? s->draft_max : 0);
    fr_logprobs_layout(&s->logprobs, &s->arena, s->logprobs_best, model->kernels, model->trunk.spec.vocab);
    fr_stats_layout(&s->stats, &s->arena, s->context);
    fr_trace_layout(&s->trace, &s->arena, model->files.path, drafter_path(s), rows);
    s->stats.value[FR_STAT_TARGET_KV_BYTES] = (double)(after_kv - before - spare);
    s->stats.value[FR_STAT_CHECKPOINT_BYTES] = (double)(after_checkpoints - after_kv + spare);
    s->stats.value[FR_STAT_SCRATCH_BYTES] = (double)(s->arena.used - after_checkpoints);
}

/* Lays it out without memory: arena.used is what it takes. */
static fr_status measure(fr_session *s, const fr_kv_shape *shapes) {
    layout(s, shapes);
    if (!s->arena.overflow) return FR_OK;
    return fr_fail(FR_MEMORY, "a context of %zu does not fit this machine's memory", s->context);
}

static fr_status take_memory(fr_session *s) {
    fr_kv_shape *shapes = kv_shapes(s);
    if (!shapes) return fr_fail_memory("KV shapes", s->model->trunk.kv_count * sizeof *shapes);
    fr_status status = measure(s, shapes);
    if (status == FR_OK) status = fr_arena_open(&s->arena, s->arena.used, "session");
    if (status == FR_OK) layout(s, shapes);
    free(shapes);
    return status == FR_OK ? fr_arena_check(&s->arena, "session") : status;
}

static void note_memory(fr_session *s) {
    const fr_kv *own = s->draft->method->kv ? s->draft->method->kv(s->draft) : NULL;
    double *value = s->stats.value;
    value[FR_STAT_TARGET_WEIGHT_BYTES] = (double)fr_model_bytes(s->model);
    value[FR_STAT_DRAFT_WEIGHT_BYTES] = s->drafter ? (double)s->drafter->weights.bytes : 0.0;
    value[FR_STAT_DRAFT_KV_BYTES] = own ? (double)fr_kv_bytes(own) : 0.0;
}

static fr_status choose_drafting(fr_session *s, const fr_options *options) {
    int64_t most = options->value[FR_OPT_DRAFT_MAX];
    FR_TRY(fr_draft_list_choose(most ? options->spec_type : "none", s->drafter, &s->methods));
    s->adapts = most == FR_DRAFT_AUTO;
    s->draft_max = most == FR_DRAFT_AUTO ? FR_STEP_MAX - 1 : (size_t)most;
    fr_depth_reset(&s->depth);
    return FR_OK;
}

/* All that decides what it takes. */
static fr_status choose_sizes(fr_session *s, const fr_options *options) {
    const fr_model *model = s->model;
    int64_t context = options->value[FR_OPT_CONTEXT];
    s->context = context > 0 ? (size_t)context : fr_smaller(4096, model->trunk.spec.context_limit);
    if (s->context > model->trunk.spec.context_limit)
        return fr_fail(FR_INPUT, "%s: a context of %zu is beyond the model's %zu", model->files.path, s->context,
                       model->trunk.spec.context_limit);
    s->chunk = fr_smaller((size_t)options->value[FR_OPT_CHUNK], s->context);
    FR_TRY(choose_drafting(s, options));
    s->ignore_eos = options->value[FR_OPT_IGNORE_EOS] != 0;
    s->swa_full = options->value[FR_OPT_SWA_FULL] != 0;
    s->checkpoints_max = (size_t)options->value[FR_OPT_CTX_CHECKPOINTS];
    s->logprobs_best = options->value[FR_OPT_LOGPROBS];
    FR_TRY(fr_sampler_set(&s->sampler, options, model->kernels, model->trunk.spec.vocab));
    s->kv_types = fr_model_kv_types(model, options);
    return fr_kv_check(model->trunk.kv_shapes, model->trunk.kv_count, s->kv_types);
}

static fr_status open_session(fr_session *s, const fr_options *options) {
    FR_TRY(choose_sizes(s, options));
    FR_TRY(take_memory(s));
    note_memory(s);
    fr_session_place(s, 0, 0);
    s->plan = s->model->plan;
    fr_cores_claim(&s->model->machine, &s->plan);
    return fr_pool_open(&s->plan, &s->pool);
}

/* NULL: no memory. */
static fr_session *new_session(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    fr_session *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->model = model;
    s->drafter = drafter;
    s->embeddings = &fr_no_input_embeddings;
    s->log = options->log;
    s->picker = fr_sampler_picker(&s->sampler);
    s->timelines[0] = &s->kv;
    return s;
}

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             fr_session_bytes *bytes) {
    fr_session *s = new_session(model, drafter, options);
    if (!s) return fr_fail_memory("session", sizeof *s);
    fr_status status = choose_sizes(s, options);
    fr_kv_shape *shapes = kv_shapes(s);
    if (status == FR_OK && !shapes) status = fr_fail_memory("KV shapes", model->trunk.kv_count * sizeof *shapes);
    if (status == FR_OK) status = measure(s, shapes);
    *bytes = (fr_session_bytes){s->context, (size_t)s->stats.value[FR_STAT_TARGET_KV_BYTES], s->arena.used};
    free(shapes);
    fr_session_destroy(s);
    return status;
}

fr_status fr_session_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                            fr_session **session) {
    *session = NULL;
    fr_session *s = new_session(model, drafter, options);
    if (!s) return fr_fail_memory("session", sizeof *s);
    fr_status status = open_session(s, options);
    if (status == FR_OK)
        *session = s;
    else
        fr_session_destroy(s);
    return status;
}

void fr_session_destroy(fr_session *s) {
    if (!s) return;
    fr_worker_close(s->async.worker);
    if (s->draft && s->draft->method->close) s->draft->method->close(s->draft);
    fr_shown_free(&s->shown);
    fr_pool_close(s->pool);
    fr_cores_release(&s->plan);
    fr_arena_close(&s->arena);
    free(s->attached);
    free(s);
}

fr_status fr_session_look(fr_session *s, const fr_picture *const *pictures, size_t count) {
    double start = fr_clock();
    if (s->embeddings != &fr_no_input_embeddings) return fr_fail(FR_USAGE, "a prompt with pictures is still to be run");
    FR_TRY(fr_shown_run(&s->shown, s->pool, s->model->plan.threads, pictures, count));
    s->stats.value[FR_STAT_VISION_SECONDS] += fr_clock() - start;
    return FR_OK;
}

void fr_session_trace(fr_session *s, fr_trace_fn *line, void *context) {
    const fr_trace_subject subject = {.model = s->model->files.path,
                                      .drafter = drafter_path(s),
                                      .method = s->draft->method->name,
                                      .isa = s->model->kernels->isa,
                                      .draft_max = s->draft_max,
                                      .threads = s->model->plan.threads,
                                      .context = s->context};
    fr_trace_begin(&s->trace, &s->stats, &subject, line, context);
}
