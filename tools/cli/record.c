/* Reads a trace (record.h). */
#include "tools/cli/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST ((json_int_t)1 << 40) /* the largest number that may occur as a count or a position */
#define LONGEST 1e9                   /* the largest number of seconds */

typedef struct fr_reader {
    fr_record *record;
    const char *path, *event;
    size_t line;
    size_t drafted; /* number of drafts in the last draft line; 0 if an accept line has come since */
    int code;
} fr_reader;

/* Reports a fault in the file. Only the first fault is printed. */
__attribute__((format(printf, 2, 3))) static void fault(fr_reader *r, const char *format, ...) {
    char what[256];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof(what), format, values);
    va_end(values);
    if (!r->code) r->code = fr_bad_input("%s: line %zu: %s", r->path, r->line, what);
}

/* Makes room for `more` elements after the `count` elements of an array. */
static void *grow(void *array, size_t *capacity, size_t count, size_t more, size_t size) {
    if (*capacity - count >= more) return array;
    *capacity = 2 * *capacity + more + 64;
    return fr_resize(array, *capacity, size);
}

/* ----------------------------------------------------------------------------------------------------------- fields */

static size_t whole(fr_reader *r, const json_t *line, const char *key, json_int_t most) {
    const json_t *value = json_object_get(line, key);
    if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= most)
        return (size_t)json_integer_value(value);
    fault(r, "%s: \"%s\" must be a whole number of 0 to %lld", r->event, key, (long long)most);
    return 0;
}

static double seconds(fr_reader *r, const json_t *line, const char *key) {
    double value = json_number_value(json_object_get(line, key));
    if (json_is_number(json_object_get(line, key)) && value >= 0 && value <= LONGEST) return value;
    fault(r, "%s: \"%s\" must be a number of seconds", r->event, key);
    return 0;
}

static const json_t *array(fr_reader *r, const json_t *line, const char *key, size_t most) {
    const json_t *value = json_object_get(line, key);
    if (json_is_array(value) && json_array_size(value) <= most) return value;
    fault(r, "%s: \"%s\" must be an array of at most %zu", r->event, key, most);
    return NULL;
}

/* Counts the ids of a line, and checks that they all are whole numbers. */
static size_t count_ids(fr_reader *r, const json_t *line, size_t most) {
    const json_t *ids = array(r, line, "ids", most);
    for (size_t i = 0; i < json_array_size(ids); i++)
        if (!json_is_integer(json_array_get(ids, i))) fault(r, "%s: \"ids\" must be whole numbers", r->event);
    return json_array_size(ids);
}

/* ----------------------------------------------------------------------------------------------------------- events */

static void take_begin(fr_reader *r, json_t *line) {
    if (r->record->begin) fault(r, "a second trace begins");
    if (whole(r, line, "trace", 1) != 1) fault(r, "begin: this version reads traces of form 1");
    if (!r->record->begin) r->record->begin = json_incref(line);
}

static void take_prompt(fr_reader *r, const json_t *line) {
    r->record->prompt_tokens += count_ids(r, line, (size_t)LARGEST);
    r->record->prompt_seconds += seconds(r, line, "seconds");
    r->record->prompt_forwards++;
}

static void take_draft(fr_reader *r, const json_t *line) {
    if (r->drafted) fault(r, "draft: the draft before it has no accept line");
    r->drafted = count_ids(r, line, FR_STEP_MAX - 1);
}

static void take_accept(fr_reader *r, const json_t *line) {
    fr_record *record = r->record;
    fr_record_round round = {
        .rows = whole(r, line, "rows", FR_STEP_MAX),
        .drafted = r->drafted,
        .accepted = whole(r, line, "accepted", FR_STEP_MAX - 1),
        .count = count_ids(r, line, FR_STEP_MAX),
        .draft = seconds(r, line, "draft_seconds"),
        .verify = seconds(r, line, "verify_seconds"),
        .accept = seconds(r, line, "accept_seconds"),
        .seconds = seconds(r, line, "seconds"),
    };
    const json_t *margins = array(r, line, "margins", round.count);
    for (size_t i = 0; i < FR_STEP_MAX; i++) {
        const json_t *margin = json_array_get(margins, i);
        round.margins[i] = json_is_number(margin) ? json_number_value(margin) : NAN;
    }
    if (round.accepted > round.drafted || round.accepted > round.count || round.count > round.drafted + 1)
        fault(r, "accept: %zu ids with %zu accepted of %zu drafts", round.count, round.accepted, round.drafted);
    record->rounds = grow(record->rounds, &record->round_capacity, record->round_count, 1, sizeof(round));
    record->rounds[record->round_count++] = round;
    r->drafted = 0;
}

static void add_piece(fr_record *record, fr_origin origin, size_t index, const json_t *text) {
    size_t length = json_string_length(text);
    fr_record_piece piece = {.origin = origin, .index = index, .begin = record->text_length, .length = length};
    piece.round = record->round_count ? record->round_count - 1 : 0;
    /* The buffer has one byte more than the pieces need, so that `text` is not NULL even if all pieces are empty. */
    record->text = grow(record->text, &record->text_capacity, record->text_length, length + 1, 1);
    memcpy(record->text + record->text_length, json_string_value(text), length);
    record->text_length += length;
    record->pieces = grow(record->pieces, &record->piece_capacity, record->piece_count, 1, sizeof(piece));
    record->pieces[record->piece_count++] = piece;
}

/* Says where the id at `index` of a round comes from. It is an accepted draft, a correction of a rejected draft, or the
 * target's own token. */
static fr_origin origin_of(const fr_record_round *round, size_t index) {
    if (index < round->accepted) return FR_ORIGIN_DRAFT;
    return round->accepted < round->drafted ? FR_ORIGIN_CORRECTION : FR_ORIGIN_TARGET;
}

static void take_text(fr_reader *r, const json_t *line) {
    fr_record *record = r->record;
    const char *of = json_string_value(json_object_get(line, "of"));
    bool prompt = of && strcmp(of, "prompt") == 0, reply = of && strcmp(of, "reply") == 0;
    if (!prompt && !reply) fault(r, "text: \"of\" must be \"prompt\" or \"reply\"");
    if (reply && record->round_count == 0) fault(r, "text: a reply before the first accept line");
    const json_t *pieces = array(r, line, "pieces", reply ? FR_STEP_MAX : (size_t)LARGEST);
    for (size_t i = 0; i < json_array_size(pieces) && !r->code; i++) {
        const json_t *piece = json_array_get(pieces, i);
        if (!json_is_string(piece))
            fault(r, "text: \"pieces\" must be strings");
        else
            add_piece(record, reply ? origin_of(&record->rounds[record->round_count - 1], i) : FR_ORIGIN_PROMPT, i,
                      piece);
    }
}

static void take_stats(fr_reader *r, const json_t *line) {
    json_t *stats = json_object_get(line, "stats");
    if (!json_is_object(stats)) fault(r, "stats: \"stats\" must be an object");
    json_decref(r->record->stats);
    r->record->stats = json_incref(stats);
}

static void take_event(fr_reader *r, json_t *line) {
    r->event = json_string_value(json_object_get(line, "event"));
    if (!r->event)
        fault(r, "no \"event\"");
    else if (strcmp(r->event, "begin") == 0)
        take_begin(r, line);
    else if (!r->record->begin)
        fault(r, "no trace: the first line must be its begin");
    else if (strcmp(r->event, "prompt") == 0)
        take_prompt(r, line);
    else if (strcmp(r->event, "draft") == 0)
        take_draft(r, line);
    else if (strcmp(r->event, "accept") == 0)
        take_accept(r, line);
    else if (strcmp(r->event, "text") == 0)
        take_text(r, line);
    else if (strcmp(r->event, "stats") == 0)
        take_stats(r, line);
}

static void take_line(fr_reader *r, const char *bytes, size_t length, bool complete) {
    json_error_t error;
    json_t *line = json_loadb(bytes, length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!line && !complete)
        r->record->cut_off = true;
    else if (!json_is_object(line))
        fault(r, "%s", line ? "no JSON object" : error.text);
    else
        take_event(r, line);
    json_decref(line);
}

int fr_record_read(fr_record *record, const char *path, const char *bytes, size_t length) {
    *record = (fr_record){0};
    fr_reader r = {.record = record, .path = path};
    for (size_t at = 0; at < length && !r.code;) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t size = end ? (size_t)(end - bytes) - at : length - at;
        r.line++;
        take_line(&r, bytes + at, size, end != NULL);
        at += size + 1;
    }
    if (!r.code && !record->begin) r.code = fr_bad_input("%s: no trace begins in it", path);
    return r.code;
}

static void add_round(fr_sums *sums, const fr_record_round *round) {
    sums->calls++;
    sums->tokens += (double)round->count;
    sums->drafting += round->drafted > 0;
    sums->drafted += (double)round->drafted;
    sums->accepted += (double)round->accepted;
    sums->draft += round->draft;
    sums->verify += round->verify;
    sums->accept += round->accept;
    sums->seconds += round->seconds;
    sums->given[round->count]++;
    for (size_t d = 0; d < round->drafted; d++) {
        sums->at_depth[d][FR_DEPTH_DRAFTED]++;
        sums->at_depth[d][FR_DEPTH_COMPARED] += d < round->count;
        sums->at_depth[d][FR_DEPTH_ACCEPTED] += d < round->accepted;
        sums->at_depth[d][FR_DEPTH_REJECTED] += d >= round->accepted;
    }
}

fr_sums fr_record_sums(const fr_record *record, size_t from, size_t to) {
    fr_sums sums = {0};
    for (size_t i = from; i < to; i++)
        if (record->rounds[i].rows > 0) add_round(&sums, &record->rounds[i]);
    return sums;
}

void fr_record_free(fr_record *record) {
    json_decref(record->begin);
    json_decref(record->stats);
    free(record->rounds);
    free(record->pieces);
    free(record->text);
    *record = (fr_record){0};
}
