/* Opens the socket on which an HTTP server listens, or uses the socket that systemd has opened (http_parts.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/serve/http_parts.h"
#include "tools/serve/service.h"

typedef union address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
} address;

/* Reads an address and gives its length. 0: the text is not an address. */
static socklen_t read_address(address *at, const char *host, uint16_t port) {
    *at = (address){0};
    if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &at->ip4.sin_addr) == 1) {
        at->ip4.sin_family = AF_INET;
        at->ip4.sin_port = htons(port);
        return sizeof(at->ip4);
    }
    if (inet_pton(AF_INET6, host, &at->ip6.sin6_addr) == 1) {
        at->ip6.sin6_family = AF_INET6;
        at->ip6.sin6_port = htons(port);
        return sizeof(at->ip6);
    }
    return 0;
}

static bool is_loopback(const address *at) {
    return at->any.sa_family == AF_INET ? ntohl(at->ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                        : IN6_IS_ADDR_LOOPBACK(&at->ip6.sin6_addr);
}

static void write_address(const address *at, char *text, size_t size) {
    char number[INET6_ADDRSTRLEN];
    if (at->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &at->ip4.sin_addr, number, sizeof(number));
        snprintf(text, size, "%s:%u", number, ntohs(at->ip4.sin_port));
    } else {
        inet_ntop(AF_INET6, &at->ip6.sin6_addr, number, sizeof(number));
        snprintf(text, size, "[%s]:%u", number, ntohs(at->ip6.sin6_port));
    }
}

/* Opens a listening socket. After a server has ended, its connections occupy its port for another minute. SO_REUSEADDR
 * allows to use the port again in this time. The address "::" means all addresses, including those of IPv4. */
static int open_socket(const address *at, socklen_t length) {
    int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    int yes = 1, no = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (at->any.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (bind(fd, &at->any, length) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Checks a socket that systemd has opened, and reads its address. */
static int take_over(int socket, address *at) {
    socklen_t length = sizeof *at;
    int listens = 0;
    socklen_t size = sizeof listens;
    *at = (address){0};
    if (getsockname(socket, &at->any, &length) != 0 ||
        getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
        return fr_bad_input("the socket that was passed to the server can't be used: %s", strerror(errno));
    bool internet = at->any.sa_family == AF_INET || at->any.sa_family == AF_INET6;
    if (!listens || !internet) return fr_bad_input("the socket that was passed to the server does not listen on TCP");
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    return 0;
}

int fr_http_listen(const char *host, uint16_t port, int *socket, char *text, size_t size, bool *loopback) {
    address at;
    int code = fr_service_socket(socket);
    if (code) return code;
    if (*socket >= 0) {
        code = take_over(*socket, &at);
        if (code) return code;
        *loopback = is_loopback(&at);
        write_address(&at, text, size);
        return 0;
    }
    socklen_t length = read_address(&at, host, port);
    if (!length) return fr_bad_input("--host %s: a numeric address is needed, or localhost", host);
    *loopback = is_loopback(&at);
    *socket = open_socket(&at, length);
    write_address(&at, text, size);
    if (*socket < 0) return fr_bad_input("can't listen on %s: %s", text, strerror(errno));
    socklen_t got = sizeof(at);
    if (getsockname(*socket, &at.any, &got) == 0) write_address(&at, text, size);
    return 0;
}
