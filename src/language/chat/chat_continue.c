/* Puts a word at the place where a prompt must end, and cuts the rendered prompt there (chat_continue.h). */
#include "src/language/chat/chat_continue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json_wide.h"
#include "src/language/chat/chat_content.h"

/* The word that marks where the prompt must end; no template contains it. In messages a blank follows the word. If the
 * prompt then lacks the blank, the template strips blanks at the ends of contents. */
#define PLACE "fr_goes_on_here"

static const char *const thoughts[] = {"reasoning_content", "reasoning", "thinking"};
enum { THOUGHTS = sizeof thoughts / sizeof *thoughts };

static fr_status no_memory(void) {
    return fr_fail_memory("a message to go on with", 0);
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---------------------------------------------------------------------------------------------------------- message */

/* Copies bytes without the blanks at both ends. */
static json_t *trimmed(const char *bytes, size_t length) {
    while (length && is_blank(*bytes)) bytes++, length--;
    while (length && is_blank(bytes[length - 1])) length--;
    return json_stringn(bytes, length);
}

/* Moves a thought at the beginning of the content to a member of its own. The thought reaches from its opening mark to
 * its closing mark, or to the end of the content. */
static fr_status split_thought(json_t *message, const fr_reply_format *format) {
    const char *open = format->marks[FR_MARK_THINK], *close = format->marks[FR_MARK_THINK_END];
    json_t *content = fr_chat_plain_content(json_object_get(message, "content"));
    if (!open || !fr_json_is_text(content)) {
        json_decref(content);
        return FR_OK;
    }
    const char *text = json_string_value(content), *end = text + json_string_length(content);
    while (text < end && is_blank(*text)) text++;
    size_t mark = strlen(open), channel = strlen(format->channel);
    bool begins = (size_t)(end - text) >= mark + channel && memcmp(text, open, mark) == 0 &&
                  memcmp(text + mark, format->channel, channel) == 0;
    bool failed = false;
    if (begins) {
        text += mark + channel;
        const char *closed = memmem(text, (size_t)(end - text), close, strlen(close));
        const char *rest = closed ? closed + strlen(close) : end;
        failed =
            json_object_set_new(message, thoughts[0], trimmed(text, (size_t)((closed ? closed : end) - text))) != 0;
        while (rest < end && is_blank(*rest)) rest++;
        /* If the thought is still open, the content is null. An empty text would mean that the thought is closed and
         * nothing follows it. */
        failed |= json_object_set_new(message, "content",
                                      closed ? json_stringn(rest, (size_t)(end - rest)) : json_null()) != 0;
    }
    json_decref(content);
    return failed ? no_memory() : FR_OK;
}

/* Appends PLACE, the mark of the place where the model continues, to a text. */
static json_t *with_place(const json_t *text) {
    size_t length = json_string_length(text), more = sizeof PLACE " " - 1;
    char *bytes = malloc(length + more);
    if (!bytes) return NULL;
    if (length) memcpy(bytes, json_string_value(text), length);
    memcpy(bytes + length, PLACE " ", more);
    json_t *marked = json_stringn(bytes, length + more);
    free(bytes);
    return marked;
}

/* Puts PLACE after the last text of the content, where the model will continue. */
static fr_status mark_content(json_t *message) {
    json_t *content = json_object_get(message, "content");
    for (size_t i = json_array_size(content); i-- > 0;) {
        json_t *part = json_array_get(content, i);
        const json_t *text = fr_chat_text_of(part);
        if (!text) continue;
        json_t *marked = with_place(text);
        bool set = json_is_string(part) ? json_array_set_new(content, i, marked) == 0
                                        : json_object_set_new(part, "text", marked) == 0;
        return set ? FR_OK : no_memory();
    }
    return json_object_set_new(message, "content", with_place(content)) == 0 ? FR_OK : no_memory();
}

static bool says_something(const json_t *content) {
    return fr_json_is_text(content) ? json_string_length(content) > 0 : json_array_size(content) > 0;
}

fr_status fr_continuation_begin(fr_continuation *c, json_t *message, const fr_reply_format *format) {
    const char *role = json_string_value(json_object_get(message, "role"));
    *c = (fr_continuation){0};
    if (!role || strcmp(role, "assistant") != 0)
        return fr_fail(FR_INPUT, "continue_final_message: the last message is not the assistant's");
    if (json_array_size(json_object_get(message, "tool_calls")))
        return fr_fail(FR_INPUT, "a message with tool_calls can't be gone on with: send their results");
    for (size_t i = 0; i < THOUGHTS && !c->thought; i++) {
        json_t *given = json_object_get(message, thoughts[i]);
        if (fr_json_is_text(given) && says_something(given)) c->thought = json_incref(given);
    }
    bool given = c->thought != NULL, closed = !given;
    if (!given) {
        FR_TRY(split_thought(message, format));
        json_t *split = json_object_get(message, thoughts[0]);
        if (fr_json_is_text(split)) c->thought = json_incref(split);
        closed = !json_is_null(json_object_get(message, "content"));
    }
    json_t *content = json_object_get(message, "content");
    if (c->thought && !says_something(content) && (given || !closed)) {
        for (size_t i = 1; i < THOUGHTS; i++) json_object_del(message, thoughts[i]);
        bool set = json_object_set_new(message, thoughts[0], with_place(c->thought)) == 0 &&
                   json_object_set_new(message, "content", json_string("")) == 0;
        return set ? FR_OK : no_memory();
    }
    c->said = fr_chat_plain_content(content);
    if (!c->said && content) return no_memory();
    if (!c->said && !(c->said = json_string(""))) return no_memory();
    return mark_content(message);
}

void fr_continuation_close(fr_continuation *c) {
    json_decref(c->thought);
    json_decref(c->said);
    *c = (fr_continuation){0};
}

/* ----------------------------------------------------------------------------------------------------------- prompt */

static bool is_trusted(const fr_marked_text *text, size_t at) {
    for (size_t i = text->trusted_count; i-- > 0;)
        if (text->trusted[i].begin <= at) return at < text->trusted[i].end;
    return false;
}

bool fr_continuation_cut(fr_marked_text *prompt) {
    size_t word = sizeof PLACE - 1, end = prompt->length;
    if (end < word) return false;
    for (end -= word; memcmp(prompt->text + end, PLACE, word) != 0 || is_trusted(prompt, end); end--)
        if (end == 0) return false;
    bool trims = prompt->text[end + word] != ' ';
    while (trims && end && is_blank(prompt->text[end - 1]) && !is_trusted(prompt, end - 1)) end--;
    prompt->text[end] = '\0';
    prompt->length = end;
    while (prompt->trusted_count && prompt->trusted[prompt->trusted_count - 1].begin >= end) prompt->trusted_count--;
    fr_span *last = prompt->trusted_count ? &prompt->trusted[prompt->trusted_count - 1] : NULL;
    if (last && last->end > end) last->end = end;
    return true;
}

bool fr_continuation_shows_thought(const fr_continuation *c, const fr_marked_text *prompt) {
    size_t length = json_string_length(c->thought);
    return length == 0 || memmem(prompt->text, prompt->length, json_string_value(c->thought), length);
}

/* Appends bytes to the prompt. trusted: the bytes are the template's own, so they become a trusted span. It must come
 * after the prompt's last trusted span. */
static fr_status append(fr_marked_text *prompt, const char *bytes, size_t length, bool trusted) {
    if (length == 0) return FR_OK;
    char *text = realloc(prompt->text, prompt->length + length + 1);
    if (!text) return no_memory();
    prompt->text = text;
    memcpy(text + prompt->length, bytes, length);
    text[prompt->length + length] = '\0';
    if (trusted) {
        fr_span *spans = realloc(prompt->trusted, (prompt->trusted_count + 1) * sizeof *spans);
        if (!spans) return no_memory();
        prompt->trusted = spans;
        spans[prompt->trusted_count++] = (fr_span){prompt->length, prompt->length + length};
    }
    prompt->length += length;
    return FR_OK;
}

fr_status fr_continuation_append(const fr_continuation *c, const fr_reply_format *format, fr_marked_text *prompt) {
    const char *close = format->marks[FR_MARK_THINK_END];
    bool lines = prompt->length && prompt->text[prompt->length - 1] == '\n';
    FR_TRY(append(prompt, json_string_value(c->thought), json_string_length(c->thought), false));
    if (!c->said) return FR_OK;
    char mark[FR_MARK_MAX + sizeof "\n\n\n"];
    int length = snprintf(mark, sizeof mark, "%s%s%s", lines ? "\n" : "", close, lines ? "\n\n" : "");
    FR_TRY(append(prompt, mark, (size_t)length, true));
    return append(prompt, json_string_value(c->said), json_string_length(c->said), false);
}
