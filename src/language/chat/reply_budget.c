/* Limits the tokens of a reply's reasoning (fr_lab_reply_budget).
 *
 * In: the ids of a timeline, which begin with the prompt's. Out: once the limit is reached, logits that allow only the
 * token that ends reasoning. The ids are read anew each time, so that rejected drafts have no influence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "formats/json.h"
#include "forerun_lab.h"
#include "src/language/chat/reply.h"
#include "src/language/chat/reply_begin.h"

/* TITLE_MAX: the most bytes of a title (see `title`); BEHIND_MAX: the most tokens after the limit that complete a
 * character */
enum { TITLE_MAX = 24, BEHIND_MAX = 3 };

struct fr_lab_reply_budget {
    const fr_tokenizer *tokenizer;
    bool opened;       /* the prompt itself has opened the reasoning */
    int32_t begin;     /* the token that begins reasoning; -1: the model has none */
    const char *title; /* the text that must follow `begin`; if another text follows it, reasoning has not begun */
    /* body: the token that must follow the title; -1: there is none. end: the token that ends reasoning */
    int32_t body, end;
    size_t prompt, most;
};

/* The state of a reply after some of its ids. */
typedef struct thought {
    enum { OUTSIDE, TITLE, INSIDE } at;
    char title[TITLE_MAX];
    /* length: number of bytes of the title; tokens: number of tokens in all reasoning so far */
    size_t length, tokens;
} thought;

/* ------------------------------------------------------------------------------------------------ reading the reply */

static void end_title(thought *t, const fr_lab_reply_budget *b) {
    size_t length = strlen(b->title);
    bool same = t->length >= length && memcmp(t->title, b->title, length) == 0;
    t->at = same && (b->body < 0 || t->length == length) ? INSIDE : OUTSIDE;
}

static void add_title(thought *t, const fr_lab_reply_budget *b, int32_t id) {
    size_t length = 0;
    const char *bytes = fr_token_bytes(b->tokenizer, id, &length);
    if (id == b->body) {
        end_title(t, b);
    } else if (length > TITLE_MAX - t->length) {
        t->at = OUTSIDE;
    } else {
        if (bytes) memcpy(t->title + t->length, bytes, length);
        t->length += length;
        if (b->body < 0 && t->length >= strlen(b->title)) end_title(t, b);
    }
}

static void add_id(thought *t, const fr_lab_reply_budget *b, int32_t id) {
    if (t->at == INSIDE) {
        if (id == b->end)
            t->at = OUTSIDE;
        else
            t->tokens++;
    } else if (id == b->begin) {
        t->at = TITLE;
        t->length = 0;
        if (!*b->title && b->body < 0) t->at = INSIDE;
    } else if (t->at == TITLE) {
        add_title(t, b, id);
    }
}

/* Returns true if the text of these tokens ends within a UTF-8 character. */
static bool is_cut(const fr_lab_reply_budget *b, const int32_t *ids, size_t count) {
    char tail[4];
    size_t kept = 0;
    while (count > 0 && kept < sizeof tail) {
        size_t length = 0;
        const char *bytes = fr_token_bytes(b->tokenizer, ids[--count], &length);
        while (bytes && length > 0 && kept < sizeof tail) tail[sizeof tail - ++kept] = bytes[--length];
    }
    for (size_t last = 1; last <= kept; last++) {
        fr_character_bytes character = fr_first_character(tail + sizeof tail - last, last);
        if (character.there > 0) return character.there == last && character.whole > last;
    }
    return false;
}

static bool is_over(const fr_lab_reply_budget *b, const int32_t *ids, size_t length) {
    thought t = {.at = b->opened ? INSIDE : OUTSIDE};
    for (size_t i = b->prompt; i < length; i++) add_id(&t, b, ids[i]);
    if (t.at != INSIDE || t.tokens < b->most) return false;
    size_t behind = t.tokens - b->most, text = t.tokens < length ? t.tokens : length;
    return behind >= BEHIND_MAX || !is_cut(b, ids + length - text, text);
}

fr_status fr_lab_reply_budget_mask(void *budget, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    const fr_lab_reply_budget *b = budget;
    if (!is_over(b, ids, length)) return FR_OK;
    for (size_t id = 0; id < vocab; id++)
        if (id != (size_t)b->end) logits[id] = -INFINITY;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------- opening and closing */

/* Finds the tokens that begin and end reasoning. gpt-oss reasons in one of its channels, which is named "analysis".
 * Other models have tokens that are only for reasoning. */
static void take_marks(fr_lab_reply_budget *b, const fr_reply_format *format) {
    bool channels = format->marks[FR_MARK_CHANNEL] != NULL;
    b->begin = format->ids[channels ? FR_MARK_CHANNEL : FR_MARK_THINK];
    b->body = channels ? format->ids[FR_MARK_BODY] : -1;
    b->end = format->ids[channels ? FR_MARK_BODY_END : FR_MARK_THINK_END];
    b->title = channels ? "analysis" : format->channel;
}

static fr_status open(fr_lab_reply_budget *b, const json_t *options, const fr_marked_text *prompt, bool *marks) {
    const fr_reply_format format = fr_reply_format_for(b->tokenizer, options);
    fr_text written = fr_reply_written(&format, prompt, options);
    *marks = format.marks[FR_MARK_CHANNEL] || format.marks[FR_MARK_THINK];
    if (!*marks) return FR_OK;
    take_marks(b, &format);
    b->opened = fr_reply_opens_reasoning(&format, written.bytes, written.length);
    bool tokens = b->end >= 0 && (b->begin >= 0 || b->opened);
    return tokens ? FR_OK
                  : fr_fail(FR_UNBUILT, "the marks of this model's reasoning are not tokens of their own: not built");
}

fr_status fr_lab_reply_budget_open(const fr_tokenizer *tokenizer, const char *options_json,
                                   const fr_marked_text *prompt, size_t count, size_t most,
                                   fr_lab_reply_budget **budget) {
    json_t *options = NULL;
    bool marks = false;
    *budget = NULL;
    fr_lab_reply_budget *b = calloc(1, sizeof *b);
    if (!b) return fr_fail_memory("a budget", sizeof *b);
    *b = (fr_lab_reply_budget){.tokenizer = tokenizer, .prompt = count, .most = most};
    fr_status status =
        options_json ? fr_json_parse_texts(options_json, strlen(options_json), "chat options", &options) : FR_OK;
    if (status == FR_OK) status = open(b, options, prompt, &marks);
    json_decref(options);
    if (status == FR_OK && marks)
        *budget = b;
    else
        free(b);
    return status;
}

void fr_lab_reply_budget_close(fr_lab_reply_budget *budget) {
    free(budget);
}
