/* Ends a prompt within the last message of a conversation, so that the model continues its text or thought.
 *
 * In: the last message, the assistant's; the marks of the model's thoughts. Out: the message with a word at the place
 * where the prompt is to end; and a prompt that ends there. A thought that stands in the content between its marks is
 * moved to a member of its own first: templates write those marks themselves. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_CONTINUE_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_CONTINUE_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"

typedef struct fr_continuation {
    json_t *thought; /* the thought so far; NULL: none */
    json_t *said;    /* the content so far as text; NULL: none, so the model goes on with the thought */
} fr_continuation;

/* Changes the message. fr_continuation_close frees the parts, after a failure too. */
fr_status fr_continuation_begin(fr_continuation *c, json_t *message, const fr_reply_format *format);
void fr_continuation_close(fr_continuation *c);

/* Cuts a prompt, rendered from the changed message, at the word; false: the template left the word out. */
bool fr_continuation_cut(fr_marked_text *prompt);

/* True if a prompt that was cut shows the thought, or the message has none. */
bool fr_continuation_shows_thought(const fr_continuation *c, const fr_marked_text *prompt);

/* Appends thought and content to a prompt that was rendered without the message and ends with the mark that opens
 * reasoning. Used for templates that leave past messages' thoughts out. */
fr_status fr_continuation_append(const fr_continuation *c, const fr_reply_format *format, fr_marked_text *prompt);

#endif
