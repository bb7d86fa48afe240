/* Reads requests to Anthropic's /v1/messages (request_dialects.h).
 *
 * In this API the results of calls are parts of a user's message. In a chat each result becomes a message of its own.
 * The other parts of the user's message stay before or after it. If the last message is the assistant's, the reply
 * continues it, as in a chat. */
#include <string.h>

#include "tools/jobs/job_parts.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/notes.h"
#include "tools/serve/turns.h"

static bool is_of(const json_t *value, const char *type) {
    return strcmp(fr_turns_type(value), type) == 0;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

/* Reads a picture, which is {"type": "base64", "media_type", "data"} or a url. A chat accepts only urls that begin with
 * "data:". */
static bool take_picture(fr_turns *t, const char *role, const json_t *block) {
    const json_t *source = fr_turns_get(block, "source"), *type = fr_turns_get(source, "media_type"),
                 *data = fr_turns_get(source, "data");
    const json_t *url = is_of(source, "url") ? fr_turns_get(source, "url") : NULL;
    bool bytes = is_of(source, "base64") && fr_job_plain_text(type) && fr_job_plain_text(data);
    if (!bytes && !url && strcmp(role, "tool") == 0) {
        fr_turns_part(t, role, json_pack("{s:s}", "type", "image"));
        return true;
    }
    if (!bytes && !url)
        return fr_turns_refuse(t, "an image's source must be {\"type\": \"base64\", \"media_type\", \"data\"}");
    fr_turns_picture(t, role,
                     url ? fr_turns_share(url)
                         : json_sprintf("data:%s;base64,%s", json_string_value(type), json_string_value(data)));
    return true;
}

static bool take_content(fr_turns *t, size_t at, const char *role, const json_t *content);

/* Adds a text as a line of its own. A value that is not a text is ignored. */
static void take_line(fr_turns *t, const char *role, const json_t *text) {
    if (!fr_job_plain_text(text)) return;
    json_t *line = json_sprintf("%s\n", json_string_value(text));
    fr_turns_text(t, role, line);
    json_decref(line);
}

/* Reads a document. Its content may be plain text or text blocks. Any other document, such as a PDF, is treated as a
 * file. */
static bool take_document(fr_turns *t, size_t at, const char *role, const json_t *block) {
    const json_t *source = fr_turns_get(block, "source"), *data = fr_turns_get(source, "data"),
                 *title = fr_turns_get(block, "title");
    bool text = is_of(source, "text") && json_is_string(data), blocks = is_of(source, "content");
    if (!*fr_turns_type(source)) return fr_turns_refuse(t, "messages[%zu] has a document without a source", at);
    if (!text && !blocks) {
        const char *kind = fr_job_plain_text(fr_turns_get(source, "media_type")), *bytes = fr_job_plain_text(data);
        json_t *part = json_pack("{s:s}", "type", "file");
        if (title) fr_json_put(part, "filename", fr_turns_share(title));
        if (kind && bytes) fr_json_put(part, "file_data", json_sprintf("data:%s;base64,%s", kind, bytes));
        fr_turns_part(t, role, part);
        return true;
    }
    take_line(t, role, title);
    return take_content(t, at, role, text ? data : fr_turns_get(source, "content"));
}

/* Reads a search result that the client has found: its title, source and texts. */
static bool take_found(fr_turns *t, size_t at, const char *role, const json_t *block) {
    take_line(t, role, fr_turns_get(block, "title"));
    take_line(t, role, fr_turns_get(block, "source"));
    return take_content(t, at, role, fr_turns_get(block, "content"));
}

/* Reads a block that may occur both in messages and in results. Blocks of tools that another service ran are ignored,
 * because the model can't read them. */
static bool take_said(fr_turns *t, size_t at, const char *role, const json_t *block) {
    static const char *const texts[][2] = {
        {"text", "text"}, {"compaction", "content"}, {"tool_reference", "tool_name"}};
    if (is_of(block, "image")) return take_picture(t, role, block);
    if (is_of(block, "document")) return take_document(t, at, role, block);
    if (is_of(block, "search_result")) return take_found(t, at, role, block);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!is_of(block, texts[i][0])) continue;
        const json_t *text = fr_turns_get(block, texts[i][1]);
        if (json_is_string(text))
            fr_turns_text(t, role, text);
        else if (i == 0)
            return fr_turns_refuse(t, "messages[%zu] has a text block without a text", at);
        return true;
    }
    if (!*fr_turns_type(block)) return fr_turns_refuse(t, "messages[%zu] has a block without a type", at);
    if (is_of(block, "tool_use") || is_of(block, "tool_result"))
        return fr_turns_refuse(t, "messages[%zu] has a block of type \"%.60s\", which has no place there", at,
                               fr_turns_type(block));
    fr_notes_say("/v1/messages: blocks of type \"%.60s\" are passed over: a model can't read them",
                 fr_turns_type(block));
    return true;
}

static bool take_content(fr_turns *t, size_t at, const char *role, const json_t *content) {
    if (json_is_string(content))
        fr_turns_text(t, role, content);
    else if (!json_is_array(content))
        return fr_turns_refuse(t, "messages[%zu] has no content", at);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!take_said(t, at, role, json_array_get(content, i))) return false;
    return true;
}

static bool take_result(fr_turns *t, size_t at, const json_t *block) {
    const json_t *id = fr_turns_get(block, "tool_use_id"), *content = fr_turns_get(block, "content");
    if (!json_is_string(id)) return fr_turns_refuse(t, "messages[%zu] has a tool_result without a tool_use_id", at);
    fr_turns_result(t, id);
    bool taken = !content || take_content(t, at, "tool", content);
    fr_turns_break(t);
    return taken;
}

static bool take_call(fr_turns *t, size_t at, const json_t *block) {
    const json_t *id = fr_turns_get(block, "id"), *name = fr_turns_get(block, "name"),
                 *input = fr_turns_get(block, "input");
    if (!json_is_string(id) || !json_is_string(name) || (input && !json_is_object(input)))
        return fr_turns_refuse(t, "messages[%zu]: a tool_use has an id, a name and an input, an object", at);
    fr_turns_call(t, id, name, input ? fr_turns_share(input) : json_object());
    return true;
}

static bool take_block(fr_turns *t, size_t at, bool assistant, const json_t *block) {
    if (!assistant && is_of(block, "tool_result")) return take_result(t, at, block);
    if (assistant && is_of(block, "tool_use")) return take_call(t, at, block);
    if (assistant && is_of(block, "redacted_thinking")) return true;
    if (assistant && is_of(block, "thinking")) {
        if (json_is_string(fr_turns_get(block, "thinking"))) fr_turns_thought(t, fr_turns_get(block, "thinking"));
        return true;
    }
    return take_said(t, at, assistant ? "assistant" : "user", block);
}

static bool take_message(fr_turns *t, size_t at, const json_t *message) {
    const json_t *role = fr_turns_get(message, "role"), *content = fr_turns_get(message, "content");
    bool assistant = fr_job_is_word(role, "assistant");
    bool system = fr_job_is_word(role, "system") || fr_job_is_word(role, "developer");
    if (!assistant && !system && !fr_job_is_word(role, "user"))
        return fr_turns_refuse(t, "messages[%zu]: a role is user, assistant, system or developer", at);
    fr_turns_break(t);
    if (assistant && !content) return true; /* a message without content is left out */
    if (system) return take_content(t, at, "system", content);
    if (!json_is_array(content)) return take_content(t, at, json_string_value(role), content);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!take_block(t, at, assistant, json_array_get(content, i))) return false;
    return true;
}

static bool take_system(fr_turns *t, const json_t *system) {
    if (!system) return true;
    if (json_is_string(system))
        fr_turns_text(t, "system", system);
    else if (!json_is_array(system))
        return fr_turns_refuse(t, "system must be a text or an array of them");
    for (size_t i = 0; i < json_array_size(system); i++) {
        const json_t *text = fr_turns_get(json_array_get(system, i), "text");
        if (!json_is_string(text)) return fr_turns_refuse(t, "system[%zu] is no block of text", i);
        fr_turns_text(t, "system", text);
    }
    return true;
}

static bool take_messages(fr_turns *t, const json_t *body) {
    const json_t *messages = fr_turns_get(body, "messages");
    if (!take_system(t, fr_turns_get(body, "system"))) return false;
    if (!json_array_size(messages)) return fr_turns_refuse(t, "messages must be an array of at least one");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!take_message(t, i, json_array_get(messages, i))) return false;
    return true;
}

/* --------------------------------------------------------------------------------------------------- request fields */

/* Returns true if a tool is one of Anthropic's own tools, which Anthropic's models know. Returns false if it is a
 * function that the client describes. */
static bool is_hosted(const json_t *tool) {
    return fr_turns_get(tool, "type") && !is_of(tool, "custom");
}

static bool take_tools(fr_turns *t, const json_t *body) {
    const json_t *tools = fr_turns_get(body, "tools");
    if (tools && !json_is_array(tools)) return fr_turns_refuse(t, "tools must be an array");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (is_hosted(tool)) {
            fr_notes_say("/v1/messages: tools of type \"%.60s\" are passed over: their maker's models alone know them",
                         fr_turns_type(tool));
            continue;
        }
        if (!json_is_string(fr_turns_get(tool, "name"))) return fr_turns_refuse(t, "tools[%zu] has no name", i);
        fr_turns_tool(t, fr_turns_get(tool, "name"), fr_turns_get(tool, "description"),
                      fr_turns_get(tool, "input_schema"), fr_turns_get(tool, "strict"));
    }
    return true;
}

/* Returns true if a tool with this name is one of Anthropic's own tools. Such tools are ignored. */
static bool names_hosted(const json_t *tools, const json_t *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        if (is_hosted(tool) && json_is_string(name) && json_equal(fr_turns_get(tool, "name"), name)) return true;
    }
    return false;
}

static bool take_choice(fr_turns *t, const json_t *body) {
    static const char *const words[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    const json_t *choice = fr_turns_get(body, "tool_choice"), *name = fr_turns_get(choice, "name");
    if (!choice) return true;
    if (json_is_true(fr_turns_get(choice, "disable_parallel_tool_use")))
        fr_turns_put(t, "parallel_tool_calls", json_false());
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!is_of(choice, words[i][0])) continue;
        fr_turns_put(t, "tool_choice", json_string(words[i][1]));
        return true;
    }
    if (is_of(choice, "tool") && names_hosted(fr_turns_get(body, "tools"), name)) {
        fr_notes_say("/v1/messages: tool_choice names a tool that is passed over, so the model may choose");
        fr_turns_put(t, "tool_choice", json_string("auto"));
        return true;
    }
    if (!is_of(choice, "tool") || !json_is_string(name))
        return fr_turns_refuse(t, "tool_choice must be of type auto, any, none, or tool with its name");
    fr_turns_put(t, "tool_choice", json_pack("{s:s, s:O}", "type", "function", "name", name));
    return true;
}

/* Reads the budget of thinking. Clients of this API must send a budget. So the budget is ignored, and is no error, if
 * the model has no reasoning, or if its marks of reasoning are not single tokens. */
static bool take_thinking(fr_turns *t, const json_t *body) {
    const json_t *thinking = fr_turns_get(body, "thinking");
    bool on = is_of(thinking, "enabled") || is_of(thinking, "adaptive") || is_of(thinking, "between_tools");
    json_t *settings = json_object_get(t->chat, "chat_template_kwargs");
    if (!thinking) return true;
    const json_t *budget = fr_turns_get(thinking, "budget_tokens");
    if (budget && !fr_job_whole(budget, 1, INT32_MAX))
        return fr_turns_refuse(t, "thinking.budget_tokens must be a whole number from 1 to %d", INT32_MAX);
    if (!on && !is_of(thinking, "disabled"))
        return fr_turns_refuse(t, "thinking must be of type enabled, adaptive or disabled");
    settings = json_is_object(settings) ? json_copy(settings) : json_object();
    fr_json_put(settings, "enable_thinking", json_boolean(on));
    fr_turns_put(t, "chat_template_kwargs", settings);
    if (on && budget) fr_turns_put(t, "reasoning_budget_if_built", fr_turns_share(budget));
    return true;
}

/* Reads "output_config": {"format": {"type": "json_schema", "schema"}, "effort"}. Some clients send the format under
 * its older name, "output_format". */
static bool take_output(fr_turns *t, const json_t *body) {
    const json_t *config = fr_turns_get(body, "output_config"), *older = fr_turns_get(body, "output_format");
    const json_t *format = fr_turns_get(config, "format") ? fr_turns_get(config, "format") : older,
                 *effort = fr_turns_get(config, "effort");
    if (format) fr_turns_put(t, "response_format", fr_turns_share(format));
    if (effort) fr_turns_put(t, "reasoning_effort", fr_turns_share(effort));
    return true;
}

static bool take_limits(fr_turns *t, const json_t *body) {
    const json_t *most = fr_turns_get(body, "max_tokens"), *stops = fr_turns_get(body, "stop_sequences");
    if (most && !fr_job_whole(most, 1, INT32_MAX))
        return fr_turns_refuse(t, "max_tokens must be a whole number from 1 to %d", INT32_MAX);
    if (stops && !json_is_array(stops)) return fr_turns_refuse(t, "stop_sequences must be an array of texts");
    if (most) fr_turns_put(t, "max_tokens", fr_turns_share(most));
    if (stops) fr_turns_put(t, "stop", fr_turns_share(stops));
    return true;
}

/* Notes members that forerun does not know. It knows the members that it reads, and members that can't change an
 * answer. The latter are about the owner and the price of a request, about leaving out parts of the conversation, and
 * about servers of tools that Anthropic itself would call. */
static void note_others(const json_t *body) {
    static const char *const known[] = {
        "betas",    "cache_control", "context_management", "inference_geo", "max_tokens",     "messages",
        "metadata", "output_config", "output_format",      "service_tier",  "speed",          "stop_sequences",
        "system",   "thinking",      "tool_choice",        "tools",         "user_profile_id"};
    fr_turns_note_others(body, "/v1/messages", known, sizeof known / sizeof *known);
}

json_t *fr_messages_read(json_t *body, char error[FR_DIALECT_ERROR]) {
    fr_turns turns;
    fr_turns_begin(&turns, body);
    note_others(body);
    if (take_messages(&turns, body) && take_tools(&turns, body) && take_choice(&turns, body) &&
        take_thinking(&turns, body) && take_output(&turns, body))
        take_limits(&turns, body);
    snprintf(error, FR_DIALECT_ERROR, "%s", turns.error);
    json_object_clear(body);
    return fr_turns_end(&turns);
}
