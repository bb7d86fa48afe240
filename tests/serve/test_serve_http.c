/* Tests tools/serve/http and http_exchange by requests over sockets. The server of this test gives trivial answers. The
 * tests check which clients may connect, how much they may send and how long they may take. They also check answers
 * from other threads, and clients that break the rules, stop or disconnect. */
/* suite: hostile threads native links=command */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/http_client.h"
#include "tests/support/suite.h"
#include "tools/serve/fault.h"
#include "tools/serve/http.h"
#include "tools/serve/http_exchange.h"
#include "tools/serve/keys.h"
#include "tools/serve/tls.h"

#define JSON  "application/json; charset=utf-8"
#define LIMIT 100000         /* largest body in bytes */
#define LONG  (1024 * 16384) /* more than any socket's buffer */

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void rest(double seconds) {
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* -------------------------------------------------------------------------------- the test's server and its threads */

typedef void work(fr_http_exchange *exchange);

typedef struct job {
    work *work;
    fr_http_exchange *exchange;
} job;

/* The state of a test, shared with the server's threads. Each test runs in its own process. */
static struct {
    fr_http *http;
    uint16_t port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int jobs;     /* number of threads that still have an exchange */
    int vanished; /* clients that disconnected */
    int seen;     /* number of pieces that the test has read */
    bool let_go;
} toy = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *run_job(void *context) {
    job *j = context;
    j->work(j->exchange);
    fr_http_exchange_release(j->exchange);
    free(j);
    pthread_mutex_lock(&toy.lock);
    toy.jobs--;
    pthread_cond_broadcast(&toy.changed);
    pthread_mutex_unlock(&toy.lock);
    return NULL;
}

/* Passes an exchange to another thread, which continues it with `function`. */
static void pass_on(fr_http_exchange *exchange, work *function) {
    job *j = malloc(sizeof(*j));
    *j = (job){.work = function, .exchange = exchange};
    fr_http_exchange_hold(exchange);
    pthread_mutex_lock(&toy.lock);
    toy.jobs++;
    pthread_mutex_unlock(&toy.lock);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_job, j), 0);
    pthread_detach(thread);
}

static void set_text(json_t *object, const char *key, const char *value) {
    json_object_set_new(object, key, value ? json_string(value) : json_null());
}

static void echo(fr_http_exchange *exchange) {
    size_t length;
    const char *body = fr_http_exchange_body(exchange, &length);
    json_t *value = json_object();
    set_text(value, "method", fr_http_exchange_method(exchange));
    set_text(value, "path", fr_http_exchange_path(exchange));
    set_text(value, "a", fr_http_exchange_query(exchange, "a"));
    set_text(value, "b", fr_http_exchange_query(exchange, "b"));
    json_object_set_new(value, "length", json_integer((json_int_t)length));
    json_object_set_new(value, "body", json_stringn(body, length < 1000 ? length : 1000));
    fr_http_exchange_answer_json(exchange, 200, value);
}

static void echo_late(fr_http_exchange *exchange) {
    const char *wait = fr_http_exchange_query(exchange, "wait");
    rest((double)strtol(wait ? wait : "0", NULL, 10) / 1000);
    echo(exchange);
}

/* Sends some pieces, 60 ms apart. If nothing has been written for 50 ms, the server itself sends a ping. */
static void stream(fr_http_exchange *exchange) {
    const char *count = fr_http_exchange_query(exchange, "a");
    fr_http_exchange_begin(exchange, "text/event-stream");
    for (long i = 0; i < strtol(count ? count : "3", NULL, 10); i++) {
        char piece[32];
        int length = snprintf(piece, sizeof(piece), "data: %ld\n\n", i);
        fr_http_exchange_write(exchange, piece, (size_t)length);
        rest(0.06);
        if (fr_http_exchange_silent(exchange) >= 0.05) fr_http_exchange_write(exchange, ":\n\n", 3);
    }
    fr_http_exchange_end(exchange);
}

/* Sends each piece after the test has read the previous one. */
static void stream_in_turn(fr_http_exchange *exchange) {
    fr_http_exchange_begin(exchange, "text/event-stream");
    pthread_mutex_lock(&toy.lock);
    for (int i = 0; i < 50; i++) {
        while (toy.seen < i) pthread_cond_wait(&toy.changed, &toy.lock);
        fr_http_exchange_write(exchange, "data: x\n\n", 9);
    }
    pthread_mutex_unlock(&toy.lock);
    fr_http_exchange_end(exchange);
}

/* Sends a long stream in pieces, as an engine would write them. */
static void flood(fr_http_exchange *exchange) {
    static const char piece[16384] = "x";
    fr_http_exchange_begin(exchange, "text/plain");
    for (size_t i = 0; i < LONG / sizeof(piece) && !fr_http_exchange_gone(exchange); i++)
        fr_http_exchange_write(exchange, piece, sizeof(piece));
    while (!fr_http_exchange_gone(exchange) && fr_http_exchange_unread(exchange)) rest(0.02);
    if (fr_http_exchange_gone(exchange)) {
        pthread_mutex_lock(&toy.lock);
        toy.vanished++;
        pthread_mutex_unlock(&toy.lock);
    }
    fr_http_exchange_end(exchange);
}

/* Sends LONG bytes in one answer. */
static void answer_long(fr_http_exchange *exchange) {
    char *bytes = calloc(1, LONG);
    fr_http_exchange_answer(exchange, 200, "text/plain", bytes, LONG);
    free(bytes);
}

/* Waits until the client has disconnected, or until the test permits an answer. */
static void linger(fr_http_exchange *exchange) {
    bool gone = false, go = false;
    while (!gone && !go) {
        rest(0.01);
        gone = fr_http_exchange_gone(exchange);
        pthread_mutex_lock(&toy.lock);
        toy.vanished += gone;
        go = toy.let_go;
        pthread_mutex_unlock(&toy.lock);
    }
    echo(exchange);
}

static void drop(fr_http_exchange *exchange) {
    rest(0.02);
    (void)exchange;
}

static void drop_half(fr_http_exchange *exchange) {
    fr_http_exchange_begin(exchange, "text/plain");
    fr_http_exchange_write(exchange, "half", 4);
    rest(0.02);
}

static void echo_with_texts(fr_http_exchange *exchange) {
    fr_http_exchange_note_texts(exchange, &(fr_http_exchange_texts){.generated = 7, .end = "length"});
    echo(exchange);
}

static void answer(void *context, fr_http_exchange *exchange) {
    (void)context;
    const char *path = fr_http_exchange_path(exchange);
    if (strcmp(path, "/late") == 0)
        pass_on(exchange, echo_late);
    else if (strcmp(path, "/stream") == 0)
        pass_on(exchange, stream);
    else if (strcmp(path, "/turns") == 0)
        pass_on(exchange, stream_in_turn);
    else if (strcmp(path, "/flood") == 0)
        pass_on(exchange, flood);
    else if (strcmp(path, "/linger") == 0)
        pass_on(exchange, linger);
    else if (strcmp(path, "/drop") == 0)
        pass_on(exchange, drop);
    else if (strcmp(path, "/half") == 0)
        pass_on(exchange, drop_half);
    else if (strcmp(path, "/long") == 0)
        answer_long(exchange);
    else if (strcmp(path, "/busy") == 0)
        linger(exchange);
    else if (strcmp(path, "/refuse") == 0)
        fr_http_exchange_refuse(exchange, 404, "no such thing: %s", "it \"is\" not");
    else if (strcmp(path, "/texts") == 0)
        echo_with_texts(exchange);
    else if (strcmp(path, "/nothing") != 0)
        echo(exchange);
}

static bool is_slow(const char *body, size_t length) {
    return length == 4 && memcmp(body, "slow", 4) == 0;
}

static bool is_open(const char *path) {
    return strcmp(path, "/health") == 0;
}

static fr_http_setting usual(void) {
    return (fr_http_setting){.host = "127.0.0.1",
                             .body_limit = LIMIT,
                             .connections = 200,
                             .per_address = 200,
                             .timeout = 20,
                             .is_open = is_open,
                             .is_slow = is_slow,
                             .answer = answer};
}

static void start(fr_http_setting setting) {
    ck_assert_int_eq(fr_http_open(&setting, &toy.http), 0);
    toy.port = fr_client_port(fr_http_url(toy.http));
}

static void wait_for_jobs(void) {
    pthread_mutex_lock(&toy.lock);
    while (toy.jobs) pthread_cond_wait(&toy.changed, &toy.lock);
    pthread_mutex_unlock(&toy.lock);
}

static void stop(void) {
    fr_http_refuse_new(toy.http);
    wait_for_jobs();
    fr_http_close(toy.http);
}

static int vanished(void) {
    pthread_mutex_lock(&toy.lock);
    int count = toy.vanished;
    pthread_mutex_unlock(&toy.lock);
    return count;
}

/* The server's reports about exchanges: the last few lines, and the total number of lines. */
static struct {
    pthread_mutex_t lock;
    char lines[8][256];
    size_t count;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_report(void *context, const fr_http_exchange_report *report) {
    (void)context;
    pthread_mutex_lock(&told.lock);
    snprintf(told.lines[told.count++ % 8], sizeof told.lines[0], "%s %s %s %u %s %zu", report->client, report->method,
             report->path, report->status, report->error, report->texts ? report->texts->generated : 0);
    pthread_mutex_unlock(&told.lock);
}

/* ------------------------------------------------------------------------------------------------- sending requests */

static fr_client *connect_to(void) {
    fr_client *client = fr_client_open(toy.port);
    ck_assert_ptr_nonnull(client);
    return client;
}

static void check_header(fr_client *client, const char *name, const char *value) {
    char *got = fr_client_header(client, name);
    if (value)
        ck_assert_pstr_eq(got, value);
    else
        ck_assert_ptr_null(got);
    free(got);
}

/* Reads the rest of an answer, which must be a JSON object. */
static json_t *read_json(fr_client *client) {
    check_header(client, "Content-Type", JSON);
    size_t length;
    char *text = fr_client_body(client, &length);
    ck_assert_ptr_nonnull(text);
    json_t *value = json_loadb(text, length, 0, NULL);
    ck_assert_msg(json_is_object(value), "%s", text);
    free(text);
    return value;
}

static void check_text(const json_t *object, const char *key, const char *value) {
    ck_assert_pstr_eq(json_string_value(json_object_get(object, key)), value);
}

/* Checks that the server itself refused the request, with an error of this status and type. */
static void check_refused(fr_client *client, int status, const char *type) {
    ck_assert_int_eq(fr_client_head(client), status);
    check_header(client, "Server", "forerun");
    json_t *value = read_json(client), *error = json_object_get(value, "error");
    ck_assert_int_eq(json_integer_value(json_object_get(error, "code")), status);
    ck_assert(json_is_string(json_object_get(error, "message")));
    check_text(error, "type", type);
    json_decref(value);
}

static void check_asked(const char *method, const char *path, const char *headers, const char *body, int status,
                        const char *type) {
    fr_client *client = connect_to();
    fr_client_ask(client, method, path, headers, body);
    if (type)
        check_refused(client, status, type);
    else
        ck_assert_int_eq(fr_client_head(client), status);
    fr_client_close(client);
}

static void check_alive(void) {
    double before = now();
    ck_assert_int_eq(fr_client_once(toy.port, "GET", "/", NULL, NULL, NULL), 200);
    ck_assert_double_lt(now() - before, 8);
}

/* ---------------------------------------------------------------------------------------------------- whole answers */

START_TEST(requests_are_read) {
    start(usual());
    fr_client *client = connect_to();
    fr_client_ask(client, "POST", "/a%20b/c?a=x%26y+z&b&c=", NULL, "{\"k\": 1}");
    ck_assert_int_eq(fr_client_head(client), 200);
    check_header(client, "Server", "forerun");
    json_t *value = read_json(client);
    check_text(value, "method", "POST");
    check_text(value, "path", "/a b/c");
    check_text(value, "a", "x&y z");
    check_text(value, "b", "");
    check_text(value, "body", "{\"k\": 1}");
    json_decref(value);
    for (int i = 0; i < 3; i++) { /* sends three requests on one connection, which stays open */
        fr_client_ask(client, "GET", i == 1 ? "/late?wait=10" : "/x", NULL, NULL);
        ck_assert_int_eq(fr_client_head(client), 200);
        value = read_json(client);
        check_text(value, "method", "GET");
        ck_assert(json_is_null(json_object_get(value, "a")));
        json_decref(value);
    }
    fr_client_ask(client, "GET", "/refuse", NULL, NULL);
    check_refused(client, 404, "not_found_error");
    fr_client_ask(client, "HEAD", "/x", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    char *length = fr_client_header(client, "Content-Length");
    ck_assert_int_gt(strtol(length, NULL, 10), 50);
    free(length);
    fr_client_ask(client, "HEAD", "/stream", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    fr_client_ask(client, "GET", "/x", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    fr_client_close(client);
    stop();
}
END_TEST

START_TEST(requests_come_in_any_pieces) {
    start(usual());
    static const char text[] = "POST /late?wait=5 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n"
                               "GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n";
    fr_client *client = connect_to();
    for (const char *at = text; *at; at++) ck_assert(fr_client_send(client, at, 1));
    ck_assert_int_eq(fr_client_head(client), 200);
    json_t *value = read_json(client);
    check_text(value, "body", "hello world");
    json_decref(value);
    ck_assert_int_eq(fr_client_head(client), 200);
    value = read_json(client);
    check_text(value, "path", "/second");
    json_decref(value);
    fr_client_close(client);
    stop();
}
END_TEST

START_TEST(malformed_targets_are_refused) {
    start(usual());
    static const char *const targets[] = {"/a%",
                                          "/a%1",
                                          "/a%zz",
                                          "/a%00b",
                                          "/?a=%0",
                                          "/?a%00=1",
                                          "x",
                                          "*",
                                          "http://",
                                          "http:///a",
                                          "http://localhost/%zz",
                                          "ftp://localhost/"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        check_asked("GET", targets[i], NULL, NULL, 400, "invalid_request_error");
    }
    static const char nul[] = "GET /health\0/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    fr_client *client = connect_to();
    fr_client_send(client, nul, sizeof(nul) - 1);
    check_refused(client, 400, "invalid_request_error");
    fr_client_close(client);
    check_alive();
    stop();
}
END_TEST

/* The target of a request may have the name of a server before its path. This name must be an allowed one, as in a Host
 * header. */
START_TEST(targets_may_be_absolute) {
    static const char *const targets[][2] = {{"http://localhost/a?b=c", "/a"},
                                             {"HTTP://127.0.0.1:80/a%20b", "/a b"},
                                             {"http://localhost", "/"},
                                             {"https://[::1]:8080?b=c", "/"}};
    start(usual());
    fr_client *client = connect_to();
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        fr_client_ask(client, "GET", targets[i][0], NULL, NULL);
        ck_assert_int_eq(fr_client_head(client), 200);
        json_t *value = read_json(client);
        check_text(value, "path", targets[i][1]);
        json_decref(value);
    }
    fr_client_close(client);
    check_asked("GET", "http://a.example/", "Host: localhost\r\n", NULL, 403, "permission_error");
    check_asked("GET", "http://localhost@a.example/", NULL, NULL, 403, "permission_error");
    stop();
}
END_TEST

/* If headers are too long, the refusal has the format of all errors. But if a request is too large for libmicrohttpd's
 * own memory, libmicrohttpd refuses it in its own format. */
START_TEST(long_headers_are_refused_as_json) {
    static const struct {
        size_t target, headers;
        int status;
    } cases[] = {{15000, 30000, 200}, {20000, 10, 414}, {10, 60000, 431}, {10, 90000, 431}};
    start(usual());
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *target = malloc(cases[i].target + 2), *headers = malloc(cases[i].headers + 8);
        memset(target, 'x', cases[i].target);
        *target = '/';
        target[cases[i].target] = '\0';
        memset(headers, 'x', cases[i].headers);
        memcpy(headers, "X: ", 3);
        memcpy(headers + cases[i].headers, "\r\n", 3);
        const char *type = cases[i].status == 200 ? NULL : "invalid_request_error";
        check_asked("GET", target, headers, NULL, cases[i].status, type);
        free(target);
        free(headers);
    }
    stop();
}
END_TEST

START_TEST(large_headers_are_refused) {
    start(usual());
    size_t size = 200000;
    char *headers = malloc(size + 16);
    memcpy(headers, "X: ", 3);
    memset(headers + 3, 'x', size);
    memcpy(headers + size, "\r\n", 3);
    fr_client *client = connect_to();
    fr_client_ask(client, "GET", "/", headers, NULL);
    int status = fr_client_head(client);
    ck_assert_msg(status == 431 || status == 413 || status == 414 || status == 0, "%d", status);
    fr_client_close(client);
    free(headers);
    check_alive();
    stop();
}
END_TEST

/* ------------------------------------------------------------------------------------------ hosts, origins and keys */

START_TEST(keys_are_needed) {
    static const char *const keys[] = {"sk-first", "second", NULL};
    fr_http_setting setting = usual();
    setting.keys = keys;
    start(setting);
    static const char *const wrong[] = {NULL,
                                        "X-Api-Key: \r\n",
                                        "X-Api-Key: secon\r\n",
                                        "X-Api-Key: second1\r\n",
                                        "Authorization: second\r\n",
                                        "Authorization: Basic second\r\n",
                                        "Authorization: Bearer\r\n",
                                        "Authorization: Bearer sk-firs\r\n",
                                        "Authorization: Bearer sk-first,second\r\n",
                                        "X-Api-Key: secondsecond\r\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        check_asked("GET", "/", wrong[i], NULL, 401, "authentication_error");
    }
    check_asked("POST", "/", "Authorization: Bearer sk-first\r\n", "x", 200, NULL);
    check_asked("GET", "/", "authorization: bearer  second\r\n", NULL, 200, NULL);
    check_asked("GET", "/", "X-API-Key: second\r\n", NULL, 200, NULL);
    check_asked("GET", "/", "X-API-Key: second \t \r\n", NULL, 200, NULL);
    check_asked("GET", "/", "Authorization: Bearer second \r\n", NULL, 200, NULL);
    check_asked("GET", "/health", NULL, NULL, 200, NULL);
    check_asked("GET", "/health/", NULL, NULL, 401, "authentication_error");
    check_asked("GET", "/", "X-Api-Key: second\r\nHost: example.org\r\n", NULL, 200, NULL);
    fr_client *client = connect_to(); /* a request without a body is refused, but its connection stays open */
    fr_client_ask(client, "GET", "/", NULL, NULL);
    check_refused(client, 401, "authentication_error");
    check_header(client, "WWW-Authenticate", "Bearer");
    fr_client_ask(client, "POST", "/", "Content-Length: 90000\r\n", NULL); /* refused before the body comes */
    check_refused(client, 401, "authentication_error");
    fr_client_close(client);
    stop();
}
END_TEST

START_TEST(keys_are_read) {
    char path[] = "/tmp/forerun-keys-XXXXXX";
    int fd = mkstemp(path);
    static const char lines[] = "\n  third \r\nfourth\n\n";
    ck_assert_int_eq(write(fd, lines, sizeof(lines) - 1), sizeof(lines) - 1);
    char **keys;
    setenv("FORERUN_API_KEY", "fifth", 1);
    ck_assert_int_eq(fr_keys_read("first, second,", path, &keys), 0);
    static const char *const all[] = {"first", "second", "third", "fourth", "fifth", NULL};
    for (int i = 0; all[i]; i++) {
        ck_assert_pstr_eq(keys[i], all[i]);
        ck_assert(fr_keys_match((const char *const *)keys, all[i]));
    }
    ck_assert_ptr_null(keys[5]);
    ck_assert(!fr_keys_match((const char *const *)keys, ""));
    ck_assert(!fr_keys_match((const char *const *)keys, "firs"));
    fr_keys_free(keys);
    setenv("FORERUN_API_KEY", "", 1);
    ck_assert_int_eq(fr_keys_read(NULL, NULL, &keys), 0);
    ck_assert_ptr_null(keys);
    ck_assert_int_eq(fr_keys_read("", NULL, &keys), 1);
    ck_assert_int_eq(fr_keys_read(" ,", NULL, &keys), 1);
    ck_assert_int_eq(fr_keys_read("a b", NULL, &keys), 1);
    ck_assert_int_eq(fr_keys_read("a", "/nonexistent/keys", &keys), 1);
    ck_assert_int_eq(ftruncate(fd, 1), 0);
    ck_assert_int_eq(fr_keys_read("a", path, &keys), 1);
    ck_assert_ptr_null(keys);
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(other_hosts_are_refused) {
    start(usual());
    static const char *const own[] = {"localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:8080"};
    static const char *const other[] = {"example.org",
                                        "localhost.example.org",
                                        "127.0.0.1.example.org",
                                        "127.0.0.1@x",
                                        "128.0.0.1",
                                        "[::2]",
                                        "[::1",
                                        "[::1]x",
                                        "localhost:80x",
                                        "::1",
                                        "0.0.0.0"};
    char header[64];
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        snprintf(header, sizeof(header), "Host: %s\r\n", own[i]);
        check_asked("GET", "/", header, NULL, 200, NULL);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
        snprintf(header, sizeof(header), "Host: %s\r\n", other[i]);
        check_asked("GET", "/", header, NULL, 403, "permission_error");
    }
    stop();
    fr_http_setting setting = usual(); /* now as behind a proxy that keeps the Host header */
    setting.hosts = "chat.example, b.example";
    start(setting);
    check_asked("GET", "/", "Host: chat.example\r\n", NULL, 200, NULL);
    check_asked("GET", "/", "Host: B.EXAMPLE:443\r\n", NULL, 200, NULL);
    check_asked("POST", "/", "Host: b.example\r\nOrigin: https://b.example\r\n", "x", 200, NULL);
    check_asked("GET", "/", "Host: localhost:1\r\n", NULL, 200, NULL);
    check_asked("GET", "/", "Host: example\r\n", NULL, 403, "permission_error");
    check_asked("GET", "/", "Host: chat.example.org\r\n", NULL, 403, "permission_error");
    check_asked("POST", "/", "Host: b.example\r\nOrigin: https://c.example\r\n", "x", 403, "permission_error");
    stop();
    setting.hosts = "*";
    start(setting);
    check_asked("GET", "/", "Host: any.example\r\n", NULL, 200, NULL);
    stop();
}
END_TEST

/* The server has no keys and listens only on this machine. Any page that the user opens can make the browser send
 * requests to the server. Requests of pages from other sites must be refused. */
START_TEST(pages_of_elsewhere_are_refused) {
    static const char *const own[] = {"http://localhost", "http://localhost:3000", "https://127.0.0.1:8080",
                                      "http://[::1]:8080"};
    static const char *const other[] = {"https://a.example",  "http://localhost.a.example", "null",   "", "localhost",
                                        "http://192.168.0.1", "http://127.0.0.1@a.example", "file://"};
    static const char *const keys[] = {"key", NULL};
    fr_http_setting setting = usual();
    char header[64];
    start(setting);
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        snprintf(header, sizeof(header), "Origin: %s\r\n", own[i]);
        check_asked("POST", "/", header, "x", 200, NULL);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
        snprintf(header, sizeof(header), "Origin: %s\r\n", other[i]);
        check_asked("POST", "/", header, "x", 403, "permission_error");
    }
    stop();
    setting.origin = "https://a.example";
    start(setting);
    check_asked("POST", "/", "Origin: https://a.example\r\n", "x", 200, NULL);
    check_asked("POST", "/", "Origin: https://b.example\r\n", "x", 403, "permission_error");
    stop();
    setting.origin = "*";
    start(setting);
    check_asked("POST", "/", "Origin: null\r\n", "x", 200, NULL);
    stop();
    setting.origin = NULL;
    setting.keys = keys;
    start(setting);
    check_asked("POST", "/", "Origin: https://a.example\r\nX-Api-Key: key\r\n", "x", 200, NULL);
    stop();
}
END_TEST

START_TEST(pages_of_one_origin_may_ask) {
    static const char *const keys[] = {"key", NULL};
    fr_http_setting setting = usual();
    start(setting);
    fr_client *client = connect_to();
    fr_client_ask(client, "OPTIONS", "/v1/models", "Origin: https://a.example\r\n", NULL);
    ck_assert_int_eq(fr_client_head(client), 204);
    check_header(client, "Access-Control-Allow-Origin", NULL);
    check_header(client, "Access-Control-Allow-Methods", NULL);
    fr_client_close(client);
    stop();
    setting.keys = keys;
    setting.origin = "https://a.example";
    start(setting);
    client = connect_to();
    fr_client_ask(client, "OPTIONS", "/v1/models", "Origin: https://a.example\r\n", NULL);
    ck_assert_int_eq(fr_client_head(client), 204);
    check_header(client, "Access-Control-Allow-Origin", "https://a.example");
    check_header(client, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    check_header(client, "Access-Control-Allow-Headers",
                 "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta, *");
    check_header(client, "Access-Control-Max-Age", "86400");
    check_header(client, "Vary", "Origin");
    fr_client_ask(client, "GET", "/", "Origin: https://a.example\r\n", NULL);
    check_refused(client, 401, "authentication_error");
    check_header(client, "Access-Control-Allow-Origin", "https://a.example");
    fr_client_ask(client, "GET", "/", "X-Api-Key: key\r\n", NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    check_header(client, "Access-Control-Allow-Origin", "https://a.example");
    check_header(client, "Vary", "Origin");
    check_header(client, "Access-Control-Allow-Methods", NULL);
    fr_client_close(client);
    stop();
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- limits */

static void check_body(size_t size, int status, const char *type) {
    char *body = malloc(size + 1);
    memset(body, 'x', size);
    body[size] = '\0';
    check_asked("POST", "/", NULL, body, status, type);
    free(body);
}

/* Sends chunks of 1000 bytes. Stops when `count` bytes have been sent or the server has closed the connection. Returns
 * the number of bytes that were sent. */
static size_t send_chunks(fr_client *client, size_t count) {
    char chunk[1007] = "3e8\r\n";
    memset(chunk + 5, 'x', 1000);
    memcpy(chunk + 1005, "\r\n", 2);
    size_t sent = 0;
    while (sent < count && fr_client_send(client, chunk, sizeof(chunk))) sent++;
    return sent;
}

START_TEST(bodies_have_a_limit) {
    start(usual());
    check_body(LIMIT, 200, NULL);
    check_body(LIMIT + 1, 413, "invalid_request_error");
    /* These requests must be refused before their bodies come. */
    check_asked("POST", "/", "Content-Length: 100001\r\n", NULL, 413, "invalid_request_error");
    check_asked("POST", "/", "Content-Length: 18446744073709551615\r\n", NULL, 413, NULL);
    static const char chunked[] = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    fr_client *client = connect_to();
    fr_client_send(client, chunked, sizeof(chunked) - 1);
    ck_assert_uint_eq(send_chunks(client, LIMIT / 1000), LIMIT / 1000);
    fr_client_send(client, "0\r\n\r\n", 5);
    ck_assert_int_eq(fr_client_head(client), 200);
    json_t *value = read_json(client);
    ck_assert_int_eq(json_integer_value(json_object_get(value, "length")), LIMIT);
    json_decref(value);
    fr_client_send(client, chunked, sizeof(chunked) - 1);
    ck_assert_uint_eq(send_chunks(client, LIMIT / 1000 + 1), LIMIT / 1000 + 1);
    fr_client_send(client, "0\r\n\r\n", 5);
    check_refused(client, 413, "invalid_request_error");
    fr_client_close(client);
    client = connect_to(); /* a body that never ends must be refused too */
    fr_client_send(client, chunked, sizeof(chunked) - 1);
    ck_assert_uint_lt(send_chunks(client, 100000), 100000);
    fr_client_close(client);
    check_alive();
    stop();
}
END_TEST

START_TEST(bodies_wait_for_a_continue) {
    start(usual());
    enum { CLIENTS = 8 };
    fr_client *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to();
        fr_client_ask(clients[i], "POST", "/late?wait=10", "Expect: 100-continue\r\nContent-Length: 4\r\n", NULL);
    }
    for (int i = 0; i < CLIENTS; i++) {
        char line[26];
        for (size_t got = 0; got < 25;) {
            ssize_t more = read(clients[i]->fd, line + got, 25 - got);
            ck_assert_int_gt(more, 0);
            got += (size_t)more;
        }
        line[25] = '\0';
        ck_assert_str_eq(line, "HTTP/1.1 100 Continue\r\n\r\n");
        fr_client_send(clients[i], "body", 4);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(fr_client_head(clients[i]), 200);
        json_t *value = read_json(clients[i]);
        check_text(value, "body", "body");
        json_decref(value);
        fr_client_close(clients[i]);
    }
    check_asked("POST", "/", "Expect: 100-continue\r\nContent-Length: 100001\r\n", NULL, 413, "invalid_request_error");
    stop();
}
END_TEST

/* If there are too many connections, the next one gets status 503 and the time after which the client may try again.
 * When another connection is closed, the next one must be served. */
static void check_limit(fr_http_setting setting, int limit) {
    fr_client *clients[8], *excess;
    start(setting);
    for (int i = 0; i < limit; i++) {
        clients[i] = connect_to();
        fr_client_ask(clients[i], "GET", "/", NULL, NULL);
        ck_assert_int_eq(fr_client_head(clients[i]), 200);
    }
    excess = connect_to();
    fr_client_ask(excess, "GET", "/", NULL, NULL);
    ck_assert_int_eq(fr_client_head(excess), 503);
    check_header(excess, "Retry-After", "1");
    json_decref(read_json(excess));
    ck_assert(fr_client_closed(excess, 2000));
    fr_client_close(excess);
    fr_client_close(clients[0]);
    int status = 503;
    for (int i = 0; i < 100 && status == 503; i++) { /* repeats until the server has noticed the closed connection */
        rest(0.02);
        status = fr_client_once(toy.port, "GET", "/", NULL, NULL, NULL);
    }
    ck_assert_int_eq(status, 200);
    for (int i = 1; i < limit; i++) fr_client_close(clients[i]);
    stop();
}

START_TEST(connections_have_limits) {
    fr_http_setting setting = usual();
    setting.connections = 5;
    check_limit(setting, 5);
    setting = usual();
    setting.per_address = 3;
    check_limit(setting, 3);
}
END_TEST

/* Sends a request and waits until `count` exchanges have been reported. The server reports an exchange when its
 * connection has sent the answer. The client may have read the answer before that. */
static void ask_and_await(const char *method, const char *path, const char *headers, int status, size_t count) {
    ck_assert_int_eq(fr_client_once(toy.port, method, path, headers, *method == 'P' ? "x" : NULL, NULL), status);
    for (size_t have = 0; have < count; rest(0.002)) {
        pthread_mutex_lock(&told.lock);
        have = told.count;
        pthread_mutex_unlock(&told.lock);
    }
}

/* Each exchange must be reported once, either with its answer or with the fact that its client disconnected. */
START_TEST(exchanges_are_reported) {
    fr_http_setting setting = usual();
    setting.report = note_report;
    start(setting);
    ask_and_await("GET", "/a", NULL, 200, 1);
    ask_and_await("POST", "/refuse", NULL, 404, 2);
    ask_and_await("GET", "/texts", NULL, 200, 3);
    ask_and_await("GET", "/b", "Host: a.example\r\n", 403, 4);
    fr_client *client = connect_to();
    fr_client_ask(client, "POST", "/linger", NULL, "x");
    rest(0.2);
    fr_client_close(client);
    stop();
    ck_assert_uint_eq(told.count, 5);
    ck_assert_str_eq(told.lines[0], "127.0.0.1 GET /a 200  0");
    ck_assert_str_eq(told.lines[1], "127.0.0.1 POST /refuse 404 no such thing: it \"is\" not 0");
    ck_assert_str_eq(told.lines[2], "127.0.0.1 GET /texts 200  7");
    ck_assert_ptr_nonnull(strstr(told.lines[3], "GET /b 403 the Host header \"a.example\""));
    ck_assert_ptr_nonnull(strstr(told.lines[3], "--allow-host"));
    ck_assert_ptr_nonnull(strstr(told.lines[4], "POST /linger "));
}
END_TEST

/* A client sends a part of a request and disconnects. The server must free this connection long before the timeout. */
START_TEST(halves_of_requests_are_let_go) {
    static const char *const halves[] = {"GET / HT",
                                         "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{", "",
                                         "GET / HTTP/1.1\r\nHost: localhost\r\n"};
    fr_http_setting setting = usual();
    setting.per_address = 4;
    start(setting);
    for (int i = 0; i < 4; i++) {
        fr_client *client = connect_to();
        fr_client_send(client, halves[i], strlen(halves[i]));
        rest(0.05);
        fr_client_close(client);
    }
    double from = now();
    while (fr_client_once(toy.port, "GET", "/", NULL, NULL, NULL) == 503 && now() - from < 15) rest(0.05);
    ck_assert_double_lt(now() - from, 10);
    stop();
}
END_TEST

/* Right after the request, a client closes only its sending side, as `nc -N` does. It must still get its answer. */
START_TEST(half_closed_clients_are_answered) {
    static const char *const paths[] = {"/late?wait=400", "/stream?a=5", "/", "/refuse"};
    static const int statuses[] = {200, 200, 200, 404};
    start(usual());
    for (int i = 0; i < 4; i++) {
        fr_client *client = connect_to();
        fr_client_ask(client, "GET", paths[i], NULL, NULL);
        ck_assert_int_eq(shutdown(client->fd, SHUT_WR), 0);
        ck_assert_int_eq(fr_client_head(client), statuses[i]);
        char *text = fr_client_body(client, NULL);
        ck_assert_ptr_nonnull(text);
        if (i == 1) ck_assert_ptr_nonnull(strstr(text, "data: 4\n\n"));
        free(text);
        fr_client_close(client);
    }
    stop();
}
END_TEST

/* ------------------------------------------------------------------------------------ slow and disconnected clients */

/* Sends a byte every 100 ms until the server closes the connection. Returns how many seconds this took. */
static double trickle(fr_client *client, const char *head, char byte) {
    double from = now();
    fr_client_send(client, head, strlen(head));
    while (now() - from < 15 && !fr_client_closed(client, 100)) fr_client_send(client, &byte, 1);
    return now() - from;
}

START_TEST(slow_senders_are_cut) {
    fr_http_setting setting = usual();
    setting.timeout = 1;
    start(setting);
    static const char *const heads[] = {"GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
                                        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n", ""};
    const char *head = heads[_i];
    fr_client *client = connect_to();
    double took = trickle(client, head, 'x');
    ck_assert_double_ge(took, 0.9);
    ck_assert_double_lt(took, 10);
    fr_client_close(client);
    client = connect_to(); /* the timeout must also hold for a connection's second request */
    fr_client_ask(client, "GET", "/", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    json_decref(read_json(client));
    ck_assert_double_lt(trickle(client, head, 'x'), 10);
    fr_client_close(client);
    check_alive();
    stop();
}
END_TEST

/* However long an answer takes, the server must never disconnect the client that waits for it. */
START_TEST(waiting_is_no_silence) {
    fr_http_setting setting = usual();
    setting.timeout = 1;
    start(setting);
    char *text;
    ck_assert_int_eq(fr_client_once(toy.port, "GET", "/late?wait=2500", NULL, NULL, &text), 200);
    ck_assert_ptr_nonnull(text);
    free(text);
    ck_assert_int_eq(fr_client_once(toy.port, "GET", "/stream?a=50", NULL, NULL, &text), 200);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "data: 49\n\n"));
    free(text);
    stop();
}
END_TEST

START_TEST(stopped_readers_are_cut) {
    fr_http_setting setting = usual();
    setting.timeout = 1;
    start(setting);
    enum { CLIENTS = 6 };
    fr_client *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to();
        fr_client_ask(clients[i], "GET", "/flood", NULL, NULL);
    }
    double from = now();
    while (vanished() < CLIENTS && now() - from < 20) {
        check_alive();
        rest(0.05);
    }
    ck_assert_int_eq(vanished(), CLIENTS);
    for (int i = 0; i < CLIENTS; i++) fr_client_close(clients[i]);
    char *text; /* if a client reads, it gets the whole answer */
    ck_assert_int_eq(fr_client_once(toy.port, "GET", "/flood", NULL, NULL, &text), 200);
    ck_assert_ptr_nonnull(text);
    free(text);
    stop();
}
END_TEST

START_TEST(vanished_clients_are_noticed) {
    start(usual());
    enum { CLIENTS = 12 };
    fr_client *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_to();
        fr_client_ask(clients[i], "POST", "/linger", NULL, "x");
    }
    fr_client *left = connect_to();
    fr_client_ask(left, "POST", "/linger", NULL, "x");
    rest(0.1);
    ck_assert_int_eq(vanished(), 0);
    for (int i = 0; i < CLIENTS; i++) (i % 2 ? fr_client_close : fr_client_abort)(clients[i]);
    double from = now();
    while (vanished() < CLIENTS && now() - from < 20) rest(0.01);
    ck_assert_int_eq(vanished(), CLIENTS);
    pthread_mutex_lock(&toy.lock);
    toy.let_go = true;
    pthread_mutex_unlock(&toy.lock);
    ck_assert_int_eq(fr_client_head(left), 200);
    fr_client_close(left);
    check_alive();
    stop();
}
END_TEST

START_TEST(dropped_exchanges_are_cut) {
    start(usual());
    static const char *const paths[] = {"/drop", "/nothing"};
    for (int i = 0; i < 2; i++) {
        fr_client *client = connect_to();
        fr_client_ask(client, "GET", paths[i], NULL, NULL);
        ck_assert_int_eq(fr_client_head(client), 0);
        fr_client_close(client);
    }
    fr_client *client = connect_to();
    fr_client_ask(client, "GET", "/half", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    char piece[8];
    ck_assert_int_eq(fr_client_read(client, piece, sizeof(piece)), 4);
    ck_assert_int_eq(fr_client_read(client, piece, sizeof(piece)), -1);
    fr_client_close(client);
    check_alive();
    stop();
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- streams */

START_TEST(streams_come_in_pieces) {
    start(usual());
    fr_client *client = connect_to();
    fr_client_ask(client, "POST", "/stream?a=4", NULL, "x");
    ck_assert_int_eq(fr_client_head(client), 200);
    check_header(client, "Content-Type", "text/event-stream");
    check_header(client, "Cache-Control", "no-cache");
    check_header(client, "X-Accel-Buffering", "no");
    check_header(client, "Transfer-Encoding", "chunked");
    char *text = fr_client_body(client, NULL), piece[64];
    ck_assert_pstr_eq(text, "data: 0\n\n:\n\ndata: 1\n\n:\n\ndata: 2\n\n:\n\ndata: 3\n\n:\n\n");
    free(text);
    fr_client_ask(client, "GET", "/turns", NULL, NULL); /* the connection stays open */
    ck_assert_int_eq(fr_client_head(client), 200);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(fr_client_read(client, piece, sizeof(piece)), 9);
        pthread_mutex_lock(&toy.lock);
        toy.seen++;
        pthread_cond_broadcast(&toy.changed);
        pthread_mutex_unlock(&toy.lock);
    }
    ck_assert_int_eq(fr_client_read(client, piece, sizeof(piece)), 0);
    fr_client_close(client);
    stop();
}
END_TEST

START_TEST(old_clients_have_their_form) {
    start(usual());
    static const char text[] = "GET /stream?a=2 HTTP/1.0\r\n\r\n";
    fr_client *client = connect_to();
    fr_client_send(client, text, sizeof(text) - 1);
    ck_assert_int_eq(fr_client_head(client), 200);
    check_header(client, "Transfer-Encoding", NULL);
    char *body = fr_client_body(client, NULL);
    ck_assert_pstr_eq(body, "data: 0\n\n:\n\ndata: 1\n\n:\n\n");
    free(body);
    fr_client_close(client);
    stop();
}
END_TEST

static void *ask_often(void *context) {
    uintptr_t number = (uintptr_t)context;
    unsigned draw = (unsigned)number * 2654435761u + 1;
    fr_client *client = connect_to();
    for (int i = 0; i < 20; i++) {
        char path[64], body[64];
        draw = draw * 1664525u + 1013904223u;
        snprintf(path, sizeof(path), "/%s?wait=%u&a=%u", draw >> 28 & 1 ? "stream" : "late", draw >> 20 & 15,
                 draw >> 30);
        snprintf(body, sizeof(body), "%lu.%d", (unsigned long)number, i);
        ck_assert(fr_client_ask(client, "POST", path, NULL, body));
        ck_assert_int_eq(fr_client_head(client), 200);
        char *text = fr_client_body(client, NULL);
        ck_assert_ptr_nonnull(text);
        if (path[1] == 'l') ck_assert_ptr_nonnull(strstr(text, body));
        free(text);
        if (draw >> 24 & 1) continue;
        fr_client_close(client);
        client = connect_to();
    }
    fr_client_close(client);
    return NULL;
}

START_TEST(many_are_answered_at_once) {
    start(usual());
    enum { CLIENTS = 64 };
    pthread_t threads[CLIENTS];
    for (uintptr_t i = 0; i < CLIENTS; i++) pthread_create(&threads[i], NULL, ask_often, (void *)i);
    for (int i = 0; i < CLIENTS; i++) pthread_join(threads[i], NULL);
    stop();
}
END_TEST

/* ---------------------------------------------------------------------------------------------- opening and closing */

START_TEST(an_end_lets_answers_out) {
    start(usual());
    fr_client *late = connect_to(), *idle = connect_to();
    fr_client_ask(late, "GET", "/late?wait=300", NULL, NULL);
    fr_client_ask(idle, "GET", "/", NULL, NULL);
    ck_assert_int_eq(fr_client_head(idle), 200);
    json_decref(read_json(idle));
    rest(0.1);
    fr_http_refuse_new(toy.http);
    ck_assert_int_eq(fr_client_once(toy.port, "GET", "/", NULL, NULL, NULL), 0);
    fr_client_ask(idle, "GET", "/", NULL, NULL);
    check_refused(idle, 503, "unavailable_error");
    stop();
    ck_assert_int_eq(fr_client_head(late), 200);
    json_decref(read_json(late));
    ck_assert(fr_client_closed(late, 1000));
    fr_client_close(late);
    fr_client_close(idle);
}
END_TEST

static void *stop_beside(void *context) {
    stop();
    return context;
}

START_TEST(an_end_lets_long_answers_out) {
    start(usual());
    fr_client *client = connect_to();
    fr_client_ask(client, "GET", "/long", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 200);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_beside, NULL), 0);
    rest(0.1);
    size_t length;
    char *text = fr_client_body(client, &length);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(length, LONG);
    free(text);
    pthread_join(thread, NULL);
    fr_client_close(client);
}
END_TEST

/* A client that reads nothing may delay the end of the server by at most one second. */
START_TEST(an_end_waits_for_nobody) {
    start(usual());
    fr_client *client = connect_to(), *half = connect_to();
    fr_client_ask(client, "GET", "/flood", NULL, NULL);
    fr_client_send(half, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx", 57);
    rest(0.2);
    fr_client_close(connect_to());
    double from = now();
    fr_http_refuse_new(toy.http);
    fr_client_abort(client);
    wait_for_jobs();
    fr_http_close(toy.http);
    ck_assert_double_lt(now() - from, 10);
    fr_client_close(half);
}
END_TEST

static int open_with(const fr_http_setting *setting) {
    fr_http *http = (fr_http *)1;
    int status = fr_http_open(setting, &http);
    if (status)
        ck_assert_ptr_null(http);
    else
        fr_http_close(http);
    return status;
}

static char *read_file(const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    return text;
}

START_TEST(what_cannot_be_listened_on_is_an_error) {
    fr_http_setting setting = usual();
    start(setting);
    setting.port = toy.port;
    ck_assert_int_eq(open_with(&setting), 1);
    stop();
    ck_assert_int_eq(open_with(&setting), 0); /* the port can be used again at once */
    setting.port = 0;
    static const char *const hosts[] = {"", "example.org", "1.2.3", "127.0.0.1:80", "192.0.2.1", "[::1]"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
        setting.host = hosts[i];
        ck_assert_int_eq(open_with(&setting), 1);
    }
    setting.host = "localhost";
    start(setting);
    ck_assert_int_eq(strncmp(fr_http_url(toy.http), "http://127.0.0.1:", 17), 0);
    check_alive();
    stop();
    setting.host = "::";
    if (open_with(&setting) == 0) {
        start(setting);
        ck_assert_int_eq(strncmp(fr_http_url(toy.http), "http://[::]:", 12), 0);
        check_asked("GET", "/", "Host: anything\r\n", NULL, 200, NULL);
        stop();
    }
}
END_TEST

/* New handshakes must use the pair of key and certificate that was set last. If a new pair can't be used, nothing
 * changes. */
START_TEST(certificates_are_replaced) {
    char *key = read_file("tests/data/tls/key.pem"), *certificate = read_file("tests/data/tls/certificate.pem");
    char error[128] = "";
    gnutls_pcert_st *first = NULL, *chain = NULL;
    gnutls_privkey_t private_key = NULL;
    unsigned length = 0;
    ck_assert_int_ne(fr_tls_retrieve(NULL, NULL, 0, NULL, 0, &chain, &length, &private_key), 0);
    ck_assert(fr_tls_set(key, certificate, error, sizeof error));
    ck_assert_int_eq(fr_tls_retrieve(NULL, NULL, 0, NULL, 0, &first, &length, &private_key), 0);
    ck_assert_uint_eq(length, 1);
    ck_assert(!fr_tls_set("no key", certificate, error, sizeof error));
    ck_assert_str_ne(error, "");
    ck_assert(!fr_tls_set(key, "no certificate", error, sizeof error));
    ck_assert_int_eq(fr_tls_retrieve(NULL, NULL, 0, NULL, 0, &chain, &length, &private_key), 0);
    ck_assert_ptr_eq(chain, first);
    ck_assert(fr_tls_set(key, certificate, error, sizeof error));
    ck_assert_int_eq(fr_tls_retrieve(NULL, NULL, 0, NULL, 0, &chain, &length, &private_key), 0);
    ck_assert_ptr_ne(chain, first);
    fr_tls_free();
    free(key);
    free(certificate);
}
END_TEST

START_TEST(tls_refuses_plain_bytes) {
    char *key = read_file("tests/data/tls/key.pem"), *certificate = read_file("tests/data/tls/certificate.pem");
    fr_http_setting setting = usual();
    setting.key_pem = key;
    ck_assert_int_eq(open_with(&setting), 1);
    setting.certificate_pem = "no certificate";
    ck_assert_int_eq(open_with(&setting), 1);
    setting.certificate_pem = certificate;
    setting.key_pem = "no key";
    ck_assert_int_eq(open_with(&setting), 1);
    setting.key_pem = key;
    setting.timeout = 1;
    start(setting);
    ck_assert_int_eq(strncmp(fr_http_url(toy.http), "https://127.0.0.1:", 18), 0);
    fr_client *client = connect_to();
    fr_client_ask(client, "GET", "/", NULL, NULL);
    ck_assert_int_eq(fr_client_head(client), 0);
    fr_client_close(client);
    client = connect_to(); /* this client never completes the handshake */
    ck_assert(fr_client_closed(client, 10000));
    fr_client_close(client);
    stop();
    free(key);
    free(certificate);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- mutations */

static unsigned long drawn = 1;

static unsigned draw(unsigned below) {
    drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(drawn >> 33) % below;
}

static const char *const seeds[] = {
    "GET /a%20b?a=1&b=%41 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /late?wait=0 HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 5\r\nContent-Type: a/b\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "HEAD /refuse HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer x\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nCookie: a=b; c\r\n\r\n",
    "GET /stream?a=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"};

/* Makes a request from one or two seeds and damages it up to eight times. A damage changes one byte, or removes or
 * doubles up to eight bytes. */
static size_t mutate(char *bytes) {
    size_t length = 0;
    for (unsigned i = 0; i <= draw(4) / 3; i++) {
        const char *seed = seeds[draw(sizeof(seeds) / sizeof(*seeds))];
        memcpy(bytes + length, seed, strlen(seed));
        length += strlen(seed);
    }
    static const char telling[] = "\r\n\0 %:?&=,;0f/-\x7f\x80\xff+";
    for (unsigned i = draw(9); i > 0 && length > 1; i--) {
        unsigned at = draw((unsigned)length), count = 1 + draw(8);
        if (count > length - at) count = (unsigned)length - at;
        switch (draw(4)) {
        case 0: bytes[at] = (char)draw(256); break;
        case 1: bytes[at] = telling[draw(sizeof(telling) - 1)]; break;
        case 2: /* removes the bytes */
            memmove(bytes + at, bytes + at + count, length - at - count);
            length -= count;
            break;
        default: /* doubles the bytes */ memmove(bytes + at + count, bytes + at, length - at); length += count;
        }
    }
    return length;
}

START_TEST(mutated_requests_do_no_harm) {
    fr_http_setting setting = usual();
    setting.timeout = 2;
    start(setting);
    int count = getenv("FULL") ? 100000 : 10000;
    drawn = 46;
    for (int i = 0; i < count; i++) {
        char bytes[1024];
        size_t length = mutate(bytes);
        fr_client *client = connect_to();
        fr_client_send(client, bytes, length);
        unsigned way = draw(8);
        if (way == 0) fr_client_closed(client, 1);
        if (way == 1)
            fr_client_abort(client);
        else
            fr_client_close(client);
        if (i % 1000 == 0) check_alive();
    }
    check_alive();
    stop();
}
END_TEST

START_TEST(errors_have_their_types) {
    static const struct {
        unsigned http;
        const char *type;
    } types[] = {{400, "invalid_request_error"}, {401, "authentication_error"},  {403, "permission_error"},
                 {404, "not_found_error"},       {413, "invalid_request_error"}, {500, "server_error"},
                 {501, "not_supported_error"},   {503, "unavailable_error"}};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        ck_assert_str_eq(fr_fault_type(types[i].http), types[i].type);
    }
    ck_assert_uint_eq(fr_fault_http(FR_INPUT), 400);
    ck_assert_uint_eq(fr_fault_http(FR_USAGE), 400);
    ck_assert_uint_eq(fr_fault_http(FR_UNBUILT), 400);
    ck_assert_uint_eq(fr_fault_http(FR_MEMORY), 503);
    ck_assert_uint_eq(fr_fault_http(FR_NUMERIC), 500);
    json_t *fault = fr_fault_json(400, "a\xff");
    check_text(json_object_get(fault, "error"), "message", "a\xef\xbf\xbd");
    json_decref(fault);
}
END_TEST

/* There are more slow bodies than threads that read them. Some are slow because they are long, the others because of
 * their content. Meanwhile short requests must be answered. At the end, either all slow bodies have been read, or the
 * server stops earlier. */
START_TEST(slow_bodies_hold_nobody_up) {
    enum { LONG_ONES = 12, OTHERS = 12 };
    static char body[LIMIT];
    fr_client *longs[LONG_ONES], *others[OTHERS];
    memset(body, 'x', sizeof(body) - 1);
    start(usual());
    for (int i = 0; i < OTHERS; i++) {
        others[i] = connect_to();
        ck_assert(fr_client_ask(others[i], "GET", "/", NULL, NULL));
        ck_assert_int_eq(fr_client_head(others[i]), 200);
        free(fr_client_body(others[i], NULL));
    }
    for (int i = 0; i < LONG_ONES; i++) {
        longs[i] = connect_to();
        ck_assert(fr_client_ask(longs[i], "POST", "/busy", NULL, _i < 2 ? body : "slow"));
    }
    rest(0.1);
    double begun = now();
    for (int i = 0; i < OTHERS; i++) {
        ck_assert(fr_client_ask(others[i], "POST", "/", NULL, "short"));
        ck_assert_int_eq(fr_client_head(others[i]), 200);
        fr_client_close(others[i]);
    }
    pthread_mutex_lock(&toy.lock);
    toy.let_go = _i % 2 == 0;
    pthread_mutex_unlock(&toy.lock);
    for (int i = 0; i < LONG_ONES && _i % 2 == 0; i++) ck_assert_int_eq(fr_client_head(longs[i]), 200);
    stop();
    ck_assert(now() - begun < 10);
    for (int i = 0; i < LONG_ONES; i++) fr_client_close(longs[i]);
}
END_TEST

static TCase *new_case(Suite *suite, const char *name) {
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, getenv("FULL") ? 600 : 60);
    suite_add_tcase(suite, cases);
    return cases;
}

FR_SUITE("serve_http") {
    TCase *cases = new_case(suite, "asking");
    tcase_add_test(cases, errors_have_their_types);
    tcase_add_test(cases, requests_are_read);
    tcase_add_test(cases, requests_come_in_any_pieces);
    tcase_add_test(cases, malformed_targets_are_refused);
    tcase_add_test(cases, targets_may_be_absolute);
    tcase_add_test(cases, long_headers_are_refused_as_json);
    tcase_add_test(cases, large_headers_are_refused);
    tcase_add_test(cases, keys_are_needed);
    tcase_add_test(cases, keys_are_read);
    tcase_add_test(cases, other_hosts_are_refused);
    tcase_add_test(cases, pages_of_elsewhere_are_refused);
    tcase_add_test(cases, pages_of_one_origin_may_ask);
    tcase_add_test(cases, bodies_have_a_limit);
    tcase_add_test(cases, bodies_wait_for_a_continue);
    tcase_add_test(cases, connections_have_limits);
    tcase_add_test(cases, exchanges_are_reported);
    tcase_add_test(cases, halves_of_requests_are_let_go);
    tcase_add_test(cases, half_closed_clients_are_answered);
    cases = new_case(suite, "waiting");
    tcase_add_loop_test(cases, slow_senders_are_cut, 0, 4);
    tcase_add_test(cases, waiting_is_no_silence);
    tcase_add_test(cases, stopped_readers_are_cut);
    tcase_add_test(cases, vanished_clients_are_noticed);
    tcase_add_test(cases, dropped_exchanges_are_cut);
    tcase_add_test(cases, streams_come_in_pieces);
    tcase_add_test(cases, old_clients_have_their_form);
    tcase_add_test(cases, many_are_answered_at_once);
    tcase_add_test(cases, an_end_lets_answers_out);
    tcase_add_loop_test(cases, slow_bodies_hold_nobody_up, 0, 4);
    tcase_add_test(cases, an_end_lets_long_answers_out);
    tcase_add_test(cases, an_end_waits_for_nobody);
    tcase_add_test(cases, what_cannot_be_listened_on_is_an_error);
    tcase_add_test(cases, certificates_are_replaced);
    tcase_add_test(cases, tls_refuses_plain_bytes);
    cases = new_case(suite, "mutations");
    tcase_add_test(cases, mutated_requests_do_no_harm);
}
