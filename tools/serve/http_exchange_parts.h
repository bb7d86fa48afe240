/* Defines the struct of exchanges, which http_exchange.c and the files of the HTTP server share.
 *
 *     read --dispatched--> open --answer--> whole --taken by the connection-->  done
 *                           |                                                    ^
 *                           '--begin--> stream --end, and all of it taken--------'
 *
 * While an exchange has nothing to send, its connection is suspended. Only the connection's thread suspends it, under
 * the exchange's lock. A thread that writes, ends or releases the exchange resumes the connection under the same lock,
 * so no wake-up is lost. */
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

/* Gives the time of a monotonic clock, in milliseconds. All times in these files are in this unit. */
int64_t fr_http_clock(void);

char *fr_http_copy_text(const char *text);

/* A client that sends or reads at least this many bytes per millisecond is never cut off. */
#define FR_HTTP_BYTES_PER_MS 16

/* The things that an exchange gets from the connection that makes it: the connection itself, and state that all
 * exchanges of the server share. */
typedef struct fr_http_exchange_origin {
    struct MHD_Connection *connection;
    int fd;
    const char *client;                 /* the client's address, which the exchange copies */
    _Atomic int64_t *deadline;          /* time at which the connection will be cut; 0: never */
    int64_t timeout;                    /* milliseconds in which the client must read a complete answer */
    _Atomic size_t *bodies;             /* sum of the bytes of all bodies that the server stores */
    fr_http_exchange_report_fn *report; /* called when an exchange has ended; NULL: nothing is called */
    void *context;
} fr_http_exchange_origin;

struct fr_http_exchange {
    /* The request. Until it is passed on to be answered, only the connection's thread uses it. Afterwards it does not
     * change. */
    char *method, *path;
    char *has; /* the header If-None-Match; NULL: there is none */
    fr_http_exchange_pairs query;
    char *body;
    size_t length, capacity;
    int64_t begun; /* time when the request began */
    char *client;
    _Atomic size_t *bodies;
    fr_http_exchange_report_fn *report;
    void *context;
    json_t *kept; /* the body as JSON, stored by fr_http_exchange_keep; NULL: none is stored */
    bool head;    /* the method is HEAD, which is answered like GET */
    bool dispatched, too_large;

    pthread_mutex_t lock; /* protects the members below */
    unsigned holders;
    int64_t whole;                     /* time when the whole request had arrived; 0: it has not arrived yet */
    bool stayed;                       /* the client had not yet closed its side of the connection some milliseconds
                                        * (STAYS) after `whole` */
    struct MHD_Connection *connection; /* NULL after the connection has released the exchange */
    int fd;                            /* the connection's socket; valid while there is a connection */
    _Atomic int64_t *deadline;         /* deadline of the connection; 0: none */
    int64_t timeout;                   /* milliseconds in which the client must read a complete answer */
    bool suspended;
    enum { FR_EXCHANGE_OPEN, FR_EXCHANGE_WHOLE, FR_EXCHANGE_STREAM } answer;
    bool ended; /* the last bytes of a stream were written */
    bool cut;   /* the answer was cut off, so no more of it will be sent */
    unsigned status;
    char *type;
    fr_http_exchange_pairs headers;
    char *error; /* if the answer is an error, its message; otherwise NULL */
    fr_http_exchange_texts texts;
    bool has_texts;
    /* bytes of the answer. The first `taken` bytes were given to the connection. The bytes from `taken` up to `size`
     * wait */
    char *bytes;
    size_t taken, size, room;
    int64_t written; /* time of the last write */
};

/* Makes an exchange whose only holder is its connection. The objects to which `origin` points must live longer than the
 * exchange. */
fr_http_exchange *fr_http_exchange_new(const fr_http_exchange_origin *origin);

/* Gives the host in the target of a request line. Clients send an absolute target to proxies. In
 * "http://host:8080/path?a=b" the host is the part between "//" and the path. NULL: the target is not absolute. */
const char *fr_http_authority(const char *target, size_t *length);

/* Reads the method and the target of a request line. The target is such as "/path?a=b", and may have "http://host"
 * before it. Returns false if the target is malformed, for example if it has a wrong %XX. */
bool fr_http_exchange_read_line(fr_http_exchange *exchange, const char *method, const char *target);

/* Adds bytes to the body. Returns false if the body would exceed the limit. */
bool fr_http_exchange_add_body(fr_http_exchange *exchange, const char *bytes, size_t length, size_t limit);

/* Gives bytes of a stream to libmicrohttpd, which calls this function as its content reader callback. */
ssize_t fr_http_exchange_read(void *exchange, uint64_t position, char *bytes, size_t room);

/* Marks the exchange as cut off: no more of its answer will be sent. */
void fr_http_exchange_cut(fr_http_exchange *exchange);

/* Releases the exchange from its connection. Bytes that were not given to the connection are dropped. */
void fr_http_exchange_detach(fr_http_exchange *exchange);

#endif
