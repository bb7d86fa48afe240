/* Describes tools and calls in texts for chat templates that have no place for them, as llama.cpp's generic handler
 * does.
 *
 * In: tools; messages with calls and results. Out: messages in which a system turn describes the tools as JSON and says
 * how they are called; and in which past calls and results are JSON texts of the assistant's and the user's turns. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TOOLS_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TOOLS_H

#include <jansson.h>

#include "forerun.h"
#include "src/language/chat/reply_forms.h"

/* A description of tools, a JSON string, and the bytes of it that are an example of a call. */
typedef struct fr_described_tools {
    json_t *text;
    size_t example, example_length;
} fr_described_tools;

/* Adds a description of the tools to the system message at the head, or makes one. form: how the reply will be read.
 * described: its text is released with json_decref. */
fr_status fr_chat_tools_describe(json_t *messages, json_t *tools, const fr_call_form *form,
                                 fr_described_tools *described);

/* Trusts the example's bytes where the description first stands in a prompt, which is the system's turn: its marks are
 * the model's own tokens then, as the call that the model is asked for has them. A template that writes the description
 * otherwise leaves the example foreign. */
fr_status fr_chat_tools_trust_example(const fr_described_tools *described, fr_marked_text *prompt);

/* Turns all calls and results into texts. */
fr_status fr_chat_calls_as_texts(json_t *messages);

#endif
