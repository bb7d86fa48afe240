/* The commands of a chat: lines that begin with a slash and are for forerun, not for the model.
 *
 * In: such a line, of any bytes. Out: which command it is and what stands behind its name; or one line on standard
 * error that says why it is none. */
#ifndef FR_TOOLS_CLI_CHAT_COMMANDS_H
#define FR_TOOLS_CLI_CHAT_COMMANDS_H

#include <stddef.h>
#include <stdio.h>

typedef enum fr_chat_command {
    FR_CHAT_REFUSED, /* none, and it has been said */
    FR_CHAT_CLEAR,
    FR_CHAT_UNDO,
    FR_CHAT_REGEN,
    FR_CHAT_EDIT,
    FR_CHAT_SAVE,
    FR_CHAT_LOAD,
    FR_CHAT_IMAGE,
    FR_CHAT_READ,
    FR_CHAT_SYSTEM,
    FR_CHAT_SET,
    FR_CHAT_CONTEXT,
    FR_CHAT_STATS,
    FR_CHAT_HELP,
    FR_CHAT_EXIT,
} fr_chat_command;

/* line: NUL-terminated; blanks are taken off its end. *argument: what follows the command's name, "" for nothing. */
fr_chat_command fr_chat_command_read(char *line, size_t length, const char **argument);

/* A line for each command, and those for what else a line may be. */
void fr_chat_commands_print(FILE *out);

#endif
