/* What a call asks for: its method, its path, its query and its body, as they come from a connection (call_parts.h). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/output.h"
#include "tools/serve/call_parts.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A new text with its %XX read, and '+' as a blank where that is so; NULL where a %XX is none, or a NUL. */
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

static bool add_query(fr_call *call, const char *pair, size_t length) {
    const char *equals = memchr(pair, '=', length);
    size_t name = equals ? (size_t)(equals - pair) : length;
    fr_call_pair read = {.name = unescape(pair, name, true)};
    read.value = equals ? unescape(equals + 1, length - name - 1, true) : unescape("", 0, true);
    call->query.list = fr_resize(call->query.list, call->query.count + 1, sizeof(*call->query.list));
    call->query.list[call->query.count++] = read;
    return read.name && read.value;
}

static bool read_query(fr_call *call, const char *query) {
    while (*query) {
        size_t length = strcspn(query, "&");
        if (length && !add_query(call, query, length)) return false;
        query += length + (query[length] != '\0');
    }
    return true;
}

const char *fr_call_authority(const char *target, size_t *length) {
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

bool fr_call_read_line(fr_call *call, const char *method, const char *target) {
    size_t authority;
    const char *host = fr_call_authority(target, &authority);
    if (host) target = host + authority;
    size_t length = strcspn(target, "?");
    bool server = strcmp(method, "OPTIONS") == 0 && strcmp(target, "*") == 0, rootless = host && length == 0;
    call->head = strcmp(method, "HEAD") == 0;
    call->method = fr_call_copy(call->head ? "GET" : method);
    call->path = rootless ? fr_call_copy("/") : unescape(target, length, false);
    if (!call->path || (*target != '/' && !server && !rootless)) return false;
    return !target[length] || read_query(call, target + length + 1);
}

bool fr_call_add_body(fr_call *call, const char *bytes, size_t length, size_t limit) {
    if (length > limit || call->length > limit - length) return false;
    size_t needed = call->length + length;
    if (needed > call->capacity) {
        size_t room = call->capacity ? call->capacity : 4096;
        while (room < needed) room *= 2;
        if (call->bodies) atomic_fetch_add(call->bodies, room - call->capacity);
        call->body = fr_resize(call->body, room + 1, 1);
        call->capacity = room;
    }
    memcpy(call->body + call->length, bytes, length);
    call->length = needed;
    call->body[needed] = '\0';
    return true;
}

void fr_call_keep(fr_call *call, json_t *body) {
    json_decref(call->kept);
    call->kept = body;
}

json_t *fr_call_kept(fr_call *call) {
    json_t *body = call->kept;
    call->kept = NULL;
    return body;
}

const char *fr_call_method(const fr_call *call) {
    return call->method;
}

const char *fr_call_path(const fr_call *call) {
    return call->path;
}

const char *fr_call_query(const fr_call *call, const char *key) {
    for (size_t i = 0; i < call->query.count; i++) {
        if (strcmp(call->query.list[i].name, key) == 0) return call->query.list[i].value;
    }
    return NULL;
}

const char *fr_call_has(const fr_call *call) {
    return call->has;
}

const char *fr_call_body(const fr_call *call, size_t *length) {
    *length = call->length;
    return call->body ? call->body : "";
}
