/* A small HTTP/1.1 client for suites, with a socket of its own. It blocks, and it can break the rules of the protocol.
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
    char *bytes; /* bytes read from the socket; those in [at, size) are still unread; NUL-terminated */
    size_t at, size, room;
    char *head; /* status line and headers of the last answer */
    int status;
    enum { FR_BODY_NONE, FR_BODY_LENGTH, FR_BODY_CHUNKED, FR_BODY_CLOSED } form;
    size_t left; /* bytes of the body, or of its current chunk, that are still to come */
    bool ended, head_only;
} fr_client;

/* Connects to a server. Returns NULL if no server listens there or if it accepts no more connections. */
fr_client *fr_client_open(uint16_t port);

/* fr_client_close closes the connection properly. fr_client_abort resets it (RST), as happens to a process that is
 * killed. */
void fr_client_close(fr_client *client);
void fr_client_abort(fr_client *client);

/* Sends any bytes. Returns false if the server has closed the connection. */
bool fr_client_send(fr_client *client, const void *bytes, size_t length);

/* Sends a request. headers: whole lines, such as "A: b\r\n", or NULL. A Host header and the body's Content-Length are
 * added. body: NULL for none. */
bool fr_client_ask(fr_client *client, const char *method, const char *path, const char *headers, const char *body);

/* Reads the status line and the headers of the next answer, skipping "100 Continue". Returns the status, or 0 if there
 * is no answer. */
int fr_client_head(fr_client *client);

/* Returns a header of the last answer, or NULL if it has none of this name; the caller frees it. */
char *fr_client_header(const fr_client *client, const char *name);

/* Reads the next bytes of the answer's body as soon as there are any. Returns 0 if the body has ended, or -1 if it was
 * cut off. */
ssize_t fr_client_read(fr_client *client, char *bytes, size_t room);

/* Returns the rest of the answer's body, NUL-terminated, or NULL if it was cut off; the caller frees it. */
char *fr_client_body(fr_client *client, size_t *length);

/* Returns true if the server closes the connection within this time. Bytes that it sends until then are dropped. */
bool fr_client_closed(fr_client *client, int milliseconds);

/* Sends a request on a connection of its own. Returns the status. *text becomes the body, unless `text` is NULL. */
int fr_client_once(uint16_t port, const char *method, const char *path, const char *headers, const char *body,
                   char **text);

/* Returns a number of the server's page of metrics, whose name begins there with "llamacpp:". Fails the test if the
 * page lacks it. */
double fr_client_metric(uint16_t port, const char *name);

/* Returns the port of a URL such as "http://127.0.0.1:8080". */
uint16_t fr_client_port(const char *url);

#endif
