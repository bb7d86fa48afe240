/* Writes answers of Anthropic's /v1/messages (answer_dialect.h). */
#include <string.h>

#include "tools/serve/dialects/answer_dialect.h"
#include "tools/serve/fault.h"

static json_t *integer(size_t value) {
    return json_integer((json_int_t)value);
}

/* ------------------------------------------------------------------------------------------------------- the answer */

/* Makes the usage. In this API the input tokens do not include the tokens whose rows were found in the cache. */
static json_t *usage_of(const fr_telling *t) {
    const fr_timings *took = &t->timings;
    return json_pack("{s:o, s:i, s:o, s:o}", "input_tokens", integer(took->prompt - took->cached),
                     "cache_creation_input_tokens", 0, "cache_read_input_tokens", integer(took->cached),
                     "output_tokens", integer(took->predicted));
}

static const char *reason_of(const fr_telling *t) {
    if (fr_items_cut(t)) return "max_tokens";
    if (t->calls) return "tool_use";
    return t->choice->job.text.stopped ? "stop_sequence" : "end_turn";
}

/* Makes {"stop_reason", "stop_sequence"}. */
static json_t *end_of(const fr_telling *t) {
    const char *reason = reason_of(t), *stopped = t->choice->job.text.stopped;
    bool stop = strcmp(reason, "stop_sequence") == 0;
    return json_pack("{s:s, s:o}", "stop_reason", reason, "stop_sequence",
                     stop ? fr_json_bytes(stopped, strlen(stopped)) : json_null());
}

static json_t *message_of(const fr_telling *t) {
    const char *model = t->request->model;
    return json_pack("{s:s, s:s, s:s, s:o, s:[], s:n, s:n, s:o}", "id", t->request->id, "type", "message", "role",
                     "assistant", "model", fr_json_bytes(model, strlen(model)), "content", "stop_reason",
                     "stop_sequence", "usage", usage_of(t));
}

static json_t *whole(fr_telling *t) {
    json_t *message = message_of(t), *end = end_of(t);
    json_object_update(message, end);
    json_decref(end);
    fr_json_put(message, "content", json_incref(t->items));
    return message;
}

/* ----------------------------------------------------------------------------------------------------------- events */

static void begin(fr_telling *t) {
    fr_items_send(t->request, json_pack("{s:s, s:o}", "type", "message_start", "message", message_of(t)));
}

static void end(fr_telling *t) {
    fr_items_send(t->request,
                  json_pack("{s:s, s:o, s:o}", "type", "message_delta", "delta", end_of(t), "usage", usage_of(t)));
    fr_items_send(t->request, json_pack("{s:s}", "type", "message_stop"));
}

static json_t *fault(fr_generation_request *request, json_t *fault) {
    (void)request;
    return fr_fault_of_anthropic(fault);
}

static void ping(fr_generation_request *request) {
    fr_items_send(request, json_pack("{s:s}", "type", "ping"));
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static json_t *call_of(const fr_telling *t, json_t *input) {
    const json_t *call = t->item.call;
    return json_pack("{s:s, s:O, s:O, s:o}", "type", "tool_use", "id", json_object_get(call, "id"), "name",
                     json_object_get(json_object_get(call, "function"), "name"), "input", input);
}

/* Makes the content block of the current item. text: the item's text, of which the block takes ownership. */
static json_t *block_of(const fr_telling *t, json_t *text) {
    if (t->item.kind == FR_ITEM_TEXT) return json_pack("{s:s, s:o}", "type", "text", "text", text);
    return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", text, "signature", "");
}

static void send_delta(fr_telling *t, const char *type, const char *key, json_t *value) {
    fr_items_send(t->request, json_pack("{s:s, s:o, s:{s:s, s:o}}", "type", "content_block_delta", "index",
                                        integer(t->item.index), "delta", "type", type, key, value));
}

static void open(fr_telling *t) {
    bool call = t->item.kind == FR_ITEM_CALL;
    fr_items_send(t->request,
                  json_pack("{s:s, s:o, s:o}", "type", "content_block_start", "index", integer(t->item.index),
                            "content_block", call ? call_of(t, json_object()) : block_of(t, json_string(""))));
}

static void more(fr_telling *t, const json_t *text) {
    static const char *const deltas[][2] = {
        {"", ""}, {"thinking_delta", "thinking"}, {"text_delta", "text"}, {"input_json_delta", "partial_json"}};
    const char *const *words = deltas[t->item.kind];
    send_delta(t, words[0], words[1], json_incref((json_t *)(uintptr_t)text));
}

static json_t *close(fr_telling *t) {
    bool thought = t->item.kind == FR_ITEM_THOUGHT;
    if (thought) send_delta(t, "signature_delta", "signature", json_string(""));
    fr_items_send(t->request, json_pack("{s:s, s:o}", "type", "content_block_stop", "index", integer(t->item.index)));
    return t->item.kind == FR_ITEM_CALL ? call_of(t, fr_item_object(t)) : block_of(t, fr_item_text(t));
}

const fr_dialect fr_dialect_messages = {.names = "msg_",
                                        .type = "text/event-stream",
                                        .begin = begin,
                                        .open = open,
                                        .more = more,
                                        .close = close,
                                        .whole = whole,
                                        .end = end,
                                        .fault = fault,
                                        .send = fr_items_send,
                                        .ping = ping};
