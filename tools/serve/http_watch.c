/* Keeps the list of an HTTP server's connections, and cuts connections that take too long (http_parts.h).
 *
 * libmicrohttpd's own timeout counts only silence, so a client that sends a byte from time to time could stay for ever.
 * Here each connection has a deadline. Before the deadline the whole request must have arrived, or the client must have
 * read the whole answer. After the deadline the connection's socket is shut down, and libmicrohttpd closes it. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "tools/cli/output.h"
#include "tools/serve/http_parts.h"

static int64_t from_now(const fr_http *http) {
    return fr_http_clock() + (int64_t)http->setting.timeout * 1000;
}

/* a client above the limits has this many milliseconds to send its request and read the answer */
#define EXCESS_TIME 5000
#define STEP        100 /* milliseconds between two checks of all connections */
/* A peer counts as gone if this many checks in a row have found that it has gone. One check is not enough, because
 * libmicrohttpd may not have read the peer's request completely yet. */
#define HUNG_UP     5

/* Admits the connection if it is within both limits, the one for its address and the one for all connections. The
 * caller must hold the server's lock. */
static void admit_link(fr_http_link *link) {
    const fr_http_setting *s = &link->http->setting;
    unsigned all = 0, same = 0;
    for (const fr_http_link *other = link->http->links; other; other = other->next) {
        all += other->admitted;
        same += other->admitted && strcmp(other->client, link->client) == 0;
    }
    link->admitted = all < s->connections && same < s->per_address;
}

bool fr_http_link_admit(fr_http_link *link) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    if (!link->admitted) admit_link(link);
    bool admitted = link->admitted;
    pthread_mutex_unlock(&http->lock);
    if (admitted) atomic_store(&link->deadline, from_now(http));
    return admitted;
}

static void write_client(fr_http_link *link, const struct sockaddr *from) {
    const void *number = NULL;
    if (from && from->sa_family == AF_INET) number = &((const struct sockaddr_in *)from)->sin_addr;
    if (from && from->sa_family == AF_INET6) number = &((const struct sockaddr_in6 *)from)->sin6_addr;
    if (number) inet_ntop(from->sa_family, number, link->client, sizeof(link->client));
}

static fr_http_link *link_new(fr_http *http, int fd, const struct sockaddr *from) {
    fr_http_link *link = fr_resize(NULL, 1, sizeof(*link));
    *link = (fr_http_link){.http = http, .fd = fd};
    write_client(link, from);
    pthread_mutex_lock(&http->lock);
    admit_link(link);
    int64_t time = (int64_t)http->setting.timeout * 1000;
    atomic_store(&link->deadline, fr_http_clock() + (link->admitted || time < EXCESS_TIME ? time : EXCESS_TIME));
    link->next = http->links;
    if (link->next) link->next->previous = link;
    http->links = link;
    pthread_mutex_unlock(&http->lock);
    return link;
}

static void link_free(fr_http_link *link) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    if (link->next) link->next->previous = link->previous;
    if (link->previous)
        link->previous->next = link->next;
    else
        http->links = link->next;
    pthread_mutex_unlock(&http->lock);
    free(link->target);
    free(link);
}

void fr_http_connection(void *http, struct MHD_Connection *connection, void **link,
                        enum MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        const union MHD_ConnectionInfo *from = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *link = link_new(http, fd, from ? from->client_addr : NULL);
    } else if (*link) {
        link_free(*link);
        *link = NULL;
    }
}

bool fr_http_link_begin(fr_http_link *link, fr_http_exchange *exchange) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    bool open = !http->closing;
    link->exchange = exchange;
    pthread_mutex_unlock(&http->lock);
    return open;
}

void fr_http_link_dispatch(fr_http_link *link) {
    fr_http *http = link->http;
    atomic_store(&link->deadline, 0);
    pthread_mutex_lock(&http->lock);
    link->dispatched = true;
    link->exchange->whole = fr_http_clock();
    http->under_way++;
    pthread_mutex_unlock(&http->lock);
}

void fr_http_link_end(fr_http_link *link, fr_http_exchange *exchange) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    link->exchange = NULL;
    link->dispatched = false;
    if (exchange->dispatched) {
        http->under_way--;
        pthread_cond_broadcast(&http->changed);
    }
    pthread_mutex_unlock(&http->lock);
    atomic_store(&link->deadline, from_now(http));
}

/* Waits until an exchange has ended or the server is closing (http->changed). Waits at most this many milliseconds. The
 * caller must hold the server's lock. */
static void wait_changed(fr_http *http, int64_t milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&http->changed, &http->lock, &until);
}

/* Returns true if the peer has closed its side, and all that it has sent has been read. */
static bool has_hung_up(const fr_http_link *link) {
    struct pollfd socket = {.fd = link->fd, .events = POLLRDHUP};
    int unread = 0;
    return poll(&socket, 1, 0) > 0 && ioctl(link->fd, FIONREAD, &unread) == 0 && unread == 0;
}

/* Shuts the sockets whose deadline has passed. It also shuts the sockets whose peer has gone before its request was
 * complete, because libmicrohttpd 0.9.75 would wait for the rest of such a request until its own timeout. The caller
 * must hold the server's lock. While the lock is held, no socket is closed, so its number can't be used again for
 * another socket. */
static void shut_late(fr_http *http) {
    int64_t now = fr_http_clock();
    for (fr_http_link *link = http->links; link; link = link->next) {
        int64_t deadline = atomic_load(&link->deadline);
        /* this call notes in the exchange that the client has not closed its side yet */
        if (link->dispatched) fr_http_exchange_gone(link->exchange);
        link->hung_up = !link->dispatched && has_hung_up(link) ? link->hung_up + 1 : 0;
        if ((deadline && deadline < now) || link->hung_up >= HUNG_UP) shutdown(link->fd, SHUT_RDWR);
    }
}

void *fr_http_watch(void *context) {
    fr_http *http = context;
    pthread_mutex_lock(&http->lock);
    while (!http->closing) {
        int64_t next = fr_http_clock() + STEP;
        for (int64_t now; !http->closing && (now = fr_http_clock()) < next;) wait_changed(http, next - now);
        shut_late(http);
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}

/* Waits until all answers have been sent, or until the time `until`. The caller must hold the server's lock. */
static void wait_taken(fr_http *http, int64_t until) {
    for (int64_t now; http->under_way && (now = fr_http_clock()) < until;) wait_changed(http, until - now);
}

void fr_http_drain(fr_http *http, int64_t milliseconds) {
    pthread_mutex_lock(&http->lock);
    wait_taken(http, fr_http_clock() + milliseconds);
    pthread_mutex_unlock(&http->lock);
}

void fr_http_finish(fr_http *http, int64_t milliseconds) {
    int64_t until = fr_http_clock() + milliseconds;
    pthread_mutex_lock(&http->lock);
    http->closing = true;
    pthread_cond_broadcast(&http->changed);
    fr_http_drop_tasks(http);
    for (fr_http_link *link = http->links; link; link = link->next) {
        if (link->exchange) fr_http_exchange_cut(link->exchange);
    }
    wait_taken(http, until);
    pthread_mutex_unlock(&http->lock);
    for (size_t i = 0; i < http->helper_count; i++) pthread_join(http->helpers[i], NULL);
}
