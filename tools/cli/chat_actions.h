/* Runs the commands of a chat (chat_commands.h has their names).
 *
 * In: a command. Out: the changed conversation. If the command is refused, the conversation stays unchanged, and a line
 * has the reason. */
#ifndef FR_TOOLS_CLI_CHAT_ACTIONS_H
#define FR_TOOLS_CLI_CHAT_ACTIONS_H

#include "tools/cli/chat_commands.h"
#include "tools/cli/chat_turn.h"

/* Sends the bytes as the next turn of the conversation. Gives the exit status, like fr_chat_act. */
int fr_chat_say(fr_chat *chat, const char *bytes, size_t length);

/* Runs a command with this argument. /help, /edit and the commands that end the chat are handled by the caller. */
int fr_chat_act(fr_chat *chat, fr_chat_command command, const char *argument);

/* Functions for editing the last turn. fr_chat_last_said gives its text, which the caller frees; NULL: there is no
 * turn. fr_chat_say_instead replaces the turn by an edited one. */
char *fr_chat_last_said(const fr_chat *chat);
int fr_chat_say_instead(fr_chat *chat, const char *bytes, size_t length);

#endif
