/* Chat templates, one renderer a model family.
 *
 * In: messages and tools in the OpenAI form, as JSON values. Out: the prompt's text, byte for byte what the family's
 * published Jinja template makes of them in transformers. A renderer is the template written out in C. */
#ifndef FR_SRC_CHAT_H
#define FR_SRC_CHAT_H

#include <jansson.h>

#include "src/text/text_buffer.h"

typedef struct fr_chat_options {
    const char *begin;   /* bos_token */
    const json_t *tools; /* an array, NULL when there are none */
    bool add_generation_prompt, enable_thinking;
    bool pictures;       /* the messages have some, for a model that sees */
    bool thinking_given; /* enable_thinking is not the default */
} fr_chat_options;

/* messages: an array of at least one object, each with a string "role". What doesn't fit is FR_INPUT; running out of
 * memory is left in the buffer's status. */
fr_status fr_chat_glm(const json_t *messages, const fr_chat_options *options, fr_text_buffer *out);
fr_status fr_chat_gemma4(const json_t *messages, const fr_chat_options *options, fr_text_buffer *out);

#endif
