/* Serves HTTP/1.1 with libmicrohttpd: connections, their limits, and the clients that are allowed.
 *
 * In: an address, keys, limits. Out: complete and allowed exchanges, given to a function; their answers to the
 * clients. Requests that are malformed, too large, too slow, without a key, or over the limit of connections are
 * refused here.
 *
 * Its own threads read requests and write answers, so that no client holds up another. */
#ifndef FR_TOOLS_SERVE_HTTP_H
#define FR_TOOLS_SERVE_HTTP_H

#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http fr_http;

/* Answers an exchange, at once, or later while it holds the exchange. Several threads of the server may call it at a
 * time. */
typedef void fr_http_fn(void *context, fr_http_exchange *exchange);

typedef struct fr_http_setting {
    const char *host;        /* a numeric address, or "localhost" */
    uint16_t port;           /* 0: one that is free */
    const char *const *keys; /* a request without one gets 401; NULL-terminated, NULL: none is needed */
    const char *hosts;       /* names besides localhost that a Host header may have, with commas, "*" any; NULL: none */
    const char *origin;      /* of pages that may send requests (CORS), "*": any; NULL: none */
    const char *key_pem, *certificate_pem; /* TLS: the texts of both files; NULL: plain */
    size_t body_limit;                     /* bytes */
    /* The most connections at a time, of all clients and of one address. A connection above these is kept long enough
     * for a 503 answer. */
    unsigned connections, per_address;
    /* Seconds: how long a client may be silent, and how long a request may take to arrive, or an answer to be read;
     * the latter two get one more second for each 16 kB. */
    unsigned timeout;
    /* Returns true for a path that needs no key, such as /health. */
    bool (*is_open)(const char *path);
    /* Returns true if a request may take long to be read although its body is short; NULL: no request does. */
    bool (*is_slow)(const char *body, size_t length);
    fr_http_fn *answer;
    fr_http_exchange_report_fn *report; /* called for each exchange that has ended, by any thread; NULL: none */
    void *context;
} fr_http_setting;

/* Replaces the keys of a server that asks for one. The old keys may be freed when the function returns. Any thread. */
void fr_http_set_keys(fr_http *http, const char *const *keys);

/* Listens. Gives the exit status, 0, or 1 after a line on standard error. The setting's texts must outlive it. */
int fr_http_open(const fr_http_setting *setting, fr_http **http);

/* Gives the server's URL, "http://127.0.0.1:8080", with the port on which it listens. */
const char *fr_http_url(const fr_http *http);

/* Closes new connections, and answers new requests on existing ones with 503. Exchanges under way continue. */
void fr_http_refuse_new(fr_http *http);

/* Waits until the answers to all exchanges under way have been taken, for so many milliseconds at most. */
void fr_http_drain(fr_http *http, int64_t milliseconds);

/* Closes all connections. Complete answers are written first, for at most a second. Every exchange must have been
 * released. */
void fr_http_close(fr_http *http);

#endif
