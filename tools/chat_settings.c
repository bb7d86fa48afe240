/* Options of a chat as JSON: see chat_settings.h. */
#include "chat_settings.h"

#include <string.h>

#include "output.h"
#include "wide_json.h"

json_t *fr_chat_settings(const fr_arguments *args, bool pictures) {
    const char *kwargs = args->given[FR_ARG_CHAT_KWARGS] ? args->text[FR_ARG_CHAT_KWARGS] : "{}";
    json_error_t error;
    json_t *settings = fr_json_load(kwargs, strlen(kwargs), &error); /* options.c has seen that it is an object */
    if (args->given[FR_ARG_NO_THINK]) fr_json_put(settings, "enable_thinking", json_false());
    if (pictures) fr_json_put(settings, "pictures", json_true());
    return settings;
}
