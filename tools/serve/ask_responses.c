/* Requests to OpenAI's /v1/responses (ask_dialects.h): stateless, all of a conversation is in "input".
 *
 * Its items are messages, calls, their results and what was thought. Reasoning, text and calls that stand behind each
 * other are one message of the assistant's, which is how templates have them. */
#include <string.h>

#include "tools/job_parts.h"
#include "tools/serve/ask_dialects.h"
#include "tools/serve/turns.h"

/* What an item or a part says it is; "" for nothing. */
/* ------------------------------------------------------------------------------------------------------------ items */

/* A part of a message or of a result; `at`: of the item. */
static bool take_part(fr_turns *t, size_t at, const char *role, const json_t *part) {
    static const char *const texts[][2] = {
        {"input_text", "text"}, {"output_text", "text"}, {"text", "text"}, {"refusal", "refusal"}};
    const char *type = fr_turns_type(part);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const json_t *text = strcmp(texts[i][0], type) == 0 ? fr_turns_get(part, texts[i][1]) : NULL;
        if (!text) continue;
        if (!json_is_string(text)) return fr_turns_refuse(t, "input[%zu] has a part whose text is none", at);
        fr_turns_text(t, role, text);
        return true;
    }
    const json_t *url = strcmp(type, "input_image") == 0 ? fr_turns_get(part, "image_url") : NULL;
    if (url) fr_turns_picture(t, role, fr_turns_share(url));
    return url || fr_turns_refuse(t,
                                  "input[%zu] has a part of type \"%.60s\": input_text, output_text and input_image "
                                  "by its image_url are known",
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

static bool take_message(fr_turns *t, size_t at, const json_t *item) {
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    const json_t *role = fr_turns_get(item, "role");
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (!fr_job_is_word(role, roles[i])) continue;
        if (i != 1) fr_turns_break(t);
        return take_content(t, at, i == 3 ? "system" : roles[i], fr_turns_get(item, "content"));
    }
    return fr_turns_refuse(t, "input[%zu]: a message's role is user, assistant, system or developer", at);
}

static bool take_call(fr_turns *t, size_t at, const json_t *item) {
    const json_t *id = fr_turns_get(item, "call_id"), *name = fr_turns_get(item, "name"),
                 *arguments = fr_turns_get(item, "arguments");
    if (!json_is_string(id) || !json_is_string(name) || !json_is_string(arguments))
        return fr_turns_refuse(t, "input[%zu]: a function_call has a call_id, a name and arguments, all texts", at);
    fr_turns_call(t, id, name, fr_turns_share(arguments));
    return true;
}

static bool take_result(fr_turns *t, size_t at, const json_t *item) {
    const json_t *id = fr_turns_get(item, "call_id");
    if (!json_is_string(id)) return fr_turns_refuse(t, "input[%zu]: a function_call_output has a call_id", at);
    fr_turns_result(t, id);
    bool taken = take_content(t, at, "tool", fr_turns_get(item, "output"));
    fr_turns_break(t);
    return taken;
}

/* Its first text, in full or as a summary; one that is encrypted, or has none, says nothing. */
static bool take_thought(fr_turns *t, size_t at, const json_t *item) {
    (void)at;
    const json_t *content = fr_turns_get(item, "content");
    if (!json_array_size(content)) content = fr_turns_get(item, "summary");
    const json_t *text = fr_turns_get(json_array_get(content, 0), "text");
    if (json_is_string(text)) fr_turns_thought(t, text);
    return true;
}

static bool take_item(fr_turns *t, size_t at, const json_t *item) {
    static const struct {
        const char *type;
        bool (*take)(fr_turns *t, size_t at, const json_t *item);
    } types[] = {{"message", take_message},
                 {"function_call", take_call},
                 {"function_call_output", take_result},
                 {"reasoning", take_thought}};
    const char *type = fr_turns_get(item, "type") ? fr_turns_type(item) : "message";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, type) == 0) return types[i].take(t, at, item);
    return fr_turns_refuse(t,
                           "input[%zu] of type \"%.60s\" is not built: message, function_call, function_call_output "
                           "and reasoning are",
                           at, type);
}

static bool take_input(fr_turns *t, const json_t *body) {
    const json_t *told = fr_turns_get(body, "instructions"), *input = fr_turns_get(body, "input");
    if (told && !json_is_string(told)) return fr_turns_refuse(t, "instructions must be a text");
    if (told) fr_turns_text(t, "system", told);
    if (!input) return fr_turns_refuse(t, "input is missing");
    if (!json_is_string(input) && !json_is_array(input))
        return fr_turns_refuse(t, "input must be a text or an array of items");
    if (json_is_string(input)) fr_turns_text(t, "user", input);
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!take_item(t, i, json_array_get(input, i))) return false;
    return true;
}

/* ----------------------------------------------------------------------------------------------- what is asked for */

static bool take_tools(fr_turns *t, const json_t *body) {
    const json_t *tools = fr_turns_get(body, "tools"), *choice = fr_turns_get(body, "tool_choice"), *several;
    if (tools && !json_is_array(tools)) return fr_turns_refuse(t, "tools must be an array");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (!fr_job_is_word(fr_turns_get(tool, "type"), "function"))
            return fr_turns_refuse(t, "tools[%zu] of type \"%.60s\" is not built: function is", i, fr_turns_type(tool));
        if (!json_is_string(fr_turns_get(tool, "name"))) return fr_turns_refuse(t, "tools[%zu] has no name", i);
        fr_turns_tool(t, fr_turns_get(tool, "name"), fr_turns_get(tool, "description"),
                      fr_turns_get(tool, "parameters"));
    }
    several = fr_turns_get(body, "parallel_tool_calls");
    if (choice) fr_turns_put(t, "tool_choice", fr_turns_share(choice));
    if (several) fr_turns_put(t, "parallel_tool_calls", fr_turns_share(several));
    return true;
}

/* {"format": {"type": "json_schema", "schema", ...}}. */
static bool take_text(fr_turns *t, const json_t *body) {
    const json_t *text = fr_turns_get(body, "text"), *format = fr_turns_get(text, "format");
    if (text && !json_is_object(text)) return fr_turns_refuse(t, "text must be an object");
    if (format) fr_turns_put(t, "response_format", fr_turns_share(format));
    return true;
}

/* Summaries are not made: what is thought is told in full. */
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

/* Nothing is kept of an answer: what would need that is refused, and so is what an answer would have to have more. */
static bool check_unbuilt(fr_turns *t, const json_t *body) {
    static const char *const keys[] = {"previous_response_id", "conversation", "prompt", "context_management"};
    const json_t *cut = fr_turns_get(body, "truncation");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (fr_turns_get(body, keys[i]))
            return fr_turns_refuse(t, "\"%s\" is not built: nothing is kept of answers", keys[i]);
    if (json_is_true(fr_turns_get(body, "background"))) return fr_turns_refuse(t, "\"background\" is not built");
    if (cut && !fr_job_is_word(cut, "disabled")) return fr_turns_refuse(t, "this \"truncation\" is not built");
    return true;
}

/* Whoever wants other tokens beside those that were said wants these too. */
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
    fr_turns turns;
    fr_turns_begin(&turns, body);
    if (check_unbuilt(&turns, body) && take_input(&turns, body) && take_tools(&turns, body) &&
        take_text(&turns, body) && take_reasoning(&turns, body) && take_most(&turns, body) &&
        take_logprobs(&turns, body))
        fr_turns_put(&turns, "continue_final_message", json_false());
    snprintf(error, FR_DIALECT_ERROR, "%s", turns.error);
    json_object_del(body, "input");
    return fr_turns_end(&turns);
}
