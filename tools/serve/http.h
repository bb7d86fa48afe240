/* Serves HTTP/1.1 with libmicrohttpd: connections, their limits, and the clients that are allowed.
 *
 * In: an address, keys, limits. Out: complete and allowed exchanges, which are passed to a function, and their answers
 * to the clients. Requests that are malformed, too large, too slow, without a key, or over the limit of connections
 * are refused here.
 *
 * Its own threads read requests and write answers, so that no client delays another. */
#ifndef FR_TOOLS_SERVE_HTTP_H
#define FR_TOOLS_SERVE_HTTP_H

#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http fr_http;

/* Answers an exchange, at once or later while it holds the exchange. Several threads of the server may call it at the
 * same time. */
typedef void fr_http_fn(void *context, fr_http_exchange *exchange);

typedef struct fr_http_setting {
    const char *host;        /* a numeric address, or "localhost" */
    uint16_t port;           /* 0: any free port */
    const char *const *keys; /* NULL-terminated; a request without one of the keys gets 401; NULL: no key is needed */
    /* names besides localhost that a Host header may have, separated by commas; "*": any; NULL: none */
    const char *hosts;
    const char *origin;                    /* origin of pages that may send requests (CORS); "*": any; NULL: none */
    const char *key_pem, *certificate_pem; /* the texts of both files for TLS; NULL: plain HTTP */
    size_t body_limit;                     /* the most bytes of a body */
    /* The most connections at a time, of all clients together and of one address. A connection above these limits is
     * kept just long enough to get a 503. */
    unsigned connections, per_address;
    /* Seconds that a client may be silent, that a request may take to arrive, and that a client may take to read an
     * answer. The latter two become longer by a second for each 16 kB. */
    unsigned timeout;
    /* Returns true for a path that needs no key, such as /health. */
    bool (*is_open)(const char *path);
    /* Returns true if a request may take long to be read although its body is short; NULL: there are no such
     * requests */
    bool (*is_slow)(const char *body, size_t length);
    fr_http_fn *answer;
    /* called for each exchange that has ended, by any thread; NULL: it is not called */
    fr_http_exchange_report_fn *report;
    void *context;
} fr_http_setting;

/* Replaces the keys of a server that requires one. When the function returns, the old keys may be freed. May be called
 * from any thread. */
void fr_http_set_keys(fr_http *http, const char *const *keys);

/* Opens the server and listens. Gives the exit status, which is 1 after a line on standard error. The setting's texts
 * must outlive the server. */
int fr_http_open(const fr_http_setting *setting, fr_http **http);

/* Gives the server's URL, "http://127.0.0.1:8080", with the port on which it listens. */
const char *fr_http_url(const fr_http *http);

/* Refuses new connections, and answers new requests on existing ones with 503. Exchanges that have begun continue. */
void fr_http_refuse_new(fr_http *http);

/* Waits until clients have read the answers of all exchanges that have begun, for at most this many milliseconds. */
void fr_http_drain(fr_http *http, int64_t milliseconds);

/* Closes all connections. Complete answers are written first, for at most a second. Every exchange must have been
 * released. */
void fr_http_close(fr_http *http);

#endif
