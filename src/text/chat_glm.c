/* GLM's chat template, after the chat_template.jinja published with GLM-4.7, and its turns around a picture.
 *
 *   [gMASK]<sop>
 *   <|system|>\n# Tools ... <tools>\nTOOL\n...</tools> ...                                  if there are tools
 *   <|system|>TEXT
 *   <|user|>TEXT
 *   <|assistant|>[<think>REASONING</think>]TEXT[<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...]
 *   <|observation|><tool_response>TEXT</tool_response>...
 *   <|assistant|><think>                                                                    the generation prompt
 *
 * A conversation with pictures is one with GLM-OCR, which does not think (plain, below): a line break follows each
 * role, a picture is <|begin_of_image|><|image|><|end_of_image|>, and no <think> is written. */
#include <string.h>

#include "formats/error.h"
#include "src/text/chat.h"
#include "src/text/jinja.h"
#include "src/text/python_text.h"

#define PICTURE "<|begin_of_image|><|image|><|end_of_image|>"

static const char tools_before[] = "<|system|>\n# Tools\n\n"
                                   "You may call one or more functions to assist with the user query.\n\n"
                                   "You are provided with function signatures within <tools></tools> XML tags:\n"
                                   "<tools>\n";
static const char tools_behind[] =
    "</tools>\n\nFor each function call, output the function name and arguments within the following XML format:\n"
    "<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>"
    "<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>";

/* ---------------------------------------------------------------------------------------------- texts, as in Python */

/* json.dumps of a string, ensure_ascii=False. */
static void put_json_string(const json_t *string, fr_text_buffer *out) {
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *text = json_string_value(string);
    put(out, "\"");
    for (size_t i = 0; i < json_string_length(string); i++) {
        const char *found = text[i] ? strchr(escaped, text[i]) : NULL;
        char code[7] = {'\\', found ? letters[found - escaped] : 'u', 0};
        bool control = (unsigned char)text[i] < 0x20;
        if (!found && control) {
            memcpy(code + 2, "00", 2);
            code[4] = (char)('0' + text[i] / 16);
            code[5] = "0123456789abcdef"[text[i] % 16];
        }
        if (found || control)
            put(out, code);
        else
            fr_text_append(out, text + i, 1);
    }
    put(out, "\"");
}

/* json.dumps, ensure_ascii=False. */
static void put_json(const json_t *value, fr_text_buffer *out) {
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_object(value)) {
        const char *between = "{";
        json_object_foreach((json_t *)(uintptr_t)value, key, item) {
            json_t *name = json_string(key);
            put(out, between);
            put_json_string(name, out);
            put(out, ": ");
            put_json(item, out);
            json_decref(name);
            between = ", ";
        }
        put(out, *between == '{' ? "{}" : "}");
    } else if (json_is_array(value)) {
        put(out, "[");
        json_array_foreach(value, i, item) {
            put(out, i ? ", " : "");
            put_json(item, out);
        }
        put(out, "]");
    } else if (json_is_string(value)) {
        put_json_string(value, out);
    } else if (json_is_number(value)) {
        fr_python_str(value, out);
    } else {
        put(out, json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
    }
}

static fr_text text_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

static fr_text strip_newlines(fr_text text, bool begin, bool end) {
    for (; begin && text.length && *text.bytes == '\n'; text.bytes++) text.length--;
    while (end && text.length && text.bytes[text.length - 1] == '\n') text.length--;
    return text;
}

/* text.split(mark)[-1], and where its first mark stands; NULL where there is none. */
static const char *last_part(fr_text text, const char *mark, fr_text *last) {
    const char *first = NULL, *end = text.bytes + text.length;
    *last = text;
    for (const char *at; (at = memmem(last->bytes, last->length, mark, strlen(mark)));) {
        if (!first) first = at;
        last->bytes = at + strlen(mark);
        last->length = (size_t)(end - last->bytes);
    }
    return first;
}

/* -------------------------------------------------------------------------------------------------------- messages */

/* The template's visible_text; GLM-4.7's leaves pictures out. */
static void put_visible(const json_t *content, bool pictures, fr_text_buffer *out) {
    size_t i;
    json_t *item;
    if (content && !json_is_array(content)) fr_python_str(content, out);
    json_array_foreach(content, i, item) {
        if (is_text(member(item, "type"), "text")) fr_python_str(member(item, "text"), out);
        if (pictures && is_text(member(item, "type"), "image")) put(out, PICTURE);
        if (json_is_string(item)) fr_python_str(item, out);
    }
}

static fr_status put_call(const json_t *call, fr_text_buffer *out) {
    const json_t *function = is_true(member(call, "function")) ? member(call, "function") : call;
    const json_t *name = member(function, "name"), *arguments = member(function, "arguments");
    const char *key;
    json_t *value;
    if (!json_is_string(name)) return fr_fail(FR_INPUT, "messages: a tool call has no name");
    if (!json_is_object(arguments)) return fr_fail(FR_INPUT, "messages: a tool call's arguments are not an object");
    put(out, "<tool_call>");
    fr_python_str(name, out);
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value) {
        put(out, "<arg_key>");
        put(out, key);
        put(out, "</arg_key><arg_value>");
        if (json_is_string(value))
            fr_python_str(value, out);
        else
            put_json(value, out);
        put(out, "</arg_value>");
    }
    put(out, "</tool_call>");
    return FR_OK;
}

/* thinks: reasoning is shown, as in turns behind the last of the user. */
static fr_status put_assistant(const json_t *message, bool thinks, bool plain, fr_text_buffer *out) {
    fr_text_buffer visible = {0};
    put_visible(member(message, "content"), plain, &visible);
    fr_text content = {visible.bytes ? visible.bytes : "", visible.length}, reasoning = {"", 0}, last;
    const char *end = last_part(content, "</think>", &last);
    if (json_is_string(member(message, "reasoning_content"))) {
        reasoning = text_of(member(message, "reasoning_content"));
    } else if (end) {
        reasoning = strip_newlines((fr_text){content.bytes, (size_t)(end - content.bytes)}, false, true);
        last_part(reasoning, "<think>", &reasoning);
        reasoning = strip_newlines(reasoning, true, false);
        content = strip_newlines(last, true, false);
    }
    if (!plain && thinks && reasoning.length) {
        reasoning = fr_python_strip(reasoning);
        put(out, "<think>");
        fr_text_append(out, reasoning.bytes, reasoning.length);
    }
    if (!plain) put(out, "</think>");
    content = fr_python_strip(content);
    fr_text_append(out, content.bytes, content.length);
    fr_status status = visible.status == FR_OK ? FR_OK : fr_text_check(&visible, "a message");
    size_t i;
    json_t *call;
    json_array_foreach(member(message, "tool_calls"), i, call) {
        if (status == FR_OK) status = put_call(call, out);
    }
    fr_text_free(&visible);
    return status;
}

static fr_status put_responses(const json_t *content, bool first, fr_text_buffer *out) {
    size_t i;
    json_t *response;
    if (content && !json_is_string(content) && !json_is_array(content))
        return fr_fail(FR_INPUT, "messages: a tool's content is neither a text nor a list");
    if (first || !json_is_string(content)) put(out, "<|observation|>");
    if (json_is_string(content)) {
        put(out, "<tool_response>");
        fr_python_str(content, out);
        put(out, "</tool_response>");
    }
    json_array_foreach(content, i, response) {
        const json_t *output = member(response, "output");
        put(out, "<tool_response>");
        fr_python_str(output ? output : response, out);
        put(out, "</tool_response>");
    }
    return FR_OK;
}

static fr_status put_message(const json_t *messages, size_t index, size_t last_user, bool plain, fr_text_buffer *out) {
    const json_t *message = json_array_get(messages, index), *role = member(message, "role");
    bool system = is_text(role, "system"), assistant = is_text(role, "assistant");
    if (is_text(role, "tool")) {
        bool first = index == 0 || !is_text(member(json_array_get(messages, index - 1), "role"), "tool");
        return put_responses(member(message, "content"), first, out);
    }
    if (!system && !assistant && !is_text(role, "user")) return FR_OK;
    put(out, system ? "<|system|>" : assistant ? "<|assistant|>" : "<|user|>");
    if (plain) put(out, "\n");
    if (assistant) return put_assistant(message, index > last_user || last_user == SIZE_MAX, plain, out);
    put_visible(member(message, "content"), plain, out);
    return FR_OK;
}

fr_status fr_chat_glm(const json_t *messages, const fr_chat_options *options, fr_text_buffer *out) {
    bool plain = options->pictures;
    size_t i, last_user = SIZE_MAX;
    json_t *item;
    put(out, "[gMASK]<sop>");
    if (options->tools) put(out, tools_before);
    json_array_foreach(options->tools, i, item) {
        put_json(item, out);
        put(out, "\n");
    }
    if (options->tools) put(out, tools_behind);
    json_array_foreach(messages, i, item) {
        if (is_text(member(item, "role"), "user")) last_user = i;
    }
    for (i = 0; i < json_array_size(messages); i++) FR_TRY(put_message(messages, i, last_user, plain, out));
    if (!options->add_generation_prompt) return FR_OK;
    put(out, "<|assistant|>");
    put(out, plain ? "\n" : options->thinking_given && !options->enable_thinking ? "</think>" : "<think>");
    return FR_OK;
}
