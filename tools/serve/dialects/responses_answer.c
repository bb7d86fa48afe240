/* Writes answers of OpenAI's /v1/responses (answer_dialect.h). */
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/serve/dialects/answer_dialect.h"
#include "tools/serve/tool_kinds.h"

static json_t *integer(size_t value) {
    return json_integer((json_int_t)value);
}

/* ------------------------------------------------------------------------------------------------------- the answer */

/* Adds a field of the request to the answer. If the request doesn't have the field, its default value is added. */
static void put_requested(const fr_generation_request *request, json_t *answer, const char *key, json_t *usual) {
    json_t *asked = json_object_get(request->dialect_body, key);
    bool given = asked && !json_is_null(asked);
    fr_json_put(answer, key, given ? json_incref(asked) : usual);
    if (given) json_decref(usual);
}

static json_t *usage_of(const fr_telling *t) {
    const fr_timings *took = &t->timings;
    return json_pack("{s:o, s:{s:o, s:i}, s:o, s:{s:o}, s:o}", "input_tokens", integer(took->prompt),
                     "input_tokens_details", "cached_tokens", integer(took->cached), "cache_write_tokens", 0,
                     "output_tokens", integer(took->predicted), "output_tokens_details", "reasoning_tokens",
                     integer(t->thought), "total_tokens", integer(took->prompt + took->predicted));
}

/* Makes the object of the answer. status: "in_progress", "completed", "incomplete" or "failed". */
static json_t *answer_of(const fr_generation_request *request, const char *status) {
    json_t *answer = json_object();
    fr_json_put(answer, "id", json_string(request->id));
    fr_json_put(answer, "object", json_string("response"));
    fr_json_put(answer, "created_at", json_integer((json_int_t)request->created));
    fr_json_put(answer, "status", json_string(status));
    fr_json_put(answer, "error", json_null());
    fr_json_put(answer, "incomplete_details", json_null());
    fr_json_put(answer, "model", fr_json_bytes(request->model, strlen(request->model)));
    fr_json_put(answer, "output", json_array());
    fr_json_put(answer, "usage", json_null());
    fr_json_put(answer, "background", json_false());
    fr_json_put(answer, "previous_response_id", json_null());
    fr_json_put(answer, "store", json_false());
    fr_json_put(answer, "truncation", json_string("disabled"));
    put_requested(request, answer, "instructions", json_null());
    put_requested(request, answer, "max_output_tokens", json_null());
    put_requested(request, answer, "metadata", json_object());
    put_requested(request, answer, "parallel_tool_calls", json_true());
    put_requested(request, answer, "reasoning", json_pack("{s:n, s:n}", "effort", "summary"));
    put_requested(request, answer, "temperature", json_null());
    put_requested(request, answer, "text", json_pack("{s:{s:s}}", "format", "type", "text"));
    put_requested(request, answer, "tool_choice", json_string("auto"));
    put_requested(request, answer, "tools", json_array());
    put_requested(request, answer, "top_logprobs", json_integer(0));
    put_requested(request, answer, "top_p", json_null());
    return answer;
}

static json_t *whole(fr_telling *t) {
    bool cut = fr_items_cut(t);
    json_t *answer = answer_of(t->request, cut ? "incomplete" : "completed");
    if (cut) fr_json_put(answer, "incomplete_details", json_pack("{s:s}", "reason", "max_output_tokens"));
    fr_json_put(answer, "output", json_incref(t->items));
    fr_json_put(answer, "usage", usage_of(t));
    fr_json_put(answer, "timings", fr_timings_json(&t->timings));
    return answer;
}

/* ----------------------------------------------------------------------------------------------------------- events */

/* Sends an event with its type, its sequence_number, and the members of `event`. Takes ownership of `event`. */
static void send(fr_telling *t, const char *type, json_t *event) {
    fr_json_put(event, "type", json_string(type));
    fr_json_put(event, "sequence_number", integer(t->events++));
    fr_items_send(t->request, event);
}

static void send_answer(fr_telling *t, const char *type, json_t *answer) {
    send(t, type, json_pack("{s:o}", "response", answer));
}

static void begin(fr_telling *t) {
    send_answer(t, "response.created", answer_of(t->request, "in_progress"));
    send_answer(t, "response.in_progress", answer_of(t->request, "in_progress"));
}

static void end(fr_telling *t) {
    send_answer(t, fr_items_cut(t) ? "response.incomplete" : "response.completed", whole(t));
}

/* Makes the error. If the answer is not a stream, the error is the same as on other paths. If a stream has begun, its
 * last event contains the answer so far, marked as failed. */
static json_t *fault(fr_generation_request *request, json_t *fault) {
    if (!request->streaming) return fault;
    fr_telling *t = request->choices[0].telling;
    const json_t *error = json_object_get(fault, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    json_t *answer = answer_of(request, "failed");
    fr_json_put(
        answer, "error",
        json_pack("{s:s, s:O}", "code", code ? code : "server_error", "message", json_object_get(error, "message")));
    if (t && t->items) fr_json_put(answer, "output", json_incref(t->items));
    json_decref(fault);
    return json_pack("{s:s, s:o, s:o}", "type", "response.failed", "sequence_number", integer(t ? t->events : 0),
                     "response", answer);
}

static void ping(fr_generation_request *request) {
    fr_answer_send_line(request, ": ping\n\n");
}

/* ------------------------------------------------------------------------------------------------------------ items */

/* Gives the called tool as the client offered it (tool_kinds.h). NULL: the tool is a plain function. */
static const json_t *tool_of(const fr_telling *t) {
    const char *name = json_string_value(json_object_get(json_object_get(t->item.call, "function"), "name"));
    return name ? json_object_get(json_object_get(t->request->dialect_body, "called"), name) : NULL;
}

/* Describes how the calls of one kind of tool are sent. item: the type of a call's item. id: the prefix of the item's
 * id. key: the field that has the call's text. events: the name of the events that send this text; NULL: there are no
 * such events. */
typedef struct call_kind {
    const char *tool, *item, *id, *key, *events;
} call_kind;

static const call_kind *kind_of(const fr_telling *t) {
    static const call_kind kinds[] = {{"function", "function_call", "fc", "arguments", "function_call_arguments"},
                                      {"custom", "custom_tool_call", "ctc", "input", "custom_tool_call_input"},
                                      {"tool_search", "tool_search_call", "tsc", "arguments", NULL}};
    const char *tool = json_string_value(json_object_get(tool_of(t), "type"));
    for (size_t i = 1; tool && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].tool, tool) == 0) return &kinds[i];
    return &kinds[0];
}

static json_t *id_of(const fr_telling *t) {
    static const char *const kinds[] = {"", "rs", "msg"};
    const char *own = strchr(t->request->id, '_');
    const char *kind = t->item.kind == FR_ITEM_CALL ? kind_of(t)->id : kinds[t->item.kind];
    return json_sprintf("%s_%s_%zu", kind, own ? own + 1 : t->request->id, t->item.index);
}

/* Gives the item's text so far. The text of a call is its arguments. For a custom tool it is the tool's input, and for
 * a search for tools it is an object. */
static json_t *text_of(const fr_telling *t) {
    const fr_stream *text = &t->item.text;
    const char *tool = t->item.kind == FR_ITEM_CALL ? kind_of(t)->tool : "";
    if (strcmp(tool, "custom") == 0) return fr_tool_input(text->bytes, text->length);
    return strcmp(tool, "tool_search") == 0 ? fr_item_object(t) : fr_item_text(t);
}

/* Gives the log-probabilities of a text's tokens. If none were requested, gives an empty list. */
static json_t *logprobs_of(json_t *list) {
    return list ? json_incref(list) : json_array();
}

/* Makes the content part of an item that is a thought or a text. text: the text so far. */
static json_t *part_of(const fr_telling *t, json_t *text) {
    if (t->item.kind == FR_ITEM_THOUGHT) return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:o, s:[], s:o}", "type", "output_text", "text", text, "annotations", "logprobs",
                     logprobs_of(t->item.logprobs));
}

/* Makes the item of a call. said: the call's text (text_of). */
static json_t *call_of(const fr_telling *t, const char *status, json_t *said) {
    const json_t *function = json_object_get(t->item.call, "function"), *tool = tool_of(t);
    const call_kind *kind = kind_of(t);
    json_t *name = json_object_get(tool ? tool : function, "name"), *namespace = json_object_get(tool, "namespace");
    json_t *item = json_pack("{s:o, s:s, s:s, s:O, s:o}", "id", id_of(t), "type", kind->item, "status", status,
                             "call_id", json_object_get(t->item.call, "id"), kind->key, said);
    if (!kind->events)
        fr_json_put(item, "execution", json_string("client"));
    else if (name)
        fr_json_put(item, "name", json_incref(name));
    if (namespace) fr_json_put(item, "namespace", json_incref(namespace));
    return item;
}

/* If the request asks for "encrypted_content", adds the thought's text as this member. Some clients send back only this
 * member. The text is not really encrypted. */
static void put_sealed(const fr_telling *t, json_t *item) {
    const json_t *include = json_object_get(t->request->dialect_body, "include");
    json_t *text = fr_item_text(t);
    for (size_t i = 0; i < json_array_size(include); i++) {
        const char *one = json_string_value(json_array_get(include, i));
        if (one && strcmp(one, "reasoning.encrypted_content") == 0)
            fr_json_put(item, "encrypted_content", json_sprintf(FR_SEALED "%s", json_string_value(text)));
    }
    json_decref(text);
}

/* Makes an item. content: the item's content part, or the text of a call; NULL: the item is still empty. */
static json_t *item_of(const fr_telling *t, const char *status, json_t *content) {
    if (t->item.kind == FR_ITEM_CALL) {
        if (!content) content = kind_of(t)->events ? json_string("") : json_object();
        return call_of(t, status, content);
    }
    bool thought = t->item.kind == FR_ITEM_THOUGHT;
    json_t *parts = json_array(), *item;
    if (content) json_array_append_new(parts, content);
    item = json_pack("{s:o, s:s, s:s, s:o}", "id", id_of(t), "type", thought ? "reasoning" : "message", "status",
                     status, "content", parts);
    if (thought)
        fr_json_put(item, "summary", json_array());
    else
        fr_json_put(item, "role", json_string("assistant"));
    if (thought && content) put_sealed(t, item);
    return item;
}

/* Sends an event that contains the item. */
static void send_item(fr_telling *t, const char *type, json_t *item) {
    send(t, type, json_pack("{s:o, s:o}", "output_index", integer(t->item.index), "item", item));
}

static void send_part(fr_telling *t, const char *type, const char *key, json_t *value) {
    json_t *event =
        json_pack("{s:o, s:o, s:o}", "output_index", integer(t->item.index), "item_id", id_of(t), key, value);
    if (t->item.kind != FR_ITEM_CALL) fr_json_put(event, "content_index", json_integer(0));
    json_t *logprobs = strcmp(key, "delta") == 0 ? t->item.news : t->item.logprobs;
    if (strncmp(type, "response.output_text", 20) == 0) fr_json_put(event, "logprobs", logprobs_of(logprobs));
    send(t, type, event);
}

static void open(fr_telling *t) {
    send_item(t, "response.output_item.added", item_of(t, "in_progress", NULL));
    if (t->item.kind != FR_ITEM_CALL) send_part(t, "response.content_part.added", "part", part_of(t, json_string("")));
}

/* Sends an event about the item's text. when: "delta" for more text, "done" for its end. */
static void send_text(fr_telling *t, const char *when, const char *key, json_t *text) {
    static const char *const kinds[] = {"", "reasoning_text", "output_text"};
    const char *kind = t->item.kind == FR_ITEM_CALL ? kind_of(t)->events : kinds[t->item.kind];
    char type[64];
    if (!kind) {
        json_decref(text);
        return;
    }
    snprintf(type, sizeof type, "response.%s.%s", kind, when);
    send_part(t, type, key, text);
}

/* Sends more text of an item. The text of a call is sent as a whole. */
static void more(fr_telling *t, const json_t *text) {
    bool call = t->item.kind == FR_ITEM_CALL;
    send_text(t, "delta", "delta", call ? text_of(t) : json_incref((json_t *)(uintptr_t)text));
}

/* Returns true if the reply was cut off within this item. That is so for the last item. It is also so for a call whose
 * arguments are incomplete JSON. */
static bool is_cut(const fr_telling *t) {
    const fr_stream *text = &t->item.text;
    json_error_t error;
    if (!fr_items_cut(t) || t->item.last || t->item.kind != FR_ITEM_CALL) return fr_items_cut(t) && t->item.last;
    json_t *arguments = text->length ? fr_json_load(text->bytes, text->length, &error) : NULL;
    bool whole_json = arguments != NULL;
    json_decref(arguments);
    return !whole_json;
}

static json_t *close(fr_telling *t) {
    bool call = t->item.kind == FR_ITEM_CALL, cut = is_cut(t);
    send_text(t, "done", call ? kind_of(t)->key : "text", text_of(t));
    if (!call) send_part(t, "response.content_part.done", "part", part_of(t, fr_item_text(t)));
    json_t *item = item_of(t, cut ? "incomplete" : "completed", call ? text_of(t) : part_of(t, fr_item_text(t)));
    send_item(t, "response.output_item.done", json_incref(item));
    return item;
}

const fr_dialect fr_dialect_responses = {.names = "resp_",
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
