/* Runs `forerun serve` as a child process on a free port. When a test fails, the child ends too.
 *
 * In: the rest of the command line, in the format of fr_command_start. Out: the server's port. */
#ifndef FR_TESTS_SERVER_H
#define FR_TESTS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct fr_server {
    pid_t process;
    int err; /* file with the standard error of the server */
    uint16_t port;
} fr_server;

/* These functions start a server. fr_server_begin returns as soon as the server listens. fr_server_start returns when
 * the server is ready to answer. */
fr_server fr_server_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
fr_server fr_server_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_server_await_ready(const fr_server *server);

/* Returns all that the server has written to standard error so far. The caller frees it. */
char *fr_server_said(const fr_server *server);

/* fr_server_wait waits until the server ends and returns its exit status. fr_server_stop ends the server with SIGTERM
 * and checks that it ends properly. */
int fr_server_wait(fr_server *server);
void fr_server_stop(fr_server *server);

#endif
