/* What an exchange is made of: between http_exchange.c and the files of the HTTP server.
 *
 *     read --dispatched--> open --answer--> whole --taken by the connection-->  done
 *                           |                                                    ^
 *                           '--begin--> stream --end, and all of it taken--------'
 *
 * An exchange without anything to send has its connection suspended. The connection's thread alone suspends, under the
 * exchange's lock; whoever writes, ends or lets go resumes, under the same lock, so that no wake-up is lost between. */
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

/* Monotonic milliseconds, as all times here. */
int64_t fr_http_clock(void);

char *fr_http_copy_text(const char *text);

/* Bytes a millisecond: a client that takes or sends this many has time for any length. */
#define FR_HTTP_BYTES_PER_MS 16

/* The connection that exchanges come by, and what all exchanges of a server share. */
typedef struct fr_http_exchange_origin {
    struct MHD_Connection *connection;
    int fd;
    const char *client;        /* copied */
    _Atomic int64_t *deadline; /* 0: none */
    int64_t timeout;           /* for an answer to be taken, once it is whole */
    _Atomic size_t *bodies;    /* bytes of all bodies that are held */
    fr_http_exchange_report_fn *report; /* called once an exchange has ended; NULL: nobody is told */
    void *context;
} fr_http_exchange_origin;

struct fr_http_exchange {
    /* The request: of the connection's thread until it is dispatched, then constant. */
    char *method, *path;
    char *has; /* If-None-Match; NULL: there is none */
    fr_http_exchange_pairs query;
    char *body;
    size_t length, capacity;
    int64_t begun; /* when its request did */
    char *client;
    _Atomic size_t *bodies;
    fr_http_exchange_report_fn *report;
    void *context;
    json_t *kept; /* the body as JSON, once it was read to that and not taken yet */
    bool head; /* HEAD, which is GET to whoever answers */
    bool dispatched, too_large;

    pthread_mutex_t lock; /* of all that follows */
    unsigned holders;
    int64_t whole; /* when the request was; 0: not yet */
    bool stayed;   /* the client had not closed its side a moment after that */
    struct MHD_Connection *connection; /* NULL: it has let go */
    int fd;                            /* its socket, as long as it is there */
    _Atomic int64_t *deadline;         /* the connection's; 0: none */
    int64_t timeout;                   /* for an answer to be taken, once it is whole */
    bool suspended;
    enum { FR_EXCHANGE_OPEN, FR_EXCHANGE_WHOLE, FR_EXCHANGE_STREAM } answer;
    bool ended; /* a stream has all its bytes */
    bool cut;   /* nobody will answer, or go on with it */
    unsigned status;
    char *type;
    fr_http_exchange_pairs headers;
    char *error; /* an error's message; NULL: it is none */
    fr_http_exchange_texts texts;
    bool has_texts;
    char *bytes; /* [taken, size) has not gone to the connection */
    size_t taken, size, room;
    int64_t written; /* when anything was last */
};

/* An exchange with one holder, its connection. What the origin points to must outlive it. */
fr_http_exchange *fr_http_exchange_new(const fr_http_exchange_origin *origin);

/* In a target in its absolute form, "http://host:8080/path?a=b", as proxies are asked, the part between "//" and the
 * path; NULL: it has none. */
const char *fr_http_authority(const char *target, size_t *length);

/* The method and the target of a request line, "/path?a=b", or such a one behind "http://host". False: it is none, by
 * its %XX or otherwise. */
bool fr_http_exchange_read_line(fr_http_exchange *exchange, const char *method, const char *target);

/* More of the body; false: there is no room for that many bytes. */
bool fr_http_exchange_add_body(fr_http_exchange *exchange, const char *bytes, size_t length, size_t limit);

/* The connection's content reader, of a stream. */
ssize_t fr_http_exchange_read(void *exchange, uint64_t position, char *bytes, size_t room);

/* Nobody will answer any more. */
void fr_http_exchange_cut(fr_http_exchange *exchange);

/* The connection lets go: what it hadn't been given is dropped. */
void fr_http_exchange_detach(fr_http_exchange *exchange);

#endif
