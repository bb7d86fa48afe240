/* Writes conversations to files as messages in JSON, in the OpenAI form, and reads them.
 *
 * In: a path. Out: [{"role", "content", ...}, ...], written or read; {"messages": [...]} is read too. */
#ifndef FR_TOOLS_CLI_CHAT_FILES_H
#define FR_TOOLS_CLI_CHAT_FILES_H

#include <jansson.h>
#include <stdbool.h>

/* Writes the messages. The file gets its name when it is complete, and only its owner can read it. Returns false after
 * an error line. */
bool fr_chat_file_write(const char *path, const json_t *messages);

/* Reads messages for a chat. They must be text only and begin with a user's turn, after at most one system turn. NULL:
 * the file has no such messages, and an error line was written. */
json_t *fr_chat_file_read(const char *path);

#endif
