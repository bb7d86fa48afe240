/* Tools of other kinds than functions (tool_kinds.h). */
#include "tools/serve/tool_kinds.h"

#include <string.h>

#include "tools/job_parts.h"
#include "tools/serve/notes.h"
#include "tools/wide_json.h"

#define INPUT "input" /* a custom tool's only parameter */

json_t *fr_tool_name(const json_t *namespace, const json_t *name) {
    size_t length = json_string_length(namespace);
    if (!length) return fr_turns_share(name);
    bool parted = json_string_value(namespace)[length - 1] == '_';
    json_t *joined = json_sprintf("%s%s%s", json_string_value(namespace), parted ? "" : "__", json_string_value(name));
    return joined ? joined : fr_turns_share(name); /* bytes that are no text: it is refused further on */
}

/* ---------------------------------------------------------------------------------------------------- custom tools */

/* Its description, with the grammar that its input is to follow: a model that is told of it can. */
static json_t *describe_custom(const json_t *tool) {
    const json_t *format = fr_turns_get(tool, "format"), *own = fr_turns_get(tool, "description"),
                 *inner = fr_turns_get(format, "grammar");
    const json_t *grammar = inner ? inner : format; /* in a chat it is in an object of its own */
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
    fr_turns_tool(t, name, description, parameters);
    json_decref(description);
    json_decref(parameters);
}

json_t *fr_tool_arguments(const json_t *input) {
    return json_pack("{s:O}", INPUT, input);
}

/* A model that was not held to the parameters may have called its text otherwise, or have written it as it is. */
json_t *fr_tool_input(const char *arguments, size_t length) {
    json_error_t error;
    json_t *object = length ? fr_json_load(arguments, length, &error) : NULL;
    const json_t *input = json_object_get(object, INPUT);
    if (!input && json_object_size(object) == 1) input = json_object_iter_value(json_object_iter(object));
    json_t *text = fr_is_json_text(input) ? fr_turns_share(input) : fr_json_bytes(arguments, length);
    json_decref(object);
    return text;
}

/* -------------------------------------------------------------------------------------------------------- all kinds */

/* Under its function's name, unless that is taken. */
static void offer(fr_turns *t, json_t *called, const json_t *tool, bool custom, const json_t *namespace) {
    const json_t *name = fr_turns_get(tool, "name");
    json_t *own = fr_tool_name(namespace, name);
    if (!json_object_get(called, json_string_value(own))) {
        json_t *entry = json_pack("{s:s, s:O}", "type", custom ? "custom" : "function", "name", name);
        if (namespace) fr_json_put(entry, "namespace", fr_turns_share(namespace));
        fr_json_put(called, json_string_value(own), entry);
        if (custom) offer_custom(t, own, tool);
        else fr_turns_tool(t, own, fr_turns_get(tool, "description"), fr_turns_get(tool, "parameters"));
    }
    json_decref(own);
}

/* A tool that stands alone, or in a namespace. */
static bool offer_one(fr_turns *t, json_t *called, const char *what, const json_t *tool, const json_t *namespace) {
    bool custom = strcmp(fr_turns_type(tool), "custom") == 0, function = strcmp(fr_turns_type(tool), "function") == 0;
    if (!json_is_object(tool) || !*fr_turns_type(tool))
        return fr_turns_refuse(t, "%s must be an object with a \"type\"", what);
    if (!custom && !function)
        fr_notes_say("tools of type \"%.60s\" are passed over: they are run by another service", fr_turns_type(tool));
    else if (!fr_job_plain_text(fr_turns_get(tool, "name")))
        return fr_turns_refuse(t, "%s has no name", what);
    else
        offer(t, called, tool, custom, namespace);
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
