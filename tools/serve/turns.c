/* Builds the body of a chat from pieces (turns.h). */
#include "tools/serve/turns.h"

#include <stdarg.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/notes.h"

const json_t *fr_turns_get(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

const char *fr_turns_type(const json_t *value) {
    const char *type = fr_job_plain_text(fr_turns_get(value, "type"));
    return type ? type : "";
}

json_t *fr_turns_share(const json_t *value) {
    return json_incref((json_t *)(uintptr_t)value);
}

/* ------------------------------------------------------------------------------------------------------------- body */

static bool means_the_same(const char *key) {
    static const char *const keys[] = {"model",
                                       "stream",
                                       "seed",
                                       "logit_bias",
                                       "ignore_eos",
                                       "id_slot",
                                       "cache_prompt",
                                       "speculative",
                                       "chat_template_kwargs",
                                       "accept",
                                       "grammar",
                                       "regex",
                                       "sse_ping_interval",
                                       "lora",
                                       "reasoning_format"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) return true;
    return strncmp(key, "speculative.", 12) == 0 || fr_job_sampler(key);
}

void fr_turns_begin(fr_turns *turns, const json_t *body) {
    const char *key;
    json_t *value;
    *turns = (fr_turns){.chat = json_object(), .messages = json_array()};
    json_object_foreach ((json_t *)(uintptr_t)body, key, value)
        if (means_the_same(key)) fr_json_put(turns->chat, key, json_incref(value));
    fr_json_put(turns->chat, "messages", turns->messages);
}

void fr_turns_note_others(const json_t *body, const char *path, const char *const *known, size_t count) {
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)body, key, value) {
        size_t i = 0;
        while (i < count && strcmp(known[i], key) != 0) i++;
        if (i == count && !means_the_same(key) && !json_is_null(value))
            fr_notes_say("%s: a member \"%.60s\" is not known, and passed over", path, key);
    }
}

json_t *fr_turns_end(fr_turns *turns) {
    fr_turns_break(turns);
    if (!turns->error[0]) return turns->chat;
    json_decref(turns->chat);
    return NULL;
}

bool fr_turns_refuse(fr_turns *turns, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(turns->error, sizeof turns->error, format, args);
    va_end(args);
    return false;
}

void fr_turns_put(fr_turns *turns, const char *key, json_t *value) {
    fr_json_put(turns->chat, key, value);
}

/* --------------------------------------------------------------------------------------------------------- messages */

/* Ends a message. If its parts are only one text, that text becomes the content itself, because every template supports
 * this. */
void fr_turns_break(fr_turns *turns) {
    const json_t *first = json_array_get(turns->parts, 0);
    bool alone = json_array_size(turns->parts) == 1 && json_object_get(first, "text");
    if (alone) fr_json_put(turns->message, "content", fr_turns_share(json_object_get(first, "text")));
    turns->message = turns->parts = NULL;
}

static json_t *message_of(fr_turns *turns, const char *role) {
    if (turns->message && fr_job_is_word(json_object_get(turns->message, "role"), role)) return turns->message;
    fr_turns_break(turns);
    turns->message = json_object();
    fr_json_put(turns->message, "role", json_string(role));
    json_array_append_new(turns->messages, turns->message);
    return turns->message;
}

void fr_turns_part(fr_turns *turns, const char *role, json_t *part) {
    json_t *message = message_of(turns, role);
    if (!turns->parts) fr_json_put(message, "content", turns->parts = json_array());
    json_array_append_new(turns->parts, part);
}

void fr_turns_text(fr_turns *turns, const char *role, const json_t *text) {
    json_t *part = json_object();
    fr_json_put(part, "type", json_string("text"));
    fr_json_put(part, "text", fr_turns_share(text));
    fr_turns_part(turns, role, part);
}

void fr_turns_picture(fr_turns *turns, const char *role, json_t *url) {
    json_t *part = json_object();
    fr_json_put(part, "type", json_string("image_url"));
    fr_json_put(part, "image_url", url);
    fr_turns_part(turns, role, part);
}

void fr_turns_thought(fr_turns *turns, const json_t *text) {
    json_t *message = message_of(turns, "assistant"), *before = json_object_get(message, "reasoning_content");
    fr_json_put(message, "reasoning_content", before ? fr_json_joined(before, text) : fr_turns_share(text));
}

void fr_turns_call(fr_turns *turns, const json_t *id, const json_t *name, json_t *arguments) {
    json_t *message = message_of(turns, "assistant"), *calls = json_object_get(message, "tool_calls");
    json_t *call = json_object(), *function = json_object();
    if (!calls) fr_json_put(message, "tool_calls", calls = json_array());
    fr_json_put(function, "name", fr_turns_share(name));
    fr_json_put(function, "arguments", arguments);
    fr_json_put(call, "id", fr_turns_share(id));
    fr_json_put(call, "type", json_string("function"));
    fr_json_put(call, "function", function);
    json_array_append_new(calls, call);
}

void fr_turns_result(fr_turns *turns, const json_t *id) {
    fr_turns_break(turns);
    json_t *message = message_of(turns, "tool");
    fr_json_put(message, "tool_call_id", fr_turns_share(id));
    fr_json_put(message, "content", json_string(""));
}

/* ------------------------------------------------------------------------------------------------------------ tools */

void fr_turns_tool(fr_turns *turns, const json_t *name, const json_t *description, const json_t *parameters,
                   const json_t *strict) {
    json_t *tools = json_object_get(turns->chat, "tools"), *tool = json_object(), *function = json_object();
    if (!tools) fr_turns_put(turns, "tools", tools = json_array());
    fr_json_put(function, "name", fr_turns_share(name));
    if (description && !json_is_null(description)) fr_json_put(function, "description", fr_turns_share(description));
    if (parameters && !json_is_null(parameters)) fr_json_put(function, "parameters", fr_turns_share(parameters));
    if (json_is_boolean(strict)) fr_json_put(function, "strict", fr_turns_share(strict));
    fr_json_put(tool, "type", json_string("function"));
    fr_json_put(tool, "function", function);
    json_array_append_new(tools, tool);
}
