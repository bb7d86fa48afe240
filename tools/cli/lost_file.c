/* Handles SIGBUS (lost_file.h). Everything that the handler calls is async-signal-safe. */
#include "tools/cli/lost_file.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "forerun.h"
#include "tools/cli/output.h"

static struct sigaction before;
static atomic_flag told = ATOMIC_FLAG_INIT;

static size_t append(char *line, size_t length, size_t size, const char *text) {
    for (; *text && length < size; text++) line[length++] = (char)((unsigned char)*text < ' ' ? '?' : *text);
    return length;
}

static void end_with_line(const char *path) {
    static const char what[] = ": it got shorter while it was open, or can't be read any more";
    char line[PATH_MAX + sizeof what];
    if (atomic_flag_test_and_set(&told)) /* another thread is already printing the line and will end the process */
        for (;;) pause();
    size_t length = append(line, 0, sizeof line - 1, "forerun: ");
    length = append(line, length, sizeof line - sizeof what, path);
    length = append(line, length, sizeof line - 1, what);
    line[length++] = '\n';
    fr_writer_remove(); /* the temporary file is removed before the write, which may block if nothing reads from
                         * standard error */
    ssize_t unused = write(STDERR_FILENO, line, length);
    (void)unused;
    _exit(1);
}

/* Handles SIGBUS. If the faulting address is in a mapped file, the process ends with an error line. Otherwise the
 * handler that was set before is restored. The faulting read is then repeated and raises the signal again, with its
 * usual effect. If another process sent the signal, there is no faulting read to repeat, so this function raises the
 * signal itself. */
static void take(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    bool sent = info->si_code <= 0;
    const char *path = sent ? NULL : fr_mapped_file(info->si_addr);
    if (path) end_with_line(path);
    if (sent && before.sa_handler == SIG_IGN) return;
    sigaction(SIGBUS, &before, NULL);
    if (sent) raise(signal_number);
}

void fr_lost_file_watch(void) {
    struct sigaction action = {.sa_sigaction = take, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGBUS, &action, &before);
}
