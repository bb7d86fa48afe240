/* Gathers the parts of a reply as one message in the OpenAI form.
 *
 * In: parts in their order. Out: {"role": "assistant", "content", "reasoning_content", "tool_calls"} as JSON text.
 * Bytes that are not UTF-8 become U+FFFD, one for each longest part of a character (Unicode Standard, 3.9). */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_MESSAGE_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_MESSAGE_H

#include <jansson.h>

#include "base/text_buffer.h"

typedef struct fr_reply_message {
    fr_text_buffer content, reasoning;
    fr_text_buffer id, name, arguments; /* parts of the present call */
    json_t *calls;                      /* an array of calls; NULL: there is no call */
    bool lost;                          /* memory ran out while a call was added */
    bool cut;                           /* the last call is given although its arguments are incomplete */
} fr_reply_message;

void fr_reply_message_clear(fr_reply_message *message);
void fr_reply_message_add(fr_reply_message *message, fr_reply_part part, const char *text, size_t length);
fr_status fr_reply_message_check(const fr_reply_message *message);
fr_status fr_reply_message_write(const fr_reply_message *message, char **json, size_t *length);

#endif
