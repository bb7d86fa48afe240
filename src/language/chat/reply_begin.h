/* Describes the beginning of a reply: the form that the reply will have, and the marks that its prompt has opened. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_BEGIN_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_BEGIN_H

#include <jansson.h>

#include "base/text.h"
#include "src/language/chat/reply_format.h"

/* Finds the reply's format in the template that renders prompts with these options. */
fr_reply_format fr_reply_format_for(const fr_tokenizer *tokenizer, const json_t *options);

/* Counts the bytes at the end of a prompt that the template itself wrote. */
size_t fr_reply_trusted_end(const fr_marked_text *prompt);

/* Gives the text before the reply that the template itself wrote, because only such text can have opened or ended the
 * reasoning. Usually this is the end of the prompt. If the options say that the reply continues the last message, it is
 * the last mark before that message's text; it is empty if there is no such mark. */
fr_text fr_reply_written(const fr_reply_format *format, const fr_marked_text *prompt, const json_t *options);

#endif
