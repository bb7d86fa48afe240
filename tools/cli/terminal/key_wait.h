/* Waits for keys on standard input, and for the signals that a person at a terminal sends.
 *
 * In: keys, Ctrl-C, Ctrl-Z, a terminal that changes its size or goes away, a process that was stopped and continues.
 * Out: the first of these that came. Signal handlers write to a pipe. One call waits for the pipe and the keys
 * together, so no signal between two keys is missed, whichever thread handles it. */
#ifndef FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H
#define FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H

#include <stdbool.h>

enum {
    FR_KEY_TYPED = 0,   /* a key can be read, or the input has ended */
    FR_KEY_NONE = -1,   /* nothing came in time */
    FR_KEY_FAILED = -2, /* the wait has failed */
};

/* fr_key_wait_begin installs handlers that record SIGINT, SIGWINCH, SIGCONT, SIGTSTP, SIGTERM and SIGHUP. A signal
 * that was ignored when the command started (nohup) stays ignored, except SIGINT. The function returns false if no
 * pipe can be made. fr_key_wait_end restores the handlers, and raises a recorded SIGTERM or SIGHUP again. */
bool fr_key_wait_begin(void);
void fr_key_wait_end(void);

/* Waits up to this many milliseconds, or without limit if the number is negative. Gives the signal that came, or one
 * of FR_KEY_*. */
int fr_key_wait(int milliseconds);

/* Stops the process, as the recorded SIGTSTP would have done. Returns when the process continues. */
void fr_key_wait_stop(void);

#endif
