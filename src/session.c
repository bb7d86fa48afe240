/* The cycle of prompt, draft, verify, accept and commit: see session.h. */
#include "src/session.h"

#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/accept.h"

/* A prompt of text: every embedding is that of its id. */
static const fr_given nothing_given = {0};

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

/* Everything the session works in; called twice, with a measuring arena and a real one. */
static void layout(fr_session *s, const fr_kv_shape *shapes) {
    const fr_model *model = s->model;
    size_t rows = batch_rows(s), threads = model->plan.threads, before = s->arena.used;
    const fr_draft_method *method = s->drafter && s->draft_max ? s->drafter->method : &fr_draft_none;
    fr_kv_layout(&s->kv, &s->arena, shapes, model->kv_count, s->kv_types, s->context, rows);
    size_t after_kv = s->arena.used;
    s->pass = model->family->layout(model, &s->arena, rows, threads);
    const fr_draft_room room = {threads, s->context, rows, s->kv_types};
    s->draft = method->open(s->drafter, &s->arena, &room);
    s->ids = fr_arena_take(&s->arena, s->context, sizeof *s->ids);
    s->places = fr_arena_take(&s->arena, s->context + FR_STEP_MAX, sizeof *s->places);
    s->hidden = fr_arena_take(&s->arena, rows * model->hidden, sizeof *s->hidden);
    s->logits = fr_arena_take(&s->arena, FR_STEP_MAX * model->vocab, sizeof *s->logits);
    fr_stats_layout(&s->stats, &s->arena, s->context);
    s->stats.value[FR_STAT_TARGET_KV_BYTES] = (double)(after_kv - before);
    s->stats.value[FR_STAT_SCRATCH_BYTES] = (double)(s->arena.used - after_kv);
}

static fr_status take_memory(fr_session *s) {
    fr_kv_shape *shapes = kv_shapes(s);
    if (!shapes) return fr_fail_memory("KV shapes", s->model->kv_count * sizeof *shapes);
    layout(s, shapes);
    fr_status status = FR_OK;
    if (s->arena.overflow)
        status = fr_fail(FR_MEMORY, "a context of %zu does not fit this machine's memory", s->context);
    else
        status = fr_arena_open(&s->arena, s->arena.used, "session");
    if (status == FR_OK) layout(s, shapes);
    free(shapes);
    return status;
}

static void note_memory(fr_session *s) {
    double *value = s->stats.value;
    value[FR_STAT_TARGET_WEIGHT_BYTES] = (double)s->model->weights.bytes;
    value[FR_STAT_DRAFT_WEIGHT_BYTES] = s->drafter ? (double)s->drafter->weights.bytes : 0.0;
    value[FR_STAT_DRAFT_KV_BYTES] = s->draft->method->kv ? (double)fr_kv_bytes(s->draft->method->kv(s->draft)) : 0.0;
}

/* Text stands at consecutive places: those of positions from `first` on begin with `place`. */
static void place_from(fr_session *s, size_t first, size_t place) {
    for (size_t i = first; i < s->context + FR_STEP_MAX; i++, place++)
        for (int axis = 0; axis < FR_AXES; axis++) s->places[i].at[axis] = (int32_t)place;
}

static fr_status open_session(fr_session *s, const fr_options *options) {
    const fr_model *model = s->model;
    int64_t context = options->value[FR_OPT_CONTEXT];
    s->context = context > 0 ? (size_t)context : smaller(4096, model->context_limit);
    if (s->context > model->context_limit)
        return fr_fail(FR_INPUT, "%s: a context of %zu is beyond the model's %zu", model->files.path, s->context,
                       model->context_limit);
    s->chunk = smaller((size_t)options->value[FR_OPT_CHUNK], s->context);
    s->draft_max = (size_t)options->value[FR_OPT_DRAFT_MAX];
    s->ignore_eos = options->value[FR_OPT_IGNORE_EOS] != 0;
    s->kv_types = fr_model_kv_types(model, options);
    FR_TRY(fr_kv_check(model->kv_shapes, model->kv_count, s->kv_types));
    FR_TRY(take_memory(s));
    note_memory(s);
    place_from(s, 0, 0);
    return fr_pool_open(&model->plan, &s->pool);
}

fr_status fr_session_create(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                            fr_session **session) {
    *session = NULL;
    fr_session *s = calloc(1, sizeof *s);
    if (!s) return fr_fail_memory("session", sizeof *s);
    s->model = model;
    s->drafter = drafter;
    s->given = &nothing_given;
    fr_status status = open_session(s, options);
    if (status == FR_OK)
        *session = s;
    else
        fr_session_destroy(s);
    return status;
}

void fr_session_destroy(fr_session *s) {
    if (!s) return;
    if (s->draft && s->draft->method->close) s->draft->method->close(s->draft);
    fr_shown_free(&s->shown);
    fr_pool_close(s->pool);
    fr_arena_close(&s->arena);
    free(s);
}

void fr_session_clear(fr_session *s) {
    fr_kv_reset(&s->kv);
    s->length = 0;
    s->fresh = s->ended = false;
    place_from(s, 0, 0);
    fr_stats_reset(&s->stats);
}

/* ---------------------------------------------------------------------------------------------------------- forward */

static fr_draft_view view_of(const fr_session *s) {
    return (fr_draft_view){.ids = s->ids,
                           .places = s->places,
                           .given = s->given,
                           .length = s->length,
                           .kv = (fr_kv *)&s->kv,
                           .hidden = s->hidden + s->hidden_row * s->model->hidden,
                           .pool = s->pool};
}

/* The batch of the next `rows` ids that have not been run. */
static fr_forward next_batch(fr_session *s, size_t rows) {
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

static fr_status not_finite(const fr_session *s, size_t position) {
    return fr_fail(FR_NUMERIC, "%s: the logits at position %zu are not finite: damaged weights?", s->model->files.path,
                   position);
}

fr_status fr_session_look(fr_session *s, const fr_picture *const *pictures, size_t count) {
    double start = fr_clock();
    FR_TRY(fr_shown_run(&s->shown, s->model, s->pool, pictures, count));
    s->stats.value[FR_STAT_VISION_SECONDS] += fr_clock() - start;
    return FR_OK;
}

static bool has_image_token(const fr_session *s, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == s->model->image_token) return true;
    return false;
}

/* Where the ids that follow the timeline stand, if any of them is not text. */
static fr_status place(fr_session *s, const int32_t *ids, size_t count) {
    if (s->shown.count == 0 && !has_image_token(s, ids, count)) return FR_OK;
    int64_t base = s->places[s->length].at[0], next = base;
    fr_status status =
        fr_shown_place(&s->shown, s->model->image_token, ids, count, s->length, s->places + s->length, &next);
    if (status == FR_OK)
        place_from(s, s->length + count, (size_t)next);
    else
        place_from(s, s->length, (size_t)base);
    if (status == FR_OK) s->given = s->shown.given;
    return status;
}

/* The pictures are part of the timeline now. */
static void forget_pictures(fr_session *s) {
    s->given = &nothing_given;
    fr_shown_free(&s->shown);
}

/* Copies ids to the end of the timeline. */
static fr_status extend(fr_session *s, const int32_t *ids, size_t count) {
    if (count > s->context - s->length)
        return fr_fail(FR_INPUT, "the prompt has %zu tokens, the context has room for %zu of %zu: raise -c", count,
                       s->context - s->length, s->context);
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= s->model->vocab)
            return fr_fail(FR_INPUT, "id %d at index %zu of the prompt is outside the vocabulary of %zu", ids[i], i,
                           s->model->vocab);
    FR_TRY(place(s, ids, count));
    memcpy(s->ids + s->length, ids, count * sizeof *ids);
    s->length += count;
    return FR_OK;
}

/* Tells the draft method of the target's new rows, while they are there. */
static void follow(fr_session *s) {
    if (!s->draft->follows) return;
    fr_draft_view view = view_of(s);
    s->draft->method->follow(s->draft, &view);
}

fr_status fr_session_append(fr_session *s, const int32_t *ids, size_t count) {
    double start = fr_clock();
    FR_TRY(extend(s, ids, count));
    s->ended = false;
    follow(s);
    while (s->kv.length < s->length) {
        size_t rows = smaller(s->chunk, s->length - s->kv.length);
        fr_forward f = next_batch(s, rows);
        f.head_first = rows - 1;
        f.head_rows = s->kv.length + rows == s->length;
        f.keep = s->draft->follows ? 0 : rows - f.head_rows;
        fr_forward_run(s->pool, &f);
        fr_kv_commit(&s->kv, s->kv.length + rows);
        s->hidden_row = rows - 1;
        follow(s);
    }
    forget_pictures(s);
    if (s->best[0] < 0) return not_finite(s, s->length - 1);
    s->next = (int32_t)s->best[0];
    s->fresh = true;
    if (s->draft->method->begin) {
        fr_draft_view view = view_of(s);
        s->draft->method->begin(s->draft, &view);
    }
    s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)count;
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
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

static fr_status propose(fr_session *s, size_t limit, size_t *drafted) {
    *drafted = 0;
    if (limit == 0) {
        follow(s);
        return FR_OK;
    }
    double start = fr_clock();
    fr_draft_view view = view_of(s);
    fr_status status = s->draft->method->propose(s->draft, &view, limit, s->ids + s->length, drafted, NULL);
    s->stats.value[FR_STAT_DRAFT_SECONDS] += fr_clock() - start;
    return status;
}

/* Drafts stand behind the timeline already; one forward of K + 1 rows says how far they are right. */
static fr_status verify(fr_session *s, size_t drafted, size_t *count, size_t *accepted) {
    size_t rows = drafted + 1;
    fr_forward f = next_batch(s, rows);
    f.head_rows = rows;
    fr_forward_run(s->pool, &f);
    size_t stood = fr_accept_greedy(s->best, s->ids + s->length, drafted);
    for (size_t r = 0; r <= stood; r++)
        if (s->best[r] < 0) return not_finite(s, s->kv.length + r);
    s->ids[s->length + stood] = (int32_t)s->best[stood];
    *count = commit(s, stood + 1);
    *accepted = smaller(stood, *count);
    s->hidden_row = *count - 1;
    fr_kv_commit(&s->kv, s->length - 1);
    fr_stats_round(&s->stats, drafted, *accepted);
    if (s->draft->method->commit) {
        fr_draft_view view = view_of(s);
        s->draft->method->commit(s->draft, &view, drafted, *accepted);
    }
    return FR_OK;
}

fr_status fr_session_round(fr_session *s, int32_t *ids, size_t limit, size_t *count, size_t *accepted) {
    size_t from = s->length;
    *count = *accepted = 0;
    limit = smaller(limit, smaller(FR_STEP_MAX, s->context - s->length));
    if (s->ended || limit == 0) return FR_OK;
    if (s->fresh) {
        s->fresh = false;
        s->ids[s->length] = s->next;
        *count = commit(s, 1);
    } else {
        double start = fr_clock();
        size_t drafted;
        FR_TRY(propose(s, smaller(s->draft_max, limit - 1), &drafted));
        FR_TRY(verify(s, drafted, count, accepted));
        s->stats.value[FR_STAT_DECODE_SECONDS] += fr_clock() - start;
    }
    memcpy(ids, s->ids + from, *count * sizeof *ids);
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
    FR_TRY(extend(s, ids, count));
    while (s->kv.length < count) {
        fr_forward f = next_batch(s, smaller(s->chunk, count - s->kv.length));
        size_t first = first_row > s->kv.length ? first_row - s->kv.length : 0;
        f.keep = smaller(first, f.rows);
        fr_forward_run(s->pool, &f);
        FR_TRY(hand_out(s, &f, f.keep, sink, context));
        fr_kv_commit(&s->kv, s->kv.length + f.rows);
    }
    forget_pictures(s);
    return FR_OK;
}

fr_status fr_session_score_drafts(fr_session *s, const int32_t *ids, size_t count, size_t steps, fr_logits_fn *sink,
                                  void *context) {
    int32_t drafts[FR_STEP_MAX];
    size_t proposed;
    fr_session_clear(s);
    FR_TRY(fr_session_append(s, ids, count - 1));
    s->fresh = false;
    FR_TRY(extend(s, ids + count - 1, 1));
    fr_draft_view view = view_of(s);
    FR_TRY(s->draft->method->propose(s->draft, &view, steps, drafts, &proposed, s->logits));
    return sink(context, s->logits, proposed, s->model->vocab);
}
