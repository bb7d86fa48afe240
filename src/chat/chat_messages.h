/* Messages as clients send them, in the form that a chat template takes.
 *
 * In: messages in the OpenAI form; what the template takes (chat_probe.h). Out: the same messages, where
 *
 *     reasoning               is reasoning_content, too, which goes before it, and thinking: templates know one of them
 *     a list of text parts    is their texts, a line each, under a template that takes texts alone
 *     arguments of a call     are an object instead of its JSON text, or the text instead of the object, by what the
 *                             template reads; text that is no JSON object stays what it is
 *     calls without a text    have an empty one beside them, under a template that fails without
 *
 * Everything else, pictures among it, is left as it was. */
#ifndef FR_SRC_CHAT_MESSAGES_H
#define FR_SRC_CHAT_MESSAGES_H

#include "src/chat/chat_probe.h"

/* messages: an array of objects with a role, changed in place. */
fr_status fr_chat_messages_adapt(json_t *messages, const fr_chat_probe *probe);

#endif
