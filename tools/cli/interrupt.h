/* Handles Ctrl-C, SIGTERM and SIGHUP while a text is generated. They end the text, but its statistics and files are
 * still written.
 *
 * In: signals. Out: an abort callback that returns true. A signal that was ignored when the command started stays
 * ignored. */
#ifndef FR_TOOLS_CLI_INTERRUPT_H
#define FR_TOOLS_CLI_INTERRUPT_H

#include <stdbool.h>

/* Starts to watch the signals. The first signal is only recorded; a second one ends the command at once. A second
 * SIGHUP within 200 ms is ignored, because a closed terminal sends two. */
void fr_interrupt_watch(void);

/* Returns true if a signal has come (an fr_abort_fn; its context is not used). */
bool fr_interrupt_came(void *context);

/* fr_interrupt_watch_reload makes SIGHUP a request to read files again. If SIGHUP is ignored, the function does
 * nothing. It also does nothing if standard input is a terminal, because a terminal that closes sends SIGHUP too.
 * fr_interrupt_reload returns true if a SIGHUP has come since its last call. */
void fr_interrupt_watch_reload(void);
bool fr_interrupt_reload(void);

/* Starts to watch the signals of a conversation. Each Ctrl-C ends one answer; SIGTERM and SIGHUP end the
 * conversation. */
void fr_interrupt_watch_answers(void);

/* fr_interrupt_answer (an fr_abort_fn) returns true if the current answer must end because of Ctrl-C or another signal.
 * fr_interrupt_next_answer is called before the next answer begins, and forgets an earlier Ctrl-C. */
bool fr_interrupt_answer(void *context);
void fr_interrupt_next_answer(void);

/* If a signal has come, ends the command by that signal, so that a shell sees the signal and ends its loops too. Output
 * is not flushed here, so flush all output before. */
void fr_interrupt_repeat(void);

#endif
