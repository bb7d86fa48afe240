/* What a command line says about the chat template, as fr_chat_render takes it. */
#ifndef FR_TOOLS_CHAT_SETTINGS_H
#define FR_TOOLS_CHAT_SETTINGS_H

#include <jansson.h>

#include "options.h"

/* --chat-template-kwargs and --no-think, and whether the conversation shows pictures. */
json_t *fr_chat_settings(const fr_arguments *args, bool pictures);

#endif
