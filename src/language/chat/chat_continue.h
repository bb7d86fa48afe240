/* Ends a prompt within the last message of a conversation, so that the model continues its text or thought.
 *
 * In: the last message, which is the assistant's; the marks of the model's reasoning. Out: the message with a word at
 * the place where the prompt must end, and a prompt that ends there. A content may begin with a thought between the
 * marks of reasoning. Such a thought is first moved to a member of its own in the message, because templates write the
 * marks around it themselves. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_CONTINUE_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_CONTINUE_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"

typedef struct fr_continuation {
    json_t *thought; /* the thought so far; NULL: there is none */
    json_t *said;    /* the content so far as text; NULL: there is none, so the model continues the thought */
} fr_continuation;

/* Puts the word that marks the prompt's end into the message. fr_continuation_close frees the members of *c; call it
 * even after a failure. */
fr_status fr_continuation_begin(fr_continuation *c, json_t *message, const fr_reply_format *format);
void fr_continuation_close(fr_continuation *c);

/* Cuts the prompt at the word that marks its end. The prompt must have been rendered from the changed message. Returns
 * false if the template left the word out. */
bool fr_continuation_cut(fr_marked_text *prompt);

/* Returns true if the cut prompt shows the thought, or if the message has no thought. */
bool fr_continuation_shows_thought(const fr_continuation *c, const fr_marked_text *prompt);

/* Appends the message's thought and content to a prompt that was rendered without the message and that ends with the
 * mark that opens reasoning. It is for templates that leave out the thoughts of past messages. */
fr_status fr_continuation_append(const fr_continuation *c, const fr_reply_format *format, fr_marked_text *prompt);

#endif
