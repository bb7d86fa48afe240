/* Renders small conversations with a template, and reads from its output which messages it accepts (chat_probe.h). */
#include "src/language/chat/chat_probe.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text_buffer.h"
#include "src/language/chat/chat_content.h"

/* No template contains these words. If the output contains one of them, the template has shown the message that has the
 * word. */
#define FIRST    "fr_probe_first"
#define SECOND   "fr_probe_second"
/* a further member of a part; it appears in the prompt only if the template prints the part as a whole */
#define MEMBER   "fr_probe_member"
#define KEY      "fr_probe_key"
#define VALUE    "fr_probe_value"
#define FUNCTION "fr_probe_function"
#define ROLE     "fr_probe_role"

#define ARGUMENTS "{\"" KEY "\": \"" VALUE "\"}"
#define ID        "call00001" /* an id of nine letters and digits, because Mistral's templates require such ids */

static bool has(const fr_marked_text *text, const char *word) {
    return text->text && memmem(text->text, text->length, word, strlen(word));
}

static json_t *message(const char *role, json_t *content) {
    return json_pack("{s:s, s:o}", "role", role, "content", content);
}

static json_t *said(const char *role, const char *text) {
    return message(role, json_string(text));
}

static json_t *user(void) {
    return said("user", "Hello");
}

/* Makes an assistant's message with a call whose only argument is this value. mapping: if true, the arguments are an
 * object; otherwise they are JSON text. */
static json_t *call_saying(const char *value, bool mapping, json_t *content) {
    json_t *arguments = mapping ? json_pack("{s:s}", KEY, value) : json_sprintf("{\"" KEY "\": \"%s\"}", value);
    return json_pack("{s:s, s:o, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role", "assistant", "content", content, "tool_calls",
                     "id", ID, "type", "function", "function", "name", FUNCTION, "arguments", arguments);
}

static json_t *call(bool mapping, json_t *content) {
    return call_saying(VALUE, mapping, content);
}

static json_t *result(const char *role, json_t *content) {
    return json_pack("{s:s, s:s, s:s, s:o}", "role", role, "tool_call_id", ID, "name", FUNCTION, "content", content);
}

/* ---------------------------------------------------------------------------------------- questions to the template */

/* Turns the texts of messages into lists of one part for templates that read only parts. */
static bool give_parts(fr_chat_probe *probe, json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *own = json_array_get(messages, i), *content = json_object_get(own, "content");
        const char *role = json_string_value(json_object_get(own, "role"));
        if (!json_is_string(content) || !fr_chat_probe_only_parts(probe, role)) continue;
        if (json_object_set_new(own, "content", fr_chat_parted_content(content)) != 0) return false;
    }
    return true;
}

static bool render(fr_chat_probe *probe, json_t *messages, fr_marked_text *text) {
    bool good = messages && (probe->as_given || give_parts(probe, messages));
    json_t *given = json_copy((json_t *)(uintptr_t)probe->given); /* jansson's functions accept no const object */
    *text = (fr_marked_text){0};
    bool ready = good && given && json_object_set(given, "messages", messages) == 0;
    fr_status status = ready ? fr_template_render(probe->template, probe->own, given, probe->now, text)
                             : fr_fail_memory("a conversation to ask a chat template with", 0);
    if (status == FR_MEMORY) probe->status = status;
    json_decref(given);
    return status == FR_OK;
}

/* Renders a conversation and frees it. Returns false if the template failed. */
static bool ask(fr_chat_probe *probe, json_t *messages, fr_marked_text *text) {
    bool rendered = render(probe, messages, text);
    json_decref(messages);
    return rendered;
}

/* Renders a conversation and frees it. If the template fails, tries again with a system message at the head, because
 * some templates require a system message. */
static bool ask_with_system(fr_chat_probe *probe, json_t *messages, fr_marked_text *text) {
    bool rendered = render(probe, messages, text);
    const char *first = json_string_value(json_object_get(json_array_get(messages, 0), "role"));
    if (!rendered && first && strcmp(first, "user") == 0)
        rendered = json_array_insert_new(messages, 0, said("system", "Hello")) == 0 && render(probe, messages, text);
    json_decref(messages);
    return rendered;
}

/* Returns what the template does with the words `first` and `second` of a conversation: it shows both, drops one of
 * them, or refuses the conversation. second may be NULL. Frees the conversation. */
static fr_taken take(fr_chat_probe *probe, json_t *messages, const char *first, const char *second) {
    fr_marked_text text;
    bool rendered = ask_with_system(probe, messages, &text);
    fr_taken taken = !rendered                                              ? FR_REFUSED
                     : has(&text, first) && (!second || has(&text, second)) ? FR_TAKEN
                                                                            : FR_DROPPED;
    fr_marked_text_free(&text);
    return taken;
}

/* Answers a question about a role, or, if the role is "", about the template. If an answer was kept, gives that answer.
 * Otherwise calls `find` and keeps the answer that it gives. */
typedef int find_fn(fr_chat_probe *probe, const char *role);
static int answer(fr_chat_probe *probe, const char *name, const char *role, find_fn *find) {
    char question[FR_QUESTION_MAX];
    int length = snprintf(question, sizeof question, "%s %s", name, role), known;
    bool keeps = length > 0 && length < FR_QUESTION_MAX;
    if (keeps && fr_chat_answers_find(&probe->answers, question, &known)) return known;
    int found = find(probe, role);
    if (keeps && probe->status == FR_OK) fr_chat_answers_add(&probe->answers, question, found);
    return found;
}

/* ------------------------------------------------------------------------------------------------------------ roles */

static bool is_role(const char *role, const char *const *roles) {
    while (*roles && strcmp(role, *roles) != 0) roles++;
    return *roles != NULL;
}

/* Appends the text with `role` in place of the test role, so that the prompts of two roles can be compared. Upper case
 * becomes lower case, because templates may print roles in upper case. */
static fr_status plain_text(const fr_marked_text *text, const char *role, fr_text_buffer *plain) {
    size_t word = strlen(ROLE);
    for (size_t at = 0; at < text->length;) {
        char small = (char)tolower((unsigned char)text->text[at]);
        bool stands = text->length - at >= word && strncasecmp(text->text + at, ROLE, word) == 0;
        fr_text_append(plain, stands ? role : &small, stands ? strlen(role) : 1);
        at += stands ? word : 1;
    }
    return fr_text_check(plain, "a chat template's answer");
}

/* Makes a conversation that contains a message of the role. place: the index of that message, 0 to 2. If it is 2, the
 * message is the result of a call. */
static json_t *conversation_with(const char *role, int place) {
    if (place == 0) return json_pack("[o, o]", said(role, "Hello"), user());
    if (place == 1) return json_pack("[o, o]", user(), said(role, "Hello"));
    return json_pack("[o, o, o]", user(), call(true, json_string("")), result(role, json_string("Hello")));
}

static int find_role(fr_chat_probe *probe, const char *role) {
    bool differs = false;
    for (int place = 0; place < 3 && !differs; place++) {
        fr_marked_text own, other;
        fr_text_buffer said_own = {0}, said_other = {0};
        bool rendered = ask(probe, conversation_with(role, place), &own);
        differs = rendered != ask(probe, conversation_with(ROLE, place), &other);
        if (plain_text(&own, role, &said_own) != FR_OK || plain_text(&other, role, &said_other) != FR_OK)
            probe->status = FR_MEMORY;
        else if (rendered && !differs)
            differs = said_own.length != said_other.length ||
                      (said_own.length && memcmp(said_own.bytes, said_other.bytes, said_own.length) != 0);
        fr_text_free(&said_own);
        fr_text_free(&said_other);
        fr_marked_text_free(&own);
        fr_marked_text_free(&other);
    }
    return differs;
}

bool fr_chat_probe_knows_role(fr_chat_probe *probe, const char *role) {
    return answer(probe, "role", role, find_role);
}

/* ---------------------------------------------------------------------------------------------------------- content */

static json_t *probe_content(bool parts) {
    if (!parts) return json_string(FIRST "\n" SECOND);
    return json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:i}]", "type", "text", "text", FIRST, MEMBER, 1, "type", "text",
                     "text", SECOND, MEMBER, 1);
}

/* Makes a conversation that contains a message of this role with this content. mapping: if the conversation must
 * contain a call, the call's arguments are an object (true) or JSON text (false). */
static json_t *conversation(const char *role, json_t *content, bool mapping) {
    static const char *const first[] = {"system", "developer", NULL}, *const results[] = {"tool", "ipython", NULL};
    if (is_role(role, first)) return json_pack("[o, o]", message(role, content), user());
    if (strcmp(role, "user") == 0) return json_pack("[o]", message(role, content));
    if (!is_role(role, results)) return json_pack("[o, o, o]", user(), message(role, content), user());
    return json_pack("[o, o, o]", user(), call(mapping, json_string("")), result(role, content));
}

/* Returns true if the prompt shows the text of a content, but no other members of its parts. parts: the content is a
 * list of parts. The other messages of the conversation have texts; if the template fails on these, they get lists of
 * parts. */
static bool comes_through(fr_chat_probe *probe, const char *role, bool parts) {
    bool through = false, before = probe->as_given;
    probe->as_given = true;
    for (int form = 3; form >= 0 && !through; form--) {
        json_t *messages = conversation(role, probe_content(parts), form & 1), *beside;
        size_t i;
        json_array_foreach (messages, i, beside) {
            json_t *content = json_object_get(beside, "content");
            bool own = json_is_array(content) || strstr(json_string_value(content), FIRST);
            if (!(form & 2) && !own && json_object_set_new(beside, "content", fr_chat_parted_content(content)) != 0)
                probe->status = FR_MEMORY;
        }
        fr_marked_text text;
        through =
            ask_with_system(probe, messages, &text) && has(&text, FIRST) && has(&text, SECOND) && !has(&text, MEMBER);
        fr_marked_text_free(&text);
    }
    probe->as_given = before;
    return through;
}

static int find_takes_text(fr_chat_probe *probe, const char *role) {
    return comes_through(probe, role, false);
}

static int find_takes_parts(fr_chat_probe *probe, const char *role) {
    return comes_through(probe, role, true);
}

bool fr_chat_probe_only_text(fr_chat_probe *probe, const char *role) {
    return !answer(probe, "parts", role, find_takes_parts) && answer(probe, "text", role, find_takes_text);
}

bool fr_chat_probe_only_parts(fr_chat_probe *probe, const char *role) {
    return !answer(probe, "text", role, find_takes_text) && answer(probe, "parts", role, find_takes_parts);
}

/* -------------------------------------------------------------------------------------------------------- arguments */

/* Says in which form the arguments of a call appear in the prompt. */
typedef enum outcome {
    LOST,   /* the arguments do not appear, or the template failed */
    PYTHON, /* as Python prints a dict; no model is trained to read that */
    JSON,   /* as JSON: a text unchanged, or an object that was written as JSON */
    OWN,    /* in the model's own form, if an object was given; or changed, for example quoted, if a text was given */
} outcome;

static outcome outcome_of(const fr_marked_text *text, bool mapping) {
    if (!has(text, KEY) || !has(text, VALUE)) return LOST;
    if (!mapping) return has(text, ARGUMENTS) ? JSON : OWN;
    if (has(text, "'" KEY "'")) return PYTHON;
    bool json = has(text, "\"" KEY "\": \"" VALUE "\"") || has(text, "\"" KEY "\":\"" VALUE "\"");
    return json ? JSON : OWN;
}

/* Finds the outcome if arguments are given as an object (mapping) or as text. It tries several conversations, because
 * templates differ: some accept no content together with a call, some accept an empty content, and some do not know
 * results of calls. */
static outcome try_arguments(fr_chat_probe *probe, bool mapping) {
    outcome found = LOST;
    for (int form = 0; form < 3 && found == LOST; form++) {
        fr_marked_text text;
        json_t *messages = json_pack("[o, o]", user(), call(mapping, form == 0 ? json_null() : json_string("")));
        if (form < 2) json_array_append_new(messages, result("tool", json_string("done")));
        if (ask_with_system(probe, messages, &text)) found = outcome_of(&text, mapping);
        fr_marked_text_free(&text);
    }
    return found;
}

static int find_arguments(fr_chat_probe *probe, const char *role) {
    (void)role;
    outcome mapping = try_arguments(probe, true), text = try_arguments(probe, false);
    bool takes_mapping = mapping == JSON || mapping == OWN;
    if (text == JSON && mapping != OWN) return takes_mapping ? FR_SENT_AS_GIVEN : FR_SENT_TEXT;
    return takes_mapping ? FR_SENT_MAPPING : FR_SENT_AS_GIVEN;
}

fr_sent_arguments fr_chat_probe_arguments(fr_chat_probe *probe) {
    return (fr_sent_arguments)answer(probe, "arguments", "", find_arguments);
}

/* Returns true if the prompt shows a call, by its name or its arguments. empty: the message's content is an empty text;
 * otherwise it is null. */
static bool shows_call(fr_chat_probe *probe, bool empty) {
    bool shown = false;
    for (int mapping = 1; mapping >= 0 && !shown; mapping--) {
        fr_marked_text text;
        json_t *content = empty ? json_string("") : json_null();
        shown = ask_with_system(probe, json_pack("[o, o]", user(), call(mapping, content)), &text) &&
                (has(&text, FUNCTION) || has(&text, VALUE));
        fr_marked_text_free(&text);
    }
    return shown;
}

static int find_text_beside_calls(fr_chat_probe *probe, const char *role) {
    (void)role;
    return shows_call(probe, true) || !shows_call(probe, false);
}

bool fr_chat_probe_text_beside_calls(fr_chat_probe *probe) {
    return answer(probe, "text beside calls", "", find_text_beside_calls);
}

static int find_shows_calls(fr_chat_probe *probe, const char *role) {
    (void)role;
    return shows_call(probe, true) || shows_call(probe, false);
}

bool fr_chat_probe_shows_calls(fr_chat_probe *probe) {
    return answer(probe, "shows calls", "", find_shows_calls);
}

/* ------------------------------------------------------------------------------------------------------------ tools */

json_t *fr_chat_probe_tools(void) {
    return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{}}}}]", "type", "function", "function", "name", FUNCTION,
                     "description", "Tells the time.", "parameters", "type", "object", "properties");
}

/* Renders a conversation with tools. If the template fails with tools, but not without them, it does not support
 * tools. */
static int find_takes_tools(fr_chat_probe *probe, const char *role) {
    fr_taken taken = take(probe, json_pack("[o]", said(role, "Hello")), FUNCTION, NULL);
    if (taken != FR_REFUSED) return taken;
    json_t *none = json_copy((json_t *)(uintptr_t)probe->given);
    fr_chat_probe without = *probe;
    without.given = none;
    fr_marked_text text = {0};
    bool failed = !none || json_object_set_new(none, "tools", json_null()) != 0;
    bool rendered = !failed && ask_with_system(&without, json_pack("[o]", said(role, "Hello")), &text);
    if (failed || without.status != FR_OK) probe->status = FR_MEMORY;
    fr_marked_text_free(&text);
    json_decref(none);
    return rendered ? FR_REFUSED : FR_TAKEN;
}

fr_taken fr_chat_probe_takes_tools(fr_chat_probe *probe) {
    return (fr_taken)answer(probe, "tools", "user", find_takes_tools);
}

/* ------------------------------------------------------------------------------------------------------------ turns */

/* Finds out if the template accepts a system message at the head. If the template does not show a user's text either,
 * the answer is FR_TAKEN: if the system message were moved to the user's turn, it would be lost, too. */
static int find_system(fr_chat_probe *probe, const char *role) {
    fr_taken taken = take(probe, json_pack("[o, o]", said(role, FIRST), user()), FIRST, NULL);
    if (taken == FR_TAKEN) return taken;
    fr_marked_text text;
    bool moves = ask(probe, json_pack("[o]", said("user", FIRST)), &text) && has(&text, FIRST);
    fr_marked_text_free(&text);
    return moves ? taken : FR_TAKEN;
}

static int find_second_system(fr_chat_probe *probe, const char *role) {
    return take(probe, json_pack("[o, o, o]", said(role, FIRST), said(role, SECOND), user()), FIRST, SECOND);
}

/* Tests a system message in two places, after the last user's turn and between two turns. Gives the worse of the two
 * outcomes. */
static int find_late_system(fr_chat_probe *probe, const char *role) {
    fr_taken last = take(probe, json_pack("[o, o, o]", said(role, "Hello"), user(), said(role, FIRST)), FIRST, NULL);
    fr_taken between = take(probe,
                            json_pack("[o, o, o, o, o]", said(role, "Hello"), user(), said("assistant", "Hello"),
                                      said(role, FIRST), user()),
                            FIRST, NULL);
    return last > between ? last : between;
}

fr_taken fr_chat_probe_system(fr_chat_probe *probe) {
    return (fr_taken)answer(probe, "system", "system", find_system);
}

fr_taken fr_chat_probe_second_system(fr_chat_probe *probe) {
    return (fr_taken)answer(probe, "second", "system", find_second_system);
}

fr_taken fr_chat_probe_late_system(fr_chat_probe *probe) {
    return (fr_taken)answer(probe, "late", "system", find_late_system);
}

static int find_alternates(fr_chat_probe *probe, const char *role) {
    bool users = strcmp(role, "user") == 0;
    const char *other = users ? "assistant" : "user";
    json_t *row = json_pack("[o, o]", said(role, FIRST), said(role, SECOND));
    json_t *turns = json_pack("[o, o, o]", said(role, FIRST), said(other, "Hello"), said(role, SECOND));
    for (int i = 0; i < 2 && !users; i++) {
        json_array_insert_new(i ? turns : row, 0, user());
        json_array_append_new(i ? turns : row, user());
    }
    bool refuses = take(probe, row, FIRST, SECOND) != FR_TAKEN;
    return take(probe, turns, FIRST, SECOND) == FR_TAKEN && refuses;
}

bool fr_chat_probe_alternates(fr_chat_probe *probe, const char *role) {
    return answer(probe, "alternates", role, find_alternates);
}

/* Returns true if the prompt shows two calls. together: both are in one message; otherwise each is in a message of its
 * own. empty: the contents of these messages are empty texts; otherwise they are null. */
static bool takes_calls(fr_chat_probe *probe, bool mapping, bool together, bool empty) {
    json_t *silent = empty ? json_string("") : json_null();
    json_t *first = call_saying(FIRST, mapping, json_incref(silent)), *second = call_saying(SECOND, mapping, silent);
    json_t *messages = json_pack("[o, o, o]", user(), json_incref(first), result("tool", json_string("done")));
    if (together)
        json_array_extend(json_object_get(first, "tool_calls"), json_object_get(second, "tool_calls"));
    else
        json_array_append(messages, second);
    json_array_append_new(messages, result("tool", json_string("done")));
    json_decref(first);
    json_decref(second);
    return take(probe, messages, FIRST, SECOND) == FR_TAKEN;
}

static int find_one_call(fr_chat_probe *probe, const char *role) {
    (void)role;
    bool together = false, apart = false;
    for (int form = 0; form < 4; form++) {
        together |= takes_calls(probe, form & 1, true, form & 2);
        apart |= takes_calls(probe, form & 1, false, form & 2);
    }
    return apart && !together;
}

bool fr_chat_probe_one_call(fr_chat_probe *probe) {
    return answer(probe, "one call", "", find_one_call);
}

static int find_refuses_orphans(fr_chat_probe *probe, const char *role) {
    json_t *first = json_pack("[o, o]", user(), result(role, json_string(FIRST)));
    json_t *later =
        json_pack("[o, o, o, o]", user(), said("assistant", "Hello"), result(role, json_string(FIRST)), user());
    bool refuses = take(probe, first, FIRST, NULL) != FR_TAKEN;
    return take(probe, later, FIRST, NULL) != FR_TAKEN || refuses;
}

bool fr_chat_probe_refuses_orphans(fr_chat_probe *probe) {
    return answer(probe, "orphans", "tool", find_refuses_orphans);
}

/* Returns true if the prompt contains a call with this id and the call's result. */
static bool takes_id(fr_chat_probe *probe, const char *id) {
    bool taken = false;
    for (int form = 0; form < 4 && !taken; form++) {
        json_t *asked = call_saying(FIRST, form & 1, form & 2 ? json_string("") : json_null());
        json_t *answered = result("tool", json_string("done"));
        json_t *first = json_array_get(json_object_get(asked, "tool_calls"), 0);
        bool set = json_object_set_new(first, "id", json_string(id)) == 0 &&
                   json_object_set_new(answered, "tool_call_id", json_string(id)) == 0;
        if (!set) probe->status = FR_MEMORY;
        taken = take(probe, json_pack("[o, o, o]", user(), asked, answered), FIRST, NULL) == FR_TAKEN;
    }
    return taken;
}

static int find_short_ids(fr_chat_probe *probe, const char *role) {
    (void)role;
    return !takes_id(probe, "call_fr_probe_0123456789") && takes_id(probe, ID);
}

bool fr_chat_probe_short_ids(fr_chat_probe *probe) {
    return answer(probe, "short ids", "", find_short_ids);
}
