/* The inside of an exchange, shared by http_exchange.c and the files of the HTTP server.
 *
 *     read --dispatched--> open --answer--> whole --taken by the connection-->  done
 *                           |                                                    ^
 *                           '--begin--> stream --end, and all of it taken--------'
 *
 * While an exchange has nothing to send its connection is suspended. Only the connection's thread suspends it, under
 * the exchange's lock. A thread that writes, ends or releases the exchange resumes it under the same lock, so that no
 * wake-up is lost. */
#ifndef FR_TOOLS_SERVE_HTTP_EXCHANGE_PARTS_H
#define FR_TOOLS_SERVE_HTTP_EXCHANGE_PARTS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http_exchange_pair {
    char *name, *value;
} fr_http_exchange_pair;

typedef struct fr_http_exchange_pairs {
    fr_http_exchange_pair *list;
    size_t count;
} fr_http_exchange_pairs;

/* Gives monotonic milliseconds. All times here are in this unit. */
int64_t fr_http_clock(void);

char *fr_http_copy_text(const char *text);

/* The slowest speed at which a client is never cut off, in bytes per millisecond, however much it sends or reads. */
#define FR_HTTP_BYTES_PER_MS 16

/* The connection to which an exchange belongs, and the state that all exchanges of a server share. */
typedef struct fr_http_exchange_origin {
    struct MHD_Connection *connection;
    int fd;
    const char *client;                 /* the exchange copies it */
    _Atomic int64_t *deadline;          /* time when the connection is cut; 0: never */
    int64_t timeout;                    /* milliseconds in which a complete answer must be read */
    _Atomic size_t *bodies;             /* bytes of all bodies that are stored */
    fr_http_exchange_report_fn *report; /* called once an exchange has ended; NULL: no report */
    void *context;
} fr_http_exchange_origin;

struct fr_http_exchange {
    /* The request. Only the connection's thread uses it until it is dispatched; afterwards it is constant. */
    char *method, *path;
    char *has; /* If-None-Match; NULL: there is none */
    fr_http_exchange_pairs query;
    char *body;
    size_t length, capacity;
    int64_t begun; /* time when the request began */
    char *client;
    _Atomic size_t *bodies;
    fr_http_exchange_report_fn *report;
    void *context;
    json_t *kept; /* the body as JSON, between fr_http_exchange_keep and fr_http_exchange_kept */
    bool head;    /* the method is HEAD, which is answered like GET */
    bool dispatched, too_large;

    pthread_mutex_t lock; /* protects the members below */
    unsigned holders;
    int64_t whole;                     /* time when the request was complete; 0: not yet */
    bool stayed;                       /* the client had not closed its side a moment after that time */
    struct MHD_Connection *connection; /* NULL: the connection has released the exchange */
    int fd;                            /* the connection's socket, as long as there is a connection */
    _Atomic int64_t *deadline;         /* the connection's; 0: never */
    int64_t timeout;                   /* milliseconds in which a complete answer must be read */
    bool suspended;
    enum { FR_EXCHANGE_OPEN, FR_EXCHANGE_WHOLE, FR_EXCHANGE_STREAM } answer;
    bool ended; /* all bytes of a stream were written */
    bool cut;   /* the exchange gets no answer, or no more of its answer */
    unsigned status;
    char *type;
    fr_http_exchange_pairs headers;
    char *error; /* the message, if the answer is an error; else NULL */
    fr_http_exchange_texts texts;
    bool has_texts;
    char *bytes; /* bytes of the answer; [taken, size) were not given to the connection yet */
    size_t taken, size, room;
    int64_t written; /* time of the last write */
};

/* Makes an exchange with one holder, its connection. The objects to which the origin points must outlive it. */
fr_http_exchange *fr_http_exchange_new(const fr_http_exchange_origin *origin);

/* Gives the host of a target in absolute form, as proxies receive it: the part of "http://host:8080/path?a=b" between
 * "//" and the path. NULL if the target has none. */
const char *fr_http_authority(const char *target, size_t *length);

/* Reads the method and the target of a request line: "/path?a=b", with or without "http://host" before it. Returns
 * false if the target is malformed, for example in a %XX. */
bool fr_http_exchange_read_line(fr_http_exchange *exchange, const char *method, const char *target);

/* Adds bytes to the body. Returns false if it would be longer than the limit. */
bool fr_http_exchange_add_body(fr_http_exchange *exchange, const char *bytes, size_t length, size_t limit);

/* Gives bytes of a stream to libmicrohttpd; its content reader callback. */
ssize_t fr_http_exchange_read(void *exchange, uint64_t position, char *bytes, size_t room);

/* Marks an exchange that will get no further answer. */
void fr_http_exchange_cut(fr_http_exchange *exchange);

/* Releases the exchange from its connection. Bytes that were not given to the connection are dropped. */
void fr_http_exchange_detach(fr_http_exchange *exchange);

#endif
