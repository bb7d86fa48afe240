/* Parts of a reply on their way to standard output (reply_view.h). */
#include "reply_view.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* What stands between parts of different kinds. */
static void part_from_last(fr_reply_view *view, bool thinks) {
    FILE *out = view->text->out;
    if (view->thinking && !thinks) fputs(view->dim ? "\n\n" : "\n</think>\n\n", out);
    if (!view->thinking && thinks && view->begun) fputs("\n\n", out);
    if (!view->thinking && thinks && !view->dim) fputs("<think>\n", out);
    view->thinking = thinks;
    view->begun = true;
}

static void show_reasoning(fr_reply_view *view, const char *text, size_t length) {
    FILE *out = view->text->out;
    fr_stream_end(view->text); /* content that is before it */
    part_from_last(view, true);
    if (view->dim) fputs(DIM, out);
    fwrite(text, 1, length, out);
    if (view->dim) fputs(PLAIN, out);
}

/* A call is shown as Hermes' models write it. */
static void show_call_name(fr_reply_view *view, const char *text, size_t length) {
    bool first = !view->begun;
    fr_stream_end(view->text);
    bool apart = view->thinking;
    part_from_last(view, false);
    fputs(first || apart ? "<tool_call>{\"name\": " : "\n<tool_call>{\"name\": ", view->text->out);
    json_t *name = fr_json_bytes(text, length);
    json_dumpf(name, view->text->out, JSON_ENCODE_ANY);
    json_decref(name);
    fputs(", \"arguments\": ", view->text->out);
}

static void take_part(void *context, fr_reply_part part, const char *text, size_t length) {
    fr_reply_view *view = context;
    FILE *out = view->text->out;
    if (view->stopped) return;
    if (part == FR_REPLY_CONTENT) {
        if (out) part_from_last(view, false);
        view->stopped = fr_stream_feed(view->text, text, length, view->accepted);
    }
    if (!out) return;
    if (part == FR_REPLY_REASONING) show_reasoning(view, text, length);
    if (part == FR_REPLY_NAME) show_call_name(view, text, length);
    if (part == FR_REPLY_ARGUMENTS) fwrite(text, 1, length, out);
    if (part == FR_REPLY_CALL_END) fputs("}</tool_call>", out);
}

fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text) {
    *view = (fr_reply_view){.text = text, .dim = text->out && isatty(fileno(text->out))};
    fr_status status = fr_reply_parser_new(tokenizer, take_part, view, &view->parser);
    char *options = fr_json_line(settings);
    if (status == FR_OK) status = fr_reply_parser_begin(view->parser, prompt, options, true, prompt->length);
    free(options);
    return status;
}

void fr_reply_view_close(fr_reply_view *view) {
    fr_reply_parser_free(view->parser);
    *view = (fr_reply_view){0};
}

fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped) {
    view->accepted = accepted;
    fr_status status = fr_reply_parser_feed(view->parser, id);
    if (status == FR_INPUT) status = fr_reply_parser_feed_text(view->parser, FR_NO_TOKEN, strlen(FR_NO_TOKEN));
    *stopped = view->stopped;
    return status;
}

fr_status fr_reply_view_finish(fr_reply_view *view, bool *stopped) {
    view->accepted = false;
    fr_status status = view->stopped ? FR_OK : fr_reply_parser_finish(view->parser);
    fr_stream_end(view->text);
    if (view->text->out && view->thinking && !view->dim) fputs("\n</think>", view->text->out);
    *stopped = view->stopped;
    return status;
}

fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object) {
    static const char *const keys[] = {"reasoning_content", "tool_calls"};
    char *json;
    size_t length;
    fr_status status = fr_reply_parser_message(view->parser, &json, &length);
    if (status != FR_OK) return status;
    json_t *message = json_loadb(json, length, JSON_ALLOW_NUL, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(message, keys[i]);
        if (value) fr_json_put(object, keys[i], json_incref(value));
    }
    json_decref(message);
    fr_free(json);
    return FR_OK;
}
