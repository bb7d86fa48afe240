/* HTTP/1.1 for a server, by libmicrohttpd: connections, their limits, and who may ask.
 *
 * In: an address, keys, limits. Out: exchanges, whole and allowed, to a function; their answers to the clients. What is
 * no request, too large, too slow, one too many of an address, or without the key, is answered here.
 *
 * Threads of its own read requests and write answers, so that no client holds up another. */
#ifndef FR_TOOLS_SERVE_HTTP_H
#define FR_TOOLS_SERVE_HTTP_H

#include <stdint.h>

#include "tools/serve/http_exchange.h"

typedef struct fr_http fr_http;

/* An exchange that may be answered: at once, or held and answered later. Called by a thread of the server's, several at
 * a time. */
typedef void fr_http_fn(void *context, fr_http_exchange *exchange);

typedef struct fr_http_setting {
    const char *host;  /* a numeric address, or "localhost" */
    uint16_t port;     /* 0: one that is free */
    const char *const *keys; /* who sends none of these is 401; NULL-terminated, NULL: everybody may ask */
    const char *hosts;       /* names besides localhost by which it may be asked, with commas, "*" any; NULL: none */
    const char *origin;      /* of pages that may ask (CORS), "*" of any; NULL: of none */
    const char *key_pem, *certificate_pem; /* TLS: the texts of both files; NULL: plain */
    size_t body_limit;       /* bytes */
    /* Connections at a time, of all clients and of one address. One more is kept long enough to be told so (503). */
    unsigned connections, per_address;
    /* Seconds: of a client's silence at most, and in which a request must be there, or an answer taken; one more for
     * each 16 kB of it. */
    unsigned timeout;
    /* Whether a path is answered without a key: /health. */
    bool (*is_open)(const char *path);
    /* Whether a request may take long to be read though its body is short; NULL: none does. */
    bool (*is_slow)(const char *body, size_t length);
    fr_http_fn *answer;
    fr_http_exchange_report_fn *report; /* told of each exchange that has ended, by any thread; NULL: nobody is */
    void *context;
} fr_http_setting;

/* Replaces the keys of a server that asks for one: those before may be freed once it returns. Any thread. */
void fr_http_set_keys(fr_http *http, const char *const *keys);

/* Listens. Gives the exit status, 0, or 1 after a line on standard error. The setting's texts must outlive it. */
int fr_http_open(const fr_http_setting *setting, fr_http **http);

/* http://127.0.0.1:8080, with the port that it got. */
const char *fr_http_url(const fr_http *http);

/* New connections are closed, and new requests on those there are get 503; exchanges under way go on. */
void fr_http_refuse_new(fr_http *http);

/* Waits until the answers to all exchanges under way have been taken, for so many milliseconds at most. */
void fr_http_drain(fr_http *http, int64_t milliseconds);

/* Closes what is left; answers that are complete are written first, for a second at most. Every exchange must have been
 * released. */
void fr_http_close(fr_http *http);

#endif
