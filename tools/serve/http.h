/* Serves HTTP/1.1 with libmicrohttpd: connections, their limits, and the clients that are allowed.
 *
 * In: an address, keys, limits. Out: exchanges, each a complete and allowed request and its answer. An exchange is
 * passed to a function, and its answer is sent to the client. Requests that are malformed, too large, too slow,
 * without a key, or over the limit of connections are refused here.
 *
 * The server's own threads read requests and write answers, so that no client delays another. */
#ifndef FR_TOOLS_SERVE_HTTP_H
#define FR_TOOLS_SERVE_HTTP_H

#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http fr_http;

/* Answers an exchange, at once or later. To answer later, the function must become a holder of the exchange. Several
 * threads of the server may call the function at the same time. */
typedef void fr_http_fn(void *context, fr_http_exchange *exchange);

typedef struct fr_http_setting {
    const char *host; /* a numeric address, or "localhost" */
    uint16_t port;    /* 0: any free port */
    /* list that ends with NULL; a request without one of these keys gets 401; NULL: no key is needed */
    const char *const *keys;
    /* names that a Host header may have besides localhost, separated by commas; "*": any; NULL: none */
    const char *hosts;
    /* origin of web pages that may send requests (CORS); "*": any; NULL: none */
    const char *origin;
    /* the texts of the key's and the certificate's files for TLS; NULL: plain HTTP */
    const char *key_pem, *certificate_pem;
    size_t body_limit; /* the most bytes that a request's body may have */
    /* The most connections at a time: `connections` of all clients together, per_address of one address. A connection
     * above these limits is kept just long enough to send a 503. */
    unsigned connections, per_address;
    /* Seconds after which a client is cut off if it is silent, if its request has not arrived, or if it has not read
     * its answer. A request or an answer gets one more second for each 16 kB. */
    unsigned timeout;
    /* Returns true for a path that needs no key, such as /health. */
    bool (*is_open)(const char *path);
    /* Returns true for a request whose body may take long to be read although it is short. NULL: there are no such
     * requests. */
    bool (*is_slow)(const char *body, size_t length);
    fr_http_fn *answer;
    /* called for each exchange that has ended, in any thread; NULL: not called */
    fr_http_exchange_report_fn *report;
    void *context;
} fr_http_setting;

/* Replaces the keys of a server that requires keys. The old keys may be freed when the function returns. May be called
 * from any thread. */
void fr_http_set_keys(fr_http *http, const char *const *keys);

/* Opens the server and starts to listen. Gives the exit status, which is 1 after an error line. The texts of the
 * setting must outlive the server. */
int fr_http_open(const fr_http_setting *setting, fr_http **http);

/* Gives the server's URL with the port on which it listens, such as "http://127.0.0.1:8080". */
const char *fr_http_url(const fr_http *http);

/* Refuses new connections from now on, and answers new requests on existing ones with 503. Exchanges that have begun
 * continue. */
void fr_http_refuse_new(fr_http *http);

/* Waits until clients have read the answers of all exchanges that have begun, but for at most this many
 * milliseconds. */
void fr_http_drain(fr_http *http, int64_t milliseconds);

/* Closes all connections. For at most a second, complete answers are still written. All holders must have released
 * their exchanges. */
void fr_http_close(fr_http *http);

#endif
