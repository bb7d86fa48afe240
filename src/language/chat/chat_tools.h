/* Describes tools and calls as texts, for chat templates that do not show tools. llama.cpp's generic handler does the
 * same.
 *
 * In: tools; messages with calls and results. Out: messages in which a system turn describes the tools as JSON and says
 * how to call them. Past calls and results become JSON texts in turns of the assistant and the user. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TOOLS_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TOOLS_H

#include <jansson.h>

#include "forerun.h"
#include "src/language/chat/reply_forms.h"

/* A description of tools as a JSON string, and the range of bytes in it that is an example of a call. */
typedef struct fr_described_tools {
    json_t *text;
    size_t example, example_length;
} fr_described_tools;

/* Adds a description of the tools to the system message at the head. If there is no system message, one is added. form:
 * the form of calls in which the reply will be read. *described: free its text with json_decref. */
fr_status fr_chat_tools_describe(json_t *messages, json_t *tools, const fr_call_form *form,
                                 fr_described_tools *described);

/* Marks the example of a call as trusted in a prompt's first description of the tools, which is the one in the system
 * message. The marks in the example then become the model's own tokens, which the model is asked to write. If a
 * template changes the description, the example stays untrusted. */
fr_status fr_chat_tools_trust_example(const fr_described_tools *described, fr_marked_text *prompt);

/* fr_chat_calls_as_texts turns all calls and results into texts. fr_chat_has_orphans returns true if some result does
 * not follow a message with calls; that happens in conversations from which older messages were cut.
 * fr_chat_orphans_as_texts turns only such results into texts. */
fr_status fr_chat_calls_as_texts(json_t *messages);
bool fr_chat_has_orphans(const json_t *messages);
fr_status fr_chat_orphans_as_texts(json_t *messages);

#endif
