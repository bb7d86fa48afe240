/* Signal handlers that record a signal and then restore the default action (interrupt.h). */
#include "tools/cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "forerun_lab_ranks.h"
#include "tools/cli/output.h"

/* SAME_HANGUP: a second SIGHUP within this many milliseconds counts as the same one */
enum { SIGNALS = 3, SAME_HANGUP = 200 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[SIGNALS];

/* Any thread may receive a signal, and any thread or handler may read these variables. So the variables are lock-free
 * atomics. */
static atomic_int came;         /* the signal that ends the command; 0: none came */
static atomic_int answered;     /* Ctrl-C was pressed, which ends an answer but not the command */
static atomic_int reload;       /* SIGHUP came, and its meaning is to read the files again */
static _Atomic int64_t hung_up; /* time of the SIGHUP, in milliseconds of the monotonic clock */

static void step_aside(void) {
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Handles a second SIGHUP. When a terminal closes, the process gets SIGHUP twice. The kernel sends the first one when
 * the terminal hangs up. The shell is the leader of the session and ends because of its own SIGHUP; then the kernel
 * sends the second one. So a second SIGHUP soon after the first is ignored. A later one ends the command at once, as
 * any second signal does. */
static void note_hangup_again(int signal_number) {
    if (now() - hung_up < SAME_HANGUP) return;
    step_aside();
    raise(signal_number);
}

static void note(int signal_number) {
    if (!fr_signal_ends(signal_number)) return;
    came = signal_number;
    step_aside();
    if (signal_number != SIGHUP) return;
    hung_up = now();
    sigaction(SIGHUP, &(struct sigaction){.sa_handler = note_hangup_again, .sa_flags = SA_RESTART}, NULL);
}

static void note_answer(int signal_number) {
    (void)signal_number;
    answered = 1;
}

static void watch(int flags) {
    struct sigaction action = {.sa_handler = note, .sa_flags = flags};
    for (int i = 0; i < SIGNALS; i++) sigaddset(&action.sa_mask, signals[i]);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
    }
}

void fr_interrupt_watch(void) {
    /* With SA_RESTART a write that waits for its reader continues after the signal. The write is needed, because more
     * output follows. */
    watch(SA_RESTART);
}

void fr_interrupt_watch_answers(void) {
    /* Without SA_RESTART these signals interrupt the reading of a line from a pipe or a file. On a terminal,
     * terminal/key_wait.c handles them. */
    struct sigaction action = {.sa_handler = note_answer};
    watch(0);
    sigaction(SIGINT, &action, NULL);
}

static void note_reload(int signal_number) {
    (void)signal_number;
    reload = 1;
}

void fr_interrupt_watch_reload(void) {
    struct sigaction action = {.sa_handler = note_reload, .sa_flags = SA_RESTART}, now;
    sigaction(SIGHUP, NULL, &now);
    if (now.sa_handler != SIG_IGN && !isatty(STDIN_FILENO)) sigaction(SIGHUP, &action, NULL);
}

bool fr_interrupt_reload(void) {
    return atomic_exchange(&reload, 0) != 0;
}

bool fr_interrupt_answer(void *context) {
    (void)context;
    return answered || came;
}

void fr_interrupt_next_answer(void) {
    answered = 0;
}

bool fr_interrupt_came(void *context) {
    (void)context;
    return fr_lab_ranks_decide(came != 0);
}

void fr_interrupt_repeat(void) {
    if (!came) return;
    signal(came, SIG_DFL);
    raise(came);
}
