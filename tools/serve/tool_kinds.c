/* Turns tools that are not functions into functions (tool_kinds.h). */
#include "tools/serve/tool_kinds.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/notes.h"

#define INPUT "input" /* name of the only parameter of a custom tool's function */

json_t *fr_tool_name(const json_t *namespace, const json_t *name) {
    size_t length = json_string_length(namespace);
    if (!length) return fr_turns_share(name);
    bool parted = json_string_value(namespace)[length - 1] == '_';
    json_t *joined = json_sprintf("%s%s%s", json_string_value(namespace), parted ? "" : "__", json_string_value(name));
    /* `joined` is NULL if the name is not UTF-8. Such a name is refused later */
    return joined ? joined : fr_turns_share(name);
}

/* ----------------------------------------------------------------------------------------------------- custom tools */

/* Gives a custom tool's description. If the tool has a grammar for its input, the grammar is added, so that the model
 * can follow it. */
static json_t *describe_custom(const json_t *tool) {
    const json_t *format = fr_turns_get(tool, "format"), *own = fr_turns_get(tool, "description"),
                 *inner = fr_turns_get(format, "grammar");
    const json_t *grammar = inner ? inner : format; /* in a chat the grammar is in an inner object */
    const char *syntax = fr_job_plain_text(fr_turns_get(grammar, "syntax")),
               *rules = fr_job_plain_text(fr_turns_get(grammar, "definition"));
    const char *text = fr_job_plain_text(own);
    if (!rules) return own ? fr_turns_share(own) : NULL;
    return json_sprintf("%s%sThe input has to match this grammar%s%s:\n%s", text ? text : "", text ? "\n\n" : "",
                        syntax ? ", written as in " : "", syntax ? syntax : "", rules);
}

static void offer_custom(fr_turns *t, const json_t *name, const json_t *tool) {
    json_t *description = describe_custom(tool);
    json_t *parameters = json_pack("{s:s, s:{s:{s:s}}, s:[s]}", "type", "object", "properties", INPUT, "type", "string",
                                   "required", INPUT);
    fr_turns_tool(t, name, description, parameters, NULL);
    json_decref(description);
    json_decref(parameters);
}

json_t *fr_tool_arguments(const json_t *input) {
    return json_pack("{s:O}", INPUT, input);
}

/* Gets the input of a custom tool out of a call's arguments. If no grammar restricts the model's calls, the model may
 * write the text under another name, or without JSON. */
json_t *fr_tool_input(const char *arguments, size_t length) {
    json_t *object = fr_json_load_cut(arguments, length);
    const json_t *input = json_object_get(object, INPUT);
    if (!input && json_object_size(object) == 1) input = json_object_iter_value(json_object_iter(object));
    json_t *text = fr_is_json_text(input) ? fr_turns_share(input) : fr_json_bytes(arguments, length);
    json_decref(object);
    return text;
}

/* -------------------------------------------------------------------------------------------------------- all kinds */

/* Offers the function of a tool, and records the tool under the function's name. If an earlier tool has the same
 * function's name, nothing is done. */
static void offer(fr_turns *t, json_t *called, const json_t *tool, const char *type, const json_t *namespace) {
    json_t *kind = json_string(type);
    const json_t *named = fr_turns_get(tool, "name"), *name = named ? named : kind;
    json_t *own = fr_tool_name(namespace, name);
    if (!json_object_get(called, json_string_value(own))) {
        json_t *entry = json_pack("{s:O, s:O}", "type", kind, "name", name);
        if (namespace) fr_json_put(entry, "namespace", fr_turns_share(namespace));
        fr_json_put(called, json_string_value(own), entry);
        if (strcmp(type, "custom") == 0)
            offer_custom(t, own, tool);
        else
            fr_turns_tool(t, own, fr_turns_get(tool, "description"), fr_turns_get(tool, "parameters"),
                          fr_turns_get(tool, "strict"));
    }
    json_decref(own);
    json_decref(kind);
}

static void note_kind(const json_t *tool) {
    fr_notes_say("tools of type \"%.60s\" are passed over: they are run by another service", fr_turns_type(tool));
}

/* Offers a tool, which may belong to a namespace. A tool of the type "tool_search" searches for other tools. It needs
 * no name, and is offered only if the client runs the search. */
static bool offer_one(fr_turns *t, json_t *called, const char *what, const json_t *tool, const json_t *namespace) {
    const char *type = fr_turns_type(tool);
    bool named = strcmp(type, "custom") == 0 || strcmp(type, "function") == 0;
    bool looked = strcmp(type, "tool_search") == 0 && fr_job_is_word(fr_turns_get(tool, "execution"), "client") &&
                  json_is_object(fr_turns_get(tool, "parameters"));
    if (!json_is_object(tool) || !*type) return fr_turns_refuse(t, "%s must be an object with a \"type\"", what);
    if (named && !fr_job_plain_text(fr_turns_get(tool, "name"))) return fr_turns_refuse(t, "%s has no name", what);
    if (named || looked)
        offer(t, called, tool, type, namespace);
    else
        note_kind(tool);
    return true;
}

bool fr_tool_offer(fr_turns *t, json_t *called, const char *what, const json_t *tool) {
    const json_t *name = fr_turns_get(tool, "name"), *tools = fr_turns_get(tool, "tools");
    if (strcmp(fr_turns_type(tool), "namespace") != 0) return offer_one(t, called, what, tool, NULL);
    if (!fr_job_plain_text(name) || !json_is_array(tools))
        return fr_turns_refuse(t, "%s, a namespace, has no name or no tools", what);
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!offer_one(t, called, what, json_array_get(tools, i), name)) return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- choices */

static bool is_one_of(const char *word, const char *const *words) {
    while (*words && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

json_t *fr_tool_choice(const json_t *choice) {
    static const char *const known[] = {"", "function", "custom", "allowed_tools", NULL};
    static const char *const offered[] = {"function", "custom", "tool_search", "namespace", NULL};
    const json_t *inner = fr_turns_get(choice, "allowed_tools"), *tools = fr_turns_get(inner ? inner : choice, "tools");
    const char *type = fr_turns_type(choice);
    bool allowed = strcmp(type, "allowed_tools") == 0 && json_array_size(tools) > 0, some = !allowed;
    for (size_t i = 0; allowed && i < json_array_size(tools); i++) {
        const char *kind = fr_turns_type(json_array_get(tools, i));
        some |= !*kind || is_one_of(kind, offered);
    }
    if (json_is_object(choice) && !is_one_of(type, known)) {
        fr_notes_say("tool_choice of type \"%.60s\" is passed over: such tools are run by another service", type);
        return json_string("auto");
    }
    if (some) return fr_turns_share(choice);
    fr_notes_say("tool_choice: none of the allowed tools is run by the client, so the model gets none");
    return json_string("none");
}

/* ------------------------------------------------------------------------------------------------------------ chats */

static bool is_custom(const json_t *value) {
    return strcmp(fr_turns_type(value), "custom") == 0 && json_is_object(fr_turns_get(value, "custom"));
}

/* Turns a chat's custom tools into functions. Functions, and tools without a type, are not changed. */
static bool take_tools(fr_turns *t, json_t *called, const json_t *tools) {
    char what[32];
    bool taken = true;
    fr_turns_put(t, "tools", json_array());
    for (size_t i = 0; taken && i < json_array_size(tools); i++) {
        json_t *tool = json_array_get(tools, i), *inner = json_object_get(tool, "custom");
        const char *type = fr_turns_type(tool);
        snprintf(what, sizeof what, "tools[%zu]", i);
        if (is_custom(tool)) {
            json_t *own = json_copy(inner);
            fr_json_put(own, "type", json_string("custom"));
            taken = fr_tool_offer(t, called, what, own);
            json_decref(own);
        } else if (*type && strcmp(type, "function") != 0) {
            note_kind(tool);
        } else {
            json_array_append(json_object_get(t->chat, "tools"), tool);
        }
    }
    return taken;
}

/* Turns a call of a custom tool into a call of a function. Also turns a choice of a custom tool into a choice of a
 * function. */
static void make_function(json_t *value) {
    json_t *custom = json_object_get(value, "custom"), *input = json_object_get(custom, "input");
    if (!is_custom(value)) return;
    json_t *function = json_object();
    if (json_object_get(custom, "name")) json_object_set(function, "name", json_object_get(custom, "name"));
    if (input) fr_json_put(function, "arguments", fr_tool_arguments(input));
    fr_json_put(value, "type", json_string("function"));
    fr_json_put(value, "function", function);
    json_object_del(value, "custom");
}

bool fr_tools_of_chat(json_t *body, json_t *called, char *error, size_t size) {
    json_t *tools = json_object_get(body, "tools"), *messages = json_object_get(body, "messages");
    fr_turns t;
    fr_turns_begin(&t, NULL);
    bool taken = !json_is_array(tools) || take_tools(&t, called, tools);
    if (taken && json_is_array(tools)) json_object_set(body, "tools", json_object_get(t.chat, "tools"));
    if (json_is_object(json_object_get(body, "tool_choice")))
        fr_json_put(body, "tool_choice", fr_tool_choice(json_object_get(body, "tool_choice")));
    make_function(json_object_get(body, "tool_choice"));
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls");
        for (size_t c = 0; c < json_array_size(calls); c++) make_function(json_array_get(calls, c));
    }
    snprintf(error, size, "%s", t.error);
    json_decref(fr_turns_end(&t));
    return taken;
}

void fr_tool_call_of_chat(const json_t *called, json_t *call) {
    json_t *function = json_object_get(call, "function"), *arguments = json_object_get(function, "arguments");
    const char *name = json_string_value(json_object_get(function, "name"));
    const json_t *tool = name ? json_object_get(called, name) : NULL;
    if (!fr_job_is_word(json_object_get(tool, "type"), "custom")) return;
    json_t *custom = json_object();
    json_object_set(custom, "name", json_object_get(tool, "name"));
    fr_json_put(custom, "input", fr_tool_input(json_string_value(arguments), json_string_length(arguments)));
    fr_json_put(call, "type", json_string("custom"));
    fr_json_put(call, "custom", custom);
    json_object_del(call, "function");
}

/* ---------------------------------------------------------------------------------------------- OpenAI's older form */

bool fr_functions_of_chat(json_t *body) {
    const json_t *functions = json_object_get(body, "functions"), *choice = json_object_get(body, "function_call");
    if (json_array_size(functions) == 0 || json_array_size(json_object_get(body, "tools")) > 0) return false;
    json_t *tools = json_array();
    for (size_t i = 0; i < json_array_size(functions); i++)
        json_array_append_new(tools,
                              json_pack("{s:s, s:O}", "type", "function", "function", json_array_get(functions, i)));
    if (json_is_object(choice))
        fr_json_put(body, "tool_choice", json_pack("{s:s, s:O}", "type", "function", "function", choice));
    else if (choice)
        fr_json_put(body, "tool_choice", fr_turns_share(choice));
    fr_json_put(body, "tools", tools);
    fr_json_put(body, "parallel_tool_calls", json_false());
    json_object_del(body, "functions");
    json_object_del(body, "function_call");
    return true;
}

void fr_function_call_of_chat(json_t *message) {
    json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0),
           *function = json_object_get(call, "function");
    if (!function) return;
    fr_json_put(message, "function_call", json_incref(function));
    json_object_del(message, "tool_calls");
}
