/* The public functions: arguments checked, the floating-point environment set, then inward.
 *
 * In: whatever a caller passes. Out: what forerun.h promises. */
#include "forerun.h"

#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_place.h"
#include "base/fpenv.h"
#include "forerun_lab.h"
#include "formats/json_wide.h"
#include "kernels/cpu.h"
#include "src/draft/draft_list.h"
#include "src/session/cycle.h"
#include "src/session/session.h"
#include "src/session/session_file.h"
#include "src/session/timeline.h"

#define TEXT(number)                 #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *fr_version(void) {
    return VERSION(FR_VERSION_MAJOR, FR_VERSION_MINOR, FR_VERSION_PATCH);
}

static void log_notes(const fr_log *log, const fr_notes *notes) {
    for (size_t i = 0; fr_notes_line(notes, i); i++) fr_log_line(log, FR_LOG_WARN, "%s", fr_notes_line(notes, i));
}

static void log_model(const fr_log *log, const fr_model *model) {
    fr_log_line(log, FR_LOG_INFO, "%s: %s, %zu layers, %.2f GB of weights, instruction set %s, %zu threads",
                model->files.path, fr_checkpoint_architecture(&model->files), model->trunk.spec.layers,
                (double)fr_model_bytes(model) / 1e9, model->kernels->isa, model->plan.threads);
    log_notes(log, &model->weights.notes);
}

static void log_drafter(const fr_log *log, const fr_drafter *drafter) {
    fr_log_line(log, FR_LOG_INFO, "%s: drafter %s, %.2f GB of weights", fr_drafter_path(drafter), drafter->method->name,
                (double)drafter->weights.bytes / 1e9);
    log_notes(log, &drafter->weights.notes);
}

static void log_session(const fr_session *s) {
    const double *value = s->stats.value;
    fr_log_line(&s->log, FR_LOG_INFO,
                "session: context %zu, keys %s, values %s, MB of KV %.1f, checkpoints %.1f (%zu), scratch %.1f",
                s->context, fr_dtype_name(s->engine->kv_types.k), fr_dtype_name(s->engine->kv_types.v),
                value[FR_STAT_TARGET_KV_BYTES] / 1e6, value[FR_STAT_CHECKPOINT_BYTES] / 1e6, s->kv_checkpoints.capacity,
                value[FR_STAT_SCRATCH_BYTES] / 1e6);
}

/* Before a session runs anything: no other session of its engine drafts meanwhile. */
static uint64_t enter(fr_session *session) {
    fr_engine_settle(session->engine);
    return fr_fpenv_enter();
}

fr_status fr_model_open(const char *path, const fr_options *options, fr_model **model) {
    if (model) *model = NULL;
    if (!path || !model) return fr_fail(FR_USAGE, "fr_model_open: a path and a place for the model are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_model_load(path, &resolved, model);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_model(&resolved.log, *model);
    return status;
}

void fr_model_close(fr_model *model) {
    fr_model_unload(model);
}

int64_t fr_model_fact(const fr_model *model, fr_fact fact) {
    switch (fact) {
    case FR_FACT_VOCAB: return (int64_t)model->trunk.spec.vocab;
    case FR_FACT_HIDDEN: return (int64_t)model->trunk.spec.hidden;
    case FR_FACT_LAYERS: return (int64_t)model->trunk.spec.layers;
    case FR_FACT_MTP_LAYERS: return (int64_t)model->mtp_layers;
    case FR_FACT_IMAGE_TOKEN: return model->image_token;
    case FR_FACT_WINDOW: return (int64_t)fr_kv_window(model->trunk.kv_shapes, model->trunk.kv_count);
    case FR_FACT_CONTEXT_LIMIT: return (int64_t)model->trunk.spec.context_limit;
    case FR_FACT_WEIGHT_BYTES: return (int64_t)fr_model_bytes(model);
    case FR_FACT_COUNT: break;
    }
    return -1;
}

size_t fr_model_eos(const fr_model *model, const int32_t **ids) {
    *ids = model->eos;
    return model->eos_count;
}

size_t fr_model_suppressed(const fr_model *model, const int32_t **ids) {
    *ids = model->suppressed;
    return model->suppressed_count;
}

const char *fr_model_isa(const fr_model *model) {
    return model->kernels->isa;
}

const char *fr_model_note(const fr_model *model, size_t index) {
    return fr_notes_line(&model->weights.notes, index);
}

const char *fr_drafter_note(const fr_drafter *drafter, size_t index) {
    return fr_notes_line(&drafter->weights.notes, index);
}

const fr_tokenizer *fr_model_tokenizer(const fr_model *model) {
    return model->tokenizer;
}

fr_status fr_drafter_open(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    if (drafter) *drafter = NULL;
    if (!target || !drafter) return fr_fail(FR_USAGE, "fr_drafter_open: a target and a place for it are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_drafter_load(path, target, &resolved, drafter);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_drafter(&resolved.log, *drafter);
    return status;
}

void fr_drafter_close(fr_drafter *drafter) {
    fr_drafter_unload(drafter);
}

fr_status fr_session_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                          fr_session **session) {
    if (session) *session = NULL;
    if (!model || !session) return fr_fail(FR_USAGE, "fr_session_open: a model and a place for the session are needed");
    if (drafter && drafter->target != model) return fr_fail(FR_USAGE, "the drafter was opened on another model");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_create_alone(model, drafter, &resolved, session);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_session(*session);
    return status;
}

void fr_session_close(fr_session *session) {
    fr_session_destroy(session);
}

fr_status fr_engine_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                         fr_engine **engine) {
    if (engine) *engine = NULL;
    if (!model || !engine) return fr_fail(FR_USAGE, "fr_engine_open: a model and a place for the engine are needed");
    if (drafter && drafter->target != model) return fr_fail(FR_USAGE, "the drafter was opened on another model");
    if (sessions == 0 || sessions > FR_SESSIONS_MAX)
        return fr_fail(FR_USAGE, "fr_engine_open: 1 to %d sessions, not %zu", FR_SESSIONS_MAX, sessions);
    fr_options resolved = fr_options_resolve(options);
    return fr_engine_create(model, drafter, &resolved, sessions, engine);
}

void fr_engine_close(fr_engine *engine) {
    fr_engine_destroy(engine);
}

fr_status fr_engine_session(fr_engine *engine, const fr_options *options, fr_session **session) {
    if (session) *session = NULL;
    if (!engine || !session) return fr_fail(FR_USAGE, "fr_engine_session: an engine and a place for it are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_create(engine, &resolved, session);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_fork(const fr_session *session, const fr_options *options, fr_session **fork) {
    if (fork) *fork = NULL;
    if (!session || !fork) return fr_fail(FR_USAGE, "fr_session_fork: a session and a place for its fork are needed");
    fr_options resolved = options ? *options : session->options;
    fr_engine_settle(session->engine);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_copy(session, &resolved, fork);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_put(fr_session *session, const int32_t *ids, size_t count) {
    if (!ids || count == 0) return fr_fail(FR_INPUT, "the prompt is empty");
    uint64_t environment = enter(session);
    fr_async_draft_cancel(session);
    fr_status status = fr_timeline_put(session, ids, count);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_set_stops(fr_session *session, const char *const *strings, size_t count) {
    if (count > FR_STOPS_MAX || (count && !strings))
        return fr_fail(FR_USAGE, "fr_session_set_stops: 0 to %d strings, not %zu", FR_STOPS_MAX, count);
    for (size_t i = 0; i < count; i++)
        if (!strings[i] || !*strings[i]) return fr_fail(FR_USAGE, "fr_session_set_stops: string %zu is empty", i);
    if (count && !session->model->tokenizer)
        return fr_fail(FR_INPUT, "%s has no tokenizer: its ids have no text", session->model->files.path);
    return fr_stops_set(&session->stops, session->model->tokenizer, strings, count);
}

int fr_session_stopped(const fr_session *session, size_t *before) {
    *before = session->stops.before;
    return session->stops.which;
}

size_t fr_session_waiting(const fr_session *session) {
    return session->pending ? session->length - session->kv.length : 0;
}

static fr_status check_rounds(const fr_engine *engine, const fr_round *rounds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const fr_round *r = &rounds[i];
        if (!r->session || r->session->engine != engine)
            return fr_fail(FR_USAGE, "fr_engine_step: session %zu is not of this engine", i);
        if (!r->ids || r->limit == 0) return fr_fail(FR_USAGE, "fr_engine_step: room for at least one id is needed");
        if (r->session->length == 0) return fr_fail(FR_USAGE, "fr_engine_step: session %zu has no prompt yet", i);
        for (size_t j = 0; j < i; j++)
            if (rounds[j].session == r->session)
                return fr_fail(FR_USAGE, "fr_engine_step: session %zu is there twice", i);
    }
    return FR_OK;
}

fr_status fr_engine_step(fr_engine *engine, fr_round *rounds, size_t count) {
    FR_TRY(check_rounds(engine, rounds, count));
    FR_TRY(fr_engine_check_files(engine));
    uint64_t environment = fr_fpenv_enter();
    fr_cycle_round(engine, rounds, count);
    fr_fpenv_leave(environment);
    return FR_OK;
}

void fr_session_cancel(fr_session *session) {
    atomic_store(&session->cancelled, true);
}

fr_status fr_picture_open(const char *path, const fr_model *model, fr_picture **picture) {
    if (picture) *picture = NULL;
    if (!path || !model || !picture) return fr_fail(FR_USAGE, "fr_picture_open: a path and a model are needed");
    if (!model->vision)
        return fr_fail(FR_INPUT, "%s has no vision tower%s: it can't see %s", model->files.path,
                       model->files.gguf && model->family->picture ? " (--mmproj FILE gives it one)" : "", path);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_picture_load(path, model->vision, picture);
    fr_fpenv_leave(environment);
    return status;
}

void fr_picture_close(fr_picture *picture) {
    fr_picture_unload(picture);
}

size_t fr_picture_tokens(const fr_picture *picture) {
    return picture->grid.rows * picture->grid.columns;
}

fr_status fr_session_show(fr_session *session, const fr_picture *const *pictures, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!pictures[i] || pictures[i]->vision != session->model->vision)
            return fr_fail(FR_USAGE, "fr_session_show: picture %zu was opened for another model", i);
    fr_async_draft_cancel(session);
    uint64_t environment = enter(session);
    fr_status status = fr_session_look(session, pictures, count);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_prompt(fr_session *session, const int32_t *ids, size_t count) {
    if (!ids || count == 0) return fr_fail(FR_INPUT, "the prompt is empty");
    fr_async_draft_cancel(session);
    uint64_t environment = enter(session);
    fr_status status = fr_timeline_append(session, ids, count);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_set_prompt(fr_session *session, const int32_t *ids, size_t count) {
    if (!ids || count == 0) return fr_fail(FR_INPUT, "the prompt is empty");
    fr_async_draft_cancel(session);
    uint64_t environment = enter(session);
    fr_status status = fr_timeline_set(session, ids, count);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_truncate(fr_session *session, size_t length) {
    if (length > session->length)
        return fr_fail(FR_USAGE, "fr_session_truncate: the timeline has %zu tokens, not %zu", session->length, length);
    fr_async_draft_cancel(session);
    return fr_timeline_truncate(session, length);
}

fr_status fr_session_save(const fr_session *session, const char *path) {
    if (!path) return fr_fail(FR_USAGE, "fr_session_save: a path is needed");
    return fr_session_write(session, path);
}

fr_status fr_session_restore(fr_session *session, const char *path) {
    if (!path) return fr_fail(FR_USAGE, "fr_session_restore: a path is needed");
    fr_async_draft_cancel(session);
    return fr_session_read(session, path);
}

fr_status fr_session_save_bytes(const fr_session *session, void **bytes, size_t *size) {
    if (!bytes || !size) return fr_fail(FR_USAGE, "fr_session_save_bytes: a place for bytes and their size is needed");
    return fr_session_write_bytes(session, bytes, size);
}

fr_status fr_session_restore_bytes(fr_session *session, const void *bytes, size_t size) {
    if (!bytes) return fr_fail(FR_USAGE, "fr_session_restore_bytes: bytes are needed");
    fr_async_draft_cancel(session);
    return fr_session_read_bytes(session, bytes, size);
}

fr_status fr_session_attach(fr_session *session, const void *bytes, size_t size) {
    if (size && !bytes) return fr_fail(FR_USAGE, "fr_session_attach: %zu bytes are needed", size);
    void *copy;
    FR_TRY(fr_session_copy_attached(bytes, size, &copy));
    fr_session_replace_attached(session, copy, size);
    return FR_OK;
}

const void *fr_session_attached(const fr_session *session, size_t *size) {
    *size = session->attached_size;
    return session->attached;
}

void fr_session_set_abort(fr_session *session, fr_abort_fn *abort, void *context) {
    session->abort = abort;
    session->abort_context = context;
}

fr_status fr_session_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    if (!ids || limit == 0) return fr_fail(FR_USAGE, "fr_session_step: room for at least one id is needed");
    if (session->length == 0) return fr_fail(FR_USAGE, "fr_session_step: give the session a prompt first");
    uint64_t environment = enter(session);
    fr_status status = fr_cycle_step(session, ids, limit, count, accepted);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_draft_submit(fr_session *session) {
    return fr_async_draft_submit(session);
}

fr_status fr_draft_wait(fr_session *session, int32_t *ids, size_t *count) {
    if (!ids || !count) return fr_fail(FR_USAGE, "fr_draft_wait: room for %d ids is needed", FR_STEP_MAX - 1);
    return fr_async_draft_wait(session, ids, count);
}

void fr_draft_cancel(fr_session *session) {
    fr_async_draft_cancel(session);
}

fr_status fr_draft_now(fr_session *session, size_t steps, int32_t *ids, size_t *count, float *logits) {
    if (!ids || !count || steps == 0 || steps >= FR_STEP_MAX)
        return fr_fail(FR_USAGE, "fr_draft_now: steps must be 1 to %d, with room for as many ids", FR_STEP_MAX - 1);
    uint64_t environment = enter(session);
    fr_status status = fr_async_draft_now(session, steps, ids, count, logits);
    fr_fpenv_leave(environment);
    return status;
}

bool fr_session_adapts(const fr_session *session) {
    return fr_session_adaptive(session);
}

size_t fr_session_logprobs(const fr_session *session, size_t index, float *own, const int32_t **ids,
                           const float **values) {
    const fr_logprobs *l = &session->logprobs;
    bool known = l->on && index < l->count;
    *own = known ? l->own[index] : NAN;
    *ids = known ? l->ids + index * l->best : NULL;
    *values = known ? l->values + index * l->best : NULL;
    return known ? l->best : 0;
}

size_t fr_session_length(const fr_session *session) {
    return session->length;
}

size_t fr_session_context(const fr_session *session) {
    return session->context;
}

void fr_session_reset(fr_session *session) {
    fr_async_draft_cancel(session);
    fr_session_clear(session);
}

fr_status fr_session_logits(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context) {
    if (!ids || count == 0) return fr_fail(FR_INPUT, "the prompt is empty");
    if (first_row >= count || !sink) return fr_fail(FR_USAGE, "fr_session_logits: first_row is beyond the prompt");
    fr_async_draft_cancel(session);
    uint64_t environment = enter(session);
    fr_status status = fr_cycle_score(session, ids, count, first_row, sink, context);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_session_draft_logits(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context) {
    if (!ids || count < 2)
        return fr_fail(FR_USAGE, "draft logits need at least two ids: the target runs all but the last");
    if (steps == 0 || steps >= FR_STEP_MAX || !sink)
        return fr_fail(FR_USAGE, "draft steps must be 1 to %d", FR_STEP_MAX - 1);
    if (!session->drafter || session->draft->method == &fr_draft_none)
        return fr_fail(FR_USAGE, "draft logits need a drafter");
    fr_async_draft_cancel(session);
    uint64_t environment = enter(session);
    fr_status status = fr_cycle_score_drafts(session, ids, count, steps, sink, context);
    fr_fpenv_leave(environment);
    return status;
}

/* One of the three of what the engine's pages are used for. */
static double kv_use(const fr_session *session, fr_stat stat) {
    fr_engine_settle(session->engine); /* drafts under way take pages, and what is cached goes for them */
    fr_kv_use use = fr_kv_prefixes_use(&session->engine->prefixes, &session->kv);
    if (stat == FR_STAT_KV_USED_BYTES) return (double)use.used;
    return (double)(stat == FR_STAT_KV_SHARED_BYTES ? use.shared : use.cached);
}

double fr_session_stat(const fr_session *session, fr_stat stat) {
    if (stat >= FR_STAT_KV_USED_BYTES && stat <= FR_STAT_KV_CACHED_BYTES) return kv_use(session, stat);
    if (stat == FR_STAT_PEAK_BYTES) return fr_peak_bytes();
    return (unsigned)stat < FR_STAT_COUNT ? session->stats.value[stat] : NAN;
}

double fr_session_depth_stat(const fr_session *session, size_t depth, fr_depth_stat stat) {
    if (depth >= FR_STEP_MAX - 1 || (unsigned)stat >= FR_DEPTH_COUNT) return NAN;
    return session->stats.depth[depth][stat];
}

void fr_session_set_trace(fr_session *session, fr_trace_fn *line, void *context) {
    fr_session_trace(session, line, context);
}

size_t fr_session_accepted_lengths(const fr_session *session, const uint8_t **lengths) {
    *lengths = session->stats.accepted_lengths;
    return session->stats.rounds;
}

/* -------------------------------------------------------------------------------------------------------------- lab */

const char *fr_lab_isa_word(size_t index) {
    return fr_isa_word(index);
}

bool fr_lab_takes_drafter(const char *spec_type) {
    return fr_draft_words_take_drafter(spec_type);
}

char *fr_lab_file_place(const char *path) {
    return fr_file_place(path);
}

json_t *fr_lab_json_load(const char *text, size_t length, size_t flags, json_error_t *error) {
    return fr_json_load_wide(text, length, flags, error);
}

bool fr_lab_isa_here(const char *word) {
    const fr_kernels *kernels;
    return fr_kernels_select(word, &kernels) == FR_OK;
}
