/* Waits for keys on standard input, and for the signals that a person at a terminal sends.
 *
 * In: keys, Ctrl-C, Ctrl-Z, a terminal that changes its size or goes away, a process that was stopped and continues.
 * Out: the first of these that came. Signals are recorded in a pipe, and one call waits for the pipe and the keys
 * together, so that no signal is missed between two keys, in whatever thread it arrives. */
#ifndef FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H
#define FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H

#include <stdbool.h>

enum {
    FR_KEY_TYPED = 0, /* there is a key to read, or the end of input */
    FR_KEY_NONE = -1, /* nothing came in time */
    FR_KEY_FAILED = -2,
};

/* The first function starts to record SIGINT, SIGWINCH, SIGCONT, SIGTSTP, SIGTERM and SIGHUP instead of calling their
 * handlers; signals that were ignored when the command started (nohup) stay ignored. It returns false if no pipe can
 * be made. The second restores the handlers, and sends a recorded SIGTERM or SIGHUP again. */
bool fr_key_wait_begin(void);
void fr_key_wait_end(void);

/* Waits up to this many milliseconds; if negative, without limit. Gives the signal that came, or one of FR_KEY_*. */
int fr_key_wait(int milliseconds);

/* Stops the process as the recorded SIGTSTP would have; returns when it continues. */
void fr_key_wait_stop(void);

#endif
