/* Runs `forerun serve` as a child process on a free port. The child ends too when a test fails.
 *
 * In: the rest of the command line, in the format of fr_command_start. Out: the server's port. */
#ifndef FR_TESTS_SERVER_H
#define FR_TESTS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct fr_server {
    pid_t process;
    int err; /* file with everything that the server wrote to standard error */
    uint16_t port;
} fr_server;

/* These functions start a server. fr_server_begin returns when the server listens, fr_server_start when it is ready to
 * answer. */
fr_server fr_server_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
fr_server fr_server_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_server_await_ready(const fr_server *server);

/* Returns everything that the server has written to standard error so far; the caller frees it. */
char *fr_server_said(const fr_server *server);

/* fr_server_wait waits for the end of the server and returns the exit status. fr_server_stop ends the server by
 * SIGTERM and checks that it ends properly. */
int fr_server_wait(fr_server *server);
void fr_server_stop(fr_server *server);

#endif
