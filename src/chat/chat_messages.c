/* Messages for a template: see chat_messages.h. */
#include "src/chat/chat_messages.h"

#include <string.h>

#include "base/error.h"
#include "base/text_buffer.h"
#include "formats/json.h"
#include "formats/json_wide.h"

#define MAX_ROLES 8 /* of one conversation that are asked about; OpenAI has five */

/* Hands a new value over to an object; a NULL is memory that ran out. */
static fr_status put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0 ? FR_OK : fr_fail_memory("a message", 1);
}

static bool is_role(const json_t *message, const char *role) {
    const char *own = json_string_value(json_object_get(message, "role"));
    return own && strcmp(own, role) == 0;
}

/* -------------------------------------------------------------------------------------------------------- reasoning */

static bool says_something(const json_t *text) {
    return text && !json_is_null(text) && !(json_is_string(text) && json_string_length(text) == 0);
}

/* Under gpt-oss's name too. Its template fails where calls have both that and a text beside them, which it takes for
 * reasoning then. */
static fr_status adapt_thinking(json_t *message) {
    json_t *reasoning = json_object_get(message, "reasoning_content");
    bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    bool both = calls && says_something(json_object_get(message, "content"));
    if (both || !fr_json_is_text(reasoning) || !says_something(reasoning) || json_object_get(message, "thinking"))
        return FR_OK;
    return put(message, "thinking", json_incref(reasoning));
}

/* Under either of two names, of which one may be there and say nothing. */
static fr_status adapt_reasoning(json_t *message) {
    json_t *content = json_object_get(message, "reasoning_content"), *other = json_object_get(message, "reasoning");
    bool given = says_something(content);
    if (!is_role(message, "assistant")) return FR_OK;
    if (fr_json_is_text(other))
        FR_TRY(put(message, given ? "reasoning" : "reasoning_content", json_incref(given ? content : other)));
    return adapt_thinking(message);
}

/* ------------------------------------------------------------------------------------------------------------ parts */

/* The text of a part; NULL: it has none. */
static const json_t *text_of(const json_t *part) {
    static const char *const words[][2] = {
        {"text", "text"}, {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"}};
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = fr_json_is_text(part) ? part : NULL;
    for (size_t i = 0; type && i < sizeof words / sizeof *words; i++)
        if (strcmp(type, words[i][0]) == 0) text = json_object_get(part, words[i][1]);
    return fr_json_is_text(text) ? text : NULL;
}

static bool is_texts(const json_t *content) {
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!text_of(json_array_get(content, i))) return false;
    return json_is_array(content);
}

static fr_status join_parts(json_t *message, const json_t *content) {
    fr_text_buffer joined = {0};
    fr_text_append_string(&joined, "");
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *text = text_of(json_array_get(content, i));
        if (i > 0) fr_text_append_string(&joined, "\n");
        fr_text_append(&joined, json_string_value(text), json_string_length(text));
    }
    fr_status status = fr_text_check(&joined, "a message");
    if (status == FR_OK) status = put(message, "content", json_stringn(joined.bytes, joined.length));
    fr_text_free(&joined);
    return status;
}

/* Roles with lists of parts, each asked about once. */
typedef struct roles {
    const char *names[MAX_ROLES];
    bool only_text[MAX_ROLES];
    size_t count;
} roles;

static bool takes_only_text(roles *known, const fr_chat_probe *probe, const char *role) {
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->names[i], role) == 0) return known->only_text[i];
    if (known->count == MAX_ROLES) return false;
    known->names[known->count] = role;
    known->only_text[known->count] = fr_chat_probe_only_text(probe, role);
    return known->only_text[known->count++];
}

static fr_status adapt_content(json_t *message, roles *known, const fr_chat_probe *probe) {
    json_t *content = json_object_get(message, "content");
    const char *role = json_string_value(json_object_get(message, "role"));
    return is_texts(content) && takes_only_text(known, probe, role) ? join_parts(message, content) : FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- arguments */

static bool is_blank(const json_t *text) {
    const char *bytes = json_string_value(text);
    return strspn(bytes, " \t\r\n") == json_string_length(text);
}

/* The object that a text is; no text at all is one without members. */
static fr_status unpack(json_t *function, const json_t *text) {
    json_t *object = NULL;
    if (is_blank(text)) return put(function, "arguments", json_object());
    fr_status status = fr_json_parse_texts(json_string_value(text), json_string_length(text), "arguments", &object);
    if (status == FR_OK && json_is_object(object)) return put(function, "arguments", object);
    json_decref(object);
    return status == FR_MEMORY ? status : FR_OK;
}

/* As templates write JSON. */
static fr_status pack(json_t *function, json_t *object, const fr_chat_probe *probe) {
    static const char source[] = "{{ arguments | tojson }}";
    fr_template *writer = NULL;
    fr_marked_text text = {0};
    json_t *given = json_pack("{s:O}", "arguments", object);
    fr_status status = fr_template_compile(source, strlen(source), "arguments", &writer);
    if (status == FR_OK) status = fr_template_render(writer, NULL, given, probe->now, &text);
    if (status == FR_OK) status = put(function, "arguments", json_stringn(text.text, text.length));
    fr_template_close(writer);
    fr_marked_text_free(&text);
    json_decref(given);
    return status;
}

static fr_status adapt_calls(json_t *message, fr_arguments_form form, const fr_chat_probe *probe) {
    const json_t *calls = json_object_get(message, "tool_calls");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        if (!function) function = call;
        json_t *arguments = json_object_get(function, "arguments");
        if (form == FR_ARGUMENTS_MAPPING && fr_json_is_text(arguments)) FR_TRY(unpack(function, arguments));
        if (form == FR_ARGUMENTS_TEXT && json_is_object(arguments)) FR_TRY(pack(function, arguments, probe));
    }
    return FR_OK;
}

static bool has_calls(const json_t *message) {
    return json_array_size(json_object_get(message, "tool_calls")) > 0;
}

static bool have_calls(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (has_calls(json_array_get(messages, i))) return true;
    return false;
}

/* Calls alone: clients send null beside them, or nothing. */
static bool lacks_text(const json_t *message) {
    const json_t *content = json_object_get(message, "content");
    return has_calls(message) && (!content || json_is_null(content));
}

static bool lack_text(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (lacks_text(json_array_get(messages, i))) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- both */

fr_status fr_chat_messages_adapt(json_t *messages, const fr_chat_probe *probe) {
    roles known = {0};
    fr_arguments_form form = have_calls(messages) ? fr_chat_probe_arguments(probe) : FR_ARGUMENTS_AS_GIVEN;
    bool wants_text = lack_text(messages) && fr_chat_probe_wants_text(probe);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        FR_TRY(adapt_reasoning(message));
        FR_TRY(adapt_content(message, &known, probe));
        FR_TRY(adapt_calls(message, form, probe));
        if (wants_text && lacks_text(message)) FR_TRY(put(message, "content", json_string("")));
    }
    return FR_OK;
}
