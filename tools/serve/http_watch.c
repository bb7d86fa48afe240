/* The connections of an HTTP server: what each is about, and those that take too long cut off (http_parts.h).
 *
 * libmicrohttpd's own timeout is of silence: who sends a byte now and then lives for ever. Here each connection has a
 * deadline, by which its request must be there, or its answer taken; past it the socket is shut, and libmicrohttpd
 * finds it closed. */
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "tools/output.h"
#include "tools/serve/http_parts.h"

static int64_t from_now(const fr_http *http) {
    return fr_call_clock() + (int64_t)http->setting.timeout * 1000;
}

static fr_http_link *link_new(fr_http *http, int fd) {
    fr_http_link *link = fr_resize(NULL, 1, sizeof(*link));
    *link = (fr_http_link){.http = http, .fd = fd};
    atomic_store(&link->deadline, from_now(http));
    pthread_mutex_lock(&http->lock);
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
    if (link->previous) link->previous->next = link->next;
    else http->links = link->next;
    pthread_mutex_unlock(&http->lock);
    free(link->target);
    free(link);
}

void fr_http_connection(void *http, struct MHD_Connection *connection, void **link,
                        enum MHD_ConnectionNotificationCode what) {
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *link = link_new(http, fd);
    } else if (*link) {
        link_free(*link);
        *link = NULL;
    }
}

bool fr_http_link_begin(fr_http_link *link, fr_call *call) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    bool open = !http->closing;
    link->call = call;
    pthread_mutex_unlock(&http->lock);
    return open;
}

void fr_http_link_dispatch(fr_http_link *link) {
    fr_http *http = link->http;
    atomic_store(&link->deadline, 0);
    pthread_mutex_lock(&http->lock);
    http->under_way++;
    pthread_mutex_unlock(&http->lock);
}

void fr_http_link_end(fr_http_link *link, fr_call *call) {
    fr_http *http = link->http;
    pthread_mutex_lock(&http->lock);
    link->call = NULL;
    if (call->dispatched) {
        http->under_way--;
        pthread_cond_broadcast(&http->changed);
    }
    pthread_mutex_unlock(&http->lock);
    atomic_store(&link->deadline, from_now(http));
}

/* Waits until something has changed, or so long. Under the lock. */
static void wait_changed(fr_http *http, int64_t milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&http->changed, &http->lock, &until);
}

/* Under the lock, so that the socket is not closed meanwhile and its number given to another. */
static void shut_late(fr_http *http) {
    int64_t now = fr_call_clock();
    for (fr_http_link *link = http->links; link; link = link->next) {
        int64_t deadline = atomic_load(&link->deadline);
        if (deadline && deadline < now) shutdown(link->fd, SHUT_RDWR);
    }
}

void *fr_http_watch(void *context) {
    fr_http *http = context;
    int64_t step = http->setting.timeout > 4 ? 1000 : 200;
    pthread_mutex_lock(&http->lock);
    while (!http->closing) {
        int64_t next = fr_call_clock() + step;
        for (int64_t now; !http->closing && (now = fr_call_clock()) < next;) wait_changed(http, next - now);
        shut_late(http);
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}

/* Under the lock. */
static void wait_taken(fr_http *http, int64_t until) {
    for (int64_t now; http->under_way && (now = fr_call_clock()) < until;) wait_changed(http, until - now);
}

void fr_http_drain(fr_http *http, int64_t milliseconds) {
    pthread_mutex_lock(&http->lock);
    wait_taken(http, fr_call_clock() + milliseconds);
    pthread_mutex_unlock(&http->lock);
}

void fr_http_finish(fr_http *http, int64_t milliseconds) {
    int64_t until = fr_call_clock() + milliseconds;
    pthread_mutex_lock(&http->lock);
    http->closing = true;
    pthread_cond_broadcast(&http->changed);
    fr_http_drop_tasks(http);
    for (fr_http_link *link = http->links; link; link = link->next) {
        if (link->call) fr_call_cut(link->call);
    }
    wait_taken(http, until);
    pthread_mutex_unlock(&http->lock);
    for (size_t i = 0; i < http->helper_count; i++) pthread_join(http->helpers[i], NULL);
}
