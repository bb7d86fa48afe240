/* Reads the headers of harmony, the form of gpt-oss's messages: <|start|>ROLE to=RECIPIENT<|channel|>CHANNEL
 * TYPE<|message|>BODY. A recipient may also follow the channel. Source: github.com/openai/harmony, docs/format.md.
 *
 * In: the text of a header between <|start|> and <|message|>, in which marks are written as text. Out: the kind of the
 * message's body. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_HARMONY_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_HARMONY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define FR_HEADER_MAX 1024 /* limit on the bytes of a header; a longer text is no header */

typedef enum fr_harmony_body {
    FR_HARMONY_CONTENT, /* the final channel, and texts that come before calls */
    FR_HARMONY_REASONING,
    FR_HARMONY_CALL,
} fr_harmony_body;

/* Reads a header. The body is a call if the header's recipient is a function. A recipient is a function if it has the
 * prefix "functions." or is one of the tools. function: gets the function's name. tools: an array, or NULL. */
fr_harmony_body fr_harmony_header(const char *header, size_t length, const json_t *tools, const char **function,
                                  size_t *function_length);

bool fr_harmony_is_tool(const json_t *tools, const char *name, size_t length);

#endif
