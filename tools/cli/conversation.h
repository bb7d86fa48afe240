/* The turns of a conversation, in the form of fr_chat_render, and as bytes that are stored with a session. */
#ifndef FR_TOOLS_CLI_CONVERSATION_H
#define FR_TOOLS_CLI_CONVERSATION_H

#include <jansson.h>
#include <stddef.h>

#include "forerun.h"

/* Makes an empty conversation, or one that begins with a system turn (system not NULL). */
json_t *fr_conversation_new(const char *system);

/* Adds a turn. role: "user" or "assistant". Bytes that are not UTF-8 become U+FFFD. pictures: the number of pictures
 * before the text. */
void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures);

/* Adds a user's turn, with a picture at each mark in the bytes. */
void fr_conversation_add_placed(json_t *messages, const char *bytes, size_t length, const char *mark);

/* Gives the message that was added last; it belongs to the conversation. */
json_t *fr_conversation_last(const json_t *messages);

/* Gives the system turn at the beginning; it belongs to the conversation. NULL: there is none. */
const char *fr_conversation_system(const json_t *messages);

/* Replaces the system turn at the beginning; NULL removes it. */
void fr_conversation_set_system(json_t *messages, const char *system);

/* Counts the user's turns. */
size_t fr_conversation_turns(const json_t *messages);

/* Takes back the last user's turn and everything after it; gives the number of pictures in them. Does nothing if there
 * is no user's turn. */
size_t fr_conversation_take_back(json_t *messages);

/* Returns true if no message waits for an answer: the last one is neither a user's nor a tool's. */
bool fr_conversation_answered(const json_t *messages);

/* Takes back the reply at the end. */
void fr_conversation_take_reply(json_t *messages);

/* Drops this many of the oldest turns, each from one user's message to the next; gives the number of pictures in
 * them. */
size_t fr_conversation_drop(json_t *messages, size_t turns);

/* Gives the last user's text, up to the first NUL in it; the caller frees it. There must be such a turn. */
char *fr_conversation_said(const json_t *messages);

/* Removes all messages but the system turn. */
void fr_conversation_forget(json_t *messages);

/* Counts the parts {"type": "image"} of the messages. *other: the type of the first part with a picture, sound or
 * video in another form, because templates silently leave such parts out; NULL if there is none. */
size_t fr_conversation_pictures(const json_t *messages, const char **other);

/* Returns true if every content is a text, null, or an array of parts with a type. Templates leave out any other
 * content. */
bool fr_conversation_is_parts(const json_t *messages);

/* Gives a conversation without pictures as bytes, which fr_conversation_read reads; the caller frees them. */
char *fr_conversation_write(const json_t *messages, size_t *length);

/* Gives the reason why a chat can't continue these messages; NULL if it can. All messages must be text only: at most
 * one system turn, then turns that begin with a user's. */
const char *fr_conversation_fault(const json_t *messages);

/* Reads the bytes that fr_conversation_write wrote. NULL: they hold no conversation, or one that waits for an
 * answer. */
json_t *fr_conversation_read(const void *bytes, size_t length);

/* Renders the text to be tokenized, up to the opening of the model's next turn. settings: fr_chat_render's options.
 * text: to be freed by fr_marked_text_free. */
fr_status fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, const json_t *settings,
                                 fr_marked_text *text);

/* Prints notes about messages that were changed to fit the template, each only once; with quiet it only marks them as
 * printed. */
void fr_conversation_note_changes(const fr_tokenizer *tokenizer, bool quiet);

/* Gives the ids of a rendered text. Control tokens are recognized only where the template wrote them; with
 * parse_special, everywhere. *ids: freed with fr_free. */
fr_status fr_conversation_tokenize(const fr_marked_text *text, const fr_tokenizer *tokenizer, bool parse_special,
                                   int32_t **ids, size_t *count);

#endif
