/* Implements server.h: runs the server as a child process. */
#include "tests/support/server.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/http_client.h"

/* The test checks the child up to LOOKS times, and waits REST microseconds between two checks. This is 30 seconds in
 * total, because a build with a sanitizer may start slowly. */
enum { LOOKS = 6000, REST = 5000 };

char *fr_server_said(const fr_server *server) {
    struct stat file;
    ck_assert_int_eq(fstat(server->err, &file), 0);
    char *text = calloc((size_t)file.st_size + 1, 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_ge(pread(server->err, text, (size_t)file.st_size, 0), 0);
    return text;
}

/* Returns the port that the server printed, or 0 if it has not printed it yet. */
static uint16_t port_said(const fr_server *server) {
    char *said = fr_server_said(server), *url = strstr(said, "listening on ");
    char *end = url ? strchr(url, '\n') : NULL;
    if (end) *end = '\0';
    uint16_t port = end ? fr_client_port(url) : 0;
    free(said);
    return port;
}

static fr_server begin(const char *format, va_list values) {
    char line[4096] = "serve --port 0 ", path[] = "/tmp/forerun-server-XXXXXX";
    size_t length = strlen(line);
    ck_assert_int_lt(vsnprintf(line + length, sizeof line - length, format, values), (int)(sizeof line - length));
    fr_server server = {.err = mkostemp(path, O_CLOEXEC | O_APPEND)};
    ck_assert_int_ge(server.err, 0);
    unlink(path);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    server.process = fr_command_start(line, null, null, server.err);
    close(null);
    for (int i = 0; (server.port = port_said(&server)) == 0; i++) {
        if (i == LOOKS || waitpid(server.process, NULL, WNOHANG) != 0)
            ck_abort_msg("%s: %s", line, fr_server_said(&server));
        usleep(REST);
    }
    return server;
}

fr_server fr_server_begin(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fr_server server = begin(format, values);
    va_end(values);
    return server;
}

void fr_server_await_ready(const fr_server *server) {
    for (int i = 0; fr_client_once(server->port, "GET", "/health", NULL, NULL, NULL) != 200; i++) {
        if (i == LOOKS) ck_abort_msg("never ready: %s", fr_server_said(server));
        usleep(REST);
    }
}

fr_server fr_server_start(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fr_server server = begin(format, values);
    va_end(values);
    fr_server_await_ready(&server);
    return server;
}

int fr_server_wait(fr_server *server) {
    int status = fr_command_wait(server->process);
    server->process = -1;
    return status;
}

void fr_server_stop(fr_server *server) {
    ck_assert_int_eq(kill(server->process, SIGTERM), 0);
    int status = fr_server_wait(server);
    ck_assert_msg(status == 0, "exit status %d: %s", status, fr_server_said(server));
    close(server->err);
}
