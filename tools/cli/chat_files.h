/* Conversations kept as files: messages as JSON, in the OpenAI form.
 *
 * In: a path. Out: [{"role", "content", ...}, ...], written there or read from there; {"messages": [...]} is read
 * too. */
#ifndef FR_TOOLS_CLI_CHAT_FILES_H
#define FR_TOOLS_CLI_CHAT_FILES_H

#include <jansson.h>
#include <stdbool.h>

/* The file gets its name when it is complete, and only its owner can read it. False: it has been said why not. */
bool fr_chat_file_write(const char *path, const json_t *messages);

/* NULL: it has been said why it can't be one of this chat's, which begins with a user's turn, behind a system turn at
 * most, and is all text. */
json_t *fr_chat_file_read(const char *path);

#endif
