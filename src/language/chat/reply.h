/* A reply taken apart as it is generated, behind the public fr_reply_parser (forerun.h), which is this and a decoder.
 *
 * In: the format of the reply (reply_format.h); its pieces. Out: its parts, each through a callback, the same however
 * the pieces were cut; and the message that they make. Line breaks at the edges of reasoning and between calls belong
 * to the marks. What only looked like a call is content, byte for byte. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"

typedef struct fr_reply_reader fr_reply_reader;

/* part may be NULL. */
fr_status fr_reply_reader_new(fr_reply_fn *part, void *context, fr_reply_reader **reader);
void fr_reply_reader_free(fr_reply_reader *reader);

/* A new reply. prompt: what the template made of the conversation, which may have opened the reasoning. tools: an
 * array, or NULL; it is kept. seed: what ids of calls are made from. whole_calls: a call is told of only once it is
 * whole, so that none is ever taken back. */
fr_status fr_reply_reader_begin(fr_reply_reader *reader, const fr_reply_format *format, const char *prompt,
                                size_t length, json_t *tools, uint64_t seed, bool whole_calls);

/* Whether a prompt ends with the mark of reasoning, and nothing but white space behind it. */
bool fr_reply_opens_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

/* True if the prompt ends so with the mark that ends reasoning, as templates write it where thinking is off. */
bool fr_reply_ends_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

const fr_reply_format *fr_reply_reader_format(const fr_reply_reader *reader);
fr_status fr_reply_reader_feed(fr_reply_reader *reader, const char *text, size_t length, bool control);
fr_status fr_reply_reader_finish(fr_reply_reader *reader);

/* The message so far, in the OpenAI form, as JSON text for the caller to free. */
fr_status fr_reply_reader_message(const fr_reply_reader *reader, char **json, size_t *length);

#endif
