/* The inside of the HTTP server, shared by its files: http.c opens and closes it, http_listen.c opens its socket,
 * http_request.c has libmicrohttpd's callbacks for requests, http_work.c has the threads that answer slow requests,
 * and http_watch.c keeps the list of connections.
 *
 * Take the locks in this order: the server's, an exchange's, libmicrohttpd's. */
#ifndef FR_TOOLS_SERVE_HTTP_PARTS_H
#define FR_TOOLS_SERVE_HTTP_PARTS_H

#include <netinet/in.h>

#include "tools/serve/http.h"
#include "tools/serve/http_exchange_parts.h"

/* The longest target of a request line and the largest headers, in bytes. libmicrohttpd itself refuses a request that
 * exceeds them by far, with its own message, because it has no memory to read such a request. */
#define FR_HTTP_TARGET_MAX  (16 * 1024)
#define FR_HTTP_HEADERS_MAX (48 * 1024)

/* The most connections above the limits that are kept for a moment, so that their clients get a 503. Further
 * connections wait in the system's queue. */
#define FR_HTTP_EXCESS 256

/* A connection, from its acceptance on. */
typedef struct fr_http_link {
    fr_http *http;
    struct fr_http_link *previous, *next;
    int fd;
    char client[INET6_ADDRSTRLEN]; /* the client's address; "" if the system gives none */
    bool admitted;                 /* the connection is within the limits; protected by the server's lock */
    /* number of checks in a row that found the peer gone; only the watching thread uses it */
    int hung_up;
    char *target;               /* target of the last request line */
    uintptr_t behind;           /* where that target ended in libmicrohttpd's memory */
    fr_http_exchange *exchange; /* the present request; protected by the server's lock */
    /* the present request is complete and was passed on; protected by the server's lock */
    bool dispatched;
    /* time when a request must be complete, or an answer read; 0: the client waits for the server */
    _Atomic int64_t deadline;
} fr_http_link;

/* An exchange that takes long to be read, and waits for a thread. */
typedef struct fr_http_task fr_http_task;

/* The number of helper threads: one watches connections, the others answer slow requests. */
enum { FR_HTTP_HELPERS = 1 + 4 };

struct fr_http {
    fr_http_setting setting;
    struct MHD_Daemon *daemon;
    int socket; /* the listening socket; -1: it belongs to the daemon */
    bool loopback;
    bool keyed; /* requests need a key; the keys are replaced by fr_http_set_keys */
    char url[96];
    char message[256]; /* libmicrohttpd's message while it starts */
    atomic_bool started;
    atomic_bool refusing;
    _Atomic size_t bodies; /* bytes of the bodies of all requests that are stored */

    pthread_rwlock_t keys; /* protects setting.keys */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed, handed;
    fr_http_link *links;
    fr_http_task *tasks; /* in the order of arrival */
    size_t under_way;    /* exchanges that were passed on and whose answers are not completely sent */
    bool closing;

    pthread_t helpers[FR_HTTP_HELPERS];
    size_t helper_count;
};

/* Opens a listening socket, gives its address as a URL without the scheme, and tells if only this machine can reach
 * it. Gives the exit status. */
int fr_http_listen(const char *host, uint16_t port, int *socket, char *address, size_t size, bool *loopback);

/* The callbacks of libmicrohttpd; the server is their context. */
void *fr_http_see_target(void *http, const char *target, struct MHD_Connection *connection);
size_t fr_http_keep_escapes(void *http, struct MHD_Connection *connection, char *text);
enum MHD_Result fr_http_request(void *http, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **exchange);
void fr_http_completed(void *http, struct MHD_Connection *connection, void **exchange,
                       enum MHD_RequestTerminationCode why);
void fr_http_connection(void *http, struct MHD_Connection *connection, void **link,
                        enum MHD_ConnectionNotificationCode what);

/* Returns true if the connection is within the limits now. The time in which its request must arrive then begins
 * again. */
bool fr_http_link_admit(fr_http_link *link);

/* Begin an exchange of a connection, pass it on, and end it. Beginning fails if the server is closing. */
bool fr_http_link_begin(fr_http_link *link, fr_http_exchange *exchange);
void fr_http_link_dispatch(fr_http_link *link);
void fr_http_link_end(fr_http_link *link, fr_http_exchange *exchange);

/* Answers the exchange at once, or passes it to a thread for slow requests. */
void fr_http_hand(fr_http *http, fr_http_exchange *exchange);

/* The main functions of threads, with the server as their argument: the first answers slow requests, the second cuts
 * connections whose deadline has passed. */
void *fr_http_work(void *http);
void *fr_http_watch(void *http);

/* Drops the exchanges that wait for a thread, because the server is closing. Call it under the server's lock. */
void fr_http_drop_tasks(fr_http *http);

/* Ends the service: no further exchange begins, exchanges without a complete answer are cut, answers are sent for at
 * most this many milliseconds, and the helper threads end. */
void fr_http_finish(fr_http *http, int64_t milliseconds);

#endif
