/* Signal handlers that note, and step aside (interrupt.h). */
#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

enum { SIGNALS = 2 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM};
static struct sigaction before[SIGNALS];
static volatile sig_atomic_t came; /* which signal, 0 for none */

static void step_aside(void) {
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

static void note(int signal_number) {
    came = signal_number;
    step_aside();
}

void fr_interrupt_watch(void) {
    /* A write that waits for its reader goes on: what is written afterwards needs it. */
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    for (int i = 0; i < SIGNALS; i++) sigaddset(&action.sa_mask, signals[i]);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
    }
}

bool fr_interrupt_came(void *context) {
    (void)context;
    return came != 0;
}

void fr_interrupt_repeat(void) {
    if (!came) return;
    signal(came, SIG_DFL);
    raise(came);
}
