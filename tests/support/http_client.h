/* A small HTTP/1.1 client for suites, with its own socket. Its functions block. It can also break the rules of the
 * protocol.
 *
 * In: a port of 127.0.0.1. Out: the bytes that the server sent, whole or chunk by chunk. No function waits longer than
 * 30 seconds. */
#ifndef FR_TESTS_HTTP_CLIENT_H
#define FR_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct fr_client {
    int fd;
    char *bytes; /* bytes from the socket, NUL-terminated; those at `at` to size - 1 are unread */
    size_t at, size, room;
    char *head; /* status line and headers of the last answer */
    int status;
    enum { FR_BODY_NONE, FR_BODY_LENGTH, FR_BODY_CHUNKED, FR_BODY_CLOSED } form;
    size_t left; /* number of bytes still to come of the body, or of its current chunk */
    bool ended, head_only;
} fr_client;

/* Connects to a server. Returns NULL if no server listens there, or if the server accepts no more connections. */
fr_client *fr_client_open(uint16_t port);

/* fr_client_close closes the connection properly. fr_client_abort resets it (RST), as happens when a process is
 * killed. */
void fr_client_close(fr_client *client);
void fr_client_abort(fr_client *client);

/* Sends any bytes. Returns false if the server has closed the connection. */
bool fr_client_send(fr_client *client, const void *bytes, size_t length);

/* Sends a request. `headers` are whole lines, such as "A: b\r\n", or NULL. A Host header and the body's Content-Length
 * are added. If `body` is NULL, the request has no body. */
bool fr_client_ask(fr_client *client, const char *method, const char *path, const char *headers, const char *body);

/* Reads the status line and the headers of the next answer. Skips "100 Continue". Returns the status, or 0 if there is
 * no answer. */
int fr_client_head(fr_client *client);

/* Returns a header of the last answer. Returns NULL if the answer has no header of this name. The caller frees the
 * result. */
char *fr_client_header(const fr_client *client, const char *name);

/* Reads the next bytes of the answer's body as soon as some have come. Returns 0 if the body has ended, or -1 if it was
 * cut off. */
ssize_t fr_client_read(fr_client *client, char *bytes, size_t room);

/* Returns the rest of the answer's body, NUL-terminated. Returns NULL if the body was cut off. The caller frees the
 * result. */
char *fr_client_body(fr_client *client, size_t *length);

/* Returns true if the server closes the connection within this time. Bytes that the server sends meanwhile are
 * dropped. */
bool fr_client_closed(fr_client *client, int milliseconds);

/* Sends a request on a new connection. Returns the status. If `text` is not NULL, sets *text to the body. */
int fr_client_once(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
                   char **text);

/* Returns a number of the server's page of metrics. On the page its name begins with "llamacpp:". Fails the test if the
 * page lacks the number. */
double fr_client_metric(uint16_t port, const char *name);

/* Returns the port of a URL such as "http://127.0.0.1:8080". */
uint16_t fr_client_port(const char *url);

#endif
