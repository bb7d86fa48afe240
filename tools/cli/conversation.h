/* Stores the turns of a conversation in the form of fr_chat_render. Converts them to bytes that can be stored with a
 * session. */
#ifndef FR_TOOLS_CLI_CONVERSATION_H
#define FR_TOOLS_CLI_CONVERSATION_H

#include <jansson.h>
#include <stddef.h>

#include "forerun.h"

/* Makes a conversation. system: the system turn with which it begins; NULL: the conversation is empty. */
json_t *fr_conversation_new(const char *system);

/* Adds a turn. role: "user" or "assistant". Bytes that are not UTF-8 become U+FFFD. pictures: number of pictures that
 * are placed before the text. */
void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures);

/* Adds a user's turn, in which each mark in the bytes is replaced by a picture. */
void fr_conversation_add_placed(json_t *messages, const char *bytes, size_t length, const char *mark);

/* Gives the message that was added last; it belongs to the conversation. */
json_t *fr_conversation_last(const json_t *messages);

/* Gives the system turn at the beginning; it belongs to the conversation. NULL: there is none. */
const char *fr_conversation_system(const json_t *messages);

/* Replaces the system turn at the beginning; NULL removes it. */
void fr_conversation_set_system(json_t *messages, const char *system);

/* Counts the user's turns. */
size_t fr_conversation_turns(const json_t *messages);

/* Removes the last user's turn and everything after it, and gives the number of pictures in the removed messages. If
 * there is no user's turn, it does nothing. */
size_t fr_conversation_take_back(json_t *messages);

/* Returns true if no message waits for an answer. A message waits if it is the last one and comes from a user or a
 * tool. */
bool fr_conversation_answered(const json_t *messages);

/* Removes the reply at the end. */
void fr_conversation_take_reply(json_t *messages);

/* Drops this many of the oldest turns, and gives the number of pictures in the dropped turns. A turn reaches from one
 * user's message to the next. */
size_t fr_conversation_drop(json_t *messages, size_t turns);

/* Gives the text of the last user's turn. If the text contains a NUL, it ends there. The caller frees it. The messages
 * must have a user's turn. */
char *fr_conversation_said(const json_t *messages);

/* Removes all messages but the system turn. */
void fr_conversation_forget(json_t *messages);

/* Counts the pictures in the messages. A picture is a part {"type": "image"}. Templates silently leave out pictures,
 * sounds and videos that have another form. *other: the type of the first part of such a form; NULL: there is none. */
size_t fr_conversation_pictures(const json_t *messages, const char **other);

/* Returns true if every content is a text, null, or an array of parts that have a type. Templates would silently leave
 * out any other content. */
bool fr_conversation_is_parts(const json_t *messages);

/* Gives a conversation without pictures as bytes for fr_conversation_read. The caller frees them. */
char *fr_conversation_write(const json_t *messages, size_t *length);

/* Gives the reason why a chat can't continue these messages. NULL: it can. All messages must be text only. There may be
 * one system turn at the beginning, and the first turn after it must be a user's. */
const char *fr_conversation_fault(const json_t *messages);

/* Reads the bytes that fr_conversation_write wrote. NULL: they hold no conversation, or its last message still waits
 * for an answer. */
json_t *fr_conversation_read(const void *bytes, size_t length);

/* Renders the messages as a text that ends where the model's next turn begins. settings: fr_chat_render's options.
 * text: to be freed by fr_marked_text_free. */
fr_status fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, const json_t *settings,
                                 fr_marked_text *text);

/* Notes that messages were changed to fit the template. Each kind of change is noted once. If `quiet` is true, nothing
 * is printed now, and nothing in later calls. */
void fr_conversation_note_changes(const fr_tokenizer *tokenizer, bool quiet);

/* Tokenizes a rendered text. Control tokens are recognized only where the template wrote them. If parse_special is
 * true, they are recognized everywhere. *ids: freed with fr_free. */
fr_status fr_conversation_tokenize(const fr_marked_text *text, const fr_tokenizer *tokenizer, bool parse_special,
                                   int32_t **ids, size_t *count);

#endif
