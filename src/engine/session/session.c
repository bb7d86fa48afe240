/* Opens a session, shows it pictures, and closes it: see session.h. */
#include "src/engine/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "src/engine/session/timeline.h"

/* --------------------------------------------------------------------------------------------------- open and close */

/* Gives the drafter's path, or NULL if there is no drafter. */
static const char *drafter_path(const fr_session *s) {
    return s->drafter ? fr_drafter_path(s->drafter) : NULL;
}

/* Takes the session's own memory from the arena. Called twice: first with a measuring arena, then with a real one. */
static void layout(fr_session *s) {
    const fr_engine *e = s->engine;
    const fr_model *model = s->model;
    size_t vocab = model->trunk.spec.vocab;
    const fr_draft_sizes sizes = fr_engine_draft_sizes(e);
    fr_kv_layout_fork(&s->cache.kv, &s->arena, &e->kv);
    fr_kv_checkpoints_layout(&s->cache.checkpoints, &s->arena, &s->cache.kv);
    fr_kv_path_layout(&s->cache.path, &s->arena, &s->cache.kv);
    s->cache.digests = fr_arena_take(&s->arena, s->cache.kv.blocks, sizeof *s->cache.digests);
    size_t before = s->arena.used;
    s->drafting.draft = fr_draft_list_open(&s->drafting.methods, s->drafter, &s->arena, &sizes, e->draft_workspaces);
    s->drafting.bytes = s->arena.used - before;
    s->ids = fr_arena_take(&s->arena, s->context, sizeof *s->ids);
    s->rope_positions = fr_arena_take(&s->arena, s->context + FR_STEP_MAX, sizeof *s->rope_positions);
    s->drafting.hidden = fr_arena_take(&s->arena, FR_STEP_MAX * e->hidden_width, sizeof *s->drafting.hidden);
    s->drafting.aux_hidden = fr_arena_take(&s->arena, FR_STEP_MAX * e->aux_width, sizeof *s->drafting.aux_hidden);
    fr_sampler_layout(&s->sampling.sampler, &s->arena, s->drafter ? s->drafting.max : 0);
    fr_logprobs_layout(&s->sampling.logprobs, &s->arena, s->sampling.logprobs_best, s->sampling.sampler.tells,
                       model->kernels, vocab);
    fr_stats_layout(&s->stats, &s->arena, s->context);
    fr_trace_layout(&s->trace, &s->arena, model->files.path, drafter_path(s), e->rows);
}

/* Lays the session out with an arena that only counts bytes. arena.used is then the memory that the session takes. */
static fr_status measure(fr_session *s) {
    layout(s);
    if (!s->arena.overflow) return FR_OK;
    return fr_fail_about(FR_OPT_CONTEXT, FR_MEMORY, "a context of %zu does not fit this machine's memory", s->context);
}

static fr_status take_memory(fr_session *s) {
    FR_TRY(measure(s));
    FR_TRY(fr_arena_open(&s->arena, s->arena.used, "session"));
    layout(s);
    return fr_arena_check(&s->arena, "session");
}

static void note_memory_use(fr_session *s) {
    fr_memory_use memory_use = fr_model_memory_use(s->model);
    if (s->drafter) {
        fr_memory_use drafters = fr_drafter_memory_use(s->drafter);
        memory_use = fr_memory_use_sum(&memory_use, &drafters);
    }
    s->stats.value[FR_STAT_RESIDENT_BYTES] = (double)memory_use.stays;
    s->stats.value[FR_STAT_MAPPED_BYTES] = (double)memory_use.mapped;
}

static void note_memory(fr_session *s) {
    const fr_engine *e = s->engine;
    size_t drafter = 0;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        fr_draft *reader = fr_draft_reader(s->drafting.draft, i);
        if (reader && reader->method->kv) drafter += fr_kv_pool_bytes(reader->method->kv(reader));
    }
    double *value = s->stats.value;
    value[FR_STAT_TARGET_WEIGHT_BYTES] = (double)fr_model_bytes(s->model);
    value[FR_STAT_DRAFT_WEIGHT_BYTES] = (double)fr_drafter_bytes(s->drafter);
    note_memory_use(s);
    value[FR_STAT_DRAFT_KV_BYTES] = (double)drafter;
    value[FR_STAT_TARGET_KV_BYTES] = (double)(e->kv_bytes - e->spare_bytes);
    value[FR_STAT_STATE_BYTES] =
        (double)fr_recurrent_page_bytes(s->cache.kv.recurrent.shapes, s->cache.kv.recurrent.count);
    value[FR_STAT_STATE_DRAFT_BYTES] =
        (double)fr_recurrent_position_bytes(s->cache.kv.recurrent.shapes, s->cache.kv.recurrent.count);
    value[FR_STAT_CHECKPOINT_BYTES] = (double)e->spare_bytes;
    value[FR_STAT_SCRATCH_BYTES] = (double)(e->arena.used - e->kv_bytes - drafter + s->arena.used);
}

fr_status fr_session_check_n_min(const fr_session *s, const fr_options *options) {
    bool rejects = options->value[FR_OPT_ACCEPT] == FR_ACCEPT_REJECTION &&
                   (options->number[FR_OPT_TEMPERATURE] > 0 || options->number[FR_OPT_DYNATEMP_RANGE] > 0);
    size_t n_min = (size_t)options->value[FR_OPT_DRAFT_MIN];
    if (s->drafting.max && n_min > s->drafting.max)
        return fr_fail(FR_USAGE, "draft-min %zu is more than the %zu drafts of draft-max", n_min, s->drafting.max);
    if (rejects && n_min > 1)
        return fr_fail(FR_USAGE, "draft-min can't be heeded under rejection: the text would have another distribution");
    return FR_OK;
}

static fr_status choose_drafting(fr_session *s, const fr_options *options) {
    int64_t most = options->value[FR_OPT_DRAFT_MAX];
    FR_TRY(fr_draft_list_choose(most ? options->spec_type : "none", s->drafter, &s->drafting.methods));
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++)
        if (fr_draft_list_uses(&s->drafting.methods, i) && !s->engine->drafters[i])
            return fr_fail(FR_USAGE, "spec-type %s: the engine was opened for drafts of another kind",
                           fr_drafter_at(s->drafter, i)->method->name);
    s->drafting.adapts = most == FR_DRAFT_AUTO;
    s->drafting.max = most == FR_DRAFT_AUTO ? FR_STEP_MAX - 1 : (size_t)most;
    s->drafting.min = (size_t)options->value[FR_OPT_DRAFT_MIN];
    s->drafting.p_min = options->number[FR_OPT_DRAFT_P_MIN];
    FR_TRY(fr_session_check_n_min(s, options));
    fr_draft_depth_join(&s->engine->draft_depth, &s->drafting.depth);
    return FR_OK;
}

/* Chooses the sizes on which the session's memory depends. */
static fr_status choose_sizes(fr_session *s, const fr_options *options) {
    const fr_model *model = s->model;
    s->context = s->engine->context;
    FR_TRY(choose_drafting(s, options));
    s->ignore_eos = options->value[FR_OPT_IGNORE_EOS] != 0;
    s->sampling.logprobs_best = options->value[FR_OPT_LOGPROBS];
    FR_TRY(fr_sampler_set(&s->sampling.sampler, options, model->kernels, model->trunk.spec.vocab));
    fr_sampler_suppress(&s->sampling.sampler, model->suppressed, model->suppressed_count);
    fr_sampler_limit(&s->sampling.sampler, s->context);
    if (s->sampling.sampler.tells) s->sampling.sampler.told = &s->sampling.logprobs;
    return FR_OK;
}

/* Makes a session without memory of its own; NULL if there is no memory. */
static fr_session *new_session(fr_engine *engine, const fr_options *options) {
    fr_session *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->engine = engine;
    s->model = engine->model;
    s->drafter = engine->drafter;
    s->embeddings = &fr_no_input_embeddings;
    s->options = *options;
    s->options.biases = NULL; /* the biases belong to the caller until the session is opened */
    s->sampling.stops.which = -1;
    s->log = options->log;
    return s;
}

/* Gives the bytes of an engine that was laid out, and of one of its sessions. */
static fr_session_bytes bytes_of(const fr_engine *e, const fr_session *s) {
    const fr_recurrent *r = &s->cache.kv.recurrent;
    return (fr_session_bytes){.context = e->context,
                              .target_kv = e->kv_bytes - e->spare_bytes,
                              .states = e->capacity * fr_recurrent_page_bytes(r->shapes, r->count),
                              .least_kv = e->shares ? e->kv.fewest_bytes : 0,
                              .foreign_kv = fr_kv_foreign_bytes(&e->kv),
                              .checkpoints = e->spare_bytes,
                              .drafting = s->drafter ? e->drafting_bytes + e->capacity * s->drafting.bytes : 0,
                              .all = e->arena.used + e->capacity * s->arena.used};
}

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             size_t sessions, fr_session_bytes *bytes) {
    fr_engine engine;
    FR_TRY(fr_engine_measure(&engine, model, drafter, options, sessions));
    fr_session *s = new_session(&engine, options);
    if (!s) return fr_fail_memory("session", sizeof *s);
    fr_status status = choose_sizes(s, options);
    if (status == FR_OK) status = measure(s);
    *bytes = bytes_of(&engine, s);
    free(s);
    return status;
}

static fr_status open_session(fr_session *s, const fr_options *options) {
    fr_engine *e = s->engine;
    while (s->number < e->capacity && e->timelines[s->number]) s->number++;
    if (s->number == e->capacity)
        return fr_fail(FR_USAGE, "the engine has room for %zu sessions, all are open", e->capacity);
    s->options.biases = options->biases;
    FR_TRY(fr_options_own_biases(&s->options));
    FR_TRY(choose_sizes(s, &s->options));
    FR_TRY(fr_sampler_open(&s->sampling.sampler, options, s->model->tokenizer));
    s->sampling.picker = fr_sampler_token_picker(&s->sampling.sampler);
    FR_TRY(take_memory(s));
    e->timelines[s->number] = &s->cache.kv;
    e->sessions[s->number] = s;
    note_memory(s);
    fr_session_set_rope_positions(s, 0, 0);
    return FR_OK;
}

fr_status fr_session_create(fr_engine *engine, const fr_options *options, fr_session **session) {
    *session = NULL;
    fr_session *s = new_session(engine, options);
    if (!s) return fr_fail_memory("session", sizeof *s);
    fr_status status = open_session(s, options);
    if (status == FR_OK)
        *session = s;
    else
        fr_session_destroy(s);
    return status;
}

fr_status fr_session_copy(const fr_session *session, const fr_options *options, fr_session **copy) {
    if (session->shown.count) return fr_fail(FR_USAGE, "fr_session_fork: a prompt with pictures is still to be run");
    FR_TRY(fr_session_create(session->engine, options, copy));
    fr_sampler_become(&(*copy)->sampling.sampler, &session->sampling.sampler);
    (*copy)->adapters = session->adapters;
    (*copy)->cache.plain = session->cache.plain;
    fr_status status = fr_timeline_copy(*copy, session);
    if (status == FR_OK) status = fr_stops_copy(&(*copy)->sampling.stops, &session->sampling.stops);
    if (status == FR_OK) return FR_OK;
    fr_session_destroy(*copy);
    *copy = NULL;
    return status;
}

fr_status fr_session_create_alone(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                                  fr_session **session) {
    fr_engine *engine;
    *session = NULL;
    FR_TRY(fr_engine_create(model, drafter, options, 0, &engine));
    fr_status status = fr_session_create(engine, options, session);
    if (status == FR_OK)
        (*session)->own_engine = engine;
    else
        fr_engine_destroy(engine);
    return status;
}

/* Gives up the session's pages and its index in the engine. If opening failed before the session got its index, there
 * is nothing to do. */
static void let_go(fr_session *s) {
    fr_engine *e = s->engine;
    if (s->number == e->capacity || e->timelines[s->number] != &s->cache.kv) return;
    fr_session_offer(s);
    fr_kv_checkpoints_truncate(&s->cache.checkpoints, &s->cache.kv, 0);
    fr_kv_reset(&s->cache.kv);
    fr_session_retreat(s);
    e->timelines[s->number] = NULL;
    e->sessions[s->number] = NULL;
}

void fr_session_destroy(fr_session *s) {
    if (!s) return;
    fr_async_draft_close(s);
    let_go(s);
    if (s->drafting.draft && s->drafting.draft->method->close) s->drafting.draft->method->close(s->drafting.draft);
    fr_stops_close(&s->sampling.stops);
    fr_sampler_close(&s->sampling.sampler);
    fr_shown_free(&s->shown);
    fr_constraint_close(&s->sampling.sampler.constraint);
    free(s->sampling.sampler.masked);
    free(s->sampling.sampler.masked_ids);
    fr_arena_close(&s->sampling.arena);
    fr_arena_close(&s->arena);
    fr_engine_destroy(s->own_engine);
    free(s->saving.attached);
    free(s->saving.swapped_out);
    free(s->options.biases);
    free(s);
}

void fr_session_adapt(fr_session *s, const fr_adapter_set *adapters, const fr_kv_digest *digest) {
    if (memcmp(&s->cache.plain, digest, sizeof *digest) == 0) return;
    s->adapters = *adapters;
    s->cache.plain = *digest;
    fr_session_clear(s);
}

fr_status fr_session_be_shown(fr_session *s, const void *bytes, size_t size) {
    return fr_shown_unpack(&s->shown, fr_spec_picture_width(&s->model->trunk.spec), bytes, size);
}

/* Asks the session's callback whether to abort. The callback may run other sessions, which may make drafts in the
 * background on the same pool of threads. So the function waits for such drafts before it returns. */
static fr_status ask_abort(void *session) {
    fr_session *s = session;
    fr_status status = fr_session_check_abort(s);
    fr_engine_settle(s->engine);
    return status;
}

fr_status fr_session_look(fr_session *s, const fr_picture *const *pictures, size_t count) {
    double start = fr_clock();
    if (s->embeddings != &fr_no_input_embeddings) return fr_fail(FR_USAGE, "a prompt with pictures is still to be run");
    const fr_vision_ask ask = {ask_abort, s};
    size_t ran;
    fr_status status = fr_shown_run(&s->shown, &s->engine->pictures, s->engine->pool, s->model->plan.threads, pictures,
                                    count, &ask, &ran);
    s->stats.value[FR_STAT_VISION_SECONDS] += fr_clock() - start;
    s->stats.value[FR_STAT_TOWER_RUNS] += (double)ran;
    return status;
}

void fr_session_trace(fr_session *s, fr_trace_fn *line, void *context) {
    const fr_trace_subject subject = {.model = s->model->files.path,
                                      .drafter = drafter_path(s),
                                      .method = s->drafting.draft->method->name,
                                      .isa = s->model->kernels->isa,
                                      .draft_max = s->drafting.max,
                                      .threads = s->model->plan.threads,
                                      .context = s->context};
    fr_trace_begin(&s->trace, &s->stats, &subject, line, context);
}
