/* Small conversations, and what a template's answers to them mean: see chat_probe.h. */
#include "src/chat/chat_probe.h"

#include <string.h>

/* Words that no template has. */
#define FIRST  "fr_probe_first"
#define SECOND "fr_probe_second"
#define MEMBER "fr_probe_member" /* of a part: seen only where a part is printed as a whole */
#define KEY    "fr_probe_key"
#define VALUE  "fr_probe_value"

#define ARGUMENTS "{\"" KEY "\": \"" VALUE "\"}"
#define ID        "call00001" /* nine letters and digits: Mistral's templates ask for that */

static bool has(const fr_marked_text *text, const char *word) {
    return text->text && memmem(text->text, text->length, word, strlen(word));
}

static json_t *message(const char *role, json_t *content) {
    return json_pack("{s:s, s:o}", "role", role, "content", content);
}

static json_t *user(void) {
    return message("user", json_string("Hello"));
}

/* A call with its arguments in one of the two forms. */
static json_t *call(bool mapping, json_t *content) {
    json_t *arguments = mapping ? json_pack("{s:s}", KEY, VALUE) : json_string(ARGUMENTS);
    return json_pack("{s:s, s:o, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role", "assistant", "content", content, "tool_calls",
                     "id", ID, "type", "function", "function", "name", "now", "arguments", arguments);
}

static json_t *answer(json_t *content) {
    return json_pack("{s:s, s:s, s:s, s:o}", "role", "tool", "tool_call_id", ID, "name", "now", "content", content);
}

/* ----------------------------------------------------------------------------------------------------------- asking */

static bool render(const fr_chat_probe *probe, json_t *messages, fr_marked_text *text) {
    json_t *given = json_copy((json_t *)(uintptr_t)probe->given); /* jansson asks for one that isn't const */
    *text = (fr_marked_text){0};
    bool ready = json_object_set(given, "messages", messages) == 0;
    bool rendered = ready && fr_template_render(probe->template, probe->own, given, probe->now, text) == FR_OK;
    json_decref(given);
    return rendered;
}

/* What a template made of a conversation that is given away; false: it failed. Some insist on a system message. */
static bool ask(const fr_chat_probe *probe, json_t *messages, fr_marked_text *text) {
    bool rendered = render(probe, messages, text);
    const char *first = json_string_value(json_object_get(json_array_get(messages, 0), "role"));
    if (!rendered && first && strcmp(first, "user") == 0) {
        json_t *system = message("system", json_string("Hello"));
        rendered = json_array_insert_new(messages, 0, system) == 0 && render(probe, messages, text);
    }
    json_decref(messages);
    return rendered;
}

/* ---------------------------------------------------------------------------------------------------------- content */

static json_t *probe_content(bool parts) {
    if (!parts) return json_string(FIRST "\n" SECOND);
    return json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:i}]", "type", "text", "text", FIRST, MEMBER, 1, "type", "text",
                     "text", SECOND, MEMBER, 1);
}

static bool is_role(const char *role, const char *const *roles) {
    while (*roles && strcmp(role, *roles) != 0) roles++;
    return *roles != NULL;
}

/* A conversation in which somebody of that role has something to say. calls: in which form, where it needs calls. */
static json_t *conversation(const char *role, json_t *content, bool mapping) {
    static const char *const first[] = {"system", "developer", NULL}, *const results[] = {"tool", "ipython", NULL};
    if (is_role(role, first)) return json_pack("[o, o]", message(role, content), user());
    if (strcmp(role, "user") == 0) return json_pack("[o]", message(role, content));
    if (!is_role(role, results)) return json_pack("[o, o, o]", user(), message(role, content), user());
    json_t *result = answer(content);
    json_object_set_new(result, "role", json_string(role));
    return json_pack("[o, o, o]", user(), call(mapping, json_string("")), result);
}

/* Whether content comes through in a form, and only what is said in it. */
static bool comes_through(const fr_chat_probe *probe, const char *role, bool parts) {
    bool through = false;
    for (int mapping = 1; mapping >= 0 && !through; mapping--) {
        fr_marked_text text;
        through = ask(probe, conversation(role, probe_content(parts), mapping), &text) && has(&text, FIRST) &&
                  has(&text, SECOND) && !has(&text, MEMBER);
        fr_marked_text_free(&text);
    }
    return through;
}

bool fr_chat_probe_only_text(const fr_chat_probe *probe, const char *role) {
    return !comes_through(probe, role, true) && comes_through(probe, role, false);
}

static bool takes_call(const fr_chat_probe *probe, bool mapping, json_t *content) {
    fr_marked_text text;
    bool taken = ask(probe, json_pack("[o, o]", user(), call(mapping, content)), &text);
    fr_marked_text_free(&text);
    return taken;
}

bool fr_chat_probe_wants_text(const fr_chat_probe *probe) {
    bool mapping = takes_call(probe, true, json_string(""));
    return (mapping || takes_call(probe, false, json_string(""))) && !takes_call(probe, mapping, json_null());
}

/* -------------------------------------------------------------------------------------------------------- arguments */

/* What became of arguments. */
typedef enum outcome {
    LOST,   /* a failure, or they are not there */
    PYTHON, /* a mapping as Python prints it, which no model reads */
    JSON,   /* as they are, or written as JSON */
    OWN,    /* in a form of the model's own; of a text: quoted, or anything else */
} outcome;

static outcome outcome_of(const fr_marked_text *text, bool mapping) {
    if (!has(text, KEY) || !has(text, VALUE)) return LOST;
    if (!mapping) return has(text, ARGUMENTS) ? JSON : OWN;
    if (has(text, "'" KEY "'")) return PYTHON;
    bool json = has(text, "\"" KEY "\": \"" VALUE "\"") || has(text, "\"" KEY "\":\"" VALUE "\"");
    return json ? JSON : OWN;
}

/* Templates differ in what they ask of a conversation with a call: no content beside it, or an empty one; some know no
 * results. */
static outcome try_arguments(const fr_chat_probe *probe, bool mapping) {
    outcome found = LOST;
    for (int form = 0; form < 3 && found == LOST; form++) {
        fr_marked_text text;
        json_t *messages = json_pack("[o, o]", user(), call(mapping, form == 0 ? json_null() : json_string("")));
        if (form < 2) json_array_append_new(messages, answer(json_string("done")));
        if (ask(probe, messages, &text)) found = outcome_of(&text, mapping);
        fr_marked_text_free(&text);
    }
    return found;
}

fr_arguments_form fr_chat_probe_arguments(const fr_chat_probe *probe) {
    outcome mapping = try_arguments(probe, true), text = try_arguments(probe, false);
    bool takes_mapping = mapping == JSON || mapping == OWN;
    if (text == JSON && mapping != OWN) return takes_mapping ? FR_ARGUMENTS_AS_GIVEN : FR_ARGUMENTS_TEXT;
    return takes_mapping ? FR_ARGUMENTS_MAPPING : FR_ARGUMENTS_AS_GIVEN;
}
