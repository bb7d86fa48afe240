/* A small HTTP/1.1 client for suites, over a socket of its own: it blocks, and can break the protocol's rules.
 *
 * In: a port of 127.0.0.1. Out: what the server sent, whole or piece by piece. Nothing waits longer than 30
 * seconds. */
#ifndef FR_TESTS_HTTP_CLIENT_H
#define FR_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct fr_client {
    int fd;
    char *bytes; /* read from the socket: [at, size) not looked at yet, NUL-terminated */
    size_t at, size, room;
    char *head; /* the last answer's status line and headers */
    int status;
    enum { FR_BODY_NONE, FR_BODY_LENGTH, FR_BODY_CHUNKED, FR_BODY_CLOSED } form;
    size_t left; /* bytes that are left of the body or its chunk */
    bool ended, head_only;
} fr_client;

/* Connects. NULL: nobody listens there, or no more connections are accepted. */
fr_client *fr_client_open(uint16_t port);

/* Close properly, or like a process that is killed while its kernel drops the rest (RST). */
void fr_client_close(fr_client *client);
void fr_client_abort(fr_client *client);

/* Sends any bytes. False: the server has closed. */
bool fr_client_send(fr_client *client, const void *bytes, size_t length);

/* Sends a request. `headers` are whole lines, "A: b\r\n", or NULL; a Host and the body's Content-Length are added.
 * body NULL: none. */
bool fr_client_ask(fr_client *client, const char *method, const char *path, const char *headers, const char *body);

/* Reads the status line and headers of the next answer, skipping "100 Continue". Returns the status; 0: there is
 * none. */
int fr_client_head(fr_client *client);

/* Returns a header of that answer, a new text; NULL: it has none. */
char *fr_client_header(const fr_client *client, const char *name);

/* Reads the next bytes of its body, as soon as there are any. 0: it has ended; -1: it was cut off. */
ssize_t fr_client_read(fr_client *client, char *bytes, size_t room);

/* Returns the rest of its body, a new text, NUL-terminated; NULL: it was cut off. */
char *fr_client_body(fr_client *client, size_t *length);

/* True if the server closes the connection within so many milliseconds; bytes that it sends until then are dropped. */
bool fr_client_closed(fr_client *client, int milliseconds);

/* Sends a request on a connection of its own. Returns the status; *text: the body, unless NULL. */
int fr_client_once(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
                   char **text);

/* Returns the port of a URL, "http://127.0.0.1:8080". */
uint16_t fr_client_port(const char *url);

#endif
