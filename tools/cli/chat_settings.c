/* Gives the options of a chat as JSON (chat_settings.h). */
#include "tools/cli/chat_settings.h"

#include <string.h>

#include "tools/cli/output.h"
#include "tools/cli/prompt_file.h"
#include "tools/cli/wide_json.h"

int fr_json_read_file(const char *path, json_t **value) {
    json_error_t error;
    fr_prompt file = {0};
    int code = fr_prompt_read_file(&file, path);
    *value = code ? NULL : fr_json_load(file.bytes ? file.bytes : "", file.length, &error);
    fr_prompt_free(&file);
    if (code) return code;
    return *value ? 0 : fr_bad_input("%s:%d: not JSON: %s", path, error.line, error.text);
}

/* Gives the reason why a value is not a list of tools; NULL: it is a list of tools. */
static const char *fault_of(const json_t *tools) {
    if (json_is_null(tools)) return NULL;
    if (!json_is_array(tools)) return "not a JSON array of tools";
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!json_is_object(json_array_get(tools, i))) return "a tool in it is no JSON object";
    return NULL;
}

int fr_chat_tools(const fr_arguments *args, json_t **tools) {
    *tools = NULL;
    if (!args->given[FR_ARG_TOOLS]) return 0;
    int code = fr_json_read_file(args->text[FR_ARG_TOOLS], tools);
    const char *fault = code ? NULL : fault_of(*tools);
    if (!fault) return code;
    json_decref(*tools);
    *tools = NULL;
    return fr_bad_input("%s: %s", args->text[FR_ARG_TOOLS], fault);
}

json_t *fr_chat_settings(const fr_arguments *args, const json_t *tools, bool pictures) {
    const char *kwargs = args->given[FR_ARG_CHAT_KWARGS] ? args->text[FR_ARG_CHAT_KWARGS] : "{}";
    json_error_t error;
    /* the parsing can't fail, because options.c has checked that the text is an object */
    json_t *settings = fr_json_load(kwargs, strlen(kwargs), &error);
    if (args->given[FR_ARG_NO_THINK]) fr_json_put(settings, "enable_thinking", json_false());
    if (tools) fr_json_put(settings, "tools", json_incref((json_t *)tools));
    if (pictures) fr_json_put(settings, "pictures", json_true());
    return settings;
}
