/* Brings messages as clients send them into the form that a chat template accepts.
 *
 * In: messages in the OpenAI form, and what was found out about the template (chat_probe.h). Out: the same messages, in
 * which
 *
 *     a member that is null   is left out, and so is an empty list of calls; a content that is null is an empty text
 *     function_call           becomes a call in tool_calls; it is OpenAI's older form
 *     the role                developer becomes system, and function and ipython become tool, unless the template
 *                             knows these roles
 *     reasoning               is also given as reasoning_content and as thinking, because templates know one of the
 *                             three names; if the first two differ, reasoning_content is the one that counts
 *     a list of text parts    becomes their texts, a line each, if the template takes only texts
 *     a text                  becomes a list of one part, if the template reads only parts
 *     arguments of a call     become an object or its JSON text, whichever the template reads; a text that is not a
 *                             JSON object stays, and missing arguments become {}
 *     calls without a text    get an empty text beside them, unless the template shows calls only without a text
 *     the order of turns      becomes one that the template takes (chat_turns.h)
 *
 * Everything else, including pictures, is left as it was. No byte of a message becomes trusted template text here. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_MESSAGES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_MESSAGES_H

#include "src/language/chat/chat_probe.h"

/* Choices that the caller of fr_chat_render makes in its options. */
typedef struct fr_chat_rules {
    /* a system message after other turns is moved even if the template would refuse it (fr_chat_turns_arrange) */
    bool late_systems;
    /* true: turns and contents that the template does not support at their place are moved to a place where it supports
     * them; false: the template gets all turns as they are */
    bool rearrange;
    bool strict_roles; /* refuses a role with FR_INPUT if it is not a usual role and the template does not know it */
} fr_chat_rules;

/* Adapts the messages in place. messages: an array of objects, each with a role. notes: as in
 * fr_chat_turns_arrange. */
fr_status fr_chat_messages_adapt(json_t *messages, const fr_chat_rules *rules, fr_chat_probe *probe, unsigned *notes);

#endif
