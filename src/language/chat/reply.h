/* Takes a reply apart as it is generated. The public fr_reply_parser (forerun.h) is this reader with a decoder before
 * it.
 *
 * In: the format of the reply (reply_format.h); its pieces. Out: its parts, each through a callback, the same however
 * the reply was cut into pieces; and the message that they make. Line breaks at the edges of reasoning and between
 * calls belong to the marks. Text that only looked like a call is given as content, byte for byte. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_H

#include <jansson.h>

#include "src/language/chat/reply_format.h"

typedef struct fr_reply_reader fr_reply_reader;

/* Makes a reader. part: the callback, which may be NULL. */
fr_status fr_reply_reader_new(fr_reply_fn *part, void *context, fr_reply_reader **reader);
void fr_reply_reader_free(fr_reply_reader *reader);

/* Begins a new reply. prompt: the prompt's end as the template wrote it, which may have opened the reasoning. tools:
 * an array, or NULL; a reference to it is kept. seed: ids of calls are made from it. whole_calls: a call is given only
 * once it is complete, so that no call is ever taken back. */
fr_status fr_reply_reader_begin(fr_reply_reader *reader, const fr_reply_format *format, const char *prompt,
                                size_t length, json_t *tools, uint64_t seed, bool whole_calls);

/* True if a prompt ends with the mark that opens reasoning and only white space follows that mark. */
bool fr_reply_opens_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

/* True if a prompt ends with the mark that ends reasoning, with only white space after it. Templates write that mark
 * if reasoning is off. */
bool fr_reply_ends_reasoning(const fr_reply_format *format, const char *prompt, size_t length);

const fr_reply_format *fr_reply_reader_format(const fr_reply_reader *reader);
fr_status fr_reply_reader_feed(fr_reply_reader *reader, const char *text, size_t length, bool control);
fr_status fr_reply_reader_finish(fr_reply_reader *reader);

/* Says, before the reply is finished, that it was cut off. A call that is not complete is then given with its
 * arguments so far. */
void fr_reply_reader_cut(fr_reply_reader *reader);

/* Writes the message so far, in the OpenAI form, as JSON text. The caller frees it. */
fr_status fr_reply_reader_message(const fr_reply_reader *reader, char **json, size_t *length);

#endif
