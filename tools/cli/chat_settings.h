/* What a command line says about the chat template, as fr_chat_render takes it. */
#ifndef FR_TOOLS_CLI_CHAT_SETTINGS_H
#define FR_TOOLS_CLI_CHAT_SETTINGS_H

#include <jansson.h>

#include "tools/cli/options.h"

/* --chat-template-kwargs, --no-think, the tools (NULL: none), and whether the conversation shows pictures. */
json_t *fr_chat_settings(const fr_arguments *args, const json_t *tools, bool pictures);

/* The tools of --tools, NULL without it. Gives the exit status. */
int fr_chat_tools(const fr_arguments *args, json_t **tools);

/* A file of JSON. Gives the exit status. */
int fr_json_read_file(const char *path, json_t **value);

#endif
