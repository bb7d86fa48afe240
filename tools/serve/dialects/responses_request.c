/* Reads requests to OpenAI's /v1/responses (request_dialects.h). The server stores no conversations, so "input" must
 * have the whole conversation.
 *
 * The items of "input" are messages, calls, results and thoughts. If a thought, a text and calls follow each other,
 * they become one message of the assistant, as templates expect it. Calls of tools that are not functions become calls
 * of functions (tool_kinds.h). Calls of OpenAI's tools that the client ran, such as a shell, become calls of functions
 * too. Items that the model can't read are ignored. These are references, encrypted thoughts, and calls that another
 * service has run. */
#include <stdlib.h>
#include <string.h>

#include "tools/jobs/job_parts.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/notes.h"
#include "tools/serve/tool_kinds.h"
#include "tools/serve/turns.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

typedef struct responses {
    fr_turns turns;
    /* The tools that the client offered. Their keys are the names of their functions (tool_kinds.h). The tools stay in
     * the body, because the answer needs them */
    json_t *called;
    json_t *run; /* an object whose keys are the ids of the calls that take_client_call has added */
} responses;

static bool was_run(const responses *r, const json_t *id) {
    return json_is_string(id) && json_object_get(r->run, json_string_value(id));
}

/* -------------------------------------------------------------------------------------------------- parts and texts */

/* Reads a part of a message or of a result. at: for error lines, the index in "input" of the item to which the part
 * belongs. */
static bool take_part(fr_turns *t, size_t at, const char *role, const json_t *part) {
    static const char *const texts[][2] = {
        {"input_text", "text"}, {"output_text", "text"}, {"text", "text"}, {"refusal", "refusal"}};
    const char *type = fr_turns_type(part);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const json_t *text = strcmp(texts[i][0], type) == 0 ? fr_turns_get(part, texts[i][1]) : NULL;
        if (!text) continue;
        if (!json_is_string(text)) return fr_turns_refuse(t, "input[%zu] has a part whose \"text\" is not a text", at);
        fr_turns_text(t, role, text);
        return true;
    }
    if (strcmp(type, "encrypted_content") == 0) return true;
    const json_t *url = strcmp(type, "input_image") == 0 ? fr_turns_get(part, "image_url") : NULL;
    bool shown = strcmp(type, "input_file") == 0 || (*type && strcmp(role, "tool") == 0);
    if (url)
        fr_turns_picture(t, role, fr_turns_share(url));
    else if (shown)
        fr_turns_part(t, role, fr_turns_share(part));
    return url || shown ||
           fr_turns_refuse(t,
                           "input[%zu] has a part of type \"%.60s\": input_text, output_text, input_file "
                           "and input_image by its image_url are known",
                           at, type);
}

static bool take_content(fr_turns *t, size_t at, const char *role, const json_t *content) {
    if (json_is_string(content))
        fr_turns_text(t, role, content);
    else if (!json_is_array(content))
        return fr_turns_refuse(t, "input[%zu] has no content", at);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!take_part(t, at, role, json_array_get(content, i))) return false;
    return true;
}

static void put_json(fr_turns *t, const char *role, const json_t *value) {
    char *line = fr_json_line(value);
    json_t *text = json_string(line);
    fr_turns_text(t, role, text);
    json_decref(text);
    free(line);
}

/* ------------------------------------------------------------------------------------------------------------ items */

typedef bool take_item_fn(responses *r, size_t at, const json_t *item);

static bool take_message(responses *r, size_t at, const json_t *item) {
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    const json_t *role = fr_turns_get(item, "role");
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (!fr_job_is_word(role, roles[i])) continue;
        if (i != 1) fr_turns_break(&r->turns);
        if (i == 1 && !fr_turns_get(item, "content")) return true; /* a message without content is left out */
        return take_content(&r->turns, at, roles[i], fr_turns_get(item, "content"));
    }
    return fr_turns_refuse(&r->turns, "input[%zu]: a message's role is user, assistant, system or developer", at);
}

/* Adds a call. arguments: a value of which this function takes ownership. */
static void put_call(responses *r, const json_t *item, const json_t *name, json_t *arguments) {
    json_t *own = fr_tool_name(fr_turns_get(item, "namespace"), name);
    fr_turns_call(&r->turns, fr_turns_get(item, "call_id"), own, arguments);
    json_decref(own);
}

static bool take_call(responses *r, size_t at, const json_t *item) {
    const json_t *name = fr_turns_get(item, "name"), *arguments = fr_turns_get(item, "arguments");
    if (!json_is_string(fr_turns_get(item, "call_id")) || !json_is_string(name) ||
        (arguments && !json_is_string(arguments)))
        return fr_turns_refuse(&r->turns, "input[%zu]: a function_call has a call_id, a name and arguments, all texts",
                               at);
    put_call(r, item, name, arguments ? fr_turns_share(arguments) : json_object());
    return true;
}

static bool take_custom_call(responses *r, size_t at, const json_t *item) {
    const json_t *name = fr_turns_get(item, "name"), *input = fr_turns_get(item, "input");
    if (!json_is_string(fr_turns_get(item, "call_id")) || !json_is_string(name) || !json_is_string(input))
        return fr_turns_refuse(&r->turns,
                               "input[%zu]: a custom_tool_call has a call_id, a name and an input, all "
                               "texts",
                               at);
    put_call(r, item, name, fr_tool_arguments(input));
    return true;
}

/* Reads a call of one of OpenAI's tools that the client ran. It becomes a call of a function with the tool's name. Its
 * arguments are one field of the item. If that field is missing, the call and its result are ignored. */
static bool take_client_call(responses *r, size_t at, const json_t *item) {
    static const char *const kinds[][3] = {{"local_shell_call", "local_shell", "action"},
                                           {"shell_call", "shell", "action"},
                                           {"apply_patch_call", "apply_patch", "operation"},
                                           {"tool_search_call", "tool_search", "arguments"}};
    size_t i = 0;
    (void)at;
    while (i < COUNT_OF(kinds) && strcmp(kinds[i][0], fr_turns_type(item)) != 0) i++;
    const json_t *done = i < COUNT_OF(kinds) ? fr_turns_get(item, kinds[i][2]) : NULL;
    if (!json_is_object(done) || !json_is_string(fr_turns_get(item, "call_id"))) return true;
    json_t *name = json_string(kinds[i][1]);
    put_call(r, item, name, fr_turns_share(done));
    json_object_set_new(r->run, json_string_value(fr_turns_get(item, "call_id")), json_true());
    json_decref(name);
    return true;
}

/* Reads a result, which is a text or content parts. Any other value is added as its JSON text. */
static bool take_output(fr_turns *t, size_t at, const json_t *output) {
    const json_t *first = json_array_get(output, 0);
    bool parts = json_is_array(output) && (!first || *fr_turns_type(first));
    if (json_is_string(output) || parts) return take_content(t, at, "tool", output);
    if (output) put_json(t, "tool", output);
    return true;
}

static bool take_result(responses *r, size_t at, const json_t *item) {
    const json_t *id = fr_turns_get(item, "call_id");
    if (!json_is_string(id))
        return fr_turns_refuse(&r->turns, "input[%zu]: a %.60s has a call_id", at, fr_turns_type(item));
    fr_turns_result(&r->turns, id);
    bool taken = take_output(&r->turns, at, fr_turns_get(item, "output"));
    fr_turns_break(&r->turns);
    return taken;
}

/* Reads the result of a call that take_client_call has added. If the call was of a local shell, some clients send the
 * call's id in "id" instead of "call_id". */
static bool take_client_result(responses *r, size_t at, const json_t *item) {
    const json_t *named = fr_turns_get(item, "call_id"), *id = named ? named : fr_turns_get(item, "id");
    if (!was_run(r, id)) return true;
    fr_turns_result(&r->turns, id);
    bool taken = take_output(&r->turns, at, fr_turns_get(item, "output"));
    fr_turns_break(&r->turns);
    return taken;
}

static bool offer_all(responses *r, const char *of, size_t at, const json_t *tools) {
    char what[64];
    for (size_t i = 0; i < json_array_size(tools); i++) {
        if (of)
            snprintf(what, sizeof what, "%s[%zu].tools[%zu]", of, at, i);
        else
            snprintf(what, sizeof what, "tools[%zu]", i);
        if (!fr_tool_offer(&r->turns, r->called, what, json_array_get(tools, i))) return false;
    }
    return true;
}

/* Offers the tools that an item of the conversation lists. They are offered as if the request itself had listed
 * them. */
static bool take_tools_item(responses *r, size_t at, const json_t *item) {
    return offer_all(r, "input", at, fr_turns_get(item, "tools"));
}

/* Reads the result of a search for tools: the names of the tools that were found. */
static bool take_search_result(responses *r, size_t at, const json_t *item) {
    const json_t *tools = fr_turns_get(item, "tools"), *id = fr_turns_get(item, "call_id");
    json_t *names = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *name = fr_turns_get(json_array_get(tools, i), "name");
        if (name) json_array_append(names, (json_t *)(uintptr_t)name);
    }
    if (was_run(r, id)) {
        fr_turns_result(&r->turns, id);
        put_json(&r->turns, "tool", names);
        fr_turns_break(&r->turns);
    }
    json_decref(names);
    return take_tools_item(r, at, item);
}

/* Reads a thought. Its text is the full text, or "encrypted_content" if this server wrote that, or the summary. A
 * thought is ignored if another server encrypted it, or if it has no text. */
static bool take_thought(responses *r, size_t at, const json_t *item) {
    (void)at;
    const json_t *content = fr_turns_get(item, "content"), *summary = fr_turns_get(item, "summary");
    const char *sealed = fr_job_plain_text(fr_turns_get(item, "encrypted_content"));
    if (!json_array_size(content) && sealed && strncmp(sealed, FR_SEALED, strlen(FR_SEALED)) == 0) {
        json_t *own = json_string(sealed + strlen(FR_SEALED));
        fr_turns_thought(&r->turns, own);
        json_decref(own);
        return true;
    }
    const json_t *text = fr_turns_get(json_array_get(json_array_size(content) ? content : summary, 0), "text");
    if (json_is_string(text)) fr_turns_thought(&r->turns, text);
    return true;
}

static bool take_item(responses *r, size_t at, const json_t *item) {
    static const struct {
        const char *type;
        take_item_fn *take;
    } types[] = {{"message", take_message},
                 {"function_call", take_call},
                 {"function_call_output", take_result},
                 {"reasoning", take_thought},
                 {"custom_tool_call", take_custom_call},
                 {"custom_tool_call_output", take_result},
                 {"additional_tools", take_tools_item},
                 {"tool_search_call", take_client_call},
                 {"tool_search_output", take_search_result},
                 {"local_shell_call", take_client_call},
                 {"local_shell_call_output", take_client_result},
                 {"shell_call", take_client_call},
                 {"shell_call_output", take_client_result},
                 {"apply_patch_call", take_client_call},
                 {"apply_patch_call_output", take_client_result}};
    const char *type = fr_turns_get(item, "type") ? fr_turns_type(item) : "message";
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (strcmp(types[i].type, type) == 0) return types[i].take(r, at, item);
    fr_notes_say("/v1/responses: items of type \"%.60s\" are passed over: a model can't read them", type);
    return true;
}

static bool take_input(responses *r, const json_t *body) {
    const json_t *told = fr_turns_get(body, "instructions"), *input = fr_turns_get(body, "input");
    fr_turns *t = &r->turns;
    if (told && !json_is_string(told)) return fr_turns_refuse(t, "instructions must be a text");
    if (told) fr_turns_text(t, "system", told);
    if (!input) return fr_turns_refuse(t, "input is missing");
    if (!json_is_string(input) && !json_is_array(input))
        return fr_turns_refuse(t, "input must be a text or an array of items");
    if (json_is_string(input)) fr_turns_text(t, "user", input);
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!take_item(r, i, json_array_get(input, i))) return false;
    return true;
}

/* --------------------------------------------------------------------------------------------------- request fields */

static bool take_tools(responses *r, const json_t *body) {
    const json_t *tools = fr_turns_get(body, "tools");
    if (tools && !json_is_array(tools)) return fr_turns_refuse(&r->turns, "tools must be an array");
    return offer_all(r, NULL, 0, tools);
}

/* Reads "tool_choice". If the chosen tool is not a function, it is replaced by the function that represents it here. */
static bool take_choice(fr_turns *t, const json_t *body) {
    const json_t *choice = fr_turns_get(body, "tool_choice"), *several = fr_turns_get(body, "parallel_tool_calls"),
                 *name = fr_turns_get(choice, "name");
    bool named = json_is_string(name) && (fr_job_is_word(fr_turns_get(choice, "type"), "custom") ||
                                          fr_job_is_word(fr_turns_get(choice, "type"), "function"));
    if (named)
        fr_turns_put(
            t, "tool_choice",
            json_pack("{s:s, s:o}", "type", "function", "name", fr_tool_name(fr_turns_get(choice, "namespace"), name)));
    else if (choice)
        fr_turns_put(t, "tool_choice", fr_tool_choice(choice));
    if (several) fr_turns_put(t, "parallel_tool_calls", fr_turns_share(several));
    return true;
}

/* Reads the form of the reply's text: {"format": {"type": "json_schema", "schema", ...}}. */
static bool take_text(fr_turns *t, const json_t *body) {
    const json_t *text = fr_turns_get(body, "text"), *format = fr_turns_get(text, "format");
    if (text && !json_is_object(text)) return fr_turns_refuse(t, "text must be an object");
    if (format) fr_turns_put(t, "response_format", fr_turns_share(format));
    return true;
}

/* Reads the settings of reasoning. Summaries are not made, because the answer contains the whole thought. */
static bool take_reasoning(fr_turns *t, const json_t *body) {
    const json_t *reasoning = fr_turns_get(body, "reasoning"), *effort = fr_turns_get(reasoning, "effort");
    if (reasoning && !json_is_object(reasoning)) return fr_turns_refuse(t, "reasoning must be an object");
    if (effort) fr_turns_put(t, "reasoning_effort", fr_turns_share(effort));
    return true;
}

static bool take_most(fr_turns *t, const json_t *body) {
    const json_t *most = fr_turns_get(body, "max_output_tokens");
    if (most && !fr_job_whole(most, 1, INT32_MAX))
        return fr_turns_refuse(t, "max_output_tokens must be a whole number from 1 to %d", INT32_MAX);
    if (most) fr_turns_put(t, "max_tokens", fr_turns_share(most));
    return true;
}

/* Refuses fields that refer to earlier answers, because the server does not store answers. */
static bool check_unbuilt(fr_turns *t, const json_t *body) {
    static const char *const keys[] = {"previous_response_id", "conversation", "prompt"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (fr_turns_get(body, keys[i]))
            return fr_turns_refuse(t, "\"%s\" is not built: nothing is kept of answers", keys[i]);
    return !json_is_true(fr_turns_get(body, "background")) || fr_turns_refuse(t, "\"background\" is not built");
}

/* Notes members that forerun does not know. It knows the members that it reads, and members that can't change an
 * answer. The latter are about the owner, the storage and the price of a request, and about shortening a
 * conversation. */
static void note_others(const json_t *body) {
    static const char *const known[] = {"background",
                                        "client_metadata",
                                        "context_management",
                                        "conversation",
                                        "include",
                                        "input",
                                        "instructions",
                                        "max_output_tokens",
                                        "max_tool_calls",
                                        "metadata",
                                        "moderation",
                                        "parallel_tool_calls",
                                        "previous_response_id",
                                        "prompt",
                                        "prompt_cache_key",
                                        "prompt_cache_retention",
                                        "reasoning",
                                        "safety_identifier",
                                        "service_tier",
                                        "store",
                                        "stream_options",
                                        "text",
                                        "tool_choice",
                                        "tools",
                                        "top_logprobs",
                                        "truncation",
                                        "user"};
    fr_turns_note_others(body, "/v1/responses", known, COUNT_OF(known));
}

/* Reads the request for log-probabilities. A request that only gives the number of most likely tokens asks for
 * log-probabilities too. */
static bool take_logprobs(fr_turns *t, const json_t *body) {
    const json_t *include = fr_turns_get(body, "include"), *best = fr_turns_get(body, "top_logprobs");
    bool wanted = best && json_integer_value(best) > 0;
    if (best && !fr_job_whole(best, 0, 20))
        return fr_turns_refuse(t, "top_logprobs must be a whole number from 0 to 20");
    if (include && !json_is_array(include)) return fr_turns_refuse(t, "include must be an array");
    for (size_t i = 0; i < json_array_size(include); i++)
        wanted |= fr_job_is_word(json_array_get(include, i), "message.output_text.logprobs");
    if (!wanted) return true;
    fr_turns_put(t, "logprobs", json_true());
    if (best) fr_turns_put(t, "top_logprobs", fr_turns_share(best));
    return true;
}

json_t *fr_responses_read(json_t *body, char error[FR_DIALECT_ERROR]) {
    responses r = {.called = json_object(), .run = json_object()};
    fr_turns *t = &r.turns;
    fr_turns_begin(t, body);
    note_others(body);
    if (check_unbuilt(t, body) && take_tools(&r, body) && take_input(&r, body) && take_choice(t, body) &&
        take_text(t, body) && take_reasoning(t, body) && take_most(t, body) && take_logprobs(t, body))
        fr_turns_put(t, "continue_final_message", json_false());
    snprintf(error, FR_DIALECT_ERROR, "%s", t->error);
    json_object_del(body, "input");
    fr_json_put(body, "called", r.called);
    json_decref(r.run);
    return fr_turns_end(t);
}
