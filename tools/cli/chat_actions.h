/* What the commands of a chat do (chat_commands.h has their names).
 *
 * In: a command. Out: another conversation, or the same with a line that says why. */
#ifndef FR_TOOLS_CLI_CHAT_ACTIONS_H
#define FR_TOOLS_CLI_CHAT_ACTIONS_H

#include "tools/cli/chat_commands.h"
#include "tools/cli/chat_turn.h"

/* Whatever is said: the next turn of the conversation. Gives the exit status, as those below do. */
int fr_chat_say(fr_chat *chat, const char *bytes, size_t length);

/* Runs a command with this argument: any but /help, /edit and those that end the chat. */
int fr_chat_act(fr_chat *chat, fr_chat_command command, const char *argument);

/* The text of the last turn, which an edited one then takes the place of; NULL: there is none. free. */
char *fr_chat_last_said(const fr_chat *chat);
int fr_chat_say_instead(fr_chat *chat, const char *bytes, size_t length);

#endif
