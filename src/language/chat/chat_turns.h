/* Brings the turns of a conversation into an order that a chat template accepts.
 *
 * In: messages in the form that the template accepts (chat_messages.h), and what was found out about its turns
 * (chat_probe.h). Out: the same texts, in which
 *
 *     several system messages at the head   become one, if the template takes only one
 *     a system message after other turns    stays if the template takes it. Otherwise it is joined to the user's turn
 *                                           before or after it, or to the head if there is no such turn. A turn that
 *                                           an earlier request has sent is not changed, so that the beginning of its
 *                                           prompt can be reused
 *     the system message                    moves to the beginning of the first user's turn, if the template takes no
 *                                           system message
 *     two turns of one role in a row        become one, if the template refuses them
 *     several calls in a message            become a message each, with its result after it, if the template takes only
 *                                           one call in a message
 *
 * A blank line separates texts that are joined. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TURNS_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TURNS_H

#include "src/language/chat/chat_probe.h"

/* Joins two contents into a new value, with a blank line between their texts. If both contents are texts, the result is
 * a text. NULL: memory ran out. */
json_t *fr_chat_join_contents(const json_t *first, const json_t *second);

/* Joins messages[from] to messages[to] and removes messages[from]. The joined content keeps the order of the two
 * messages. */
fr_status fr_chat_join_turns(json_t *messages, size_t to, size_t from);

/* Bits for the changes that are reported. Each bit has a line of its own; chat.c lists the lines in this order. */
enum {
    FR_NOTE_NO_SYSTEM = 1 << 0,
    FR_NOTE_LATE_SYSTEM = 1 << 1,
    FR_NOTE_JOINED_TURNS = 1 << 2,
    FR_NOTE_PARTED_CALLS = 1 << 3,
    FR_NOTE_NO_TOOLS = 1 << 4,
    FR_NOTE_NO_CALLS = 1 << 5,
    FR_NOTE_ORPHANS = 1 << 6,
};

/* Arranges the turns. If the template drops a system message after other turns, the message is moved; if late_systems
 * is true, it is also moved if the template refuses it. *notes: the bits of the changes that were made are added to
 * it. */
fr_status fr_chat_turns_arrange(json_t *messages, bool late_systems, fr_chat_probe *probe, unsigned *notes);

#endif
