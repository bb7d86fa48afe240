/* A session's timeline: see timeline.h. */
#include "src/timeline.h"

#include <string.h>

#include "formats/error.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

void fr_timeline_advance(fr_session *s, size_t length, bool prompt_end) {
    fr_kv_commit(&s->kv, length);
    fr_snapshots_note(&s->snapshots, &s->kv, prompt_end);
}

/* That ids fit behind the first `kept` of the timeline. */
static fr_status check(const fr_session *s, size_t kept, const int32_t *ids, size_t count) {
    if (count > s->context - kept)
        return fr_fail(FR_INPUT, "the prompt has %zu tokens, the context has room for %zu of %zu: raise -c", count,
                       s->context - kept, s->context);
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= s->model->vocab)
            return fr_fail(FR_INPUT, "id %d at index %zu of the prompt is outside the vocabulary of %zu", ids[i], i,
                           s->model->vocab);
    return FR_OK;
}

fr_status fr_timeline_extend(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(check(s, s->length, ids, count));
    memcpy(s->ids + s->length, ids, count * sizeof *ids);
    s->length += count;
    s->fresh = s->ended = false;
    s->pending = true;
    return FR_OK;
}

static void begin_drafting(fr_session *s) {
    if (!s->draft->method->begin) return;
    fr_draft_view view = fr_session_view(s);
    s->draft->method->begin(s->draft, &view);
    s->told = s->length;
}

fr_status fr_timeline_run(fr_session *s) {
    double start = fr_clock();
    while (s->kv.length < s->length) {
        FR_TRY(fr_session_check_abort(s));
        size_t rows = smaller(s->chunk, s->length - s->kv.length);
        bool last = s->kv.length + rows == s->length;
        fr_forward f = fr_session_batch(s, rows);
        f.head_first = rows - 1;
        f.head_rows = last;
        f.keep = rows - f.head_rows;
        double clock = fr_clock();
        fr_forward_run(s->pool, &f);
        fr_trace_prompt(&s->trace, fr_clock() - clock, s->kv.length, f.ids, rows);
        fr_timeline_advance(s, s->kv.length + rows, last);
        s->hidden_row = rows - 1;
    }
    size_t stood;
    FR_TRY(fr_session_choose(s, 0, &stood, &s->next));
    fr_logprobs_take(&s->logprobs, s->logits, &s->next, 1);
    s->fresh = true;
    s->pending = false;
    begin_drafting(s);
    s->stats.value[FR_STAT_PREFILL_SECONDS] += fr_clock() - start;
    return FR_OK;
}

fr_status fr_timeline_append(fr_session *s, const int32_t *ids, size_t count) {
    FR_TRY(fr_timeline_extend(s, ids, count));
    s->stats.value[FR_STAT_PROMPT_TOKENS] += (double)count;
    return fr_timeline_run(s);
}

/* The frontier stops before the last id: what the target says after it takes that id's own run. */
void fr_timeline_truncate(fr_session *s, size_t length) {
    if (length == s->length) return;
    size_t ran = smaller(s->kv.length, length);
    s->length = length;
    s->told = smaller(s->told, length);
    s->fresh = s->ended = false;
    s->pending = length > 0;
    fr_snapshots_truncate(&s->snapshots, &s->kv, length);
    fr_snapshots_rewind(&s->snapshots, &s->kv, length ? smaller(ran, length - 1) : 0);
    s->stats.value[FR_STAT_RERUN_TOKENS] += (double)(ran - s->kv.length);
    fr_log_line(&s->log, FR_LOG_DEBUG, "timeline cut to %zu tokens, of which %zu will be run again", length,
                ran - s->kv.length);
}

fr_status fr_timeline_set(fr_session *s, const int32_t *ids, size_t count) {
    size_t kept = 0, most = smaller(s->length, count);
    while (kept < most && ids[kept] == s->ids[kept]) kept++;
    FR_TRY(check(s, kept, ids + kept, count - kept));
    fr_timeline_truncate(s, kept);
    s->ended = false;
    s->stats.value[FR_STAT_REUSED_TOKENS] += (double)kept;
    if (kept < count) return fr_timeline_append(s, ids + kept, count - kept);
    return s->fresh ? FR_OK : fr_timeline_run(s); /* fresh: just this prompt has run last */
}
