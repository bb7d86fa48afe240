/* Headers of harmony, the form of gpt-oss's messages: <|start|>ROLE to=RECIPIENT<|channel|>CHANNEL TYPE<|message|>BODY,
 * where a recipient may stand behind the channel too. Source: github.com/openai/harmony, docs/format.md.
 *
 * In: a header, from behind <|start|> to before <|message|>, marks as their text. Out: what its body is. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_HARMONY_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_HARMONY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define FR_HEADER_LONGEST 1024 /* bytes; what is longer is none */

typedef enum fr_harmony_body {
    FR_HARMONY_CONTENT, /* the final channel, and what is said before calls */
    FR_HARMONY_REASONING,
    FR_HARMONY_CALL,
} fr_harmony_body;

/* function: gets the name of the function to which the header sends a call. A recipient is a function if it has the
 * prefix "functions." or is one of the tools (an array, or NULL). */
fr_harmony_body fr_harmony_header(const char *header, size_t length, const json_t *tools, const char **function,
                                  size_t *function_length);

bool fr_harmony_is_tool(const json_t *tools, const char *name, size_t length);

#endif
