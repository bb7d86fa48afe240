/* Serves HTTP/1.1 with libmicrohttpd: connections, their limits, and the clients that are allowed.
 *
 * In: an address, keys, limits. Out: exchanges. An exchange is a complete and allowed request, together with its
 * answer. It is passed to a function, which makes the answer, and the answer is sent to the client. Requests that are
 * malformed, too large, too slow or without a key are refused here. So are requests above the limit of connections.
 *
 * The server's own threads read requests and write answers, so that no client delays another. */
#ifndef FR_TOOLS_SERVE_HTTP_H
#define FR_TOOLS_SERVE_HTTP_H

#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http fr_http;

/* Answers an exchange, either at once or later. To answer later, the function must become a holder of the exchange.
 * Several threads of the server may call the function at the same time. */
typedef void fr_http_fn(void *context, fr_http_exchange *exchange);

typedef struct fr_http_setting {
    const char *host; /* a numeric address, or "localhost" */
    uint16_t port;    /* 0: any free port */
    /* A list that ends with NULL. A request without one of these keys gets the status 401. NULL: no key is needed */
    const char *const *keys;
    /* names that a Host header may have, in addition to localhost, separated by commas; "*": it may have any name;
     * NULL: only localhost */
    const char *hosts;
    /* the origin of the web pages that may send requests (CORS); "*": pages of any origin; NULL: no pages */
    const char *origin;
    /* for TLS, the texts of the files with the key and the certificate; NULL: plain HTTP */
    const char *key_pem, *certificate_pem;
    size_t body_limit; /* the most bytes that a request's body may have */
    /* The most connections that may be open at a time. connections: from all clients together. per_address: from one
     * address. A connection above these limits is kept just long enough to send a 503. */
    unsigned connections, per_address;
    /* Seconds after which a client is cut off. It is cut off if it is silent for so long, if its request has not
     * arrived by then, or if it has not read its answer by then. A request or an answer gets one more second for each
     * 16 kB. */
    unsigned timeout;
    /* Returns true if a path needs no key. /health is such a path. */
    bool (*is_open)(const char *path);
    /* Returns true if reading a request's body may take long although the body is short. NULL: there are no such
     * requests. */
    bool (*is_slow)(const char *body, size_t length);
    fr_http_fn *answer;
    /* called for each exchange that has ended, in any thread; NULL: nothing is called */
    fr_http_exchange_report_fn *report;
    void *context;
} fr_http_setting;

/* Replaces the keys of a server that requires keys. The old keys may be freed when the function returns. The function
 * may be called from any thread. */
void fr_http_set_keys(fr_http *http, const char *const *keys);

/* Opens the server and starts to listen. Gives the exit status, which is 1 after an error line. The texts of the
 * setting must outlive the server. */
int fr_http_open(const fr_http_setting *setting, fr_http **http);

/* Gives the server's URL with the port on which it listens, such as "http://127.0.0.1:8080". */
const char *fr_http_url(const fr_http *http);

/* Refuses new connections from now on. New requests on existing connections get the status 503. Exchanges that have
 * begun continue. */
void fr_http_refuse_new(fr_http *http);

/* Waits until clients have read the answers of all exchanges that have begun. Waits at most this many milliseconds. */
void fr_http_drain(fr_http *http, int64_t milliseconds);

/* Closes all connections. Before, answers that are complete are still sent, for at most a second. All holders must have
 * released their exchanges. */
void fr_http_close(fr_http *http);

#endif
