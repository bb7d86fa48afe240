/* Reads the request of an exchange: its method, path, query and body, as a connection receives them
 * (http_exchange_parts.h). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/output.h"
#include "tools/serve/http_exchange_parts.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX into a new text. If `plus` is true, '+' becomes a blank. NULL: a %XX is malformed, or its value is a
 * NUL. */
static char *unescape(const char *bytes, size_t length, bool plus) {
    char *text = fr_resize(NULL, length + 1, 1), *out = text;
    for (size_t i = 0; i < length; i++) {
        char c = plus && bytes[i] == '+' ? ' ' : bytes[i];
        if (c == '%') {
            int high = length - i > 2 ? hex_digit(bytes[i + 1]) : -1;
            int low = length - i > 2 ? hex_digit(bytes[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                free(text);
                return NULL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    return text;
}

static bool add_query(fr_http_exchange *exchange, const char *pair, size_t length) {
    const char *equals = memchr(pair, '=', length);
    size_t name = equals ? (size_t)(equals - pair) : length;
    fr_http_exchange_pair read = {.name = unescape(pair, name, true)};
    read.value = equals ? unescape(equals + 1, length - name - 1, true) : unescape("", 0, true);
    exchange->query.list = fr_resize(exchange->query.list, exchange->query.count + 1, sizeof(*exchange->query.list));
    exchange->query.list[exchange->query.count++] = read;
    return read.name && read.value;
}

static bool read_query(fr_http_exchange *exchange, const char *query) {
    while (*query) {
        size_t length = strcspn(query, "&");
        if (length && !add_query(exchange, query, length)) return false;
        query += length + (query[length] != '\0');
    }
    return true;
}

const char *fr_http_authority(const char *target, size_t *length) {
    static const char *const schemes[] = {"http://", "https://"};
    *length = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t begin = strlen(schemes[i]);
        if (strncasecmp(target, schemes[i], begin) != 0) continue;
        *length = strcspn(target + begin, "/?");
        return *length ? target + begin : NULL;
    }
    return NULL;
}

bool fr_http_exchange_read_line(fr_http_exchange *exchange, const char *method, const char *target) {
    size_t authority;
    const char *host = fr_http_authority(target, &authority);
    if (host) target = host + authority;
    size_t length = strcspn(target, "?");
    bool server = strcmp(method, "OPTIONS") == 0 && strcmp(target, "*") == 0, rootless = host && length == 0;
    exchange->head = strcmp(method, "HEAD") == 0;
    exchange->method = fr_http_copy_text(exchange->head ? "GET" : method);
    exchange->path = rootless ? fr_http_copy_text("/") : unescape(target, length, false);
    if (!exchange->path || (*target != '/' && !server && !rootless)) return false;
    return !target[length] || read_query(exchange, target + length + 1);
}

bool fr_http_exchange_add_body(fr_http_exchange *exchange, const char *bytes, size_t length, size_t limit) {
    if (length > limit || exchange->length > limit - length) return false;
    size_t needed = exchange->length + length;
    if (needed > exchange->capacity) {
        size_t room = exchange->capacity ? exchange->capacity : 4096;
        while (room < needed) room *= 2;
        if (exchange->bodies) atomic_fetch_add(exchange->bodies, room - exchange->capacity);
        exchange->body = fr_resize(exchange->body, room + 1, 1);
        exchange->capacity = room;
    }
    memcpy(exchange->body + exchange->length, bytes, length);
    exchange->length = needed;
    exchange->body[needed] = '\0';
    return true;
}

void fr_http_exchange_keep(fr_http_exchange *exchange, json_t *body) {
    json_decref(exchange->kept);
    exchange->kept = body;
}

json_t *fr_http_exchange_kept(fr_http_exchange *exchange) {
    json_t *body = exchange->kept;
    exchange->kept = NULL;
    return body;
}

const char *fr_http_exchange_method(const fr_http_exchange *exchange) {
    return exchange->method;
}

const char *fr_http_exchange_path(const fr_http_exchange *exchange) {
    return exchange->path;
}

const char *fr_http_exchange_query(const fr_http_exchange *exchange, const char *key) {
    for (size_t i = 0; i < exchange->query.count; i++) {
        if (strcmp(exchange->query.list[i].name, key) == 0) return exchange->query.list[i].value;
    }
    return NULL;
}

const char *fr_http_exchange_has(const fr_http_exchange *exchange) {
    return exchange->has;
}

const char *fr_http_exchange_body(const fr_http_exchange *exchange, size_t *length) {
    *length = exchange->length;
    return exchange->body ? exchange->body : "";
}
