/* Writes conversations to files, and reads them. A file has messages as JSON, in the OpenAI form.
 *
 * In: a path. Out: [{"role", "content", ...}, ...], written or read. A file of the form {"messages": [...]} can be read
 * too. */
#ifndef FR_TOOLS_CLI_CHAT_FILES_H
#define FR_TOOLS_CLI_CHAT_FILES_H

#include <jansson.h>
#include <stdbool.h>

/* Writes the messages. The file gets its name when it is complete, and only its owner can read it. Returns false after
 * an error line. */
bool fr_chat_file_write(const char *path, const json_t *messages);

/* Reads messages for a chat. They must be text only. At the beginning there may be one system turn, and the first turn
 * after it must be a user's. NULL: the file has no such messages, and an error line was written. */
json_t *fr_chat_file_read(const char *path);

#endif
