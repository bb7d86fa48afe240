/* Gives the chat template's settings from the command line, in the form of fr_chat_render. */
#ifndef FR_TOOLS_CLI_CHAT_SETTINGS_H
#define FR_TOOLS_CLI_CHAT_SETTINGS_H

#include <jansson.h>

#include "tools/cli/options.h"

/* Combines --chat-template-kwargs, --no-think and the tools (NULL: none). pictures: the conversation shows
 * pictures. */
json_t *fr_chat_settings(const fr_arguments *args, const json_t *tools, bool pictures);

/* Reads the file of --tools. Without the option *tools is NULL. Gives the exit status. */
int fr_chat_tools(const fr_arguments *args, json_t **tools);

/* Reads a file that holds one JSON value. Gives the exit status. */
int fr_json_read_file(const char *path, json_t **value);

#endif
