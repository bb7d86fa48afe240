/* Splits a reply into its parts (reply_view.h). */
#include "tools/cli/reply_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Passes content on to the callback (an fr_stream_fn). The stream calls this function, after it has held back bytes
 * that may begin a stop string. */
static void tell_content(void *context, const char *text, size_t length) {
    fr_reply_view *view = context;
    if (view->told) view->told(view->context, FR_REPLY_CONTENT, text, length);
}

/* Passes on bytes of a part that came from accepted drafts entirely, or not at all. A stop string never extends over
 * parts of different kinds. So when the kind changes, the content that was held back is passed on first. */
static void pass_on(fr_reply_view *view, fr_reply_part part, const char *text, size_t length) {
    if (view->stopped) return;
    if (part == FR_REPLY_CONTENT) {
        view->stopped = fr_stream_feed(view->text, text, length, view->accepted);
        return;
    }
    fr_stream_end(view->text);
    if (view->told) view->told(view->context, part, text, length);
    if (part == FR_REPLY_CALL_END && view->one_call && !view->cut) view->stopped = true;
}

/* Finds the ids that a text of a part comes from, and counts their bytes as passed on. The parser holds back bytes that
 * may begin a mark, so a text may be from ids before the newest one; bytes that it dropped belong to marks. The result
 * has a value for each byte, like `accepted` of a stream. NULL: the parser changed the bytes, so it is unknown which
 * ids they are from. */
static const bool *origin_of(fr_reply_view *view, const char *text, size_t length) {
    const fr_stream *from = &view->fed;
    size_t begin = view->passed;
    view->passed = from->length;
    for (size_t end = from->length; end >= begin + length; end--) {
        size_t at = end - length;
        if (memcmp(from->bytes + at, text, length) != 0) continue;
        /* a character counts as a whole to the id that completes it, as it does without a view */
        for (size_t i = end - 1; i > at; i--)
            if (((unsigned char)from->bytes[i] & 0xc0) == 0x80) from->accepted[i - 1] = from->accepted[i];
        view->passed = end;
        return from->accepted + at;
    }
    return NULL;
}

/* Receives the next bytes of a part. */
static void take_part(void *context, fr_reply_part part, const char *text, size_t length) {
    fr_reply_view *view = context;
    bool is_text = (part == FR_REPLY_CONTENT || part == FR_REPLY_REASONING) && length > 0;
    const bool *accepted = is_text ? origin_of(view, text, length) : NULL, newest = view->accepted;
    if (!accepted) {
        pass_on(view, part, text, length);
        return;
    }
    for (size_t at = 0, end; at < length; at = end) {
        for (end = at + 1; end < length && accepted[end] == accepted[at];) end++;
        view->accepted = accepted[at];
        pass_on(view, part, text + at, end - at);
    }
    view->accepted = newest;
}

void fr_reply_view_tell(fr_reply_view *view, fr_reply_fn *told, void *context) {
    view->told = told;
    view->context = context;
}

fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text) {
    bool dim = text->out && isatty(fileno(text->out));
    *view = (fr_reply_view){
        .tokenizer = tokenizer, .text = text, .screen = {.out = text->out, .wrap = text->wrap, .dim = dim}};
    text->told = tell_content;
    text->context = view;
    if (text->out) fr_reply_view_tell(view, fr_reply_screen_show, &view->screen);
    fr_status status = fr_reply_parser_new(tokenizer, take_part, view, &view->parser);
    char *options = fr_json_line(settings);
    if (status == FR_OK) status = fr_reply_parser_begin(view->parser, prompt, options, true, prompt->length);
    free(options);
    return status;
}

void fr_reply_view_close(fr_reply_view *view) {
    fr_reply_parser_free(view->parser);
    fr_stream_free(&view->fed);
    *view = (fr_reply_view){0};
}

fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped) {
    size_t length;
    const char *bytes = fr_token_bytes(view->tokenizer, id, &length);
    view->accepted = accepted;
    fr_stream_feed(&view->fed, bytes ? bytes : FR_NO_TOKEN, bytes ? length : strlen(FR_NO_TOKEN), accepted);
    fr_status status = fr_reply_parser_feed(view->parser, id);
    if (status == FR_INPUT) status = fr_reply_parser_feed_text(view->parser, FR_NO_TOKEN, strlen(FR_NO_TOKEN));
    *stopped = view->stopped;
    return status;
}

fr_status fr_reply_view_finish(fr_reply_view *view, bool cut, bool *stopped) {
    view->cut = cut;
    fr_status status = view->stopped ? FR_OK
                       : cut         ? fr_reply_parser_cut(view->parser)
                                     : fr_reply_parser_finish(view->parser);
    fr_stream_end(view->text);
    fr_reply_screen_end(&view->screen);
    *stopped = view->stopped;
    return status;
}

/* Removes all calls but the first one. This is necessary because one step of the session may complete several calls. */
static void keep_one(json_t *calls) {
    while (json_array_size(calls) > 1) json_array_remove(calls, json_array_size(calls) - 1);
}

fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object) {
    static const char *const keys[] = {"reasoning_content", "tool_calls"};
    char *json;
    size_t length;
    fr_status status = fr_reply_parser_message(view->parser, &json, &length);
    if (status != FR_OK) return status;
    json_t *message = json_loadb(json, length, JSON_ALLOW_NUL, NULL);
    if (view->one_call) keep_one(json_object_get(message, "tool_calls"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(message, keys[i]);
        if (value) fr_json_put(object, keys[i], json_incref(value));
    }
    json_decref(message);
    fr_free(json);
    return FR_OK;
}
