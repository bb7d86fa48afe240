/* Implements http_client.h, a small HTTP/1.1 client for suites. */
#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE 30 /* longest wait for the server, in seconds */

fr_client *fr_client_open(uint16_t port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return NULL;
    }
    fr_client *client = calloc(1, sizeof(*client));
    client->fd = fd;
    return client;
}

void fr_client_close(fr_client *client) {
    if (!client) return;
    close(client->fd);
    free(client->bytes);
    free(client->head);
    free(client);
}

void fr_client_abort(fr_client *client) {
    struct linger reset = {.l_onoff = 1};
    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    fr_client_close(client);
}

bool fr_client_send(fr_client *client, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length) {
        ssize_t sent = send(client->fd, at, length, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
        length -= (size_t)sent;
    }
    return true;
}

bool fr_client_ask(fr_client *client, const char *method, const char *path, const char *headers, const char *body) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "%s %s HTTP/1.1\r\n%s", method, path, headers ? headers : "");
    if (!headers || !strcasestr(headers, "host:")) fputs("Host: localhost\r\n", out);
    if (body) fprintf(out, "Content-Length: %zu\r\n", strlen(body));
    fprintf(out, "\r\n%s", body ? body : "");
    fclose(out);
    client->head_only = strcmp(method, "HEAD") == 0;
    bool sent = fr_client_send(client, text, size);
    free(text);
    return sent;
}

/* Reads more bytes from the socket. Returns 0 if the socket was closed. Returns -1 at an error, or if no bytes came in
 * time. */
static ssize_t fill(fr_client *client) {
    if (client->at == client->size) client->at = client->size = 0;
    if (client->size + 4096 + 1 > client->room) {
        client->room = 2 * client->room + 8192;
        client->bytes = realloc(client->bytes, client->room);
        ck_assert_ptr_nonnull(client->bytes);
    }
    ssize_t got = recv(client->fd, client->bytes + client->size, 4096, 0);
    if (got > 0) client->size += (size_t)got;
    if (client->bytes) client->bytes[client->size] = '\0';
    return got;
}

/* Returns the position after the next `end`, which is "\r\n" or an empty line. Returns NULL if the server does not send
 * one. */
static char *find(fr_client *client, const char *end) {
    for (;;) {
        char *found = client->size > client->at ? strstr(client->bytes + client->at, end) : NULL;
        if (found) return found + strlen(end);
        if (fill(client) <= 0) return NULL;
    }
}

char *fr_client_header(const fr_client *client, const char *name) {
    size_t length = strlen(name);
    for (const char *line = client->head; line && (line = strstr(line, "\r\n"));) {
        line += 2;
        if (strncasecmp(line, name, length) != 0 || line[length] != ':') continue;
        const char *value = line + length + 1 + strspn(line + length + 1, " ");
        return strndup(value, strcspn(value, "\r"));
    }
    return NULL;
}

static void see_form(fr_client *client) {
    char *length = fr_client_header(client, "Content-Length");
    char *encoding = fr_client_header(client, "Transfer-Encoding");
    client->left = length ? strtoull(length, NULL, 10) : 0;
    if (client->head_only || client->status == 204)
        client->form = FR_BODY_NONE;
    else if (encoding)
        client->form = FR_BODY_CHUNKED;
    else if (length)
        client->form = FR_BODY_LENGTH;
    else
        client->form = FR_BODY_CLOSED;
    client->ended = client->form == FR_BODY_NONE || (client->form == FR_BODY_LENGTH && client->left == 0);
    free(length);
    free(encoding);
}

int fr_client_head(fr_client *client) {
    do {
        char *end = find(client, "\r\n\r\n");
        if (!end) return 0;
        free(client->head);
        client->head = strndup(client->bytes + client->at, (size_t)(end - client->bytes) - client->at);
        client->at = (size_t)(end - client->bytes);
        if (strncmp(client->head, "HTTP/1.", 7) != 0 || strlen(client->head) < 12) return 0;
        client->status = (int)strtol(client->head + 9, NULL, 10);
    } while (client->status == 100);
    see_form(client);
    return client->status;
}

/* Reads the line with the size of the next chunk. Returns false if this line is missing, or if the line after the last
 * chunk is missing. */
static bool next_chunk(fr_client *client) {
    char *end = find(client, "\r\n");
    if (!end) return false;
    client->left = strtoull(client->bytes + client->at, NULL, 16);
    client->at = (size_t)(end - client->bytes);
    if (client->left) return true;
    client->ended = true;
    end = find(client, "\r\n");
    if (end) client->at = (size_t)(end - client->bytes);
    return end != NULL;
}

static bool skip_line_end(fr_client *client) {
    char *end = find(client, "\r\n");
    if (end) client->at = (size_t)(end - client->bytes);
    return end != NULL;
}

ssize_t fr_client_read(fr_client *client, char *bytes, size_t room) {
    if (!client->ended && client->form == FR_BODY_CHUNKED && client->left == 0 && !next_chunk(client)) return -1;
    if (client->ended) return 0;
    if (client->at == client->size) {
        ssize_t got = fill(client);
        if (got < 0 || (got == 0 && client->form != FR_BODY_CLOSED)) return -1;
        if (got == 0) client->ended = true;
    }
    size_t length = client->size - client->at;
    if (client->form != FR_BODY_CLOSED && length > client->left) length = client->left;
    if (length > room) length = room;
    memcpy(bytes, client->bytes + client->at, length);
    client->at += length;
    if (client->form == FR_BODY_CLOSED) return (ssize_t)length;
    client->left -= length;
    if (client->left == 0 && client->form == FR_BODY_LENGTH) client->ended = true;
    if (client->left == 0 && client->form == FR_BODY_CHUNKED && !skip_line_end(client)) return -1;
    return (ssize_t)length;
}

char *fr_client_body(fr_client *client, size_t *length) {
    size_t size = 0, room = 65536;
    char *text = malloc(room + 1);
    for (ssize_t got; (got = fr_client_read(client, text + size, room - size)) != 0;) {
        if (got < 0) {
            free(text);
            return NULL;
        }
        size += (size_t)got;
        if (room - size < 4096) text = realloc(text, (room *= 2) + 1);
        ck_assert_ptr_nonnull(text);
    }
    text[size] = '\0';
    if (length) *length = size;
    return text;
}

bool fr_client_closed(fr_client *client, int milliseconds) {
    struct pollfd socket = {.fd = client->fd, .events = POLLIN};
    char bytes[4096];
    while (poll(&socket, 1, milliseconds) > 0) {
        if (recv(client->fd, bytes, sizeof(bytes), 0) <= 0) return true;
    }
    return false;
}

int fr_client_once(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
                   char **text) {
    fr_client *client = fr_client_open(port);
    if (text) *text = NULL;
    if (!client) return 0;
    fr_client_ask(client, method, path, headers, body);
    int status = fr_client_head(client);
    if (status && text) *text = fr_client_body(client, NULL);
    fr_client_close(client);
    return status;
}

double fr_client_metric(uint16_t port, const char *name) {
    char *page, key[128];
    ck_assert_int_eq(fr_client_once(port, "GET", "/metrics", NULL, NULL, &page), 200);
    snprintf(key, sizeof key, "\nllamacpp:%s ", name);
    const char *line = strstr(page, key);
    ck_assert_ptr_nonnull(line);
    double value = strtod(line + strlen(key), NULL);
    free(page);
    return value;
}

uint16_t fr_client_port(const char *url) {
    return (uint16_t)strtol(strrchr(url, ':') + 1, NULL, 10);
}
