/* Waiting for what is typed on standard input, and for the signals that a person at a terminal sends.
 *
 * In: keys, Ctrl-C, Ctrl-Z, a terminal of another size or that goes away, a process that was stopped and goes on. Out:
 * which of them came first. Signals are noted in a pipe, which is waited for together with the keys: none is missed
 * between two keys, whichever thread it comes to. */
#ifndef FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H
#define FR_TOOLS_CLI_TERMINAL_KEY_WAIT_H

#include <stdbool.h>

enum {
    FR_KEY_TYPED = 0,   /* there is something to read, or its end */
    FR_KEY_NONE = -1,   /* nothing came in time */
    FR_KEY_FAILED = -2,
};

/* From here to the end SIGINT, SIGWINCH, SIGCONT, SIGTSTP, SIGTERM and SIGHUP are noted, and nobody else has them;
 * those that someone has asked to be ignored (nohup) stay ignored. At the end the last two come once more, to whom they
 * went before. False: there is no pipe to be had. */
bool fr_key_wait_begin(void);
void fr_key_wait_end(void);

/* Waits, below 0 for as long as it takes: the signal that came, or one of FR_KEY_*. */
int fr_key_wait(int milliseconds);

/* Stops the process as the SIGTSTP that was noted would have; comes back when it goes on. */
void fr_key_wait_stop(void);

#endif
