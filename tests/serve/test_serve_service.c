/* Tests serve as a service of systemd. The server sends messages about its state to systemd, and it can use a socket
 * that systemd has opened. The tests do what systemd would do. */
/* suite: quick */
#include <arpa/inet.h>
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/http_client.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define TARGET "-m tools/demo/target "

static char folder[32], path[64];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-service-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void) {
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Opens the socket on which systemd receives messages. If `abstract` is true, the socket has an abstract name instead
 * of a path. */
static int open_messages(bool abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 60};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s%s", abstract ? "@" : "", path);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address.sun_path));
    if (abstract) address.sun_path[0] = '\0';
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

/* Returns the next message that the server has sent to systemd's socket. The message stays valid until the next
 * call. */
static const char *next_message(int fd) {
    static char text[128];
    ssize_t length = recv(fd, text, sizeof text - 1, 0);
    ck_assert_int_gt(length, 0);
    text[length] = '\0';
    return text;
}

START_TEST(systemd_is_told_the_state) {
    int fd = open_messages(_i);
    setenv("WATCHDOG_USEC", "300000", 1);
    fr_server server = fr_server_start(TARGET);
    ck_assert_str_eq(next_message(fd), "READY=1");
    for (int i = 0; i < 3; i++) ck_assert_str_eq(next_message(fd), "WATCHDOG=1");
    kill(server.process, SIGTERM);
    const char *last = next_message(fd);
    while (strcmp(last, "WATCHDOG=1") == 0) last = next_message(fd);
    ck_assert_str_eq(last, "STOPPING=1");
    ck_assert_int_eq(fr_server_wait(&server), 0);
    close(fd);
}
END_TEST

/* WATCHDOG_PID names another process, so the server must send no messages to the watchdog. */
START_TEST(the_watchdog_of_another_process_is_left_alone) {
    int fd = open_messages(false);
    setenv("WATCHDOG_USEC", "30000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    fr_server server = fr_server_start(TARGET);
    ck_assert_str_eq(next_message(fd), "READY=1");
    usleep(300000);
    fr_server_stop(&server);
    ck_assert_str_eq(next_message(fd), "STOPPING=1");
    close(fd);
}
END_TEST

/* Opens a socket as systemd would, and returns it. Sets *port to its port. */
static int open_socket(int type, bool listens, uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, type, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, size), 0);
    if (listens) ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Writes a program that runs the command with this socket as file descriptor 3, as systemd does. */
static void pass(int fd, const char *process) {
    const char *emulator = getenv("FORERUN_EMULATOR");
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\nexport LISTEN_PID=%s LISTEN_FDS=1\nexec %s \"$@\" 3<&%d\n", process,
            emulator ? emulator : "", fd);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    setenv("FORERUN_EMULATOR", path, 1);
}

START_TEST(a_socket_is_taken_over) {
    uint16_t port;
    int fd = open_socket(SOCK_STREAM, true, &port);
    pass(fd, "$$");
    fr_server server = fr_server_start(TARGET);
    ck_assert_uint_eq(server.port, port);
    ck_assert_int_eq(fr_client_once(port, "GET", "/health", NULL, NULL, NULL), 200);
    fr_server_stop(&server);
    close(fd);
}
END_TEST

START_TEST(a_socket_for_another_process_is_left_alone) {
    uint16_t port;
    int fd = open_socket(SOCK_STREAM, true, &port);
    pass(fd, "1");
    fr_server server = fr_server_start(TARGET);
    ck_assert_uint_ne(server.port, port);
    fr_server_stop(&server);
    close(fd);
}
END_TEST

START_TEST(a_socket_that_does_not_listen_is_refused) {
    uint16_t port;
    int fd = open_socket(_i ? SOCK_DGRAM : SOCK_STREAM, false, &port);
    pass(fd, "$$");
    fr_command c = fr_command_run("serve " TARGET, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_msg(strstr(c.err, "forerun: the socket that was passed to the server"), "%s", c.err);
    fr_command_free(&c);
    close(fd);
}
END_TEST

FR_SUITE("serve service") {
    TCase *tests = tcase_create("service");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, systemd_is_told_the_state, 0, 2);
    tcase_add_test(tests, the_watchdog_of_another_process_is_left_alone);
    tcase_add_test(tests, a_socket_is_taken_over);
    tcase_add_test(tests, a_socket_for_another_process_is_left_alone);
    tcase_add_loop_test(tests, a_socket_that_does_not_listen_is_refused, 0, 2);
    suite_add_tcase(suite, tests);
}
