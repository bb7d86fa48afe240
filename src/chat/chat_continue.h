/* Ends a prompt within the last message of a conversation, so that the model goes on with what it has begun to say or
 * think.
 *
 * In: the last message, the assistant's; the marks of the model's thoughts. Out: the message with a word at the place
 * where the prompt is to end; and a prompt that ends there. A thought that stands in the content between its marks is
 * told apart first: templates write those marks themselves. */
#ifndef FR_SRC_CHAT_CONTINUE_H
#define FR_SRC_CHAT_CONTINUE_H

#include <jansson.h>

#include "src/chat/reply_format.h"

typedef struct fr_continuation {
    json_t *thought; /* what was thought so far; NULL: nothing */
    json_t *said;    /* what was said behind it as text; NULL: nothing, so the thought itself is gone on with */
} fr_continuation;

/* Changes the message. A failure, too, leaves something to close. */
fr_status fr_continuation_begin(fr_continuation *c, json_t *message, const fr_reply_format *format);
void fr_continuation_close(fr_continuation *c);

/* Ends a prompt that was rendered of the changed message where the word stands; false: the template has left it out. */
bool fr_continuation_cut(fr_marked_text *prompt);

/* True where a prompt that was cut has the thought in it, or there is none. */
bool fr_continuation_shows_thought(const fr_continuation *c, const fr_marked_text *prompt);

/* For templates that leave thoughts of past messages out: appends thought and content to a prompt, rendered without the
 * message, whose end has opened the reasoning. */
fr_status fr_continuation_append(const fr_continuation *c, const fr_reply_format *format, fr_marked_text *prompt);

#endif
