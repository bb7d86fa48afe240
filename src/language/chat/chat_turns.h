/* Brings the turns of a conversation into an order that a chat template takes.
 *
 * In: messages in the form that the template takes (chat_messages.h); what it takes of turns (chat_probe.h). Out: the
 * same texts, where
 *
 *     several system messages at the head   are one, where the template has a place for one
 *     a system message after other turns    is joined to the user's turn beside it, or to the head where none is beside
 *                                           it, where the template refuses it or leaves it out. A turn that was
 *                                           sent before stays as it was then, so its prompt's beginning can be reused
 *     the system message                    stands at the head of the first user's turn, where the template has no
 *                                           place for one
 *     two turns of one role in a row        are one, where the template refuses them
 *     several calls in a message            are a message each, with its result after it, where the template takes one
 *
 * A blank line stands between texts that are joined. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TURNS_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TURNS_H

#include "src/language/chat/chat_probe.h"

/* Joins two contents into a new value, with a blank line between their texts: a text if both are texts. NULL: memory
 * ran out. */
json_t *fr_chat_join_contents(const json_t *first, const json_t *second);

/* Joins messages[from] to messages[to], before or after that message's content as the two stand, and removes
 * messages[from]. */
fr_status fr_chat_join_turns(json_t *messages, size_t to, size_t from);

/* Changes that are worth a line, as bits; chat_notes.c has the lines. */
enum {
    FR_NOTE_NO_SYSTEM = 1 << 0,
    FR_NOTE_LATE_SYSTEM = 1 << 1,
    FR_NOTE_JOINED_TURNS = 1 << 2,
    FR_NOTE_PARTED_CALLS = 1 << 3,
    FR_NOTE_NO_TOOLS = 1 << 4,
    FR_NOTE_NO_CALLS = 1 << 5,
};

/* late_systems: a system message that follows other turns is moved even if the template would refuse it by its own
 * exception. *notes: gets the bits of the changes made, beside those it has. */
fr_status fr_chat_turns_arrange(json_t *messages, bool late_systems, fr_chat_probe *probe, unsigned *notes);

#endif
