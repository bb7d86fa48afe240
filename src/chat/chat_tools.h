/* Describes tools and calls in texts for chat templates that have no place for them, as llama.cpp's generic handler
 * does.
 *
 * In: tools; messages with calls and results. Out: messages in which a system turn describes the tools as JSON and says
 * how they are called; and in which past calls and results are JSON texts of the assistant's and the user's turns. */
#ifndef FR_SRC_CHAT_TOOLS_H
#define FR_SRC_CHAT_TOOLS_H

#include <jansson.h>

#include "src/chat/reply_forms.h"

/* Adds a description of the tools to the system message at the head, or makes one. form: how the reply will be read. */
fr_status fr_chat_tools_describe(json_t *messages, json_t *tools, const fr_call_form *form);

/* Turns all calls and results into texts. */
fr_status fr_chat_calls_as_texts(json_t *messages);

#endif
