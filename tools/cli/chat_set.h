/* Changes the settings of a chat between its turns: /set, /system.
 *
 * In: a command's argument. Out: the settings of the next reply, or one line with the reason why they are
 * unchanged. */
#ifndef FR_TOOLS_CLI_CHAT_SET_H
#define FR_TOOLS_CLI_CHAT_SET_H

#include "tools/cli/chat_turn.h"

/* Runs /set with its argument. "NAME VALUE" sets an option. "NAME" prints one setting, and "" prints all settings.
 * Gives the exit status. */
int fr_chat_set(fr_chat *chat, const char *argument);

/* Writes the sampling settings to standard error, without a line end. */
void fr_chat_tell_sampling(const fr_chat *chat);

/* Replaces the system turn by the text. "-" removes the system turn, and "" prints it. */
void fr_chat_set_system(fr_chat *chat, const char *text);

#endif
