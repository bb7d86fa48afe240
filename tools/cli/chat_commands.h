/* Reads the commands of a chat: lines that begin with a slash, which are for forerun and not for the model.
 *
 * In: such a line, of any bytes. Out: the command and its argument; or one line on standard error that says why the
 * input is not a valid command. */
#ifndef FR_TOOLS_CLI_CHAT_COMMANDS_H
#define FR_TOOLS_CLI_CHAT_COMMANDS_H

#include <stddef.h>
#include <stdio.h>

typedef enum fr_chat_command {
    FR_CHAT_REFUSED, /* the line is no valid command; an error line was written */
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

/* Reads a line, which ends with a NUL. Blanks are removed from the end of the line. *argument: the text after the
 * command's name; "" if there is no such text. */
fr_chat_command fr_chat_command_read(char *line, size_t length, const char **argument);

/* Prints a line for each command, and lines about other forms of input. */
void fr_chat_commands_print(FILE *out);

#endif
