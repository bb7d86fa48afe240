/* Talks to systemd by its documented protocols (service.h). */
#include "tools/serve/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/serve/seconds.h"

enum { FIRST_SOCKET = 3 }; /* number of the first socket that systemd passes; systemd calls it SD_LISTEN_FDS_START */

/* Gives the number in an environment variable. 0: the variable is not set, or is not a number. */
static unsigned long long number_of(const char *variable) {
    const char *text = getenv(variable);
    char *end;
    if (!text || *text < '0' || *text > '9') return 0;
    unsigned long long number = strtoull(text, &end, 10);
    return *end ? 0 : number;
}

int fr_service_socket(int *socket) {
    *socket = -1;
    unsigned long long count = number_of("LISTEN_FDS");
    if (count == 0 || number_of("LISTEN_PID") != (unsigned long long)getpid()) return 0;
    if (count > 1) return fr_bad_input("%llu sockets were passed to the server, which listens on one", count);
    *socket = FIRST_SOCKET;
    return 0;
}

void fr_service_tell(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (length == 0 || length >= sizeof address.sun_path || (*path != '/' && *path != '@')) return;
    memcpy(address.sun_path, path, length);
    if (*path == '@') address.sun_path[0] = '\0'; /* an abstract name, which begins with a NUL */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    close(fd);
}

void fr_service_is_alive(void) {
    static double told;
    double limit = (double)number_of("WATCHDOG_USEC") * 1e-6, now = fr_seconds();
    bool ours = !getenv("WATCHDOG_PID") || number_of("WATCHDOG_PID") == (unsigned long long)getpid();
    if (limit == 0 || !ours || now < told + limit / 3) return;
    told = now;
    fr_service_tell("WATCHDOG=1");
}
