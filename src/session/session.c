/* The cycle of prompt, draft, verify, accept and commit: see session.h. */
#include "src/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/base/cores.h"
#include "src/session/accept.h"
#include "src/session/timeline.h"

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* --------------------------------------------------------------------------------------------------- open and close */

static size_t batch_rows(const fr_session *s) {
    return larger(s->chunk, FR_STEP_MAX);
}

/* The target's KV shapes, its rings as long as the drafter looks back. malloc'd. */
static fr_kv_shape *kv_shapes(const fr_session *s) {
    const fr_model *model = s->model;
    fr_kv_shape *shapes = malloc(model->kv_count * sizeof *shapes);
    for (size_t i = 0; shapes && i < model->kv_count; i++) {
        shapes[i] = model->kv_shapes[i];
        if (shapes[i].window && s->drafter) shapes[i].window = larger(shapes[i].window, s->drafter->reach);
    }
    return shapes;
}

/* "": none. */
static const char *drafter_path(const fr_session *s) {
    if (!s->drafter) return "";
    return s->drafter->files.path ? s->drafter->files.path : s->model->files.path;
}

/* Everything the session works in; called twice, with a measuring arena and a real one. */
static void layout(fr_session *s, const fr_kv_shape *shapes) {
    const fr_model *model = s->model;
    size_t rows = batch_rows(s), threads = model->plan.threads, before = s->arena.used;
    fr_kv_layout(&s->kv, &s->arena, shapes, model->kv_count, s->kv_types, s->context, s->swa_full ? s->context : rows);
    size_t after_kv = s->arena.used;
    fr_snapshots_layout(&s->snapshots, &s->arena, &s->kv, s->checkpoints, s->context);
    size_t after_snapshots = s->arena.used;
    s->pass = model->family->layout(model, &s->arena, rows, threads);
    const fr_draft_room room = {threads, s->context, rows, s->kv_types};
    s->draft = fr_draft_list_open(&s->methods, s->drafter, &s->arena, &room);
    s->ids = fr_arena_take(&s->arena, s->context, sizeof *s->ids);
    s->places = fr_arena_take(&s->arena, s->context + FR_STEP_MAX, sizeof *s->places);
    s->hidden = fr_arena_take(&s->arena, rows * model->hidden, sizeof *s->hidden);
    s->logits = fr_arena_take(&s->arena, FR_STEP_MAX * model->vocab, sizeof *s->logits);
    s->best = fr_arena_take(&s->arena, threads * FR_STEP_MAX, sizeof *s->best);
    fr_sampler_layout(&s->sampler, &s->arena, s->drafter ? s->draft_max : 0);
    fr_logprobs_layout(&s->logprobs, &s->arena, s->logprobs_best, model->kernels, model->vocab);
    fr_stats_layout(&s->stats, &s->arena, s->context);
    fr_trace_layout(&s->trace, &s->arena, model->files.path, drafter_path(s), rows);
    s->stats.value[FR_STAT_TARGET_KV_BYTES] = (double)(after_kv - before);
    s->stats.value[FR_STAT_SNAPSHOT_BYTES] = (double)(after_snapshots - after_kv);
    s->stats.value[FR_STAT_SCRATCH_BYTES] = (double)(s->arena.used - after_snapshots);
}

/* Lays it out without memory: arena.used is what it takes. */
static fr_status measure(fr_session *s, const fr_kv_shape *shapes) {
    layout(s, shapes);
    if (!s->arena.overflow) return FR_OK;
    return fr_fail(FR_MEMORY, "a context of %zu does not fit this machine's memory", s->context);
}

static fr_status take_memory(fr_session *s) {
    fr_kv_shape *shapes = kv_shapes(s);
    if (!shapes) return fr_fail_memory("KV shapes", s->model->kv_count * sizeof *shapes);
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

void fr_session_place(fr_session *s, size_t first, size_t place) {
    for (size_t i = first; i < s->context + FR_STEP_MAX; i++, place++)
        for (int axis = 0; axis < FR_AXES; axis++) s->places[i].at[axis] = (int32_t)place;
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
    s->context = context > 0 ? (size_t)context : smaller(4096, model->context_limit);
    if (s->context > model->context_limit)
        return fr_fail(FR_INPUT, "%s: a context of %zu is beyond the model's %zu", model->files.path, s->context,
                       model->context_limit);
    s->chunk = smaller((size_t)options->value[FR_OPT_CHUNK], s->context);
    FR_TRY(choose_drafting(s, options));
    s->ignore_eos = options->value[FR_OPT_IGNORE_EOS] != 0;
    s->swa_full = options->value[FR_OPT_SWA_FULL] != 0;
    s->checkpoints = (size_t)options->value[FR_OPT_CTX_CHECKPOINTS];
    s->logprobs_best = options->value[FR_OPT_LOGPROBS];
    FR_TRY(fr_sampler_set(&s->sampler, options, model->kernels, model->vocab));
    s->kv_types = fr_model_kv_types(model, options);
    return fr_kv_check(model->kv_shapes, model->kv_count, s->kv_types);
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
    s->given = &fr_nothing_given;
    s->log = options->log;
    return s;
}

fr_status fr_session_measure(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                             fr_session_bytes *bytes) {
    fr_session *s = new_session(model, drafter, options);
    if (!s) return fr_fail_memory("session", sizeof *s);
    fr_status status = choose_sizes(s, options);
    fr_kv_shape *shapes = kv_shapes(s);
    if (status == FR_OK && !shapes) status = fr_fail_memory("KV shapes", model->kv_count * sizeof *shapes);
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
    fr_errand_close(s->ahead.errand);
    if (s->draft && s->draft->method->close) s->draft->method->close(s->draft);
    fr_shown_free(&s->shown);
    fr_pool_close(s->pool);
    fr_cores_release(&s->plan);
    fr_arena_close(&s->arena);
    free(s->attached);
    free(s);
}

void fr_session_clear(fr_session *s) {
    fr_kv_reset(&s->kv);
    s->snapshots.count = 0;
    s->length = s->told = 0;
    s->fresh = s->pending = s->ended = false;
    s->given = &fr_nothing_given;
    fr_session_place(s, 0, 0);
    fr_stats_reset(&s->stats);
}

/* ---------------------------------------------------------------------------------------------------------- forward */

fr_draft_view fr_session_view(fr_session *s) {
    return (fr_draft_view){.ids = s->ids,
                           .places = s->places,
                           .given = s->given,
                           .length = s->length,
                           .told = s->told,
                           .kv = &s->kv,
                           .hidden = s->hidden + s->hidden_row * s->model->hidden,
                           .pool = s->pool,
                           .sampler = s->sampler.on ? &s->sampler : NULL};
}

fr_forward fr_session_batch(fr_session *s, size_t rows) {
    fr_kv_claim(&s->kv, rows);
    return (fr_forward){.model = s->model,
                        .pass = s->pass,
                        .kv = &s->kv,
                        .ids = s->ids + s->kv.length,
                        .places = s->places + s->kv.length,
                        .given = s->given,
                        .rows = rows,
                        .position = (int64_t)s->kv.length,
                        .hidden = s->hidden,
                        .logits = s->logits,
                        .best = s->best};
}

fr_status fr_session_check_abort(const fr_session *s) {
    if (!s->abort || !s->abort(s->abort_context)) return FR_OK;
    return fr_fail(FR_ABORTED, "aborted with %zu of %zu tokens run", s->kv.length, s->length);
}

static fr_status not_finite(const fr_session *s, size_t position) {
    return fr_fail(FR_NUMERIC, "%s: the logits at position %zu are not finite: damaged weights?", s->model->files.path,
                   position);
}

fr_status fr_session_look(fr_session *s, const fr_picture *const *pictures, size_t count) {
    double start = fr_clock();
    if (s->given != &fr_nothing_given) return fr_fail(FR_USAGE, "a prompt with pictures is still to be run");
    FR_TRY(fr_shown_run(&s->shown, s->model, s->pool, pictures, count));
    s->stats.value[FR_STAT_VISION_SECONDS] += fr_clock() - start;
    return FR_OK;
}

void fr_session_follow(fr_session *s) {
    if (!s->draft->follows) return;
    fr_draft_view view = fr_session_view(s);
    s->draft->method->follow(s->draft, &view);
}

fr_status fr_session_choose(fr_session *s, size_t drafted, size_t *stood, int32_t *token) {
    fr_past past = {.ids = s->ids, .length = s->length, .drafts = s->ids + s->length, .drafted = drafted};
    if (s->sampler.on) {
        *stood = fr_sampler_verify(&s->sampler, s->logits, &past, token);
    } else {
        *stood = fr_accept_greedy(s->best, past.drafts, drafted);
        *token = (int32_t)s->best[*stood];
    }
    for (size_t r = 0; r <= *stood; r++)
        if (s->best[r] < 0) return not_finite(s, s->length - 1 + r);
    if (*token < 0) return fr_fail(FR_INPUT, "logit bias: no token is left at position %zu", s->length + *stood);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- a round */

/* The first `count` ids after the timeline stand, up to an end of sequence; they join the timeline. */
static size_t commit(fr_session *s, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (s->ignore_eos || !fr_model_is_eos(s->model, s->ids[s->length + i])) continue;
        s->ended = true;
        count = i + 1;
    }
    s->length += count;
    s->stats.value[FR_STAT_GENERATED_TOKENS] += (double)count;
    return count;
}

bool fr_session_adaptive(const fr_session *s) {
    return s->adapts && s->draft->method != &fr_draft_none;
}

size_t fr_session_depth(fr_session *s, size_t limit) {
    return fr_session_adaptive(s) ? fr_depth_choose(&s->depth, limit) : limit;
}

fr_status fr_session_draft(fr_session *s, const fr_draft_view *view, fr_depth_round *round) {
    round->drafted = 0;
    if (round->asked == 0) return FR_OK;
    fr_sampler_forget(&s->sampler);
    return s->draft->method->propose(s->draft, view, round->asked, s->ids + view->length, &round->drafted, NULL);
}

static fr_status draft_now(fr_session *s, size_t limit, fr_depth_round *round) {
    fr_draft_view view = fr_session_view(s);
    *round = (fr_depth_round){.asked = fr_session_depth(s, limit)};
    return fr_session_draft(s, &view, round);
}

/* At most `limit` drafts, behind the timeline: those that were submitted, or new ones. */
static fr_status propose(fr_session *s, size_t limit, fr_depth_round *round) {
    double start = fr_clock(), clock = start;
    bool ahead = s->ahead.state != FR_AHEAD_NONE;
    FR_TRY(ahead ? fr_ahead_take(s, limit, round) : draft_now(s, limit, round));
    if (round->asked == 0) fr_session_follow(s);
    fr_stats_lap(&s->stats, FR_STAT_DRAFT_SECONDS, &clock);
    round->draft_seconds = clock - start;
    fr_trace_draft(&s->trace, s->draft->method->name, s->length, s->ids + s->length, round->drafted);
    return FR_OK;
}

/* Drafts stand behind the timeline already; one forward of K + 1 rows says how far they are right. */
static fr_status verify(fr_session *s, size_t drafted, size_t *count, size_t *accepted) {
    size_t rows = drafted + 1, stood;
    int32_t token;
    fr_forward f = fr_session_batch(s, rows);
    f.head_rows = rows;
    double clock = fr_clock();
    fr_forward_run(s->pool, &f);
    fr_stats_lap(&s->stats, FR_STAT_VERIFY_SECONDS, &clock);
    FR_TRY(fr_session_choose(s, drafted, &stood, &token));
    s->ids[s->length + stood] = token;
    fr_logprobs_take(&s->logprobs, s->logits, s->ids + s->length, stood + 1);
    *count = commit(s, stood + 1);
    *accepted = smaller(stood, *count);
    s->hidden_row = *count - 1;
    fr_timeline_advance(s, s->length - 1, false);
    fr_stats_round(&s->stats, drafted, *accepted, *count);
    if (s->draft->method->commit) {
        fr_draft_view view = fr_session_view(s);
        s->draft->method->commit(s->draft, &view, drafted, *accepted);
        s->told = s->length;
    }
    fr_stats_lap(&s->stats, FR_STAT_ACCEPT_SECONDS, &clock);
    return FR_OK;
}

fr_status fr_session_round(fr_session *s, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    size_t from = s->length;
    fr_depth_round round = {0};
    *count = *accepted = 0;
    FR_TRY(fr_session_check_abort(s));
    if (s->pending) FR_TRY(fr_timeline_run(s));
    bool ran = !s->fresh;
    limit = smaller(limit, smaller(FR_STEP_MAX, s->context - s->length));
    if (s->ended || limit == 0) return FR_OK;
    if (!ran) {
        fr_ahead_cancel(s); /* which had nothing to draft from */
        s->fresh = false;
        s->ids[s->length] = s->next;
        *count = commit(s, 1);
    } else {
        double start = fr_clock(), clock = start;
        FR_TRY(propose(s, smaller(s->draft_max, limit - 1), &round));
        FR_TRY(verify(s, round.drafted, count, accepted));
        fr_stats_lap(&s->stats, FR_STAT_DECODE_SECONDS, &clock);
        round.accepted = *accepted;
        round.verify_seconds = clock - start - round.draft_seconds;
        if (fr_session_adaptive(s)) fr_depth_report(&s->depth, &round);
    }
    memcpy(ids, s->ids + from, *count * sizeof *ids);
    fr_trace_accept(&s->trace, &s->stats,
                    &(fr_trace_round){.position = from,
                                      .rows = ran ? round.drafted + 1 : 0,
                                      .accepted = *accepted,
                                      .ids = ids,
                                      .count = *count,
                                      .logits = s->logits,
                                      .vocab = s->model->vocab});
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- scores */

/* Logits of the batch's rows from `first` on, FR_STEP_MAX rows at a time. */
static fr_status hand_out(fr_session *s, fr_forward *f, size_t first, fr_logits_fn *sink, void *context) {
    for (f->head_first = first; f->head_first < f->rows; f->head_first += f->head_rows) {
        f->head_rows = smaller(FR_STEP_MAX, f->rows - f->head_first);
        fr_head_run(s->pool, f);
        for (size_t r = 0; r < f->head_rows; r++)
            if (s->best[r] < 0) return not_finite(s, s->kv.length + f->head_first + r);
        FR_TRY(sink(context, s->logits, f->head_rows, s->model->vocab));
    }
    return FR_OK;
}

fr_status fr_session_score(fr_session *s, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                           void *context) {
    fr_session_clear(s);
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_session_follow(s);
    while (s->kv.length < count) {
        FR_TRY(fr_session_check_abort(s));
        fr_forward f = fr_session_batch(s, smaller(s->chunk, count - s->kv.length));
        size_t first = first_row > s->kv.length ? first_row - s->kv.length : 0;
        first = smaller(first, f.rows);
        f.keep = s->draft->follows ? 0 : first;
        fr_forward_run(s->pool, &f);
        FR_TRY(hand_out(s, &f, first, sink, context));
        fr_timeline_advance(s, s->kv.length + f.rows, false);
        s->hidden_row = f.rows - 1;
        fr_session_follow(s);
    }
    fr_timeline_forget_pictures(s);
    fr_kv_rewind(&s->kv, count - 1); /* what the session says next takes the last id's own run */
    return FR_OK;
}

fr_status fr_session_score_drafts(fr_session *s, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                                  void *context) {
    int32_t drafts[FR_STEP_MAX];
    size_t proposed;
    fr_session_clear(s);
    FR_TRY(fr_timeline_append(s, ids, count - 1));
    FR_TRY(fr_timeline_extend(s, ids + count - 1, 1));
    s->pending = false; /* the last id is as one that a step gave */
    fr_draft_view view = fr_session_view(s);
    view.sampler = NULL; /* the largest logit goes on, whatever would be drawn */
    FR_TRY(s->draft->method->propose(s->draft, &view, steps, drafts, &proposed, s->logits));
    return sink(context, s->logits, proposed, s->model->vocab);
}
