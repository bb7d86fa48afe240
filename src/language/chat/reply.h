/* Splits a reply into its parts while it is generated. The public fr_reply_parser (forerun.h) consists of a decoder and
 * this reader.
 *
 * In: the format of the reply (reply_format.h), and the pieces of the reply. Out: the reply's parts, through a
 * callback, and the message that they form. The parts do not depend on how the reply was cut into pieces. Line breaks
 * at the edges of reasoning and between calls belong to the marks there. Text that only looked like a call is given as
 * content, byte for byte. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"

typedef struct fr_reply_reader fr_reply_reader;

/* Makes a reader. part: the callback, which may be NULL. */
fr_status fr_reply_reader_new(fr_reply_fn *part, void *context, fr_reply_reader **reader);
void fr_reply_reader_free(fr_reply_reader *reader);

/* Begins a new reply. prompt: the prompt's end as the template wrote it; it may have opened the reasoning. tools: an
 * array, or NULL; the reader keeps a reference to it. seed: the number from which ids of calls are made. whole_calls: a
 * call is given only when it is complete, so no call ever becomes void (FR_REPLY_CALL_VOID). */
fr_status fr_reply_reader_begin(fr_reply_reader *reader, const fr_reply_format *format, const char *prompt,
                                size_t length, json_t *tools, uint64_t seed, bool whole_calls);

/* Returns true if a prompt ends with the mark that opens reasoning and only white space follows that mark. */
bool fr_reply_opens_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

/* Returns true if a prompt ends with the mark that ends reasoning and only white space follows that mark. Templates
 * write that mark if reasoning is off. */
bool fr_reply_ends_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

const fr_reply_format *fr_reply_reader_format(const fr_reply_reader *reader);
fr_status fr_reply_reader_feed(fr_reply_reader *reader, const char *text, size_t length, bool control);
fr_status fr_reply_reader_finish(fr_reply_reader *reader);

/* Tells the reader, before the reply is finished, that the reply was cut off. If a call is incomplete, it is then given
 * with its arguments so far. */
void fr_reply_reader_cut(fr_reply_reader *reader);

/* Writes the message so far, in the OpenAI form, as JSON text. The caller frees it. */
fr_status fr_reply_reader_message(const fr_reply_reader *reader, char **json, size_t *length);

#endif
