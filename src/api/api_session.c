/* Defines the public functions of a session. Each checks its arguments, sets the floating-point environment, and calls
 * the engine.
 *
 * In: a caller's arguments, which may be anything. Out: the results that forerun.h promises. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "forerun_lab.h"
#include "src/api/rank_leader.h"
#include "src/engine/session/embedding.h"
#include "src/engine/session/prompt_score.h"
#include "src/engine/session/round.h"
#include "src/engine/session/scoring.h"
#include "src/engine/session/session.h"
#include "src/engine/session/session_file.h"
#include "src/engine/session/timeline.h"

/* Checks that a session is given and belongs to this process. If not, returns FR_USAGE. */
static fr_status check(const fr_session *session, const char *call) {
    return session ? fr_engine_check_process(session->engine) : fr_fail_null(call, "a session");
}

/* Does check(). Also refuses the call if the engine leads other ranks, because this call is not sent to them. */
static fr_status check_alone(const fr_session *session, const char *call) {
    FR_TRY(check(session, call));
    return fr_rank_leader_refuse(session->engine, call);
}

static fr_status check_ids(const int32_t *ids, size_t count) {
    return ids && count ? FR_OK : fr_fail(FR_INPUT, "the prompt is empty");
}

/* Does check_alone(), and checks that the ids may be a prompt. */
static fr_status check_prompt(const fr_session *session, const int32_t *ids, size_t count, const char *call) {
    FR_TRY(check_alone(session, call));
    return check_ids(ids, count);
}

/* Checks that the caller gave a function for log-probabilities, and that the session computes them. */
static fr_status check_scores(const fr_session *session, fr_score_fn *sink, const char *call) {
    if (!sink) return fr_fail_null(call, "a function that takes log-probabilities");
    if (session->sampling.logprobs.on) return FR_OK;
    return fr_fail(FR_USAGE, "%s: the session was opened without FR_OPT_LOGPROBS", call);
}

/* Prepares a session for a call that runs its timeline or changes it. First waits for all drafts that the engine is
 * making, because all sessions take pages from the same pools. Then discards the drafts that the session has
 * requested. */
static uint64_t enter(fr_session *session) {
    fr_async_draft_cancel(session);
    return fr_fpenv_enter();
}

static fr_status leave(uint64_t environment, fr_status status) {
    fr_fpenv_leave(environment);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- prompts */

fr_status fr_session_show(fr_session *session, const fr_picture *const *pictures, size_t count) {
    FR_TRY(check(session, "fr_session_show"));
    for (size_t i = 0; i < count; i++)
        if (!pictures || !pictures[i] || pictures[i]->vision != session->model->vision)
            return fr_fail(FR_USAGE, "fr_session_show: picture %zu was opened for another model", i);
    uint64_t environment = enter(session);
    fr_status status = fr_session_look(session, pictures, count);
    fr_rank_leader_show(session, &status);
    return leave(environment, status);
}

fr_status fr_session_prompt(fr_session *session, const int32_t *ids, size_t count) {
    FR_TRY(check_prompt(session, ids, count, "fr_session_prompt"));
    uint64_t environment = enter(session);
    return leave(environment, fr_timeline_append(session, ids, count));
}

fr_status fr_session_set_prompt(fr_session *session, const int32_t *ids, size_t count) {
    FR_TRY(check_prompt(session, ids, count, "fr_session_set_prompt"));
    uint64_t environment = enter(session);
    return leave(environment, fr_timeline_set(session, ids, count));
}

fr_status fr_session_put(fr_session *session, const int32_t *ids, size_t count) {
    FR_TRY(check(session, "fr_session_put"));
    FR_TRY(check_ids(ids, count));
    uint64_t environment = enter(session);
    fr_status status = fr_timeline_put(session, ids, count);
    fr_rank_leader_put(session, status, ids, count);
    return leave(environment, status);
}

fr_status fr_session_put_scored(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink,
                                void *context) {
    FR_TRY(check(session, "fr_session_put_scored"));
    FR_TRY(check_ids(ids, count));
    FR_TRY(check_scores(session, sink, "fr_session_put_scored"));
    uint64_t environment = enter(session);
    fr_status status = fr_prompt_score_put(session, ids, count, sink, context);
    fr_rank_leader_put_scored(session, status, ids, count);
    return leave(environment, status);
}

fr_status fr_session_truncate(fr_session *session, size_t length) {
    FR_TRY(check_alone(session, "fr_session_truncate"));
    if (length > session->length)
        return fr_fail(FR_USAGE, "fr_session_truncate: the timeline has %zu tokens, not %zu", session->length, length);
    uint64_t environment = enter(session);
    return leave(environment, fr_timeline_truncate(session, length));
}

void fr_session_reset(fr_session *session) {
    if (check(session, "fr_session_reset") != FR_OK) return;
    fr_async_draft_cancel(session);
    fr_session_clear(session);
    fr_rank_leader_reset(session);
}

size_t fr_session_waiting(const fr_session *session) {
    return session && session->phase == FR_PHASE_PENDING ? session->length - session->cache.kv.length : 0;
}

size_t fr_session_length(const fr_session *session) {
    return session ? session->length : 0;
}

size_t fr_session_context(const fr_session *session) {
    return session ? session->context : 0;
}

size_t fr_session_ids(const fr_session *session, const int32_t **ids) {
    if (ids) *ids = session ? session->ids : NULL;
    return fr_session_length(session);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

fr_status fr_session_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    size_t unasked;
    accepted = accepted ? accepted : &unasked;
    *accepted = 0;
    if (!count) return fr_fail_null("fr_session_step", "a place for the count");
    *count = 0;
    FR_TRY(check_alone(session, "fr_session_step"));
    if (!ids || limit == 0) return fr_fail(FR_USAGE, "fr_session_step: room for at least one id is needed");
    if (session->length == 0) return fr_fail(FR_USAGE, "fr_session_step: give the session a prompt first");
    fr_engine_settle(session->engine);
    uint64_t environment = fr_fpenv_enter();
    return leave(environment, fr_round_step(session, ids, limit, count, accepted));
}

fr_status fr_session_next_logits(fr_session *session, const float **logits) {
    if (!logits) return fr_fail_null("fr_session_next_logits", "a place for the logits");
    *logits = NULL;
    FR_TRY(check_alone(session, "fr_session_next_logits"));
    if (session->length == 0) return fr_fail(FR_USAGE, "fr_session_next_logits: give the session a prompt first");
    uint64_t environment = enter(session);
    return leave(environment, fr_scoring_next_logits(session, logits));
}

fr_status fr_session_set_mask(fr_session *session, fr_mask_fn *mask, void *context) {
    FR_TRY(check(session, "fr_session_set_mask"));
    uint64_t environment = enter(session);
    fr_status status = fr_session_mask(session, mask, context);
    fr_rank_leader_decide(session, status);
    return leave(environment, status);
}

fr_status fr_session_set_grammar(fr_session *session, fr_grammar *grammar) {
    FR_TRY(check(session, "fr_session_set_grammar"));
    uint64_t environment = enter(session);
    fr_status status = fr_session_constrain(session, grammar);
    fr_rank_leader_decide(session, status);
    return leave(environment, status);
}

fr_status fr_session_begin_grammar(fr_session *session, size_t position) {
    FR_TRY(check(session, "fr_session_begin_grammar"));
    uint64_t environment = enter(session);
    fr_status status = fr_session_begin_constraint(session, position);
    fr_rank_leader_decide(session, status);
    return leave(environment, status);
}

fr_status fr_session_set_options(fr_session *session, const fr_options *options) {
    FR_TRY(check(session, "fr_session_set_options"));
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = enter(session);
    fr_status status = fr_session_resample(session, &resolved);
    fr_rank_leader_draw(session, status, &resolved);
    return leave(environment, status);
}

void fr_session_set_abort(fr_session *session, fr_abort_fn *abort, void *context) {
    if (!session) return;
    session->caller.abort = abort;
    session->caller.abort_context = context;
}

void fr_session_set_progress(fr_session *session, fr_prompt_fn *progress, void *context) {
    if (!session) return;
    session->caller.progress = progress;
    session->caller.progress_context = context;
}

void fr_session_cancel(fr_session *session) {
    if (session) atomic_store(&session->caller.cancelled, true);
}

fr_status fr_session_set_stops(fr_session *session, const char *const *strings, size_t count) {
    FR_TRY(check(session, "fr_session_set_stops"));
    if (count > FR_STOPS_MAX || (count && !strings))
        return fr_fail(FR_USAGE, "fr_session_set_stops: 0 to %d strings, not %zu", FR_STOPS_MAX, count);
    for (size_t i = 0; i < count; i++)
        if (!strings[i] || !*strings[i]) return fr_fail(FR_USAGE, "fr_session_set_stops: string %zu is empty", i);
    if (count && !session->model->tokenizer)
        return fr_fail(FR_INPUT, "%s has no tokenizer: its ids have no text", session->model->files.path);
    fr_status status = fr_stops_set(&session->sampling.stops, session->model->tokenizer, strings, count);
    fr_rank_leader_stops(session, status, strings, count);
    return status;
}

int fr_session_stopped(const fr_session *session, size_t *before) {
    if (before) *before = session ? session->sampling.stops.before : 0;
    return session ? session->sampling.stops.which : -1;
}

size_t fr_session_logprobs(const fr_session *session, size_t index, float *own, const int32_t **ids,
                           const float **values) {
    const fr_logprobs *l = session ? &session->sampling.logprobs : NULL;
    bool known = l && l->on && index < l->count;
    if (own) *own = known ? l->own[index] : NAN;
    if (ids) *ids = known ? l->ids + index * l->best : NULL;
    if (values) *values = known ? l->values + index * l->best : NULL;
    return known ? l->best : 0;
}

fr_status fr_session_logits(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context) {
    FR_TRY(check_prompt(session, ids, count, "fr_session_logits"));
    if (!sink) return fr_fail_null("fr_session_logits", "a function that takes rows");
    if (first_row >= count)
        return fr_fail(FR_USAGE, "fr_session_logits: first_row %zu is beyond the prompt's %zu", first_row, count);
    uint64_t environment = enter(session);
    return leave(environment, fr_scoring_logits(session, ids, count, first_row, sink, context));
}

fr_status fr_session_score(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context) {
    FR_TRY(check(session, "fr_session_score"));
    FR_TRY(check_ids(ids, count));
    FR_TRY(check_scores(session, sink, "fr_session_score"));
    uint64_t environment = enter(session);
    fr_rank_leader_score(session, ids, count);
    fr_status status = fr_scoring_ids(session, ids, count, sink, context);
    fr_rank_leader_ran(session);
    return leave(environment, status);
}

_Static_assert(FR_ROWS_LAYERS_MAX == FR_AUX_LAYERS, "as many layers as a forward hands out");

static fr_status read_layers(const fr_session *session, const size_t *layers, size_t count, fr_aux_layers *read) {
    size_t most = session->model->trunk.spec.layers;
    if (!layers || count == 0 || count > FR_AUX_LAYERS)
        return fr_fail(FR_USAGE, "fr_session_rows: %zu layers: 1 to %d can be asked for", layers ? count : 0,
                       FR_AUX_LAYERS);
    read->count = count;
    for (size_t i = 0; i < count; i++) {
        if (layers[i] > most)
            return fr_fail(FR_USAGE, "fr_session_rows: layer %zu is beyond the model's %zu", layers[i], most);
        read->layer[i] = layers[i];
    }
    return FR_OK;
}

fr_status fr_session_rows(fr_session *session, const int32_t *ids, size_t count, const size_t *layers,
                          size_t layer_count, fr_rows_fn *sink, void *context) {
    fr_aux_layers read;
    FR_TRY(check_prompt(session, ids, count, "fr_session_rows"));
    if (!sink) return fr_fail_null("fr_session_rows", "a function that takes rows");
    if (layers || layer_count) FR_TRY(read_layers(session, layers, layer_count, &read));
    if (layers && session->drafting.draft->follows)
        return fr_fail(FR_USAGE, "fr_session_rows: the session's drafter follows it: open one without a drafter");
    uint64_t environment = enter(session);
    return leave(environment, fr_scoring_rows(session, ids, count, layers ? &read : NULL, sink, context));
}

static fr_status check_pooling(fr_pooling pooling, const char *call) {
    if (pooling == FR_POOLING_MEAN || pooling == FR_POOLING_CLS || pooling == FR_POOLING_LAST) return FR_OK;
    return fr_fail(FR_USAGE, "%s: pooling %d: mean, cls or last is needed", call, (int)pooling);
}

fr_status fr_session_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values) {
    FR_TRY(check(session, "fr_session_embed"));
    FR_TRY(check_ids(ids, count));
    if (!values) return fr_fail_null("fr_session_embed", "room for the values");
    FR_TRY(check_pooling(pooling, "fr_session_embed"));
    uint64_t environment = enter(session);
    fr_rank_leader_embed(session, ids, count, pooling);
    fr_status status = fr_embedding_of(session, ids, count, pooling, values);
    fr_rank_leader_ran(session);
    return leave(environment, status);
}

/* --------------------------------------------------------------------------------------------------------- drafting */

fr_status fr_draft_submit(fr_session *session) {
    FR_TRY(check_alone(session, "fr_draft_submit"));
    uint64_t environment = fr_fpenv_enter();
    return leave(environment, fr_async_draft_submit(session));
}

fr_status fr_draft_wait(fr_session *session, int32_t *ids, size_t *count) {
    if (count) *count = 0;
    FR_TRY(check_alone(session, "fr_draft_wait"));
    if (!ids || !count) return fr_fail(FR_USAGE, "fr_draft_wait: room for %d ids is needed", FR_STEP_MAX - 1);
    return fr_async_draft_wait(session, ids, count);
}

void fr_draft_cancel(fr_session *session) {
    if (check(session, "fr_draft_cancel") == FR_OK) fr_async_draft_cancel(session);
}

fr_status fr_draft_now(fr_session *session, size_t steps, int32_t *ids, size_t *count, float *logits) {
    if (count) *count = 0;
    FR_TRY(check_alone(session, "fr_draft_now"));
    if (!ids || !count || steps == 0 || steps >= FR_STEP_MAX)
        return fr_fail(FR_USAGE, "fr_draft_now: steps must be 1 to %d, with room for as many ids", FR_STEP_MAX - 1);
    fr_engine_settle(session->engine);
    uint64_t environment = fr_fpenv_enter();
    return leave(environment, fr_async_draft_now(session, steps, ids, count, logits));
}

bool fr_session_adapts(const fr_session *session) {
    return session && fr_session_adaptive(session);
}

fr_status fr_session_draft_logits(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context) {
    FR_TRY(check_alone(session, "fr_session_draft_logits"));
    if (!ids || count < 2)
        return fr_fail(FR_USAGE, "draft logits need at least two ids: the target runs all but the last");
    if (!sink) return fr_fail_null("fr_session_draft_logits", "a function that takes rows");
    if (steps == 0 || steps >= FR_STEP_MAX) return fr_fail(FR_USAGE, "draft steps must be 1 to %d", FR_STEP_MAX - 1);
    if (!session->drafter || session->drafting.draft->method == &fr_draft_none)
        return fr_fail(FR_USAGE, "draft logits need a drafter");
    uint64_t environment = enter(session);
    return leave(environment, fr_scoring_drafts(session, ids, count, steps, sink, context));
}

/* ----------------------------------------------------------------------------------------------------------- saving */

fr_status fr_session_save(const fr_session *session, const char *path) {
    FR_TRY(check_alone(session, "fr_session_save"));
    return path ? fr_session_write(session, path) : fr_fail_null("fr_session_save", "a path");
}

fr_status fr_session_restore(fr_session *session, const char *path) {
    FR_TRY(check_alone(session, "fr_session_restore"));
    if (!path) return fr_fail_null("fr_session_restore", "a path");
    fr_async_draft_cancel(session);
    return fr_session_read(session, path);
}

fr_status fr_session_save_bytes(const fr_session *session, void **bytes, size_t *size) {
    if (bytes) *bytes = NULL;
    if (size) *size = 0;
    FR_TRY(check_alone(session, "fr_session_save_bytes"));
    if (!bytes || !size) return fr_fail_null("fr_session_save_bytes", "a place for bytes and their size");
    return fr_session_write_bytes(session, bytes, size);
}

fr_status fr_session_restore_bytes(fr_session *session, const void *bytes, size_t size) {
    FR_TRY(check_alone(session, "fr_session_restore_bytes"));
    if (!bytes) return fr_fail_null("fr_session_restore_bytes", "a session's bytes");
    fr_async_draft_cancel(session);
    return fr_session_read_bytes(session, bytes, size);
}

fr_status fr_lab_session_set_aside(fr_session *session) {
    FR_TRY(check(session, "fr_lab_session_set_aside"));
    fr_async_draft_cancel(session);
    fr_status status = fr_session_set_aside(session);
    fr_rank_leader_set_aside(session, status);
    return status;
}

fr_status fr_lab_session_take_up(fr_session *session) {
    FR_TRY(check(session, "fr_lab_session_take_up"));
    fr_async_draft_cancel(session);
    fr_status status = fr_session_take_up(session);
    fr_rank_leader_take_up(session, status);
    return status;
}

fr_status fr_session_attach(fr_session *session, const void *bytes, size_t size) {
    void *copy;
    if (!session || (size && !bytes)) return fr_fail_null("fr_session_attach", "a session and its bytes");
    FR_TRY(fr_session_copy_attached(bytes, size, &copy));
    fr_session_replace_attached(session, copy, size);
    return FR_OK;
}

const void *fr_session_attached(const fr_session *session, size_t *size) {
    if (size) *size = session ? session->saving.attached_size : 0;
    return session ? session->saving.attached : NULL;
}

/* ---------------------------------------------------------------------------------------------------------- figures */

/* Gives one of the three figures about the use of the engine's pages: used, shared or cached bytes. */
static double kv_use(const fr_session *session, fr_stat stat) {
    if (fr_engine_check_process(session->engine) != FR_OK) return NAN;
    /* drafts that are being made may take pages from the cached ones, so this waits until these drafts are complete */
    fr_engine_settle(session->engine);
    fr_kv_use use = fr_kv_prefixes_use(&session->engine->prefixes, &session->cache.kv);
    if (stat == FR_STAT_KV_USED_BYTES) return (double)use.used;
    return (double)(stat == FR_STAT_KV_SHARED_BYTES ? use.shared : use.cached);
}

double fr_session_stat(const fr_session *session, fr_stat stat) {
    if (!session) return NAN;
    if (stat >= FR_STAT_KV_USED_BYTES && stat <= FR_STAT_KV_CACHED_BYTES) return kv_use(session, stat);
    if (stat == FR_STAT_PEAK_BYTES) return fr_peak_bytes();
    return (unsigned)stat < FR_STAT_COUNT ? session->stats.value[stat] : NAN;
}

double fr_session_depth_stat(const fr_session *session, size_t depth, fr_depth_stat stat) {
    if (!session || depth >= FR_STEP_MAX - 1 || (unsigned)stat >= FR_DEPTH_COUNT) return NAN;
    return session->stats.depth[depth][stat];
}

size_t fr_session_accepted_lengths(const fr_session *session, const uint8_t **lengths) {
    if (lengths) *lengths = session ? session->stats.accepted_lengths : NULL;
    return session ? session->stats.rounds : 0;
}

void fr_session_set_trace(fr_session *session, fr_trace_fn *line, void *context) {
    if (!session) return;
    fr_session_trace(session, line, context);
    fr_rank_leader_trace(session);
}
