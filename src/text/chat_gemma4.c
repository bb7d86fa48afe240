/* Gemma 4's chat template, after the chat_template.jinja published with google/gemma-4 models.
 *
 *   <bos><|turn>system\n[<|think|>\n]SYSTEM[<|tool>DECLARATION<tool|>...]<turn|>\n      if there is any of it
 *   <|turn>user\nTEXT<turn|>\n
 *   <|turn>model\n[<|channel>thought\nREASONING\n<channel|>][<|tool_call>CALL<tool_call|>...]
 *                 [<|tool_response>RESPONSE<tool_response|>...]TEXT<turn|>\n
 *   <|turn>model\n[<|channel>thought\n<channel|>]                                       the generation prompt
 *
 * Schemas and arguments are written like JSON without quotes, members sorted by name; <|"|> encloses strings. Where
 * Jinja treats missing, null and values of another type in its own way, so does this: a member of what is no object is
 * undefined (NULL here), and undefined, null, false, 0, "", [] and {} are false. Where Jinja would fail, FR_INPUT. */
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/text/chat.h"
#include "src/text/jinja.h"
#include "src/text/python_text.h"

#define QUOTE     "<|\"|>"
#define MAX_CALLS 1024 /* in a message: each response is looked for among them */

/* ----------------------------------------------------------------------------------------------------------- values */

/* Before each part of a list but the first. */
static void put_comma(bool *needed, fr_text_buffer *out) {
    if (*needed) put(out, ",");
    *needed = true;
}

static void put_quoted(const json_t *value, fr_text_buffer *out) {
    put(out, QUOTE);
    fr_python_str(value, out);
    put(out, QUOTE);
}

static void put_quoted_upper(const json_t *value, fr_text_buffer *out) {
    put(out, QUOTE);
    fr_python_upper(value, out);
    put(out, QUOTE);
}

typedef struct sorted_member {
    const char *key;
    const json_t *value;
    size_t index;
} sorted_member;

static int compare_members(const void *a, const void *b) {
    const sorted_member *left = a, *right = b;
    int order = fr_python_compare_lower(left->key, right->key);
    return order ? order : (left->index > right->index) - (left->index < right->index);
}

/* Members sorted by name without regard to case; for the caller to free, one more than the object has. */
static sorted_member *sort_members(const json_t *object, fr_text_buffer *out) {
    sorted_member *members = calloc(json_object_size(object) + 1, sizeof *members);
    if (!members) {
        out->status = FR_MEMORY;
        return NULL;
    }
    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        members[count] = (sorted_member){key, value, count};
        count++;
    }
    if (count > 1) qsort(members, count, sizeof *members, compare_members);
    return members;
}

/* -------------------------------------------------------------------------------------------------------- arguments */

static void put_argument(const json_t *value, bool quote_keys, fr_text_buffer *out);

/* key:value,key:value */
static void put_members(const json_t *object, bool quote_keys, fr_text_buffer *out) {
    sorted_member *members = sort_members(object, out);
    bool comma = false;
    for (const sorted_member *item = members; item && item->key; item++) {
        put_comma(&comma, out);
        if (quote_keys) put(out, QUOTE);
        put(out, item->key);
        put(out, quote_keys ? QUOTE ":" : ":");
        put_argument(item->value, quote_keys, out);
    }
    free(members);
}

static void put_argument(const json_t *value, bool quote_keys, fr_text_buffer *out) {
    if (json_is_string(value)) {
        put_quoted(value, out);
    } else if (json_is_boolean(value)) {
        put(out, json_is_true(value) ? "true" : "false");
    } else if (json_is_object(value)) {
        put(out, "{");
        put_members(value, quote_keys, out);
        put(out, "}");
    } else if (json_is_array(value) || !value) { /* undefined is an empty sequence */
        bool comma = false;
        put(out, "[");
        for (size_t i = 0; i < json_array_size(value); i++) {
            put_comma(&comma, out);
            put_argument(json_array_get(value, i), quote_keys, out);
        }
        put(out, "]");
    } else {
        fr_python_str(value, out);
    }
}

/* ------------------------------------------------------------------------------------------------ tool declarations */

static fr_status put_parameters(const json_t *properties, fr_text_buffer *out);

/* required:["a","b"] */
static fr_status put_required(const json_t *names, fr_text_buffer *out) {
    if (!json_is_array(names)) return fr_fail(FR_INPUT, "a tool's schema: \"required\" is not an array");
    bool comma = false;
    put(out, "required:[");
    for (size_t i = 0; i < json_array_size(names); i++) {
        put_comma(&comma, out);
        put_quoted(json_array_get(names, i), out);
    }
    put(out, "]");
    return FR_OK;
}

static fr_status put_item_type(const json_t *type, fr_text_buffer *out) {
    put(out, "type:");
    if (json_is_string(type)) {
        put_quoted_upper(type, out);
        return FR_OK;
    }
    if (!json_is_array(type)) return fr_fail(FR_INPUT, "a tool's schema: an item's \"type\" is no name and no list");
    bool comma = false;
    put(out, "[");
    for (size_t i = 0; i < json_array_size(type); i++) {
        put_comma(&comma, out);
        put_quoted_upper(json_array_get(type, i), out);
    }
    put(out, "]");
    return FR_OK;
}

static fr_status put_item_member(const char *key, const json_t *value, fr_text_buffer *out) {
    if (strcmp(key, "properties") == 0) {
        put(out, "properties:{");
        if (json_is_object(value)) FR_TRY(put_parameters(value, out));
        put(out, "}");
        return FR_OK;
    }
    if (strcmp(key, "required") == 0) return put_required(value, out);
    if (strcmp(key, "type") == 0) return put_item_type(value, out);
    put(out, key);
    put(out, ":");
    put_argument(value, true, out);
    return FR_OK;
}

/* An array's element schema. */
static fr_status put_items(const json_t *items, fr_text_buffer *out) {
    sorted_member *members = sort_members(items, out);
    fr_status status = FR_OK;
    bool comma = false;
    put(out, "items:{");
    for (const sorted_member *item = members; status == FR_OK && item && item->key; item++) {
        if (json_is_null(item->value)) continue;
        put_comma(&comma, out);
        status = put_item_member(item->key, item->value, out);
    }
    put(out, "}");
    free(members);
    return status;
}

/* An object's members; a schema that lists none stands for its own list. */
static fr_status put_object(const json_t *schema, bool *comma, fr_text_buffer *out) {
    const json_t *properties = member(schema, "properties"), *required = member(schema, "required");
    put_comma(comma, out);
    put(out, "properties:{");
    FR_TRY(put_parameters(json_is_object(properties) ? properties : schema, out));
    put(out, "}");
    if (!is_true(required)) return FR_OK;
    put_comma(comma, out);
    return put_required(required, out);
}

/* What a schema says beside its type. type: in capitals. */
static fr_status put_schema(const json_t *schema, const char *type, fr_text_buffer *out) {
    bool comma = false;
    const json_t *description = member(schema, "description"), *items = member(schema, "items");
    if (is_true(description)) {
        put_comma(&comma, out);
        put(out, "description:");
        put_quoted(description, out);
    }
    if (strcmp(type, "STRING") == 0 && is_true(member(schema, "enum"))) {
        put_comma(&comma, out);
        put(out, "enum:");
        put_argument(member(schema, "enum"), true, out);
    }
    if (strcmp(type, "ARRAY") == 0 && json_is_object(items) && is_true(items)) {
        put_comma(&comma, out);
        FR_TRY(put_items(items, out));
    }
    if (is_true(member(schema, "nullable"))) {
        put_comma(&comma, out);
        put(out, "nullable:true");
    }
    if (strcmp(type, "OBJECT") == 0) FR_TRY(put_object(schema, &comma, out));
    put_comma(&comma, out);
    return FR_OK;
}

/* name:{...,type:"TYPE"} */
static fr_status put_parameter(const char *name, const json_t *schema, fr_text_buffer *out) {
    fr_text_buffer type = {0};
    fr_python_upper(member(schema, "type"), &type);
    fr_text_append(&type, "", 0);
    put(out, name);
    put(out, ":{");
    fr_status status = type.status == FR_OK ? put_schema(schema, type.bytes, out) : fr_text_check(&type, "a chat");
    put(out, "type:");
    put_quoted_upper(member(schema, "type"), out);
    put(out, "}");
    fr_text_free(&type);
    return status;
}

/* The template passes over parameters that have the name of a schema's own members. */
static bool is_schema_word(const char *key) {
    static const char *const words[] = {"description", "type", "properties", "required", "nullable"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i]) == 0) return true;
    return false;
}

static fr_status put_parameters(const json_t *properties, fr_text_buffer *out) {
    sorted_member *members = sort_members(properties, out);
    fr_status status = FR_OK;
    bool comma = false;
    for (const sorted_member *item = members; status == FR_OK && item && item->key; item++) {
        if (is_schema_word(item->key)) continue;
        put_comma(&comma, out);
        status = put_parameter(item->key, item->value, out);
    }
    free(members);
    return status;
}

/* A type ends the declaration's braces, so that one without a type leaves them open: the template does so. */
static fr_status put_function_parameters(const json_t *parameters, fr_text_buffer *out) {
    const json_t *properties = member(parameters, "properties"), *required = member(parameters, "required");
    put(out, ",parameters:{");
    if (is_true(properties)) {
        if (!json_is_object(properties)) return fr_fail(FR_INPUT, "a tool's schema: \"properties\" is not an object");
        put(out, "properties:{");
        FR_TRY(put_parameters(properties, out));
        put(out, "},");
    }
    if (is_true(required)) {
        FR_TRY(put_required(required, out));
        put(out, ",");
    }
    if (is_true(member(parameters, "type"))) {
        put(out, "type:");
        put_quoted_upper(member(parameters, "type"), out);
        put(out, "}");
    }
    return FR_OK;
}

static void put_function_response(const json_t *response, fr_text_buffer *out) {
    fr_text_buffer type = {0};
    put(out, ",response:{");
    if (is_true(member(response, "description"))) {
        put(out, "description:");
        put_quoted(member(response, "description"), out);
        put(out, ",");
    }
    fr_python_upper(member(response, "type"), &type);
    if (type.length == 6 && memcmp(type.bytes, "OBJECT", 6) == 0) put(out, "type:" QUOTE "OBJECT" QUOTE "}");
    fr_text_free(&type);
}

static fr_status put_tool(const json_t *tool, size_t index, fr_text_buffer *out) {
    const json_t *function = member(tool, "function");
    if (!json_is_object(function)) return fr_fail(FR_INPUT, "tools[%zu] has no \"function\" object", index);
    put(out, "<|tool>declaration:");
    fr_python_str(member(function, "name"), out);
    put(out, "{description:");
    put_quoted(member(function, "description"), out);
    if (is_true(member(function, "parameters"))) FR_TRY(put_function_parameters(member(function, "parameters"), out));
    if (member(function, "response")) put_function_response(member(function, "response"), out);
    put(out, "}<tool|>");
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- messages */

/* What the last message ended with, as far as the template cares. */
typedef enum last_part { LAST_OTHER, LAST_TOOL_CALL, LAST_TOOL_RESPONSE } last_part;

typedef struct chat_state {
    const json_t *messages;
    size_t first;    /* behind a leading system message */
    size_t user_end; /* behind the last user message */
    last_part last;
    fr_text_buffer *out;
} chat_state;

static const json_t *message_at(const chat_state *chat, size_t index) {
    return json_array_get(chat->messages, index);
}

static bool has_role(const json_t *message, const char *role) {
    return is_text(member(message, "role"), role);
}

/* Text of the model without its thoughts: what stands between <|channel> and <channel|>. */
static void put_without_thoughts(const json_t *string, fr_text_buffer *out) {
    static const char open[] = "<|channel>", close[] = "<channel|>";
    const char *text = json_string_value(string), *end = text + json_string_length(string);
    fr_text_buffer kept = {0};
    for (const char *next; text; text = next ? next + strlen(close) : NULL) {
        next = memmem(text, (size_t)(end - text), close, strlen(close));
        size_t length = (size_t)((next ? next : end) - text);
        const char *thought = memmem(text, length, open, strlen(open));
        fr_text_append(&kept, text, thought ? (size_t)(thought - text) : length);
    }
    fr_text stripped = fr_python_strip((fr_text){kept.bytes, kept.length});
    fr_text_append(out, stripped.bytes, stripped.length);
    if (kept.status != FR_OK) out->status = kept.status;
    fr_text_free(&kept);
}

static fr_status put_part(chat_state *chat, size_t index, bool is_model, const json_t *part) {
    static const char *const media[] = {"image", "audio", "video"};
    static const char *const tokens[] = {"<|image|>", "<|audio|>", "<|video|>"};
    const json_t *type = member(part, "type"), *text = member(part, "text");
    if (is_text(type, "text") && is_model) {
        if (!json_is_string(text)) return fr_fail(FR_INPUT, "messages[%zu]: a text part without text", index);
        put_without_thoughts(text, chat->out);
    } else if (is_text(type, "text")) {
        fr_python_stripped(text, chat->out);
    }
    for (size_t i = 0; i < sizeof media / sizeof *media; i++) {
        if (!is_text(type, media[i])) continue;
        put(chat->out, tokens[i]);
        chat->last = LAST_OTHER;
    }
    return FR_OK;
}

static fr_status put_content(chat_state *chat, size_t index, bool is_model) {
    const json_t *content = member(message_at(chat, index), "content");
    if (json_is_string(content) && is_model)
        put_without_thoughts(content, chat->out);
    else if (json_is_string(content))
        fr_python_stripped(content, chat->out);
    for (size_t i = 0; i < json_array_size(content); i++)
        FR_TRY(put_part(chat, index, is_model, json_array_get(content, i)));
    return FR_OK;
}

static fr_status put_thoughts(const chat_state *chat, size_t index) {
    const json_t *message = message_at(chat, index), *thoughts = member(message, "reasoning");
    if (!is_true(thoughts)) thoughts = member(message, "reasoning_content");
    if (!is_true(thoughts) || index < chat->user_end || !is_true(member(message, "tool_calls"))) return FR_OK;
    if (!json_is_string(thoughts)) return fr_fail(FR_INPUT, "messages[%zu]: its reasoning is not a string", index);
    put(chat->out, "<|channel>thought\n");
    fr_python_str(thoughts, chat->out);
    put(chat->out, "\n<channel|>");
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- calls, responses */

static fr_status put_calls(chat_state *chat, size_t index) {
    const json_t *calls = member(message_at(chat, index), "tool_calls");
    if (!is_true(calls)) return FR_OK;
    if (!json_is_array(calls) || json_array_size(calls) > MAX_CALLS)
        return fr_fail(FR_INPUT, "messages[%zu]: \"tool_calls\" is not an array of at most %d", index, MAX_CALLS);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = member(json_array_get(calls, i), "function"), *name = member(function, "name");
        const json_t *arguments = member(function, "arguments");
        if (!json_is_string(name))
            return fr_fail(FR_INPUT, "messages[%zu]: tool_calls[%zu] names no function", index, i);
        put(chat->out, "<|tool_call>call:");
        fr_python_str(name, chat->out);
        put(chat->out, "{");
        if (json_is_object(arguments))
            put_members(arguments, false, chat->out);
        else if (json_is_string(arguments))
            fr_python_str(arguments, chat->out);
        put(chat->out, "}<tool_call|>");
    }
    chat->last = LAST_TOOL_CALL;
    return FR_OK;
}

static fr_text text_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

static fr_status put_response(chat_state *chat, size_t index, fr_text name, const json_t *response) {
    if (!name.bytes) return fr_fail(FR_INPUT, "messages[%zu]: a tool response that belongs to no tool", index);
    put(chat->out, "<|tool_response>response:");
    fr_text_append(chat->out, name.bytes, name.length);
    put(chat->out, json_is_object(response) ? "{" : "{value:");
    if (json_is_object(response))
        put_members(response, false, chat->out);
    else
        put_argument(response, false, chat->out);
    put(chat->out, "}<tool_response|>");
    chat->last = LAST_TOOL_RESPONSE;
    return FR_OK;
}

/* Responses inside the message, Gemma's own form. */
static fr_status put_own_responses(chat_state *chat, size_t index, const json_t *responses) {
    if (!json_is_array(responses)) return fr_fail(FR_INPUT, "messages[%zu]: \"tool_responses\" is not an array", index);
    for (size_t i = 0; i < json_array_size(responses); i++) {
        const json_t *item = json_array_get(responses, i), *name = member(item, "name");
        FR_TRY(put_response(chat, index, name ? text_of(name) : (fr_text){"unknown", 7}, member(item, "response")));
    }
    return FR_OK;
}

static bool same_id(const json_t *a, const json_t *b) {
    bool no_a = !a || json_is_null(a), no_b = !b || json_is_null(b);
    return no_a || no_b ? no_a && no_b : json_equal(a, b);
}

/* The function of the last call with the message's id; otherwise the message's own name. */
static fr_text response_name(const json_t *calls, const json_t *message) {
    const json_t *name = member(message, "name");
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        if (same_id(member(call, "id"), member(message, "tool_call_id")))
            name = member(member(call, "function"), "name");
    }
    return text_of(name);
}

/* The texts of a response that comes in parts, as one string. */
static fr_status join_parts(const json_t *parts, size_t index, json_t **joined) {
    fr_text_buffer text = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *words = member(part, "text");
        bool is_words = is_text(member(part, "type"), "text");
        if (!json_is_object(part) || (is_words && !json_is_string(words)))
            status = fr_fail(FR_INPUT, "messages[%zu]: part %zu of a tool response is unusable", index, i);
        else if (is_words)
            fr_python_str(words, &text);
    }
    fr_text_append(&text, "", 0);
    if (status == FR_OK) status = fr_text_check(&text, "a chat");
    *joined = status == FR_OK ? json_stringn(text.bytes, text.length) : NULL;
    fr_text_free(&text);
    return status == FR_OK && !*joined ? fr_fail_memory("a tool response", text.length) : status;
}

/* A message of the role "tool", which belongs to the assistant's message before it. */
static fr_status put_tool_message(chat_state *chat, size_t index, const json_t *calls) {
    const json_t *message = message_at(chat, index), *content = member(message, "content");
    fr_text name = response_name(calls, message);
    json_t *joined = NULL;
    if (is_true(content) && json_is_object(content))
        return fr_fail(FR_INPUT, "messages[%zu]: the content of a tool response is an object", index);
    if (json_is_array(content) || json_is_object(content)) FR_TRY(join_parts(content, index, &joined));
    json_t *none = json_null(); /* what message.get() gives for a missing member; a constant, not counted */
    fr_status status = put_response(chat, index, name, joined ? joined : content ? content : none);
    json_decref(joined);
    return status;
}

/* Responses of this message, its own or those of the tool messages that follow it. */
static fr_status put_responses(chat_state *chat, size_t index, bool *any) {
    const json_t *message = message_at(chat, index), *calls = member(message, "tool_calls");
    const json_t *responses = member(message, "tool_responses");
    *any = is_true(responses);
    if (*any) return put_own_responses(chat, index, responses);
    if (!is_true(calls)) return FR_OK;
    for (size_t i = index + 1; has_role(message_at(chat, i), "tool"); i++) {
        FR_TRY(put_tool_message(chat, i, calls));
        *any = true;
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ turns */

/* Whether the message goes on with the model's turn: the last one before that isn't a tool's is the assistant's too. */
static bool continues_turn(const chat_state *chat, size_t index) {
    while (index > chat->first && has_role(message_at(chat, index - 1), "tool")) index--;
    return index > chat->first && has_role(message_at(chat, index - 1), "assistant");
}

static fr_status put_message(chat_state *chat, size_t index) {
    const json_t *message = message_at(chat, index);
    bool is_model = has_role(message, "assistant") || has_role(message, "model"), responded;
    chat->last = LAST_OTHER;
    if (!is_model || !continues_turn(chat, index)) {
        put(chat->out, "<|turn>");
        if (is_model) put(chat->out, "model");
        else fr_python_str(member(message, "role"), chat->out);
        put(chat->out, "\n");
    }
    FR_TRY(put_thoughts(chat, index));
    FR_TRY(put_calls(chat, index));
    FR_TRY(put_responses(chat, index, &responded));
    FR_TRY(put_content(chat, index, is_model));
    if (chat->last == LAST_TOOL_CALL && !responded)
        put(chat->out, "<|tool_response>");
    else if (!responded || is_true(member(message, "content")))
        put(chat->out, "<turn|>\n");
    return FR_OK;
}

static fr_status put_system(const json_t *system, const fr_chat_options *options, fr_text_buffer *out) {
    put(out, "<|turn>system\n");
    if (options->enable_thinking) put(out, "<|think|>\n");
    if (system) fr_python_stripped(member(system, "content"), out);
    for (size_t i = 0; i < json_array_size(options->tools); i++)
        FR_TRY(put_tool(json_array_get(options->tools, i), i, out));
    put(out, "<turn|>\n");
    return FR_OK;
}

fr_status fr_chat_gemma4(const json_t *messages, const fr_chat_options *options, fr_text_buffer *out) {
    const json_t *leading = json_array_get(messages, 0);
    const json_t *system = has_role(leading, "system") || has_role(leading, "developer") ? leading : NULL;
    put(out, options->begin);
    if (options->enable_thinking || options->tools || system) FR_TRY(put_system(system, options, out));
    chat_state chat = {.messages = messages, .first = system ? 1 : 0, .out = out};
    for (size_t i = chat.first; i < json_array_size(messages); i++)
        if (has_role(message_at(&chat, i), "user")) chat.user_end = i + 1;
    for (size_t i = chat.first; i < json_array_size(messages); i++)
        if (!has_role(message_at(&chat, i), "tool")) FR_TRY(put_message(&chat, i));
    if (options->add_generation_prompt && chat.last == LAST_OTHER) {
        put(out, "<|turn>model\n");
        if (!options->enable_thinking) put(out, "<|channel>thought\n<channel|>");
    }
    return FR_OK;
}
