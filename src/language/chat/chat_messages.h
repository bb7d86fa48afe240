/* Brings messages as clients send them into the form that a chat template takes.
 *
 * In: messages in the OpenAI form; what the template takes (chat_probe.h). Out: the same messages, where
 *
 *     a member that is null   is left out, and so is an empty list of calls; a content that is null is an empty text
 *     function_call           is a call among tool_calls, as the older form of OpenAI's has it
 *     the role                developer is system, function and ipython are tool, unless the template knows these
 *     reasoning               is reasoning_content, too, which goes before it, and thinking: templates know one of them
 *     a list of text parts    is their texts, a line each, under a template that takes texts alone
 *     a text                  is a list of one part, under a template that reads parts alone
 *     arguments of a call     are an object instead of its JSON text, or the text instead of the object, by what the
 *                             template reads; text that is no JSON object stays what it is, and none at all is {}
 *     calls without a text    have an empty one beside them, unless the template shows calls only where there is none
 *     the order of turns      is one that the template takes (chat_turns.h)
 *
 * Everything else, pictures too, is left as it was. Nothing here makes a byte of a message the template's own. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_MESSAGES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_MESSAGES_H

#include "src/language/chat/chat_probe.h"

/* Choices that the caller of fr_chat_render makes in its options. */
typedef struct fr_chat_rules {
    bool late_systems; /* see fr_chat_turns_arrange */
    bool rearrange;    /* content that the template has no place for is moved; else it is left to the template */
    bool strict_roles; /* FR_INPUT for a role that is neither usual nor known to the template */
} fr_chat_rules;

/* messages: an array of objects with a role, changed in place. notes: as in fr_chat_turns_arrange. */
fr_status fr_chat_messages_adapt(json_t *messages, const fr_chat_rules *rules, fr_chat_probe *probe, unsigned *notes);

#endif
