/* What a reply begins with: how it will be written, and what its prompt has opened. */
#ifndef FR_SRC_REPLY_BEGIN_H
#define FR_SRC_REPLY_BEGIN_H

#include <jansson.h>

#include "base/text.h"
#include "src/chat/reply_format.h"

/* Finds the format in the template that renders prompts of these options. */
fr_reply_format fr_reply_format_for(const fr_tokenizer *tokenizer, const json_t *options);

/* How much of a prompt's end the template itself wrote: only that can have opened the reasoning. */
size_t fr_reply_trusted_end(const fr_marked_text *prompt);

#endif
