/* Ctrl-C, SIGTERM and SIGHUP while a text is generated: they end the text, not what is to be told of it.
 *
 * In: signals. Out: an abort callback that says yes. A signal that someone has asked to be ignored stays ignored. */
#ifndef FR_TOOLS_CLI_INTERRUPT_H
#define FR_TOOLS_CLI_INTERRUPT_H

#include <stdbool.h>

/* From here on the first of them is only noted; the next one ends the command at once, as any did before. Of SIGHUP the
 * next one counts after 200 ms, since a terminal that is closed sends two. */
void fr_interrupt_watch(void);

/* Whether one has come: an fr_abort_fn, whose context is not used. */
bool fr_interrupt_came(void *context);

/* Makes SIGHUP a request to read files again, unless it is ignored, or standard input is a terminal (SIGHUP then means
 * that it was closed). The second function says if a SIGHUP came since the last call. */
void fr_interrupt_watch_reload(void);
bool fr_interrupt_reload(void);

/* Of a conversation: Ctrl-C ends one answer however often it comes, SIGTERM and SIGHUP are the signals above. */
void fr_interrupt_watch_answers(void);

/* Whether the answer under way is to end, for either reason: an fr_abort_fn. And that the next one has not been. */
bool fr_interrupt_answer(void *context);
void fr_interrupt_next_answer(void);

/* Ends the command by the signal that has come, if one has, so that a shell and its loops know. Everything must be
 * written: nothing is flushed. */
void fr_interrupt_repeat(void);

#endif
