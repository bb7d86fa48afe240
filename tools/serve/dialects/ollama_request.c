/* Reads requests to ollama's /api/chat and /api/generate (request_dialects.h). In these requests the sampling settings
 * are in "options", under the same names as in a chat. Settings about loading the model (num_ctx, num_gpu,
 * "keep_alive") are ignored here. */
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/turns.h"

enum { RESULTS_MAX = 256 }; /* the most results that the calls of one message may have */

/* --------------------------------------------------------------------------------------------------------- messages */

/* Reads pictures, which are base64 without a prefix. Every picture gets a url that says PNG. This does no harm, because
 * the code that opens a picture finds its format by its first bytes. */
static bool take_pictures(fr_turns *t, const char *role, const json_t *images) {
    for (size_t i = 0; i < json_array_size(images); i++) {
        const char *data = fr_job_plain_text(json_array_get(images, i));
        if (!data) return fr_turns_refuse(t, "images[%zu] must be a picture in base64", i);
        fr_turns_picture(t, role, json_sprintf("data:image/png;base64,%s", data));
    }
    return true;
}

static bool is_answered(const fr_turns *t, size_t from, const json_t *id) {
    for (size_t i = from; i < json_array_size(t->messages); i++)
        if (json_equal(fr_turns_get(json_array_get(t->messages, i), "tool_call_id"), id)) return true;
    return false;
}

/* Finds the call to which a result belongs. In this API results have no ids. The result belongs to the first call of
 * the named function that has no result yet. If there is no such call, it belongs to the first call of any function
 * that has no result yet. NULL: all calls have results. */
static const json_t *id_of_result(const fr_turns *t, const json_t *name) {
    size_t at = json_array_size(t->messages), results = 0;
    const json_t *last = NULL, *any = NULL;
    for (; at && results < RESULTS_MAX; at--, results++) {
        last = json_array_get(t->messages, at - 1);
        if (!fr_job_is_word(fr_turns_get(last, "role"), "tool")) break;
    }
    const json_t *calls = fr_turns_get(last, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls) && i < RESULTS_MAX; i++) {
        const json_t *call = json_array_get(calls, i), *id = fr_turns_get(call, "id");
        if (is_answered(t, at, id)) continue;
        if (name && json_equal(fr_turns_get(fr_turns_get(call, "function"), "name"), name)) return id;
        if (!any) any = id;
    }
    return any;
}

/* Reads the calls of a message. In this API calls may lack ids. They get ids of nine letters and digits, because every
 * family's template accepts ids of this form. */
static bool take_calls(fr_turns *t, size_t at, const json_t *calls) {
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = fr_turns_get(json_array_get(calls, i), "function"),
                     *arguments = fr_turns_get(function, "arguments");
        bool said = !arguments || json_is_object(arguments) || json_is_string(arguments);
        if (!json_is_string(fr_turns_get(function, "name")) || !said)
            return fr_turns_refuse(t, "messages[%zu]: a call has a function with a name and arguments, an object", at);
        const json_t *given = fr_turns_get(json_array_get(calls, i), "id");
        json_t *id =
            fr_is_json_text(given) ? fr_turns_share(given) : json_sprintf("c%04zu%04zu", at % 10000, i % 10000);
        fr_turns_call(t, id, fr_turns_get(function, "name"), arguments ? fr_turns_share(arguments) : json_object());
        json_decref(id);
    }
    return true;
}

static bool take_message(fr_turns *t, size_t at, const json_t *message) {
    const json_t *role = fr_turns_get(message, "role"), *content = fr_turns_get(message, "content"),
                 *name = fr_turns_get(message, "tool_name");
    const json_t *thought = fr_turns_get(message, "thinking");
    bool tool = fr_job_is_word(role, "tool"), assistant = fr_job_is_word(role, "assistant");
    bool known = tool || assistant || fr_job_is_word(role, "user") || fr_job_is_word(role, "system") ||
                 fr_job_is_word(role, "developer");
    if (!known) return fr_turns_refuse(t, "messages[%zu]: a role is user, assistant, system, developer or tool", at);
    if (content && !json_is_string(content)) return fr_turns_refuse(t, "messages[%zu]: content must be a text", at);
    fr_turns_break(t);
    const json_t *own = fr_turns_get(message, "tool_call_id"), *id = own ? own : id_of_result(t, name);
    if (tool) fr_turns_result(t, id ? id : name ? name : role);
    if (tool && name) fr_json_put(t->message, "name", fr_turns_share(name));
    if (assistant && json_is_string(thought) && json_string_length(thought)) fr_turns_thought(t, thought);
    if (content) fr_turns_text(t, json_string_value(role), content);
    return take_pictures(t, tool ? "tool" : "user", fr_turns_get(message, "images")) &&
           (!assistant || take_calls(t, at, fr_turns_get(message, "tool_calls")));
}

static bool take_messages(fr_turns *t, const json_t *body) {
    const json_t *messages = fr_turns_get(body, "messages"), *tools = fr_turns_get(body, "tools");
    if (!json_array_size(messages)) return fr_turns_refuse(t, "messages must be an array of at least one");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!take_message(t, i, json_array_get(messages, i))) return false;
    if (tools) fr_turns_put(t, "tools", fr_turns_share(tools));
    return true;
}

/* Reads the prompt. Usually it becomes one turn of a chat. With "raw" it becomes a plain text. With a suffix it
 * becomes a request to fill in code (infill.h). */
static bool take_prompt(fr_turns *t, const json_t *body) {
    static const char *const unbuilt[] = {"template", "context"};
    const json_t *prompt = fr_turns_get(body, "prompt"), *system = fr_turns_get(body, "system"),
                 *suffix = fr_turns_get(body, "suffix");
    for (size_t i = 0; i < sizeof unbuilt / sizeof *unbuilt; i++) {
        const json_t *value = fr_turns_get(body, unbuilt[i]);
        bool none = fr_job_is_word(value, "") || (json_is_array(value) && json_array_size(value) == 0);
        if (value && !none) return fr_turns_refuse(t, "\"%s\" is not built", unbuilt[i]);
    }
    if (!json_is_string(prompt)) return fr_turns_refuse(t, "prompt must be a text");
    if (json_string_length(suffix)) {
        json_object_del(t->chat, "messages");
        fr_turns_put(t, "input_prefix", fr_turns_share(prompt));
        fr_turns_put(t, "input_suffix", fr_turns_share(suffix));
        return true;
    }
    if (json_is_true(fr_turns_get(body, "raw"))) {
        json_object_del(t->chat, "messages");
        fr_turns_put(t, "prompt", fr_turns_share(prompt));
        return true;
    }
    if (json_is_string(system) && json_string_length(system)) fr_turns_text(t, "system", system);
    fr_turns_text(t, "user", prompt);
    return take_pictures(t, "user", fr_turns_get(body, "images"));
}

/* --------------------------------------------------------------------------------------------------- request fields */

static bool take_format(fr_turns *t, const json_t *format) {
    if (!format || fr_job_is_word(format, "")) return true;
    if (fr_job_is_word(format, "json"))
        fr_turns_put(t, "response_format", json_pack("{s:s}", "type", "json_object"));
    else if (!json_is_object(format))
        return fr_turns_refuse(t, "format must be \"json\" or a schema");
    else
        fr_turns_put(t, "json_schema", fr_turns_share(format));
    return true;
}

/* Reads the request for log-probabilities. In a chat "logprobs" is true or false. A plain text becomes a completion,
 * where "logprobs" is a number. */
static bool take_logprobs(fr_turns *t, const json_t *body) {
    const json_t *wanted = fr_turns_get(body, "logprobs"), *best = fr_turns_get(body, "top_logprobs");
    bool chat = json_object_get(t->chat, "messages") != NULL;
    if (wanted && !json_is_boolean(wanted)) return fr_turns_refuse(t, "logprobs must be true or false");
    if (best && !fr_job_whole(best, 0, 20))
        return fr_turns_refuse(t, "top_logprobs must be a whole number from 0 to 20");
    if (!json_is_true(wanted)) return true;
    fr_turns_put(t, "logprobs", chat ? json_true() : json_integer(json_integer_value(best)));
    if (best && chat) fr_turns_put(t, "top_logprobs", fr_turns_share(best));
    return true;
}

/* Notes members that forerun does not know. It knows the members that it reads, and members that have no meaning here.
 * The latter are about loading a model, and about how long it stays in memory. */
static void note_others(const json_t *body) {
    static const char *const known[] = {"context",  "format",       "images",   "keep_alive", "logprobs",
                                        "messages", "model",        "options",  "prompt",     "raw",
                                        "stream",   "suffix",       "system",   "template",   "think",
                                        "tools",    "top_logprobs", "truncate", "shift"};
    static const char *const options[] = {"low_vram", "main_gpu",         "num_batch",   "num_ctx",
                                          "num_gpu",  "num_keep",         "num_predict", "num_thread",
                                          "numa",     "penalize_newline", "stop",        "use_mlock",
                                          "use_mmap", "vocab_only",       "f16_kv",      "logits_all"};
    fr_turns_note_others(body, "/api", known, sizeof known / sizeof *known);
    fr_turns_note_others(fr_turns_get(body, "options"), "/api, options", options, sizeof options / sizeof *options);
}

static bool take_rest(fr_turns *t, const json_t *body) {
    const json_t *options = fr_turns_get(body, "options"), *most = fr_turns_get(options, "num_predict"),
                 *think = fr_turns_get(body, "think");
    const json_t *stream = fr_turns_get(body, "stream"), *model = fr_turns_get(body, "model"),
                 *stop = fr_turns_get(options, "stop");
    if (options && !json_is_object(options)) return fr_turns_refuse(t, "options must be an object");
    if (!take_logprobs(t, body)) return false;
    if (most && !fr_job_whole(most, -2, INT32_MAX))
        return fr_turns_refuse(t, "num_predict must be a whole number, or -1");
    if (most) fr_turns_put(t, "max_tokens", json_integer(json_integer_value(most) < 0 ? -1 : json_integer_value(most)));
    if (stop) fr_turns_put(t, "stop", fr_turns_share(stop));
    if (model) fr_turns_put(t, "model", fr_turns_share(model));
    if (json_is_boolean(think))
        fr_turns_put(t, "chat_template_kwargs", json_pack("{s:O}", "enable_thinking", think));
    else if (think)
        fr_turns_put(t, "reasoning_effort", fr_turns_share(think));
    fr_turns_put(t, "stream", stream ? fr_turns_share(stream) : json_true());
    return take_format(t, fr_turns_get(body, "format"));
}

static json_t *read_body(json_t *body, char *error, bool (*take)(fr_turns *t, const json_t *body)) {
    fr_turns turns;
    fr_turns_begin(&turns, fr_turns_get(body, "options"));
    note_others(body);
    if (take(&turns, body)) take_rest(&turns, body);
    snprintf(error, FR_DIALECT_ERROR, "%s", turns.error);
    json_object_clear(body);
    return fr_turns_end(&turns);
}

json_t *fr_ollama_read_chat(json_t *body, char error[FR_DIALECT_ERROR]) {
    return read_body(body, error, take_messages);
}

json_t *fr_ollama_read_generate(json_t *body, char error[FR_DIALECT_ERROR]) {
    return read_body(body, error, take_prompt);
}
