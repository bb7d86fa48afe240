/* Waiting for what is typed on standard input, and for the signals that a person at a terminal sends.
 *
 * In: keys, Ctrl-C, a terminal of another size, a process that was stopped and goes on. Out: which of them came first.
 * Signals are noted in a pipe, which is waited for together with the keys: none is missed between two keys, whichever
 * thread it comes to. */
#ifndef FR_TOOLS_KEY_WAIT_H
#define FR_TOOLS_KEY_WAIT_H

#include <stdbool.h>

/* From here to the end these signals are noted, and nobody else has them. False: there is no pipe to be had. */
bool fr_key_wait_begin(void);
void fr_key_wait_end(void);

/* Waits: 0 where there is something to read, or its end; else the signal that came; -1 on an error. */
int fr_key_wait(void);

#endif
