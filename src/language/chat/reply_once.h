/* Makes each key of a call's arguments unique.
 *
 * In: the arguments of a call: an object as JSON text, which a reader has checked (reply_call.h). Out: the same text,
 * without members whose key is repeated later in the same object. So the last value counts, as in Python's json and
 * JavaScript. Other JSON readers may use the first value, so a call that is given as a whole must repeat no key. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_ONCE_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_ONCE_H

#include "base/text_buffer.h"

/* Removes repeated members. If memory runs out, the buffer's status says so. */
void fr_arguments_once(fr_text_buffer *arguments);

#endif
