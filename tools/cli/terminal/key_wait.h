/* Waits for keys on standard input, and for the signals that a person at a terminal sends.
 *
 * In: keys, Ctrl-C, Ctrl-Z, a change of the terminal's size, the loss of the terminal, and the signal that a stopped
 * process gets when it continues.
 * Out: the one of these that came first. Signal handlers write to a pipe, and one call waits for the pipe and the keys
 * together. So no signal between two keys is missed, even if another thread handles the signal. */
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

/* Waits up to this many milliseconds. If the number is negative, the wait has no limit. Gives the signal that came, or
 * one of FR_KEY_*. */
int fr_key_wait(int milliseconds);

/* Stops the process, as SIGTSTP would have done if fr_key_wait had not recorded it. Returns when the process
 * continues. */
void fr_key_wait_stop(void);

#endif
