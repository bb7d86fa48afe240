/* Renders a conversation as the prompt that the model's chat template makes of it (fr_chat_render). Also gives the
 * notes about the template. */
#include <jansson.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "formats/json.h"
#include "formats/json_wide.h"
#include "src/language/chat/chat_continue.h"
#include "src/language/chat/chat_messages.h"
#include "src/language/chat/chat_templates.h"
#include "src/language/chat/chat_tools.h"
#include "src/language/chat/chat_turns.h"
#include "src/language/chat/reply.h"
#include "src/language/chat/reply_begin.h"
#include "src/language/tokenizer/tokenizer_parts.h"

static fr_status check_messages(const json_t *messages) {
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return fr_fail(FR_INPUT, "messages: not a JSON array with at least one message");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!fr_json_is_text(json_object_get(json_array_get(messages, i), "role")))
            return fr_fail(FR_INPUT, "messages[%zu] is not an object with a \"role\"", i);
    }
    return FR_OK;
}

/* Checks the types of the common options. Removes forerun's own options, because templates must not see them. A null
 * counts as not given, and an empty list of tools as no tools. */
static fr_status check_options(json_t *options, fr_chat_rules *rules, bool *continues) {
    static const char *const flags[] = {"add_generation_prompt", "enable_thinking", "pictures"};
    bool value;
    if (!json_is_object(options)) return fr_fail(FR_INPUT, "chat options: not a JSON object");
    if (json_object_get(options, "messages"))
        return fr_fail(FR_INPUT, "chat options: \"messages\" is no option: they are given by themselves");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        FR_TRY(fr_json_bool(options, flags[i], false, "chat options", &value));
        if (json_is_null(json_object_get(options, flags[i]))) json_object_del(options, flags[i]);
    }
    FR_TRY(fr_json_bool(options, "late_systems", true, "chat options", &rules->late_systems));
    FR_TRY(fr_json_bool(options, "rearrange", true, "chat options", &rules->rearrange));
    FR_TRY(fr_json_bool(options, "strict_roles", false, "chat options", &rules->strict_roles));
    FR_TRY(fr_json_bool(options, "continue_final_message", false, "chat options", continues));
    json_object_del(options, "continue_final_message");
    json_object_del(options, "late_systems");
    json_object_del(options, "rearrange");
    json_object_del(options, "strict_roles");
    const json_t *tools = json_object_get(options, "tools");
    if (json_is_array(tools) && json_array_size(tools) == 0) json_object_del(options, "tools"), tools = NULL;
    if (tools && !json_is_null(tools) && !json_is_array(tools))
        return fr_fail(FR_INPUT, "chat options: \"tools\" is not an array");
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!json_is_object(json_array_get(tools, i)))
            return fr_fail(FR_INPUT, "chat options: \"tools\" has an element that is no object");
    return FR_OK;
}

/* Adds the variables that transformers always gives to a template. Variables that the caller's options have set stay
 * as they are. */
static fr_status add_defaults(json_t *given) {
    static const char *const absent[] = {"tools", "documents"};
    bool failed = false;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (!json_object_get(given, absent[i])) failed |= json_object_set_new(given, absent[i], json_null()) != 0;
    if (!json_object_get(given, "add_generation_prompt"))
        failed |= json_object_set_new(given, "add_generation_prompt", json_true()) != 0;
    return failed ? fr_fail_memory("a chat", sizeof *given) : FR_OK;
}

/* Sets a variable to the text of one of the model's tokens, such as bos_token. If the text is not UTF-8, as may be in a
 * GGUF file, the variable is not set. If the caller's options give the variable the same text, it is removed from these
 * options, so that the text counts as the template's own. */
static fr_status set_token(json_t *own, json_t *given, const char *name, const char *text) {
    if (!text) return FR_OK;
    json_t *token = json_string(text);
    if (!token) return FR_OK;
    if (json_equal(token, json_object_get(given, name))) json_object_del(given, name);
    return json_object_set_new(own, name, token) == 0 ? FR_OK : fr_fail_memory(name, sizeof *token);
}

static fr_status set_own(json_t *own, json_t *given, const fr_tokenizer *tokenizer) {
    const fr_chat_templates *chat = tokenizer->chat;
    const char *begin = tokenizer->begin, *name;
    json_t *text;
    if (!begin && chat->family && chat->built_in) begin = chat->family->begin;
    FR_TRY(set_token(own, given, "bos_token", begin));
    FR_TRY(set_token(own, given, "eos_token", tokenizer->end));
    json_object_foreach (tokenizer->named, name, text) {
        if (!json_object_get(own, name)) FR_TRY(set_token(own, given, name, json_string_value(text)));
    }
    return FR_OK;
}

static fr_status choose(const fr_chat_templates *chat, const json_t *options, const fr_template **template) {
    const fr_chat_template *chosen = fr_chat_templates_for(chat, options);
    *template = chosen->ready;
    if (chosen->error) return fr_fail(FR_INPUT, "%s", chosen->error);
    return *template ? FR_OK
                     : fr_fail(FR_INPUT, "this model has no chat template, and forerun has none for its tokens: "
                                         "--chat-template-file FILE gives it one; generate goes on with any text");
}

/* Makes the variables for the small conversations by which chat_probe.h finds out what a template accepts. A small tool
 * replaces all tools of the request, so that the results also hold for requests with other tools. NULL: memory ran
 * out. */
static json_t *asking_variables(const json_t *given) {
    json_t *asking = json_copy((json_t *)(uintptr_t)given);
    json_t *tool = fr_chat_probe_tools();
    bool none = json_array_size(json_object_get(given, "tools")) == 0;
    bool failed = !asking || !tool;
    json_object_del(asking, "messages");
    failed = failed || (!none && json_object_set(asking, "tools", tool) != 0);
    json_decref(tool);
    if (!failed) return asking;
    json_decref(asking);
    return NULL;
}

static fr_status adapt(fr_chat_templates *chat, json_t *messages, const fr_chat_rules *rules, fr_chat_probe *probe) {
    unsigned notes = 0;
    fr_kept_answers_get(&chat->answers, probe->given, &probe->answers);
    size_t known = probe->answers.count;
    fr_status status = fr_chat_messages_adapt(messages, rules, probe, &notes);
    if (probe->answers.count > known) fr_kept_answers_put(&chat->answers, probe->given, &probe->answers);
    if (status == FR_OK) atomic_fetch_or(&chat->notes, notes);
    return status;
}

/* A conversation, and the template that was chosen for it. */
typedef struct conversation {
    const fr_tokenizer *tokenizer;
    const fr_template *template;
    json_t *own, *given;
    fr_chat_rules rules;
    /* the description of the tools in the system message; its text is NULL if the template shows tools itself */
    fr_described_tools described;
} conversation;

static fr_status render_messages(const conversation *c, json_t *messages, fr_marked_text *text) {
    if (json_object_set(c->given, "messages", messages) != 0) return fr_fail_memory("a chat", 0);
    json_t *asking = asking_variables(c->given);
    fr_chat_probe probe = {.template = c->template, .own = c->own, .given = asking, .now = (int64_t)time(NULL)};
    fr_status status =
        asking ? adapt(c->tokenizer->chat, messages, &c->rules, &probe) : fr_fail_memory("a template's variables", 0);
    json_decref(asking);
    return status == FR_OK ? fr_template_render(c->template, c->own, c->given, probe.now, text) : status;
}

/* Describes the tools in the system message if the template does not show tools itself. */
static fr_status place_tools(conversation *c, json_t *messages) {
    json_t *tools = json_object_get(c->given, "tools"), *asking;
    if (json_array_size(tools) == 0) return FR_OK;
    if (!(asking = asking_variables(c->given))) return fr_fail_memory("a template's variables", 0);
    fr_chat_templates *chat = c->tokenizer->chat;
    fr_chat_probe probe = {.template = c->template, .own = c->own, .given = asking, .now = (int64_t)time(NULL)};
    fr_kept_answers_get(&chat->answers, asking, &probe.answers);
    fr_taken taken = fr_chat_probe_takes_tools(&probe);
    fr_kept_answers_put(&chat->answers, asking, &probe.answers);
    json_decref(asking);
    if (probe.status != FR_OK) return fr_fail_memory("a chat template's answers", 0);
    if (taken == FR_TAKEN) return FR_OK;
    FR_TRY(fr_chat_tools_describe(messages, tools, fr_reply_format_for(c->tokenizer, c->given).form, &c->described));
    atomic_fetch_or(&chat->notes, FR_NOTE_NO_TOOLS);
    bool set = taken == FR_DROPPED || json_object_set_new(c->given, "tools", json_null()) == 0;
    return set ? FR_OK : fr_fail_memory("a chat", 0);
}

/* Renders the conversation without its last message. If that prompt opens the model's reasoning, appends the last
 * message's thought and content, and sets *done; otherwise *text is unchanged. */
static fr_status render_opened(const conversation *c, json_t *before, const fr_continuation *continuation,
                               const fr_reply_format *format, fr_marked_text *text, bool *done) {
    fr_marked_text opened = {0};
    if (json_object_set_new(c->given, "add_generation_prompt", json_true()) != 0) return fr_fail_memory("a chat", 0);
    fr_status status = json_array_size(before) ? render_messages(c, before, &opened) : FR_INPUT;
    if (status == FR_OK) {
        size_t end = fr_reply_trusted_end(&opened);
        *done = end && fr_reply_opens_reasoning(format, opened.text + opened.length - end, end);
        if (*done) status = fr_continuation_append(continuation, format, &opened);
    }
    if (status != FR_OK || !*done) {
        fr_marked_text_free(&opened);
        return status == FR_MEMORY ? status : FR_OK;
    }
    fr_marked_text_free(text);
    *text = opened;
    return FR_OK;
}

/* Renders the conversation up to the end of the last message's content or thought, so that the model continues it. */
static fr_status render_continued(const conversation *c, json_t *messages, fr_marked_text *text) {
    const fr_reply_format format = fr_reply_format_for(c->tokenizer, c->given);
    fr_continuation continuation = {0};
    json_t *before = json_deep_copy(messages), *last = json_array_get(messages, json_array_size(messages) - 1);
    bool ready = before && json_array_remove(before, json_array_size(before) - 1) == 0 &&
                 json_object_set_new(c->given, "add_generation_prompt", json_false()) == 0,
         done = false;
    fr_status status = ready ? fr_continuation_begin(&continuation, last, &format) : fr_fail_memory("a chat", 0);
    if (status == FR_OK) status = render_messages(c, messages, text);
    if (status == FR_OK) {
        bool found = fr_continuation_cut(text);
        done = found && fr_continuation_shows_thought(&continuation, text);
        if (!done && continuation.thought) status = render_opened(c, before, &continuation, &format, text, &done);
        if (status == FR_OK && !done && !(found && continuation.said))
            status = fr_fail(FR_INPUT, continuation.said ? "the last message can't be gone on with: the chat template "
                                                           "changes it"
                                                         : "the last message's thought can't be gone on with: the chat "
                                                           "template leaves it out, and opens none");
    }
    if (status != FR_OK) fr_marked_text_free(text);
    fr_continuation_close(&continuation);
    json_decref(before);
    return status;
}

static fr_status render(const fr_tokenizer *tokenizer, json_t *messages, json_t *given, json_t *own,
                        fr_marked_text *text) {
    conversation c = {.tokenizer = tokenizer, .own = own, .given = given};
    bool continues;
    FR_TRY(check_messages(messages));
    FR_TRY(check_options(given, &c.rules, &continues));
    FR_TRY(add_defaults(given));
    FR_TRY(set_own(own, given, tokenizer));
    FR_TRY(choose(tokenizer->chat, given, &c.template));
    fr_status status = c.rules.rearrange ? place_tools(&c, messages) : FR_OK;
    if (status == FR_OK)
        status = continues ? render_continued(&c, messages, text) : render_messages(&c, messages, text);
    if (status == FR_OK && c.described.text) status = fr_chat_tools_trust_example(&c.described, text);
    if (status != FR_OK) fr_marked_text_free(text);
    json_decref(c.described.text);
    return status;
}

fr_status fr_chat_render(const fr_tokenizer *tokenizer, const char *messages_json, const char *options_json,
                         fr_marked_text *text) {
    if (!messages_json || !text) return fr_fail_null("fr_chat_render", "a text of messages and a place for the prompt");
    *text = (fr_marked_text){0};
    if (!tokenizer) return fr_fail_no_tokenizer("fr_chat_render");
    if (!options_json) options_json = "{}";
    json_t *messages = NULL, *options = NULL, *own = json_object();
    fr_status status = own ? FR_OK : fr_fail_memory("a template's variables", 0);
    if (status == FR_OK) status = fr_json_parse_texts(messages_json, strlen(messages_json), "messages", &messages);
    if (status == FR_OK) status = fr_json_parse_texts(options_json, strlen(options_json), "chat options", &options);
    if (status == FR_OK) status = render(tokenizer, messages, options, own, text);
    json_decref(messages);
    json_decref(options);
    json_decref(own);
    return status;
}

const char *fr_chat_template_text(const fr_tokenizer *tokenizer, size_t *length) {
    const fr_template *template = tokenizer ? tokenizer->chat->any.ready : NULL;
    size_t bytes = 0;
    const char *text = template ? fr_template_source(template, &bytes) : NULL;
    if (length) *length = bytes;
    return text;
}

/* Lines that report changes to the messages, in the order of the bits in chat_turns.h. */
static const char *const change_lines[] = {
    "the chat template has no place for a system message: its text stands before the first user's turn",
    ("the chat template takes no system message behind other turns: its text is joined to the user's turn beside it, "
     "or to the system message at the head"),
    "the chat template takes no two turns of one role in a row: they are joined",
    "the chat template takes one call in a message: calls made at once are shown one after the other",
    "the chat template has no place for tools: the system's turn describes them, and says how they are called",
    "the chat template shows no calls: past calls and results are JSON in the turns' texts",
    "the chat template takes no result without its call before it: such results are JSON in the user's turns",
};

const char *fr_chat_change(const fr_tokenizer *tokenizer) {
    if (!tokenizer) return NULL;
    fr_chat_templates *chat = tokenizer->chat;
    for (unsigned i = 0; i < sizeof change_lines / sizeof *change_lines; i++) {
        unsigned bit = 1u << i;
        if ((atomic_load(&chat->notes) & bit) != 0 && (atomic_fetch_or(&chat->told, bit) & bit) == 0)
            return change_lines[i];
    }
    return NULL;
}

const char *fr_chat_note(const fr_tokenizer *tokenizer, bool pictures) {
    if (!tokenizer) return NULL;
    const fr_chat_templates *chat = tokenizer->chat;
    return pictures && chat->picture_note ? chat->picture_note : chat->note;
}
