/* Runs `forerun serve` as a child process, on a free port; a test that fails ends it too.
 *
 * In: the rest of its command line, as fr_command_start takes it. Out: its address. */
#ifndef FR_TESTS_SERVER_H
#define FR_TESTS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct fr_server {
    pid_t process;
    int err; /* a file with everything that it wrote to standard error */
    uint16_t port;
} fr_server;

/* Start a server: the first returns when it listens, the second when it is ready to answer. */
fr_server fr_server_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
fr_server fr_server_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_server_await_ready(const fr_server *server);

/* Returns everything on its standard error so far, a new text. */
char *fr_server_said(const fr_server *server);

/* The first waits for its end and returns the exit status; the second ends it by SIGTERM, which must succeed. */
int fr_server_wait(fr_server *server);
void fr_server_stop(fr_server *server);

#endif
