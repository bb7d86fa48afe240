/* Waits for keys and signals together. The signal handlers write into a pipe for this purpose (key_wait.h). */
#include "tools/cli/terminal/key_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum { SIGNALS = 6 };
static const int signals[SIGNALS] = {SIGINT, SIGWINCH, SIGCONT, SIGTSTP, SIGTERM, SIGHUP};
static struct sigaction before[SIGNALS];
static int noted[2];
static int ending; /* the SIGTERM or SIGHUP that fr_key_wait has returned; 0: it has returned none */

static void note(int signal_number) {
    int error = errno;
    unsigned char byte = (unsigned char)signal_number;
    /* If the pipe is full, this signal is lost. That does no harm, because the pipe then holds other signals, which
     * fr_key_wait returns. */
    while (write(noted[1], &byte, 1) < 0 && errno == EINTR) continue;
    errno = error;
}

static void watch(int index) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    if (before[index].sa_handler == SIG_IGN && signals[index] != SIGINT) return;
    sigaction(signals[index], &action, NULL);
}

bool fr_key_wait_begin(void) {
    if (pipe2(noted, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    ending = 0;
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        watch(i);
    }
    return true;
}

/* Restores the handlers. A recorded SIGTERM or SIGHUP is raised again. */
void fr_key_wait_end(void) {
    unsigned char byte;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    while (read(noted[0], &byte, 1) == 1)
        if (byte == SIGTERM || byte == SIGHUP) ending = byte;
    for (int i = 0; i < 2; i++) close(noted[i]);
    if (ending) raise(ending);
}

void fr_key_wait_stop(void) {
    int index = 0;
    while (signals[index] != SIGTSTP) index++;
    sigaction(SIGTSTP, &before[index], NULL);
    raise(SIGTSTP);
    watch(index);
}

int fr_key_wait(int milliseconds) {
    for (;;) {
        struct pollfd wait[] = {{.fd = noted[0], .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
        unsigned char byte;
        int ready = poll(wait, 2, milliseconds);
        if (ready < 0 && errno != EINTR) return FR_KEY_FAILED;
        if (read(noted[0], &byte, 1) == 1) {
            if (byte == SIGTERM || byte == SIGHUP) ending = byte;
            return byte;
        }
        if (wait[1].revents) return FR_KEY_TYPED;
        if (ready == 0) return FR_KEY_NONE;
    }
}
