/* Runs the commands of a chat (chat_commands.h has their names).
 *
 * In: a command. Out: another conversation; or the same one, and a line with the reason. */
#ifndef FR_TOOLS_CLI_CHAT_ACTIONS_H
#define FR_TOOLS_CLI_CHAT_ACTIONS_H

#include "tools/cli/chat_commands.h"
#include "tools/cli/chat_turn.h"

/* Sends the bytes as the next turn of the conversation. Gives the exit status, as the functions below do. */
int fr_chat_say(fr_chat *chat, const char *bytes, size_t length);

/* Runs a command with this argument: any command except /help, /edit and those that end the chat. */
int fr_chat_act(fr_chat *chat, fr_chat_command command, const char *argument);

/* The first function gives the text of the last turn, to be freed; NULL if there is none. The second replaces that
 * turn by an edited one. */
char *fr_chat_last_said(const fr_chat *chat);
int fr_chat_say_instead(fr_chat *chat, const char *bytes, size_t length);

#endif
