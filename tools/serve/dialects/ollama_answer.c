/* Writes answers of ollama's /api/chat and /api/generate (answer_dialect.h). A stream consists of lines of JSON. Each
 * line has the form of a whole answer, but contains only the new text. */
#include <string.h>
#include <time.h>

#include "tools/cli/wide_json.h"
#include "tools/serve/dialects/answer_dialect.h"
#include "tools/serve/fault.h"

static bool is_chat(const fr_generation_request *request) {
    return request->dialect == &fr_dialect_ollama_chat;
}

/* ----------------------------------------------------------------------------------------------------------- a line */

static json_t *now(void) {
    char text[32];
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    return json_string(text);
}

/* Makes one line of a stream. said: the members of the message or of the generated text; the line takes ownership of
 * them. In this API a message has no log-probabilities, so they are moved to the line itself. */
static json_t *line_of(const fr_generation_request *request, json_t *said, bool done) {
    json_t *line = json_object(), *logprobs = json_object_get(said, "logprobs");
    if (logprobs) fr_json_put(line, "logprobs", json_incref(logprobs));
    json_object_del(said, "logprobs");
    fr_json_put(line, "model", fr_json_bytes(request->model, strlen(request->model)));
    fr_json_put(line, "created_at", now());
    if (is_chat(request)) {
        fr_json_put(said, "role", json_string("assistant"));
        fr_json_put(line, "message", said);
    } else {
        json_object_update(line, said);
        json_decref(said);
    }
    fr_json_put(line, "done", json_boolean(done));
    return line;
}

static json_t *nanoseconds(double from, double to) {
    return json_integer(to > from ? (json_int_t)(1e9 * (to - from)) : 0);
}

static json_t *last_of(const fr_telling *t, json_t *said) {
    const fr_timings *took = &t->timings;
    json_t *line = line_of(t->request, said, true);
    fr_json_put(line, "done_reason", json_string(fr_items_cut(t) ? "length" : "stop"));
    fr_json_put(line, "total_duration", nanoseconds(t->request->arrived, took->ended));
    fr_json_put(line, "load_duration", json_integer(0));
    fr_json_put(line, "prompt_eval_count", json_integer((json_int_t)took->prompt));
    fr_json_put(line, "prompt_eval_duration", nanoseconds(took->began, took->first));
    fr_json_put(line, "eval_count", json_integer((json_int_t)took->predicted));
    fr_json_put(line, "eval_duration", nanoseconds(took->first, took->ended));
    return line;
}

/* ------------------------------------------------------------------------------------------------------------ items */

static const char *key_of(const fr_telling *t) {
    return t->item.kind == FR_ITEM_THOUGHT ? "thinking" : is_chat(t->request) ? "content" : "response";
}

/* Makes a message with an empty content. */
static json_t *silence(const fr_generation_request *request) {
    return json_pack("{s:s}", is_chat(request) ? "content" : "response", "");
}

static json_t *call_of(const fr_telling *t) {
    const json_t *name = json_object_get(json_object_get(t->item.call, "function"), "name");
    json_t *arguments = fr_item_object(t);
    return json_pack("{s:O, s:{s:O, s:o}}", "id", json_object_get(t->item.call, "id"), "function", "name", name,
                     "arguments", arguments);
}

static void nothing(fr_telling *t) {
    (void)t;
}

static void more(fr_telling *t, const json_t *text) {
    if (t->item.kind == FR_ITEM_CALL) return;
    json_t *said = silence(t->request);
    fr_json_put(said, key_of(t), json_incref((json_t *)(uintptr_t)text));
    if (t->item.news) fr_json_put(said, "logprobs", json_incref(t->item.news));
    fr_items_send_line(t->request, line_of(t->request, said, false));
}

static json_t *close(fr_telling *t) {
    if (t->item.kind != FR_ITEM_CALL)
        return json_pack("{s:o, s:O*}", key_of(t), fr_item_text(t), "logprobs", t->item.logprobs);
    json_t *calls = json_pack("{s:[o]}", "tool_calls", call_of(t)), *said = silence(t->request);
    json_object_update(said, calls);
    fr_items_send_line(t->request, line_of(t->request, said, false));
    return calls;
}

/* Makes the whole answer. The texts of items of the same kind are joined, and the calls are listed. */
static json_t *whole(fr_telling *t) {
    json_t *said = silence(t->request), *item, *value;
    const char *key;
    size_t i;
    json_array_foreach (t->items, i, item) {
        json_object_foreach (item, key, value) {
            json_t *there = json_object_get(said, key);
            if (json_is_array(there))
                json_array_extend(there, value);
            else if (there)
                fr_json_put(said, key, fr_json_joined(there, value));
            else
                fr_json_put(said, key, json_incref(value));
        }
    }
    return last_of(t, said);
}

static void end(fr_telling *t) {
    fr_items_send_line(t->request, last_of(t, silence(t->request)));
}

static json_t *fault(fr_generation_request *request, json_t *fault) {
    (void)request;
    return fr_fault_of_ollama(fault);
}

#define OLLAMA                                                                                               \
    {                                                                                                        \
        .names = "ollama-", .type = "application/x-ndjson", .begin = nothing, .open = nothing, .more = more, \
        .close = close, .whole = whole, .end = end, .fault = fault, .send = fr_items_send_line               \
    }

const fr_dialect fr_dialect_ollama_chat = OLLAMA, fr_dialect_ollama_generate = OLLAMA;
