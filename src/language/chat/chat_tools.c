/* Writes the texts that replace tools, calls and results (chat_tools.h). Small templates write these texts, so that
 * JSON looks as chat templates write it. */
#include "src/language/chat/chat_tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json_wide.h"
#include "src/language/chat/chat_content.h"
#include "src/language/chat/chat_turns.h"
#include "src/language/jinja/template.h"

#define AFTER_FORM "\nWhere no call is needed, reply to the user as usual."

static const char describing[] = "You can call functions. Each of them is described by JSON:\n"
                                 "{% for tool in tools %}{{ (tool.function or tool) | tojson }}\n{% endfor %}\n"
                                 "To call one, reply with nothing but the call, in this form:\n{{ form }}" AFTER_FORM;
static const char calling[] = "{{ {'tool_calls': calls} | tojson }}";
static const char answering[] =
    "{{ {'tool_response': ({'name': name, 'content': content} if name else {'content': content})} | tojson }}";

/* Renders `source`, a template of this file, with the given variables. Gives the result as a JSON string. Frees the
 * variables. */
static fr_status write_text(const char *source, json_t *given, json_t **string) {
    fr_template *template = NULL;
    fr_marked_text text = {0};
    *string = NULL;
    fr_status status =
        given ? fr_template_compile(source, strlen(source), "tools", &template) : fr_fail_memory("a tool", 0);
    if (status == FR_OK) status = fr_template_render(template, NULL, given, 0, &text);
    if (status == FR_OK && !(*string = json_stringn(text.text, text.length)))
        status = fr_fail(FR_INPUT, "tools: a text in them is not UTF-8");
    fr_template_close(template);
    fr_marked_text_free(&text);
    json_decref(given);
    return status;
}

fr_status fr_chat_tools_describe(json_t *messages, json_t *tools, const fr_call_form *form,
                                 fr_described_tools *described) {
    fr_text_buffer example = {0};
    json_t *text = NULL;
    size_t head = 0;
    while (fr_chat_is_role(json_array_get(messages, head), "system") ||
           fr_chat_is_role(json_array_get(messages, head), "developer"))
        head++;
    fr_call_form_example(form, &example);
    fr_status status = fr_text_check(&example, "a form of calls");
    if (status == FR_OK)
        status = write_text(describing, json_pack("{s:O, s:s}", "tools", tools, "form", example.bytes), &text);
    *described = (fr_described_tools){.text = text, .example_length = example.length};
    fr_text_free(&example);
    FR_TRY(status);
    described->example = json_string_length(text) - strlen(AFTER_FORM) - described->example_length;
    json_t *message = json_pack("{s:s, s:O}", "role", "system", "content", text);
    if (json_array_insert_new(messages, head, message) != 0) return fr_fail_memory("a tool", 0);
    return head ? fr_chat_join_turns(messages, head - 1, head) : FR_OK;
}

fr_status fr_chat_tools_trust_example(const fr_described_tools *described, fr_marked_text *prompt) {
    const char *text = json_string_value(described->text);
    const char *found = text ? memmem(prompt->text, prompt->length, text, json_string_length(described->text)) : NULL;
    if (!found || described->example_length == 0) return FR_OK;
    size_t begin = (size_t)(found - prompt->text) + described->example, end = begin + described->example_length, at = 0;
    while (at < prompt->trusted_count && prompt->trusted[at].end <= begin) at++;
    /* do nothing if the example already lies within trusted bytes */
    if (at < prompt->trusted_count && prompt->trusted[at].begin < end) return FR_OK;
    fr_span *spans = realloc(prompt->trusted, (prompt->trusted_count + 1) * sizeof *spans);
    if (!spans) return fr_fail_memory("a prompt's spans", (prompt->trusted_count + 1) * sizeof *spans);
    memmove(spans + at + 1, spans + at, (prompt->trusted_count - at) * sizeof *spans);
    spans[at] = (fr_span){.begin = begin, .end = end};
    prompt->trusted = spans;
    prompt->trusted_count++;
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------- calls and results */

/* Lists the name and the arguments of each call. If the arguments are an object, they stay an object. */
static json_t *functions_of(const json_t *calls) {
    json_t *functions = json_array();
    for (size_t i = 0; functions && i < json_array_size(calls); i++) {
        json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        if (!function) function = call;
        json_t *name = json_object_get(function, "name"), *arguments = json_object_get(function, "arguments");
        json_array_append_new(functions, json_pack("{s:O?, s:O?}", "name", name, "arguments", arguments));
    }
    return functions;
}

static fr_status put_text(json_t *message, const char *role, json_t *text) {
    bool put = json_object_set_new(message, "role", json_string(role)) == 0 &&
               json_object_set_new(message, "content", text) == 0;
    return put ? FR_OK : fr_fail_memory("a call", 0);
}

/* Moves the calls of a message into its content, after the content's text. */
static fr_status call_as_text(json_t *message) {
    const json_t *said = json_object_get(message, "content");
    json_t *text;
    FR_TRY(
        write_text(calling, json_pack("{s:o}", "calls", functions_of(json_object_get(message, "tool_calls"))), &text));
    json_t *plain = said && !json_is_null(said) ? fr_chat_plain_content(said) : json_string("");
    json_t *joined = plain ? fr_chat_join_contents(plain, text) : NULL;
    json_decref(plain);
    json_decref(text);
    if (!joined) return fr_fail_memory("a call", 0);
    json_object_del(message, "tool_calls");
    return put_text(message, "assistant", joined);
}

/* Finds the name of the function whose result a message is. It is the name in the message itself. If the message has no
 * name, it is that of the call with the message's id. NULL: there is no name and no such call. */
static const json_t *name_of(const json_t *message, const json_t *calls) {
    const json_t *id = json_object_get(message, "tool_call_id"), *name = json_object_get(message, "name");
    for (size_t i = 0; id && !name && i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        if (json_equal(json_object_get(call, "id"), id)) name = json_object_get(function ? function : call, "name");
    }
    return name;
}

static fr_status result_as_text(json_t *message, const json_t *calls) {
    const json_t *content = json_object_get(message, "content"), *name = name_of(message, calls);
    json_t *plain = content ? fr_chat_plain_content(content) : json_string(""), *text;
    FR_TRY(write_text(answering, json_pack("{s:O?, s:o}", "name", name, "content", plain), &text));
    json_object_del(message, "tool_call_id");
    json_object_del(message, "name");
    return put_text(message, "user", text);
}

fr_status fr_chat_calls_as_texts(json_t *messages) {
    json_t *calls = NULL;
    fr_status status = FR_OK;
    for (size_t i = 0; i < json_array_size(messages) && status == FR_OK; i++) {
        json_t *message = json_array_get(messages, i), *own = json_object_get(message, "tool_calls");
        if (json_array_size(own) > 0) {
            json_decref(calls);
            calls = json_incref(own);
            status = call_as_text(message);
        } else if (fr_chat_is_role(message, "tool")) {
            status = result_as_text(message, calls);
        }
    }
    json_decref(calls);
    return status;
}

/* Returns true for a result that does not belong to the results right after a message with calls. */
static bool is_orphan(const json_t *messages, size_t at) {
    size_t before = at;
    if (!fr_chat_is_role(json_array_get(messages, at), "tool")) return false;
    while (before > 0 && fr_chat_is_role(json_array_get(messages, before - 1), "tool")) before--;
    return before == 0 || json_array_size(json_object_get(json_array_get(messages, before - 1), "tool_calls")) == 0;
}

bool fr_chat_has_orphans(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (is_orphan(messages, i)) return true;
    return false;
}

fr_status fr_chat_orphans_as_texts(json_t *messages) {
    const json_t *calls = NULL;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i), *own = json_object_get(message, "tool_calls");
        if (json_array_size(own) > 0) calls = own;
        if (is_orphan(messages, i)) FR_TRY(result_as_text(message, calls));
    }
    return FR_OK;
}
