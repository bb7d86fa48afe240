/* A pipe of signals (key_wait.h). */
#include "key_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum { SIGNALS = 3 };
static const int signals[SIGNALS] = {SIGINT, SIGWINCH, SIGCONT};
static struct sigaction before[SIGNALS];
static int noted[2];

static void note(int signal_number) {
    int error = errno;
    unsigned char byte = (unsigned char)signal_number;
    while (write(noted[1], &byte, 1) < 0 && errno == EINTR) continue; /* if it is full of signals, they do as well */
    errno = error;
}

bool fr_key_wait_begin(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    if (pipe2(noted, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &before[i]);
    return true;
}

void fr_key_wait_end(void) {
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    for (int i = 0; i < 2; i++) close(noted[i]);
}

int fr_key_wait(void) {
    for (;;) {
        struct pollfd wait[] = {{.fd = noted[0], .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
        unsigned char byte;
        if (poll(wait, 2, -1) < 0 && errno != EINTR) return -1;
        if (read(noted[0], &byte, 1) == 1) return byte;
        if (wait[1].revents) return 0;
    }
}
