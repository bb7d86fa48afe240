/* Declares what the files of the HTTP server share. http.c opens and closes the server, and http_listen.c opens its
 * socket. http_request.c has libmicrohttpd's callbacks for requests. http_work.c has the threads that answer slow
 * requests, and http_watch.c keeps the list of connections.
 *
 * A thread that needs several locks must lock them in this order: the server's, an exchange's, libmicrohttpd's. */
#ifndef FR_TOOLS_SERVE_HTTP_PARTS_H
#define FR_TOOLS_SERVE_HTTP_PARTS_H

#include <netinet/in.h>

#include "tools/serve/http.h"
#include "tools/serve/http_exchange_parts.h"

/* The largest number of bytes of the target of a request line, and of the headers. If a request is much larger than
 * this, libmicrohttpd has no memory to read it, and refuses it with its own message. */
#define FR_HTTP_TARGET_MAX  (16 * 1024)
#define FR_HTTP_HEADERS_MAX (48 * 1024)

/* The number of connections above the limits that may be open. Their clients get a 503. Further connections wait in the
 * system's queue. */
#define FR_HTTP_EXCESS 256

/* A connection. The struct exists from the moment when the connection is accepted. */
typedef struct fr_http_link {
    fr_http *http;
    struct fr_http_link *previous, *next;
    int fd;
    char client[INET6_ADDRSTRLEN]; /* the client's address; "": it is not known */
    /* the connection is within the limits; this member is protected by the server's lock */
    bool admitted;
    /* number of checks in a row that found that the peer had gone; only the watching thread uses it */
    int hung_up;
    char *target;               /* target of the last request line */
    uintptr_t behind;           /* address in libmicrohttpd's memory of the end of `target` */
    fr_http_exchange *exchange; /* the current request; protected by the server's lock */
    /* the current request is complete and was passed on; protected by the server's lock */
    bool dispatched;
    /* Time at which the connection will be cut. Before the answer begins, the request must be complete by this time.
     * Afterwards, the client must have read the answer by this time. 0: never, because the client waits for the
     * server. */
    _Atomic int64_t deadline;
} fr_http_link;

/* An exchange that waits for a helper thread, because reading its request takes long. It is an element of a queue. */
typedef struct fr_http_task fr_http_task;

/* The number of helper threads. One thread watches connections, and the others answer slow requests. */
enum { FR_HTTP_HELPERS = 1 + 4 };

struct fr_http {
    fr_http_setting setting;
    struct MHD_Daemon *daemon;
    int socket; /* the listening socket; -1: libmicrohttpd owns it */
    bool loopback;
    bool keyed; /* requests need a key; fr_http_set_keys replaces the keys */
    char url[96];
    char message[256]; /* libmicrohttpd's last message while the server was being started */
    atomic_bool started;
    atomic_bool refusing;
    _Atomic size_t bodies; /* sum of the bytes of all bodies that the server stores */

    pthread_rwlock_t keys; /* protects setting.keys */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed, handed;
    fr_http_link *links;
    fr_http_task *tasks; /* in the order of arrival */
    size_t under_way;    /* number of exchanges that were passed on to be answered, and whose answers have not been sent
                          * completely yet */
    bool closing;

    pthread_t helpers[FR_HTTP_HELPERS];
    size_t helper_count;
};

/* Opens a listening socket. *address: its address in the form of a URL, but without the scheme. *loopback: true if only
 * this machine can reach it. Gives the exit status. */
int fr_http_listen(const char *host, uint16_t port, int *socket, char *address, size_t size, bool *loopback);

/* The callbacks for libmicrohttpd. Their context is the server. */
void *fr_http_see_target(void *http, const char *target, struct MHD_Connection *connection);
size_t fr_http_keep_escapes(void *http, struct MHD_Connection *connection, char *text);
enum MHD_Result fr_http_request(void *http, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **exchange);
void fr_http_completed(void *http, struct MHD_Connection *connection, void **exchange,
                       enum MHD_RequestTerminationCode why);
void fr_http_connection(void *http, struct MHD_Connection *connection, void **link,
                        enum MHD_ConnectionNotificationCode what);

/* Returns true if the connection is within the limits at this time. If so, the time in which its request must arrive
 * starts again. */
bool fr_http_link_admit(fr_http_link *link);

/* fr_http_link_begin begins an exchange on a connection. It fails if the server is closing. fr_http_link_dispatch
 * passes the exchange on to be answered. fr_http_link_end ends the exchange. */
bool fr_http_link_begin(fr_http_link *link, fr_http_exchange *exchange);
void fr_http_link_dispatch(fr_http_link *link);
void fr_http_link_end(fr_http_link *link, fr_http_exchange *exchange);

/* Starts to answer the exchange. If reading the exchange's request takes long, a helper thread does this. Otherwise
 * this thread does it. */
void fr_http_hand(fr_http *http, fr_http_exchange *exchange);

/* The functions of the helper threads. Their argument is the server. fr_http_work answers slow requests. fr_http_watch
 * cuts connections whose deadline has passed. */
void *fr_http_work(void *http);
void *fr_http_watch(void *http);

/* Drops the exchanges that wait for a helper thread, because the server is closing. The caller must hold the server's
 * lock. */
void fr_http_drop_tasks(fr_http *http);

/* Ends the server. No new exchange begins, and exchanges without a complete answer are cut. Complete answers are sent,
 * for at most this many milliseconds. Then the helper threads end. */
void fr_http_finish(fr_http *http, int64_t milliseconds);

#endif
