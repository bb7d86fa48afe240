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

/* The longest target of a request line and the largest headers, in bytes. A request that exceeds them by far is
 * refused by libmicrohttpd itself, with its own message, because it has no memory to read it. */
#define FR_HTTP_TARGET_MAX  (16 * 1024)
#define FR_HTTP_HEADERS_MAX (48 * 1024)

/* Connections above the limits that are kept for a moment, so that their clients get a 503. Above this number, new
 * connections wait in the system's queue. */
#define FR_HTTP_EXCESS 256

/* A connection, from the moment when it is accepted. */
typedef struct fr_http_link {
    fr_http *http;
    struct fr_http_link *previous, *next;
    int fd;
    char client[INET6_ADDRSTRLEN]; /* the client's address; "" where the system names none */
    bool admitted;                 /* it is within the limits; under the server's lock */
    int hung_up;                   /* how often in turn the watching thread found its peer gone; that thread's alone */
    char *target;                  /* of the request line that was read last */
    uintptr_t behind;              /* where it ended in libmicrohttpd's memory */
    fr_http_exchange *exchange;    /* its request under way, under the server's lock */
    bool dispatched;               /* that request is whole, and was handed on; likewise */
    _Atomic int64_t deadline;      /* when a request must be there, or an answer taken; 0: the client waits for us */
} fr_http_link;

/* An exchange that takes long to be read and waits for a thread. */
typedef struct fr_http_task fr_http_task;

/* The number of helper threads: one watches connections, the others answer slow requests. */
enum { FR_HTTP_HELPERS = 1 + 4 };

struct fr_http {
    fr_http_setting setting;
    struct MHD_Daemon *daemon;
    int socket; /* listens; -1: it is the daemon's */
    bool loopback;
    bool keyed; /* a request needs a key, other ones after fr_http_set_keys */
    char url[96];
    char message[256]; /* libmicrohttpd's while it starts */
    atomic_bool started;
    atomic_bool refusing;
    _Atomic size_t bodies; /* bytes of all requests' bodies that are held */

    pthread_rwlock_t keys; /* of setting.keys */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed, handed;
    fr_http_link *links;
    fr_http_task *tasks; /* by arrival */
    size_t under_way;    /* exchanges that were handed on, and whose answers are not all sent */
    bool closing;

    pthread_t helpers[FR_HTTP_HELPERS];
    size_t helper_count;
};

/* Opens a socket that listens, gives its address as a URL without the scheme, and tells if only this machine can reach
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

/* Returns true if the connection is within the limits by now. The time in which its request must arrive then starts
 * anew. */
bool fr_http_link_admit(fr_http_link *link);

/* Begin an exchange of a connection, hand it on, and end it. Beginning fails if the server is closing. */
bool fr_http_link_begin(fr_http_link *link, fr_http_exchange *exchange);
void fr_http_link_dispatch(fr_http_link *link);
void fr_http_link_end(fr_http_link *link, fr_http_exchange *exchange);

/* Answers the exchange at once, or hands it to a thread for slow requests. */
void fr_http_hand(fr_http *http, fr_http_exchange *exchange);

/* The main functions of two threads, with the server as their argument: one answers slow requests, the other cuts
 * connections whose deadline has passed. */
void *fr_http_work(void *http);
void *fr_http_watch(void *http);

/* Drops the exchanges that wait for a thread, because the server is closing. Call it under the server's lock. */
void fr_http_drop_tasks(fr_http *http);

/* Ends the service: no further exchange begins, those without a complete answer are cut, answers are sent for at most
 * so many milliseconds, and the helper threads end. */
void fr_http_finish(fr_http *http, int64_t milliseconds);

#endif
