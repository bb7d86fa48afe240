/* Brings messages into the form that a template accepts (chat_messages.h). */
#include "src/language/chat/chat_messages.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "formats/json.h"
#include "formats/json_wide.h"
#include "src/language/chat/chat_content.h"
#include "src/language/chat/chat_tools.h"
#include "src/language/chat/chat_turns.h"

/* Sets a member of an object to a new value, which then belongs to the object. A NULL value means that memory ran
 * out. */
static fr_status put(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0 ? FR_OK : fr_fail_memory("a message", 1);
}

static bool has_calls(const json_t *message) {
    return json_array_size(json_object_get(message, "tool_calls")) > 0;
}

/* ---------------------------------------------------------------------------------------------------------- members */

/* Converts OpenAI's older form of a call into the newer form. adapt_function_result converts the call's result, which
 * names the function instead of the call's id. */
static fr_status adapt_function_call(json_t *message, size_t index) {
    json_t *call = json_object_get(message, "function_call");
    if (!call || !fr_chat_is_role(message, "assistant") || json_object_get(message, "tool_calls")) return FR_OK;
    json_t *calls = json_pack("[{s:o, s:s, s:O}]", "id", json_sprintf("call%05zu", index % 100000), "type", "function",
                              "function", call);
    FR_TRY(put(message, "tool_calls", calls));
    json_object_del(message, "function_call");
    return FR_OK;
}

static fr_status adapt_function_result(json_t *message, const json_t *before) {
    const json_t *call = json_array_get(json_object_get(before, "tool_calls"), 0);
    json_t *id = json_object_get(call, "id");
    if (!fr_chat_is_role(message, "function")) return FR_OK;
    if (id && !json_object_get(message, "tool_call_id")) FR_TRY(put(message, "tool_call_id", json_incref(id)));
    return put(message, "role", json_string("tool"));
}

/* Removes members that are null, and lists of calls that are empty, because some templates would print them or treat
 * them as present. A null content becomes an empty text. */
static fr_status adapt_members(json_t *message) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(message, next, key, value) {
        bool calls = strcmp(key, "tool_calls") == 0 && json_is_array(value) && json_array_size(value) == 0;
        if ((json_is_null(value) || calls) && strcmp(key, "content") != 0) json_object_del(message, key);
    }
    bool speaks = json_is_null(json_object_get(message, "content")) ||
                  (fr_chat_is_role(message, "assistant") && !json_object_get(message, "content"));
    return speaks && !has_calls(message) && !json_object_get(message, "function_call")
               ? put(message, "content", json_string(""))
               : FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ roles */

/* Gives the usual name of a role, for templates that do not know the role under its own name. NULL: the role has no
 * usual name. */
static const char *usual_role(const char *role) {
    static const char *const names[][2] = {{"developer", "system"}, {"function", "tool"}, {"ipython", "tool"}};
    static const char *const usual[] = {"system", "user", "assistant", "tool"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(role, names[i][0]) == 0) return names[i][1];
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(role, usual[i]) == 0) return usual[i];
    return NULL;
}

static fr_status adapt_role(json_t *message, size_t index, const json_t *before, bool strict, fr_chat_probe *probe) {
    const char *role = json_string_value(json_object_get(message, "role")), *usual = usual_role(role);
    if ((usual && strcmp(usual, role) == 0) || (!usual && !strict) || fr_chat_probe_knows_role(probe, role))
        return FR_OK;
    if (!usual)
        return fr_fail(FR_INPUT,
                       "messages[%zu] has the role \"%.40s\", which the chat template doesn't know: give it "
                       "system, developer, user, assistant, tool or function",
                       index, role);
    if (strcmp(role, "function") == 0) return adapt_function_result(message, before);
    return put(message, "role", json_string(usual));
}

/* -------------------------------------------------------------------------------------------------------- reasoning */

static bool says_something(const json_t *text) {
    return text && !json_is_null(text) && !(json_is_string(text) && json_string_length(text) == 0);
}

/* Copies the reasoning to "thinking", the name that gpt-oss's template reads. That template fails if a message with
 * calls has both a thought and a text. So such a message gets no copy, and the template then prints the message's text
 * as the reasoning. */
static fr_status adapt_thinking(json_t *message) {
    json_t *reasoning = json_object_get(message, "reasoning_content");
    bool both = has_calls(message) && says_something(json_object_get(message, "content"));
    if (both || !fr_json_is_text(reasoning) || !says_something(reasoning) || json_object_get(message, "thinking"))
        return FR_OK;
    return put(message, "thinking", json_incref(reasoning));
}

/* Gives the reasoning under both usual names, "reasoning" and "reasoning_content". If a client sent both and they
 * differ, the text of reasoning_content is used, or, if it is empty, that of reasoning. */
static fr_status adapt_reasoning(json_t *message) {
    json_t *content = json_object_get(message, "reasoning_content"), *other = json_object_get(message, "reasoning");
    bool given = says_something(content);
    if (!fr_chat_is_role(message, "assistant")) return FR_OK;
    if (fr_json_is_text(other))
        FR_TRY(put(message, given ? "reasoning" : "reasoning_content", json_incref(given ? content : other)));
    return adapt_thinking(message);
}

/* ----------------------------------------------------------------------------------------------- parts of a content */

static fr_status adapt_content(json_t *message, fr_chat_probe *probe) {
    json_t *content = json_object_get(message, "content");
    const char *role = json_string_value(json_object_get(message, "role"));
    return fr_chat_is_texts(content) && fr_chat_probe_only_text(probe, role)
               ? put(message, "content", fr_chat_plain_content(content))
               : FR_OK;
}

/* Turns contents into lists of typed parts, for templates that read only such lists. A text becomes a list of one part,
 * and the texts in a list become parts. This must happen after the turns have been arranged, because joining two turns
 * makes a text of their contents. */
static fr_status part_texts(json_t *messages, fr_chat_probe *probe) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
        const char *role = json_string_value(json_object_get(message, "role"));
        bool text = fr_json_is_text(content);
        if (!(text || json_is_array(content)) || !fr_chat_probe_only_parts(probe, role)) continue;
        json_t *parts = text ? json_pack("[O]", content) : json_copy(content), *part;
        size_t at;
        json_array_foreach (parts, at, part) {
            const json_t *own = fr_chat_text_of(part);
            json_t *named = own ? json_pack("{s:s, s:O}", "type", "text", "text", own) : json_incref(part);
            if (json_array_set_new(parts, at, named) == 0) continue;
            json_decref(parts);
            return fr_fail_memory("a message", 1);
        }
        FR_TRY(put(message, "content", parts));
    }
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- arguments */

/* Returns true for arguments that mean "none". Models and clients write these in several ways for a function without
 * parameters. */
static bool is_nothing(const json_t *arguments) {
    if (!arguments || json_is_null(arguments)) return true;
    if (!fr_json_is_text(arguments)) return false;
    const char *bytes = json_string_value(arguments);
    size_t length = json_string_length(arguments), begin = strspn(bytes, " \t\r\n");
    bool null = length - begin >= 4 && memcmp(bytes + begin, "null", 4) == 0;
    if (null) begin += 4 + strspn(bytes + begin + 4, " \t\r\n");
    return begin == length;
}

/* Replaces arguments that are the text of a JSON object by that object. Any other text is unchanged. */
static fr_status unpack(json_t *function, const json_t *text) {
    json_t *object = NULL;
    fr_status status = fr_json_parse_texts(json_string_value(text), json_string_length(text), "arguments", &object);
    if (status == FR_OK && json_is_object(object)) return put(function, "arguments", object);
    json_decref(object);
    return status == FR_MEMORY ? status : FR_OK;
}

/* Replaces arguments that are an object by their JSON text, as templates write JSON. */
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

static fr_status adapt_calls(json_t *message, fr_chat_probe *probe) {
    const json_t *calls = json_object_get(message, "tool_calls"), *content = json_object_get(message, "content");
    if (json_array_size(calls) == 0) return FR_OK;
    bool shown = fr_chat_probe_shows_calls(probe);
    fr_sent_arguments form = shown ? fr_chat_probe_arguments(probe) : FR_SENT_MAPPING;
    for (size_t i = 0; i < json_array_size(calls); i++) {
        json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        if (!function) function = call;
        if (json_is_object(function) && is_nothing(json_object_get(function, "arguments")))
            FR_TRY(put(function, "arguments", json_object()));
        json_t *arguments = json_object_get(function, "arguments");
        if (form == FR_SENT_MAPPING && fr_json_is_text(arguments)) FR_TRY(unpack(function, arguments));
        if (form == FR_SENT_TEXT && json_is_object(arguments)) FR_TRY(pack(function, arguments, probe));
    }
    bool silent = !content || json_is_null(content);
    return silent && fr_chat_probe_text_beside_calls(probe) ? put(message, "content", json_string("")) : FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- lone ids */

enum { CALLS_MAX = 64 }; /* limit on the calls of one message; if there are more, they are not paired with results */

static bool has_id(const json_t *object, const char *key) {
    const json_t *id = json_object_get(object, key);
    return json_is_string(id) && json_string_length(id);
}

/* Finds the call to which a result belongs, among the calls that have no result yet. If the result has an id, it
 * belongs to the call with that id; if there is no such call, to the first call without an id. If the result has no id,
 * it belongs to the first call of the function that it names; if there is no such call, to the first call. Gives the
 * number of calls if no call fits. */
static size_t call_of_result(const json_t *calls, const bool *answered, const json_t *result) {
    size_t count = json_array_size(calls), first = count;
    const json_t *id = has_id(result, "tool_call_id") ? json_object_get(result, "tool_call_id") : NULL;
    const json_t *name = json_object_get(result, "name");
    for (size_t i = 0; id && i < count; i++)
        if (json_equal(json_object_get(json_array_get(calls, i), "id"), id)) return i;
    for (size_t i = count; i-- > 0;) {
        const json_t *call = json_array_get(calls, i);
        if (!answered[i] && (!id || !has_id(call, "id"))) first = i;
    }
    for (size_t i = 0; !id && name && i < count; i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        if (!answered[i] && json_equal(json_object_get(function, "name"), name)) return i;
    }
    return first;
}

static fr_status give_id(json_t *call, size_t message, size_t index) {
    return has_id(call, "id") || !json_is_object(call)
               ? FR_OK
               : put(call, "id", json_sprintf("m%04zuc%03zu", message % 10000, index));
}

/* Completes the ids of the calls in messages[at] and of the results after this message, so that each result has the id
 * of its call. */
static fr_status pair_results(json_t *messages, size_t at) {
    const json_t *calls = json_object_get(json_array_get(messages, at), "tool_calls");
    bool answered[CALLS_MAX] = {0};
    size_t count = json_array_size(calls);
    if (count > CALLS_MAX) return FR_OK;
    for (size_t i = at + 1; count && i < json_array_size(messages); i++) {
        json_t *result = json_array_get(messages, i), *id = json_object_get(result, "tool_call_id");
        if (!fr_chat_is_role(result, "tool")) break;
        size_t answers = call_of_result(calls, answered, result);
        if (answers == count) continue;
        json_t *call = json_array_get(calls, answers);
        answered[answers] = true;
        if (!json_is_object(call)) continue;
        if (!has_id(call, "id") && has_id(result, "tool_call_id")) FR_TRY(put(call, "id", json_incref(id)));
        FR_TRY(give_id(call, at, answers));
        FR_TRY(put(result, "tool_call_id", json_incref(json_object_get(call, "id"))));
    }
    for (size_t i = 0; i < count; i++) FR_TRY(give_id(json_array_get(calls, i), at, i));
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------------- ids */

static bool is_short_id(const char *id, size_t length) {
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return length == 9 && strspn(id, letters) == 9;
}

static bool is_odd(const json_t *id) {
    return !fr_json_is_text(id) || !is_short_id(json_string_value(id), json_string_length(id));
}

/* Replaces an id by nine letters and digits. Equal ids get equal replacements, so a result still has the id of its
 * call. */
static fr_status shorten_id(json_t *object, const char *key) {
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const json_t *id = json_object_get(object, key);
    char made[10] = {0};
    if (!fr_json_is_text(id) || !is_odd(id)) return FR_OK;
    uint64_t hash = fr_hash(0, json_string_value(id), json_string_length(id));
    for (size_t i = 0; i < 9; i++, hash /= 62) made[i] = letters[hash % 62];
    return put(object, key, json_string(made));
}

static fr_status shorten_ids(json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i), *calls = json_object_get(message, "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++) FR_TRY(shorten_id(json_array_get(calls, k), "id"));
        FR_TRY(shorten_id(message, "tool_call_id"));
    }
    return FR_OK;
}

/* Returns true if some call or result has no id, or has an id that is not nine letters and digits. */
static bool have_odd_ids(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i), *calls = json_object_get(message, "tool_calls");
        bool odd = fr_chat_is_role(message, "tool") && is_odd(json_object_get(message, "tool_call_id"));
        for (size_t k = 0; k < json_array_size(calls); k++)
            odd |= is_odd(json_object_get(json_array_get(calls, k), "id"));
        if (odd) return true;
    }
    return false;
}

/* ----------------------------------------------------------------------------------------------------- all messages */

static bool have_calls(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (has_calls(json_array_get(messages, i))) return true;
    return false;
}

fr_status fr_chat_messages_adapt(json_t *messages, const fr_chat_rules *rules, fr_chat_probe *probe, unsigned *notes) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        FR_TRY(adapt_members(message));
        FR_TRY(adapt_function_call(message, i));
        FR_TRY(adapt_role(message, i, i ? json_array_get(messages, i - 1) : NULL, rules->strict_roles, probe));
        FR_TRY(adapt_reasoning(message));
        FR_TRY(adapt_content(message, probe));
        FR_TRY(adapt_calls(message, probe));
    }
    if (rules->rearrange && have_odd_ids(messages) && fr_chat_probe_short_ids(probe)) {
        for (size_t i = 0; i < json_array_size(messages); i++) FR_TRY(pair_results(messages, i));
        FR_TRY(shorten_ids(messages));
    }
    if (rules->rearrange && have_calls(messages) && !fr_chat_probe_shows_calls(probe)) {
        *notes |= FR_NOTE_NO_CALLS;
        FR_TRY(fr_chat_calls_as_texts(messages));
    }
    if (rules->rearrange && fr_chat_has_orphans(messages) && fr_chat_probe_refuses_orphans(probe)) {
        *notes |= FR_NOTE_ORPHANS;
        FR_TRY(fr_chat_orphans_as_texts(messages));
    }
    if (rules->rearrange) FR_TRY(fr_chat_turns_arrange(messages, rules->late_systems, probe, notes));
    FR_TRY(part_texts(messages, probe));
    return probe->status == FR_OK ? FR_OK : fr_fail_memory("a chat template's answers", 0);
}
