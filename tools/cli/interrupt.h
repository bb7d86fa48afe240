/* Handles Ctrl-C, SIGTERM and SIGHUP while a text is generated: they end the text, but its statistics and files are
 * still written.
 *
 * In: signals. Out: an abort callback that returns true. A signal that was ignored when the command started stays
 * ignored. */
#ifndef FR_TOOLS_CLI_INTERRUPT_H
#define FR_TOOLS_CLI_INTERRUPT_H

#include <stdbool.h>

/* Starts to watch the signals. The first signal is only recorded; the second ends the command at once. A second SIGHUP
 * counts only after 200 ms, because a closed terminal sends two. */
void fr_interrupt_watch(void);

/* Returns true if a signal has come; an fr_abort_fn, whose context is not used. */
bool fr_interrupt_came(void *context);

/* Makes SIGHUP a request to read files again, unless it is ignored, or standard input is a terminal, whose closing
 * sends SIGHUP. The second function returns true if a SIGHUP came since its last call. */
void fr_interrupt_watch_reload(void);
bool fr_interrupt_reload(void);

/* Starts to watch the signals of a conversation: each Ctrl-C ends one answer; SIGTERM and SIGHUP act as above. */
void fr_interrupt_watch_answers(void);

/* The first (an fr_abort_fn) returns true if the answer under way must end, because of Ctrl-C or another signal. The
 * second forgets a Ctrl-C before the next answer. */
bool fr_interrupt_answer(void *context);
void fr_interrupt_next_answer(void);

/* Ends the command by the signal that has come, if one has, so that a shell notices it and ends its loops. Flush all
 * output before, because this flushes nothing. */
void fr_interrupt_repeat(void);

#endif
