/* Turns of a conversation, in the form that fr_chat_render takes; and from and to the bytes that keep them. */
#ifndef FR_TOOLS_CLI_CONVERSATION_H
#define FR_TOOLS_CLI_CONVERSATION_H

#include <jansson.h>
#include <stddef.h>

#include "forerun.h"

/* An empty conversation, or one that begins with a system turn (system not NULL). */
json_t *fr_conversation_new(const char *system);

/* role: "user" or "assistant". Bytes that are not UTF-8 become U+FFFD. pictures: how many stand before the text. */
void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures);

/* A user's turn with a picture wherever the bytes have the mark. */
void fr_conversation_add_placed(json_t *messages, const char *bytes, size_t length, const char *mark);

/* The message that was added last, which belongs to the conversation. */
json_t *fr_conversation_last(const json_t *messages);

/* The system turn at its start, which belongs to the conversation; NULL: none. */
const char *fr_conversation_system(const json_t *messages);

/* Replaces the system turn at its start; NULL removes it. */
void fr_conversation_set_system(json_t *messages, const char *system);

/* How many turns of a user's there are. */
size_t fr_conversation_turns(const json_t *messages);

/* Takes back what the last user said and what came after it; gives the pictures that went with it. Nothing to do where
 * no user said anything. */
size_t fr_conversation_take_back(json_t *messages);

/* Whether there is nothing to be answered: its last message is no user's and no tool's. */
bool fr_conversation_answered(const json_t *messages);

/* Takes back the reply that it ends with. */
void fr_conversation_take_reply(json_t *messages);

/* Drops the oldest turns, from a user's to the next user's, so many of them; gives the pictures that went with them. */
size_t fr_conversation_drop(json_t *messages, size_t turns);

/* What the last user said, up to the first NUL in it; there must have been one. free. */
char *fr_conversation_said(const json_t *messages);

/* Takes back everything but the system turn. */
void fr_conversation_forget(json_t *messages);

/* How many parts {"type": "image"} its messages have. *other: the type of the first part of pictures, sound or video in
 * another form, which templates leave out without a word; NULL: there is none. */
size_t fr_conversation_pictures(const json_t *messages, const char **other);

/* Whether every content is a text, null, or an array of parts that say what they are: templates leave out others. */
bool fr_conversation_is_parts(const json_t *messages);

/* As bytes, which a conversation without pictures can be read from again; free. */
char *fr_conversation_write(const json_t *messages, size_t *length);

/* Why messages are none that a chat can go on with; NULL: they are. It has texts alone; a system turn at most, then
 * turns that begin with a user's. */
const char *fr_conversation_fault(const json_t *messages);

/* NULL for bytes of any other kind than those: no conversation, or one that waits for an answer. */
json_t *fr_conversation_read(const void *bytes, size_t length);

/* The text to be tokenized, with the opening of the model's next turn. settings: fr_chat_render's options. text:
 * fr_marked_text_free. */
fr_status fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, const json_t *settings,
                                 fr_marked_text *text);

/* Prints notes about messages that were changed to fit the template, each once; with quiet it only marks them as
 * printed. */
void fr_conversation_note_changes(const fr_tokenizer *tokenizer, bool quiet);

/* Its ids: control tokens where the template wrote them, or with parse_special everywhere. *ids: fr_free. */
fr_status fr_conversation_tokenize(const fr_marked_text *text, const fr_tokenizer *tokenizer, bool parse_special,
                                   int32_t **ids, size_t *count);

#endif
