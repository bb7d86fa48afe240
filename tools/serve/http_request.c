/* Handles the requests of a connection (http_parts.h). It checks that the client is allowed and that the request is not
 * too large. Later it passes the answer from the exchange to libmicrohttpd.
 *
 * libmicrohttpd calls fr_http_request once with the headers, then with each piece of the body, and then again and again
 * until there is an answer. While another thread makes the answer, the connection is suspended, so that no calls
 * come. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/serve/http_parts.h"
#include "tools/serve/keys.h"

#define BLOCK  16384 /* bytes of a stream that are sent at once */
/* The bodies of all requests together may have this many times as many bytes as the largest body may have. A request
 * that would exceed this sum is refused. */
#define BODIES 64

static const char *header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static fr_http_link *link_of(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* ------------------------------------------------------------------------------------------------- the request line */

/* Stores the target as the client sent it, because libmicrohttpd later removes its query and everything after a
 * NUL. */
void *fr_http_see_target(void *http, const char *target, struct MHD_Connection *connection) {
    fr_http_link *link = link_of(connection);
    free(link->target);
    link->target = fr_http_copy_text(target ? target : "");
    link->behind = (uintptr_t)target + strlen(link->target);
    (void)http;
    fr_http_link_admit(link);
    return NULL;
}

size_t fr_http_keep_escapes(void *http, struct MHD_Connection *connection, char *text) {
    (void)http;
    (void)connection;
    return strlen(text);
}

/* Returns true if the target contains a NUL. libmicrohttpd takes the NUL as the end of the target. In memory, `version`
 * comes after the whole target. So if there is a NUL, there is a gap between the end of the target that libmicrohttpd
 * sees and `version`. */
static bool is_hidden(const fr_http_link *link, const char *version) {
    uintptr_t at = (uintptr_t)version;
    return at > link->behind + 1 && at - link->behind < 1 << 20;
}

/* -------------------------------------------------------------------------------------------------- allowed clients */

static const char *sent_key(struct MHD_Connection *connection) {
    const char *authorization = header(connection, "Authorization");
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0) return header(connection, "X-Api-Key");
    return authorization + 7 + strspn(authorization + 7, " ");
}

static bool may_request(fr_http *http, struct MHD_Connection *connection, const char *path) {
    const fr_http_setting *s = &http->setting;
    if (!http->keyed || (s->is_open && s->is_open(path))) return true;
    const char *key = sent_key(connection);
    pthread_rwlock_rdlock(&http->keys);
    bool may = key && fr_keys_match(s->keys, key);
    pthread_rwlock_unlock(&http->keys);
    return may;
}

static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        bool same = strncasecmp(at, name, length) == 0 && (!at[length] || strchr(", ", at[length]));
        if (same || *at == '*') return true;
    }
    return false;
}

/* Returns true if a Host header names this machine ("localhost:8080") or a host that the setting allows. A browser
 * sends the domain of a page, even if that domain resolves to this machine's loopback address. So a page of another
 * site can't reach this server by resolving its own domain to this machine. */
static bool names_this(const fr_http *http, const char *host) {
    char name[256];
    size_t bracket = *host == '[', length = strcspn(host + bracket, bracket ? "]" : ":");
    if (!length || length >= sizeof(name)) return false;
    memcpy(name, host + bracket, length);
    name[length] = '\0';
    const char *rest = host + bracket + length;
    if (bracket && *rest++ != ']') return false;
    if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")])) return false;
    if (http->setting.hosts && is_listed(http->setting.hosts, name)) return true;
    struct in_addr ip4;
    struct in6_addr ip6;
    if (bracket) return inet_pton(AF_INET6, name, &ip6) == 1 && IN6_IS_ADDR_LOOPBACK(&ip6);
    if (inet_pton(AF_INET, name, &ip4) == 1) return ntohl(ip4.s_addr) >> 24 == IN_LOOPBACKNET;
    return strcasecmp(name, "localhost") == 0;
}

/* If a request names a host that is not this server, gives that host. The name is in the Host header or in an absolute
 * target. NULL: the request names this server. */
static const char *other_host(const fr_http *http, struct MHD_Connection *connection) {
    char authority[256];
    size_t length;
    const char *host = header(connection, "Host"), *target = link_of(connection)->target;
    const char *named = fr_http_authority(target, &length);
    if (!http->loopback || http->keyed) return NULL;
    if (host && !names_this(http, host)) return host;
    if (!named) return NULL;
    snprintf(authority, sizeof authority, "%.*s", (int)(length < sizeof authority ? length : 0), named);
    return names_this(http, authority) ? NULL : target;
}

/* Returns true if the request comes from a page of another site. A browser sends the page's origin, such as
 * "https://a.example". It sends "null" if the page has no origin. Such a page could not read the answer, but without
 * this check its request would still be run. */
static bool is_elsewhere(const fr_http *http, struct MHD_Connection *connection) {
    const char *origin = header(connection, "Origin"), *allowed = http->setting.origin;
    if (!http->loopback || http->keyed || !origin) return false;
    if (allowed && (strcmp(allowed, "*") == 0 || strcmp(allowed, origin) == 0)) return false;
    const char *host = strstr(origin, "://");
    return !host || !names_this(http, host + 3);
}

static bool is_too_large(const fr_http *http, struct MHD_Connection *connection) {
    const char *length = header(connection, "Content-Length");
    errno = 0;
    return length && (strtoull(length, NULL, 10) > http->setting.body_limit || errno);
}

static void refuse_body(const fr_http *http, fr_http_exchange *exchange) {
    fr_http_exchange_refuse(exchange, 413, "the request's body is larger than %zu bytes", http->setting.body_limit);
}

static size_t header_bytes(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
}

/* Refuses a request for reasons that are known before its body arrives. If the request is accepted, the exchange gets
 * no answer here. line: the request line is well formed. */
static void admit(fr_http *http, struct MHD_Connection *connection, fr_http_exchange *exchange, bool line) {
    const char *other = other_host(http, connection);
    if (!fr_http_link_admit(link_of(connection))) {
        fr_http_exchange_set_header(exchange, "Retry-After", "1");
        fr_http_exchange_set_header(exchange, "Connection", "close");
        fr_http_exchange_refuse(exchange, 503, "too many connections: --max-connections lets an address have more");
    } else if (strlen(link_of(connection)->target) > FR_HTTP_TARGET_MAX) {
        fr_http_exchange_refuse(exchange, 414, "the request's path and query are longer than %d bytes",
                                FR_HTTP_TARGET_MAX);
    } else if (header_bytes(connection) > FR_HTTP_HEADERS_MAX) {
        fr_http_exchange_refuse(exchange, 431, "the request's headers are larger than %d bytes", FR_HTTP_HEADERS_MAX);
    } else if (!line) {
        fr_http_exchange_refuse(exchange, 400, "the request's path or query is malformed");
    } else if (other) {
        fr_http_exchange_refuse(exchange, 403,
                                "the Host header \"%.100s\" is no name of this server, which answers to localhost: "
                                "start it with --allow-host NAME (behind a proxy, say) or with an API key",
                                other);
    } else if (strcmp(exchange->method, "OPTIONS") == 0) {
        fr_http_exchange_answer(exchange, 204, "text/plain", "", 0);
    } else if (is_elsewhere(http, connection)) {
        fr_http_exchange_refuse(exchange, 403, "the Origin header names a page of elsewhere: --cors lets one ask");
    } else if (!may_request(http, connection, exchange->path)) {
        fr_http_exchange_set_header(exchange, "WWW-Authenticate", "Bearer");
        fr_http_exchange_refuse(exchange, 401, "Invalid API key: send Authorization: Bearer KEY, or X-Api-Key: KEY");
    } else if (atomic_load(&http->refusing)) {
        fr_http_exchange_set_header(exchange, "Connection", "close");
        fr_http_exchange_refuse(exchange, 503, "the server is going down");
    } else if (is_too_large(http, connection)) {
        refuse_body(http, exchange);
    } else if (atomic_load(&http->bodies) > BODIES * http->setting.body_limit) {
        fr_http_exchange_set_header(exchange, "Retry-After", "1");
        fr_http_exchange_set_header(exchange, "Connection", "close");
        fr_http_exchange_refuse(exchange, 503, "the requests under way are too large together");
    }
}

/* ------------------------------------------------------------------------------------------------------- the answer */

/* The headers that web pages may send. The clients of OpenAI and Anthropic send further headers, which the star allows.
 * Authorization is listed because the star does not include it. */
#define ALLOWED_HEADERS "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta, *"

static void add_origin(struct MHD_Response *response, const char *origin, bool preflight) {
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Vary", "Origin");
    if (!preflight) return;
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    MHD_add_response_header(response, "Access-Control-Allow-Headers", ALLOWED_HEADERS);
    MHD_add_response_header(response, "Access-Control-Max-Age", "86400");
}

static void add_headers(struct MHD_Response *response, const fr_http_exchange *exchange,
                        const fr_http_setting *setting) {
    bool preflight = strcmp(exchange->method, "OPTIONS") == 0;
    MHD_add_response_header(response, "Server", "forerun");
    if (preflight)
        MHD_add_response_header(response, "Allow", "GET, HEAD, POST, OPTIONS");
    else
        MHD_add_response_header(response, "Content-Type", exchange->type);
    if (setting->origin) add_origin(response, setting->origin, preflight);
    if (exchange->answer == FR_EXCHANGE_STREAM) {
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "X-Accel-Buffering", "no");
    }
    for (size_t i = 0; i < exchange->headers.count; i++) {
        MHD_add_response_header(response, exchange->headers.list[i].name, exchange->headers.list[i].value);
    }
}

/* Makes libmicrohttpd's response for an answer that is complete or has begun. The caller must hold the lock of the
 * exchange. For a HEAD request, a stream becomes an answer without content. Otherwise libmicrohttpd would send the
 * stream's last chunk. */
static struct MHD_Response *make_response(fr_http_exchange *exchange) {
    if (exchange->answer == FR_EXCHANGE_STREAM && exchange->head) {
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (exchange->answer == FR_EXCHANGE_STREAM) {
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, fr_http_exchange_read, exchange, NULL);
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(exchange->size, exchange->bytes, MHD_RESPMEM_MUST_FREE);
    if (response) {
        exchange->bytes = NULL;
        exchange->size = exchange->room = 0;
    }
    return response;
}

/* Sends the answer. If there is no answer yet, suspends the connection until there is one. */
static enum MHD_Result respond(fr_http *http, fr_http_exchange *exchange, struct MHD_Connection *connection) {
    struct MHD_Response *response = NULL;
    bool waits = false;
    pthread_mutex_lock(&exchange->lock);
    if (exchange->answer != FR_EXCHANGE_OPEN) {
        response = make_response(exchange);
        if (response) add_headers(response, exchange, &http->setting);
    } else if (!exchange->cut && exchange->holders > 1) {
        waits = exchange->suspended = true;
        MHD_suspend_connection(connection);
    }
    pthread_mutex_unlock(&exchange->lock);
    if (!response) return waits ? MHD_YES : MHD_NO;
    enum MHD_Result queued = MHD_queue_response(connection, exchange->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* ---------------------------------------------------------------------------------------------------- the callbacks */

static bool has_body(struct MHD_Connection *connection) {
    const char *length = header(connection, "Content-Length");
    return header(connection, "Transfer-Encoding") || (length && strtoull(length, NULL, 10) > 0);
}

/* Handles the headers of a request. If the request has a body, it may be refused here, before the body is read. If it
 * has no body, it is always read to its end, so that the connection can stay open. */
static enum MHD_Result begin(fr_http *http, struct MHD_Connection *connection, const char *method, const char *version,
                             void **context) {
    fr_http_link *link = link_of(connection);
    const fr_http_setting *s = &http->setting;
    fr_http_exchange *exchange = fr_http_exchange_new(&(fr_http_exchange_origin){.connection = connection,
                                                                                 .fd = link->fd,
                                                                                 .client = link->client,
                                                                                 .deadline = &link->deadline,
                                                                                 .timeout = (int64_t)s->timeout * 1000,
                                                                                 .bodies = &http->bodies,
                                                                                 .report = s->report,
                                                                                 .context = s->context});
    const char *has = header(connection, "If-None-Match");
    if (has) exchange->has = fr_http_copy_text(has);
    *context = exchange;
    if (!fr_http_link_begin(link, exchange)) return MHD_NO;
    bool line = fr_http_exchange_read_line(exchange, method, link->target ? link->target : "");
    admit(http, connection, exchange, line && !is_hidden(link, version));
    return exchange->answer != FR_EXCHANGE_OPEN && has_body(connection) ? respond(http, exchange, connection) : MHD_YES;
}

/* Adds a piece of a body. A body that is too large is still read, up to twice the limit, and dropped. So the client
 * finishes sending and then reads the answer. */
static enum MHD_Result take_body(fr_http *http, fr_http_exchange *exchange, const char *bytes, size_t *length) {
    size_t limit = http->setting.body_limit;
    atomic_fetch_add(exchange->deadline, (int64_t)*length / FR_HTTP_BYTES_PER_MS);
    if (!exchange->too_large && !fr_http_exchange_add_body(exchange, bytes, *length, limit)) {
        exchange->too_large = true;
        free(exchange->body);
        exchange->body = NULL;
        exchange->length = 0;
    }
    if (exchange->too_large) exchange->length += *length;
    *length = 0;
    return exchange->too_large && exchange->length > limit ? MHD_NO : MHD_YES;
}

enum MHD_Result fr_http_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *upload_size, void **held) {
    (void)url;
    fr_http *http = context;
    fr_http_exchange *exchange = *held;
    if (!exchange) return begin(http, connection, method, version, held);
    if (*upload_size) return take_body(http, exchange, upload, upload_size);
    if (!exchange->dispatched && exchange->too_large) refuse_body(http, exchange);
    if (!exchange->dispatched && exchange->answer == FR_EXCHANGE_OPEN) {
        exchange->dispatched = true;
        fr_http_link_dispatch(link_of(connection));
        fr_http_hand(http, exchange);
    }
    return respond(http, exchange, connection);
}

void fr_http_completed(void *http, struct MHD_Connection *connection, void **held,
                       enum MHD_RequestTerminationCode why) {
    (void)http;
    (void)why;
    fr_http_exchange *exchange = *held;
    *held = NULL;
    if (!exchange) return;
    fr_http_exchange_detach(exchange);
    fr_http_link_end(link_of(connection), exchange);
    fr_http_exchange_release(exchange);
}
