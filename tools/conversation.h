/* Turns of a conversation, in the form that fr_chat_render takes. */
#ifndef FR_TOOLS_CONVERSATION_H
#define FR_TOOLS_CONVERSATION_H

#include <jansson.h>
#include <stddef.h>

#include "forerun.h"

/* An empty conversation, or one that begins with a system turn (system not NULL). */
json_t *fr_conversation_new(const char *system);

/* role: "user" or "assistant". Bytes that are not UTF-8 become U+FFFD. pictures: how many stand before the text. */
void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures);

/* The text to be tokenized, with the opening of the model's next turn. *text: fr_free. Gives the exit status. */
int fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, bool pictures, char **text,
                           size_t *length);

#endif
