/* Puts ids on a session's timeline, runs them and takes them back: see timeline.h. */
#include "src/engine/session/timeline.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/draft_own.h"
#include "src/engine/session/prompt_score.h"

void fr_timeline_advance(fr_session *s, size_t length, bool prompt_end) {
    fr_kv_commit(&s->cache.kv, length);
    if (s->ran < length) s->ran = length;
    fr_kv_checkpoints_note(&s->cache.checkpoints, &s->cache.kv, prompt_end);
    fr_session_share(s, prompt_end);
}

/* Checks that a prompt's ids fit after the first `kept` ids of the timeline. same: number of the kept ids that are
 * also the prompt's first ids. */
static fr_status check(const fr_session *s, size_t kept, const int32_t *ids, size_t count, size_t same) {
    if (count - same > s->context - kept)
        return fr_fail_about(FR_OPT_CONTEXT, FR_INPUT, "the prompt has %zu tokens, the context has room for %zu of %zu",
                             count, s->context - kept + same, s->context);
    for (size_t i = same; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= s->model->trunk.spec.vocab)
            return fr_fail(FR_INPUT, "id %d at index %zu of the prompt is outside the vocabulary of %zu", ids[i], i,
                           s->model->trunk.spec.vocab);
    return FR_OK;
}

static bool has_image_token(const fr_session *s, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == s->model->image_token) return true;
    return false;
}

/* Returns true if the pictures that the session holds belong to ids on the timeline whose prompt has not been run to
 * its end yet. If false, the pictures are for ids that will follow. */
static bool pictures_under_way(const fr_session *s) {
    return s->embeddings != &fr_no_input_embeddings;
}

/* Adds a run of a picture's rows to the digests of the blocks in which they lie. row: index within the picture of the
 * run's first row. Each run is hashed together with the digest so far, so it does not matter in how many calls the
 * pictures came. Rotary positions are not hashed, because they follow from the pictures and ids before the block. */
static void digest(fr_session *s, const fr_input_embeddings *rows, size_t row, const fr_picture_digest *picture) {
    for (size_t p = rows->first, end = rows->first + rows->count, run; p < end; p += run) {
        fr_kv_digest *block = &s->cache.digests[p / FR_KV_PAGE];
        const uint64_t where[] = {p, row + p - rows->first};
        fr_sha256 hash = fr_sha256_begin();
        fr_sha256_add(&hash, block, sizeof *block);
        fr_sha256_add(&hash, where, sizeof where);
        fr_sha256_add(&hash, picture, sizeof *picture);
        fr_sha256_end(&hash, block->bytes);
        run = fr_kv_run(p, end);
    }
}

/* Cuts the digests before the timeline is cut. If the cut removes only some of a block's pictures, no digest
 * identifies the pictures that are left. */
static void cut_digests(fr_session *s, size_t length) {
    size_t block = length / FR_KV_PAGE, first = block * FR_KV_PAGE, end = fr_smaller(first + FR_KV_PAGE, s->length);
    bool goes = has_image_token(s, s->ids + length, end - length);
    s->cache.pictures_unknown =
        length && (s->cache.pictures_unknown || (goes && has_image_token(s, s->ids + first, length - first)));
    size_t kept = goes ? block : fr_kv_blocks(length);
    fr_session_plain_digests(s, kept);
}

/* Checks that the pictures match the image tokens of the ids that will follow, before the timeline is cut for these
 * ids. */
static fr_status check_shown(const fr_session *s, const int32_t *ids, size_t count) {
    const fr_shown none = {0};
    return fr_shown_check(pictures_under_way(s) ? &none : &s->shown, s->model->image_token, ids, count);
}

/* Sets the rotary positions of the ids that follow the timeline, if there are pictures among them. */
static fr_status assign_rope_positions(fr_session *s, const int32_t *ids, size_t count) {
    fr_shown none = {0}, *shown = pictures_under_way(s) ? &none : &s->shown;
    if (shown->count == 0 && !has_image_token(s, ids, count)) return FR_OK;
    int64_t base = s->rope_positions[s->length].at[0], next = base;
    fr_status status = fr_pictures_assign(shown, s->model->image_token, fr_spec_has_axes(&s->model->trunk.spec), ids,
                                          count, s->length, s->rope_positions + s->length, &next);
    if (status == FR_OK)
        fr_session_set_rope_positions(s, s->length + count, (size_t)next);
    else
        fr_session_set_rope_positions(s, s->length, (size_t)base);
    if (status != FR_OK) return status;
    s->embeddings = shown->embeddings;
    const fr_input_embeddings *run = s->embeddings;
    for (size_t i = 0; i < shown->count; i++)
        for (size_t row = 0; row < shown->rows[i].count; row += run++->count) digest(s, run, row, &shown->digests[i]);
    return FR_OK;
}

void fr_timeline_forget_pictures(fr_session *s) {
    s->embeddings = &fr_no_input_embeddings;
    fr_shown_free(&s->shown);
}

/* Counts the ids that were run or that a step gave. If no part of a prompt still has to be run, these are all ids. */
static size_t count_ran(const fr_session *s) {
    return s->phase == FR_PHASE_PENDING ? s->ran : s->length;
}

fr_status fr_timeline_extend(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(check(s, s->length, ids, count, 0));
    FR_TRY(assign_rope_positions(s, ids, count));
    memcpy(s->ids + s->length, ids, count * sizeof *ids);
    fr_session_begin_text(s);
    s->ran = count_ran(s);
    s->length += count;
    s->ended = false;
    s->phase = FR_PHASE_PENDING;
    s->sampling.score = (fr_prompt_score){0};
    return FR_OK;
}

/* Returns true if the draft method puts prompts off until it is asked for drafts. Such a method runs the text itself
 * (`lags`). With several timelines the method's drafts cost much and seldom pay, so most prompts would be run for
 * nothing. */
static bool defers(const fr_session *s) {
    return s->drafting.draft->lags && s->engine->capacity > 1 && fr_session_adaptive(s);
}

static void begin_drafting(fr_session *s) {
    if (!s->drafting.draft->method->begin) return;
    fr_draft_view view = fr_session_view(s);
    view.defers = defers(s);
    s->drafting.draft->method->begin(s->drafting.draft, &view);
    s->drafting.seen = s->length;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        fr_draft *reader = fr_draft_reader(s->drafting.draft, i);
        bool waits = reader && reader->lags && view.defers;
        /* an estimate: the ids in the method's cache may differ from the new ids */
        size_t ran = waits ? fr_smaller(reader->method->kv(reader)->length, s->length) : s->length;
        fr_draft_depth_fell_behind(&s->drafting.depth, i, s->length - ran);
    }
}

/* Moves the frontier back to `length` or to a position before it, from which the ids are run again. */
static void go_back(fr_session *s, size_t length) {
    fr_kv_checkpoints_rewind(&s->cache.checkpoints, &s->cache.kv, length);
    fr_session_retreat(s);
}

/* Puts the choice of rotary frequencies into the digests of all blocks. So a prefix that was run with the frequencies
 * for short texts is not reused for a long text. */
static void mark_rope_in_digests(fr_session *s) {
    fr_session_plain_digests(s, 0);
    for (size_t i = 0; s->cache.kv.rope_far && i < s->cache.kv.blocks; i++)
        for (size_t b = 0; b < sizeof s->cache.digests->bytes; b++) s->cache.digests[i].bytes[b] ^= 0xff;
}

void fr_timeline_choose_rope(fr_session *s) {
    size_t most = s->model->trunk.rope_near_max;
    bool rope_far = s->length > most, other = rope_far != s->cache.kv.rope_far;
    if (most == 0) return;
    if (other) {
        size_t ran = s->cache.kv.length;
        s->ran = count_ran(s);
        s->phase = s->length ? FR_PHASE_PENDING : FR_PHASE_EMPTY;
        fr_kv_checkpoints_truncate(&s->cache.checkpoints, &s->cache.kv, 0);
        go_back(s, 0);
        s->cache.kv.rope_far = rope_far;
        s->stats.value[FR_STAT_RERUN_TOKENS] += (double)ran;
        if (ran)
            fr_log_line(&s->log, FR_LOG_INFO,
                        "a text of %s than %zu tokens has other rotary angles: %zu tokens are run again",
                        rope_far ? "more" : "no more", most, ran);
    }
    if (other || s->phase == FR_PHASE_PENDING) mark_rope_in_digests(s);
}

size_t fr_timeline_drafts(const fr_session *s) {
    size_t most = s->model->trunk.rope_near_max;
    return s->length <= most ? most - s->length : s->context;
}

/* Fails if an image token must be run again but the token's row is no longer stored. */
static fr_status check_pictures(const fr_session *s) {
    for (size_t i = s->cache.kv.length; i < s->length; i++)
        if (s->ids[i] == s->model->image_token &&
            !fr_input_embedding(s->embeddings, i, fr_spec_picture_width(&s->model->trunk.spec)))
            return fr_fail(FR_INPUT, "the image token at position %zu can't be run again without its picture", i);
    return FR_OK;
}

fr_status fr_timeline_begin(fr_session *s) {
    fr_timeline_choose_rope(s);
    fr_session_reuse(s, false);
    FR_TRY(check_pictures(s));
    return fr_session_follow(s);
}

fr_batch_slice fr_timeline_next_slice(fr_session *s, size_t rows) {
    size_t left = s->length - s->cache.kv.length, next = fr_batch_cut(s, fr_smaller(rows, left));
    return (fr_batch_slice){.session = s, .rows = next, .heads = next == left};
}

/* Passes the slice's rows before row `end` to the draft method, and keeps the last of these rows. The frontier must be
 * right after that last row. */
static fr_status see(const fr_batch_slice *slice, size_t end) {
    fr_session *s = slice->session;
    size_t row = fr_batch_slice_row(slice, end - 1);
    FR_TRY(fr_session_see(s, row));
    fr_session_keep_rows(s, row, 1);
    return FR_OK;
}

/* If a slice has failed, moves the frontier back to the last position of the prompt that the draft method has seen. At
 * least the last id is then left to run. */
static fr_status give_back(fr_session *s, size_t seen, fr_status status) {
    if (status != FR_OK) go_back(s, fr_smaller(seen, s->length - 1));
    return status;
}

/* Moves the frontier over the slice. In the batch, a slice's rows with logits do not come directly after its rows
 * without logits (batch.h). So a draft method that follows the target is shown the two groups one after the other. */
static fr_status advance(const fr_batch_slice *slice) {
    fr_session *s = slice->session;
    size_t first = s->cache.kv.length, plain = slice->rows - slice->heads, seen = first;
    if (plain && slice->heads && s->drafting.draft->follows) {
        fr_kv_commit(&s->cache.kv, first + plain);
        FR_TRY(give_back(s, seen, see(slice, plain)));
        seen += plain;
    }
    fr_timeline_advance(s, first + slice->rows, slice->heads);
    if (s->caller.progress) s->caller.progress(s->caller.progress_context, s->cache.kv.length, s->length);
    return slice->heads || s->drafting.draft->follows ? give_back(s, seen, see(slice, slice->rows)) : FR_OK;
}

fr_status fr_timeline_finish(const fr_batch_slice *slice, double seconds) {
    fr_session *s = slice->session;
    size_t before = s->ran, stood;
    fr_trace_prompt(&s->trace, seconds, s->cache.kv.length, s->ids + s->cache.kv.length, slice->rows);
    FR_TRY(advance(slice));
    s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)(s->ran - before);
    if (!slice->heads) return FR_OK;
    FR_TRY(give_back(s, s->length, fr_session_choose(s, 0, &stood, &s->next)));
    fr_timeline_forget_pictures(s);
    fr_logprobs_take(&s->sampling.logprobs, s->result.logits, &s->next, 1);
    fr_trace_predict(&s->trace, s->result.logits, s->model->trunk.spec.vocab);
    s->phase = FR_PHASE_PREDICTED;
    begin_drafting(s);
    return FR_OK;
}

static fr_status run_pending(fr_session *s) {
    FR_TRY(fr_timeline_begin(s));
    while (s->phase == FR_PHASE_PENDING) {
        FR_TRY(fr_session_check_abort(s));
        fr_batch_slice slice = fr_timeline_next_slice(s, s->engine->chunk);
        double clock = fr_clock();
        FR_TRY(fr_batch_admit(&slice));
        fr_batch_run(s->engine, &slice, 1);
        fr_status status = fr_timeline_finish(&slice, fr_clock() - clock);
        fr_status scored = fr_prompt_score_take(&slice);
        FR_TRY(status);
        FR_TRY(scored);
    }
    return FR_OK;
}

fr_status fr_timeline_run(fr_session *s) {
    double start = fr_clock();
    fr_status status = run_pending(s);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    return status;
}

fr_status fr_timeline_append(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(fr_model_check_head(s->model));
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_timeline_choose_rope(s);
    fr_session_reuse(s, true);
    return fr_timeline_run(s);
}

void fr_timeline_recover(fr_session *s) {
    if (fr_recurrent_holds(&s->cache.kv.recurrent, s->cache.kv.length)) return;
    s->ran = count_ran(s);
    s->phase = s->length ? FR_PHASE_PENDING : FR_PHASE_EMPTY;
    go_back(s, s->cache.kv.length);
}

fr_status fr_timeline_again(fr_session *s) {
    if (s->phase == FR_PHASE_PENDING || s->phase == FR_PHASE_EMPTY) return FR_OK;
    if (s->ids[s->length - 1] == s->model->image_token)
        return fr_fail(FR_INPUT, "the image token at position %zu can't be run again without its picture",
                       s->length - 1);
    FR_TRY(fr_session_follow(s));
    s->ran = s->length;
    s->phase = FR_PHASE_PENDING;
    go_back(s, s->length - 1);
    return FR_OK;
}

/* Returns true if a cut to `length` ids divides a picture whose rows must be run together. */
static bool cuts_block(const fr_session *s, size_t length) {
    int32_t image = s->model->image_token;
    return s->model->block_rows && length && s->ids[length - 1] == image && s->ids[length] == image;
}

/* Drops the pictures that a cut has removed from a prompt not yet run to its end. Rows of pictures are kept as long as
 * some image token is still to be run. */
static void cut_pictures(fr_session *s) {
    if (!pictures_under_way(s)) return;
    fr_shown_cut(&s->shown, s->length);
    if (!has_image_token(s, s->ids + s->cache.kv.length, s->length - s->cache.kv.length))
        fr_timeline_forget_pictures(s);
}

/* Cuts the timeline. The frontier stops before the last id, because that id must be run again for the token after it.
 * If the cut divides a picture whose rows see its later rows, the frontier stops before that picture. In this case the
 * session drops its pictures' rows that are still stored, because half a picture can't be run again. */
fr_status fr_timeline_truncate(fr_session *s, size_t length) {
    if (length == s->length) return FR_OK;
    FR_TRY(fr_session_follow(s));
    fr_session_offer(s);
    fr_session_begin_text(s);
    size_t ran = fr_smaller(s->cache.kv.length, length), first = length ? fr_smaller(ran, length - 1) : 0;
    bool divides = cuts_block(s, length);
    while (divides && first && s->ids[first - 1] == s->model->image_token) first--;
    s->ran = fr_smaller(count_ran(s), length);
    cut_digests(s, length);
    s->length = length;
    fr_session_set_rope_positions(s, length, (size_t)s->rope_positions[length].at[0]);
    s->drafting.seen = fr_smaller(s->drafting.seen, length);
    s->ended = false;
    s->sampling.score = (fr_prompt_score){0};
    if (length == 0) s->cache.restored = false;
    s->phase = length ? FR_PHASE_PENDING : FR_PHASE_EMPTY;
    fr_kv_checkpoints_truncate(&s->cache.checkpoints, &s->cache.kv, length);
    go_back(s, first);
    if (divides && pictures_under_way(s)) fr_timeline_forget_pictures(s);
    cut_pictures(s);
    s->stats.value[FR_STAT_RERUN_TOKENS] += (double)(ran - s->cache.kv.length);
    fr_log_line(&s->log, FR_LOG_DEBUG, "timeline cut to %zu tokens, of which %zu will be run again", length,
                ran - s->cache.kv.length);
    return FR_OK;
}

/* Counts how many of the first `kept` ids may stay. Different pictures have the same ids, so equal ids are not enough
 * for image tokens. If a picture ends at `kept` or is cut there, it does not stay, because half a picture can't be run
 * again. */
static size_t before_pictures(const fr_session *s, const int32_t *ids, size_t kept) {
    int32_t image = s->model->image_token;
    if (s->shown.count && !pictures_under_way(s))
        for (size_t i = 0; i < kept; i++)
            if (ids[i] == image) return i;
    while (kept && ids[kept - 1] == image) kept--;
    return kept;
}

fr_status fr_timeline_put(fr_session *s, const int32_t *ids, size_t count) {
    size_t kept = 0, most = fr_smaller(s->length, count);
    FR_TRY(fr_model_check_head(s->model));
    while (kept < most && ids[kept] == s->ids[kept]) kept++;
    kept = before_pictures(s, ids, kept);
    FR_TRY(check(s, kept, ids, count, kept));
    if (kept < count) FR_TRY(check_shown(s, ids + kept, count - kept));
    FR_TRY(fr_timeline_truncate(s, kept));
    s->ended = false;
    s->stats.value[FR_STAT_REUSED_TOKENS] += (double)count_ran(s);
    if (kept < count) {
        FR_TRY(fr_timeline_extend(s, ids + kept, count - kept));
        fr_timeline_choose_rope(s);
        fr_session_reuse(s, true);
        return FR_OK;
    }
    if (s->phase == FR_PHASE_PREDICTED && fr_sampler_moved(&s->sampling.sampler))
        /* the token was predicted with another value of mirostat's bound, so it must be drawn again */
        FR_TRY(fr_timeline_again(s));
    fr_session_begin_text(s);
    s->ran = count_ran(s);
    if (s->phase != FR_PHASE_PREDICTED) s->phase = FR_PHASE_PENDING; /* in PREDICTED, this same prompt ran last */
    return FR_OK;
}

fr_status fr_timeline_put_anew(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(fr_model_check_head(s->model));
    FR_TRY(check(s, 0, ids, count, 0));
    FR_TRY(check_shown(s, ids, count));
    FR_TRY(fr_timeline_truncate(s, 0));
    FR_TRY(fr_timeline_extend(s, ids, count));
    fr_timeline_choose_rope(s);
    return FR_OK;
}

fr_status fr_timeline_set(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(fr_timeline_put(s, ids, count));
    return s->phase == FR_PHASE_PENDING ? fr_timeline_run(s) : FR_OK;
}

/* Copies a timeline. If a token was predicted after a prompt, the copy runs the last id again, and chooses the token
 * by its own settings. */
fr_status fr_timeline_copy(fr_session *copy, const fr_session *s) {
    const fr_draft *draft = fr_draft_inner(s->drafting.draft);
    bool alike = copy->drafting.draft->method == draft->method &&
                 memcmp(&copy->drafting.methods, &s->drafting.methods, sizeof s->drafting.methods) == 0;
    size_t ran = s->phase == FR_PHASE_PREDICTED ? s->length - 1 : s->cache.kv.length;
    fr_kv_fork(&copy->cache.kv, &s->cache.kv);
    fr_kv_checkpoints_fork(&copy->cache.checkpoints, &copy->cache.kv, &s->cache.checkpoints);
    memcpy(copy->cache.digests, s->cache.digests, s->cache.kv.blocks * sizeof *s->cache.digests);
    copy->cache.pictures_unknown = s->cache.pictures_unknown;
    copy->cache.restored = s->cache.restored;
    if (alike && draft->method->fork) draft->method->fork(copy->drafting.draft, draft);
    if (alike) copy->drafting.seen = s->drafting.seen;
    for (size_t i = 0; alike && i < FR_DRAFTERS_MAX; i++)
        copy->drafting.depth.by[i].behind = s->drafting.depth.by[i].behind;
    memcpy(copy->ids, s->ids, s->length * sizeof *s->ids);
    memcpy(copy->rope_positions, s->rope_positions, (s->context + FR_STEP_MAX) * sizeof *s->rope_positions);
    fr_session_keep_rows_of(copy, s);
    copy->length = s->length;
    copy->ran = count_ran(s);
    copy->ended = s->ended;
    bool unseen = copy->drafting.draft->follows && !alike; /* a method that follows needs the target's rows */
    copy->phase = s->phase == FR_PHASE_BETWEEN && !unseen ? FR_PHASE_BETWEEN
                  : s->phase == FR_PHASE_EMPTY            ? FR_PHASE_EMPTY
                                                          : FR_PHASE_PENDING;
    if (copy->phase == FR_PHASE_PENDING)
        go_back(copy, unseen ? 0 : ran);
    else if (s->length > 0)
        begin_drafting(copy);
    fr_session_share(copy, false);
    return check_pictures(copy);
}
