/* Writes a session's rounds as lines of JSON: see trace.h. */
#include "src/engine/session/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/clock.h"

/* The most bytes that the parts of a line take. */
enum {
    ID_ROOM = 12,      /* an id and its comma */
    SECONDS_ROOM = 48, /* a number of seconds and its key */
    BYTE_ROOM = 6,     /* a byte of a name: one that is not UTF-8 is written as the six characters \ufffd */
    LINE_ROOM = 512    /* the rest of the line */
};

void fr_trace_layout(fr_trace *trace, fr_arena *arena, const char *model, const char *drafter, size_t rows) {
    size_t header = BYTE_ROOM * (strlen(model) + (drafter ? strlen(drafter) : 0));
    size_t prompt = ID_ROOM * rows, round = (ID_ROOM + SECONDS_ROOM) * FR_STEP_MAX;
    size_t most = header > prompt ? header : prompt;
    *trace = (fr_trace){.capacity = LINE_ROOM + (most > round ? most : round)};
    trace->text = fr_arena_take(arena, trace->capacity, 1);
}

/* -------------------------------------------------------------------------------------------------- parts of a line */

/* Appends to the line. Only integers and words are formatted, because printf writes fractions by the caller's
 * locale. */
__attribute__((format(printf, 2, 3))) static void put(fr_trace *t, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(t->text + t->length, t->capacity - t->length, format, values);
    va_end(values);
    if (length > 0 && (size_t)length < t->capacity - t->length) t->length += (size_t)length;
}

/* Appends a number with nine decimal places. A number below 0 is written as 0. A difference of totals can be below 0
 * after a reset. It can also be below 0 in a round that only gives the id that a prompt predicted, because such a round
 * takes no time. A number that is not finite, or too large, becomes null. */
static void put_real(fr_trace *t, double value) {
    if (!(fabs(value) < 1e9)) {
        put(t, "null");
        return;
    }
    uint64_t billionths = value > 0 ? (uint64_t)(value * 1e9 + 0.5) : 0;
    put(t, "%" PRIu64 ".%09" PRIu64, billionths / 1000000000, billionths % 1000000000);
}

static void put_seconds(fr_trace *t, const char *key, double seconds) {
    put(t, ",\"%s\":", key);
    put_real(t, seconds);
}

static void put_ids(fr_trace *t, const int32_t *ids, size_t count) {
    put(t, ",\"ids\":[");
    for (size_t i = 0; i < count; i++) put(t, i ? ",%d" : "%d", ids[i]);
    put(t, "]");
}

/* Appends a string of any bytes; bytes that are no UTF-8 become U+FFFD. */
static void put_text(fr_trace *t, const char *key, const char *text) {
    put(t, ",\"%s\":\"", key);
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    for (utf8proc_ssize_t left = (utf8proc_ssize_t)strlen(text), used; left > 0; left -= used, at += used) {
        utf8proc_int32_t c;
        used = utf8proc_iterate(at, left, &c);
        if (used < 1) {
            used = 1;
            put(t, "\\ufffd");
        } else if (c < ' ' || c == '"' || c == '\\')
            put(t, "\\u%04x", (unsigned)c);
        else
            put(t, "%.*s", (int)used, (const char *)at);
    }
    put(t, "\"");
}

static void begin_line(fr_trace *t, const char *event) {
    t->length = 0;
    put(t, "{\"event\":\"%s\"", event);
    put_seconds(t, "at", fr_clock() - t->began);
}

static void end_line(fr_trace *t) {
    put(t, "}\n");
    t->line(t->context, t->text, t->length);
}

/* Appends the growth of a total since the line before this one, so that a trace's seconds add up to the totals. */
static void put_phase(fr_trace *t, const char *key, const fr_stats *stats, fr_stat stat) {
    put_seconds(t, key, stats->value[stat] - t->told[stat]);
    t->told[stat] = stats->value[stat];
}

/* Gives the difference between the largest logit and the second largest. */
static double margin(const float *logits, size_t count) {
    float best = -INFINITY, next = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (logits[i] > best) {
            next = best;
            best = logits[i];
        } else if (logits[i] > next)
            next = logits[i];
    }
    return (double)best - (double)next;
}

/* ------------------------------------------------------------------------------------------------------ whole lines */

void fr_trace_begin(fr_trace *t, const fr_stats *stats, const fr_trace_subject *subject, fr_trace_fn *line,
                    void *context) {
    t->line = line;
    t->context = context;
    if (!line) return;
    t->began = fr_clock();
    t->round = 0;
    t->margin = NAN;
    memcpy(t->told, stats->value, sizeof t->told);
    begin_line(t, "begin");
    put(t, ",\"trace\":1,\"version\":\"%d.%d.%d\"", FR_VERSION_MAJOR, FR_VERSION_MINOR, FR_VERSION_PATCH);
    put_text(t, "model", subject->model);
    if (subject->drafter) put_text(t, "drafter", subject->drafter);
    put(t, ",\"method\":\"%s\",\"draft_max\":%zu,\"threads\":%zu,\"isa\":\"%s\",\"context\":%zu", subject->method,
        subject->draft_max, subject->threads, subject->isa, subject->context);
    end_line(t);
}

void fr_trace_prompt(fr_trace *t, double seconds, size_t position, const int32_t *ids, size_t count) {
    if (!t->line) return;
    begin_line(t, "prompt");
    put(t, ",\"position\":%zu", position);
    put_ids(t, ids, count);
    put_seconds(t, "seconds", seconds);
    end_line(t);
}

void fr_trace_predict(fr_trace *t, const float *logits, size_t vocab) {
    if (t->line) t->margin = margin(logits, vocab);
}

void fr_trace_draft(fr_trace *t, const char *method, size_t position, const int32_t *ids, size_t count) {
    if (!t->line || count == 0) return;
    begin_line(t, "draft");
    put(t, ",\"round\":%zu,\"position\":%zu,\"method\":\"%s\"", t->round, position, method);
    put_ids(t, ids, count);
    end_line(t);
}

void fr_trace_accept(fr_trace *t, const fr_stats *stats, const fr_trace_round *round) {
    if (!t->line) return;
    begin_line(t, "accept");
    put(t, ",\"round\":%zu,\"position\":%zu,\"rows\":%zu,\"accepted\":%zu", t->round++, round->position, round->rows,
        round->accepted);
    put_ids(t, round->ids, round->count);
    put(t, ",\"margins\":[");
    for (size_t i = 0; i < round->count; i++) {
        if (i) put(t, ",");
        put_real(t, round->rows ? margin(round->logits + i * round->vocab, round->vocab) : t->margin);
    }
    put(t, "]");
    put_phase(t, "draft_seconds", stats, FR_STAT_DRAFT_SECONDS);
    put_phase(t, "verify_seconds", stats, FR_STAT_VERIFY_SECONDS);
    put_phase(t, "accept_seconds", stats, FR_STAT_ACCEPT_SECONDS);
    put_phase(t, "seconds", stats, FR_STAT_DECODE_SECONDS);
    end_line(t);
}
