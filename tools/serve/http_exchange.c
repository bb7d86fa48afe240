/* Implements exchanges, which are HTTP requests with their answers (http_exchange_parts.h). It counts an exchange's
 * holders, and stores bytes of the answer until the connection can send them. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/output.h"
#include "tools/serve/fault.h"
#include "tools/serve/http_exchange_parts.h"

int64_t fr_http_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *fr_http_copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(fr_resize(NULL, size, 1), text, size);
}

/* ---------------------------------------------------------------------------------------------------------- holders */

fr_http_exchange *fr_http_exchange_new(const fr_http_exchange_origin *origin) {
    fr_http_exchange *exchange = fr_resize(NULL, 1, sizeof(*exchange));
    *exchange = (fr_http_exchange){.holders = 1,
                                   .connection = origin->connection,
                                   .fd = origin->fd,
                                   .deadline = origin->deadline,
                                   .timeout = origin->timeout,
                                   .bodies = origin->bodies,
                                   .report = origin->report,
                                   .context = origin->context,
                                   .client = fr_http_copy_text(origin->client)};
    exchange->begun = exchange->written = fr_http_clock();
    pthread_mutex_init(&exchange->lock, NULL);
    return exchange;
}

static void free_pairs(fr_http_exchange_pairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->list[i].name);
        free(pairs->list[i].value);
    }
    free(pairs->list);
}

/* nginx logs this status if a client has closed the connection before its answer began */
#define CLIENT_GONE 499

/* Reports an exchange when its last holder releases it, because only then are its figures complete. */
static void report_exchange(const fr_http_exchange *exchange) {
    fr_http_exchange_report report = {.client = exchange->client,
                                      .method = exchange->method ? exchange->method : "",
                                      .path = exchange->path ? exchange->path : "",
                                      .error = exchange->error ? exchange->error : "",
                                      .status = exchange->status ? exchange->status : CLIENT_GONE,
                                      .seconds = (double)(fr_http_clock() - exchange->begun) / 1000,
                                      .texts = exchange->has_texts ? &exchange->texts : NULL};
    exchange->report(exchange->context, &report);
}

static void free_exchange(fr_http_exchange *exchange) {
    if (exchange->report) report_exchange(exchange);
    if (exchange->bodies) atomic_fetch_sub(exchange->bodies, exchange->capacity);
    pthread_mutex_destroy(&exchange->lock);
    free(exchange->client);
    free(exchange->error);
    free_pairs(&exchange->query);
    free_pairs(&exchange->headers);
    free(exchange->method);
    free(exchange->path);
    free(exchange->has);
    free(exchange->body);
    json_decref(exchange->kept);
    free(exchange->type);
    free(exchange->bytes);
    free(exchange);
}

/* Resumes a suspended connection, because there is something to send. The caller must hold the lock of the exchange. */
static void wake(fr_http_exchange *exchange) {
    if (!exchange->suspended) return;
    exchange->suspended = false;
    MHD_resume_connection(exchange->connection);
}

/* Returns true if the whole answer has been written. The caller must hold the lock of the exchange. */
static bool is_complete(const fr_http_exchange *exchange) {
    return exchange->answer == FR_EXCHANGE_WHOLE || exchange->ended;
}

static void cut(fr_http_exchange *exchange) {
    if (!exchange->connection || is_complete(exchange)) return;
    exchange->cut = true;
    wake(exchange);
}

void fr_http_exchange_cut(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    cut(exchange);
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_hold(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    exchange->holders++;
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_release(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    unsigned left = --exchange->holders;
    if (left == 1) cut(exchange);
    pthread_mutex_unlock(&exchange->lock);
    if (left == 0) free_exchange(exchange);
}

void fr_http_exchange_detach(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    exchange->connection = NULL;
    exchange->deadline = NULL;
    exchange->suspended = false;
    free(exchange->bytes);
    exchange->bytes = NULL;
    exchange->taken = exchange->size = exchange->room = 0;
    pthread_mutex_unlock(&exchange->lock);
}

/* ------------------------------------------------------------------------------------------------------- the answer */

void fr_http_exchange_set_header(fr_http_exchange *exchange, const char *name, const char *value) {
    pthread_mutex_lock(&exchange->lock);
    fr_http_exchange_pairs *pairs = &exchange->headers;
    pairs->list = fr_resize(pairs->list, pairs->count + 1, sizeof(*pairs->list));
    pairs->list[pairs->count++] =
        (fr_http_exchange_pair){.name = fr_http_copy_text(name), .value = fr_http_copy_text(value)};
    pthread_mutex_unlock(&exchange->lock);
}

/* Appends bytes to the answer. The caller must hold the lock of the exchange. */
static void append(fr_http_exchange *exchange, const char *bytes, size_t length) {
    if (exchange->taken > exchange->size / 2) {
        memmove(exchange->bytes, exchange->bytes + exchange->taken, exchange->size - exchange->taken);
        exchange->size -= exchange->taken;
        exchange->taken = 0;
    }
    if (length > exchange->room - exchange->size) {
        size_t room = exchange->room ? exchange->room : 1024;
        while (room < exchange->size + length) room *= 2;
        exchange->bytes = fr_resize(exchange->bytes, room, 1);
        exchange->room = room;
    }
    memcpy(exchange->bytes + exchange->size, bytes, length);
    exchange->size += length;
    exchange->written = fr_http_clock();
}

/* Starts the time in which the client must read the answer. The caller must hold the lock of the exchange. */
static void start_deadline(fr_http_exchange *exchange) {
    int64_t allowance = (int64_t)(exchange->size - exchange->taken) / FR_HTTP_BYTES_PER_MS;
    if (exchange->deadline) atomic_store(exchange->deadline, fr_http_clock() + exchange->timeout + allowance);
}

void fr_http_exchange_answer(fr_http_exchange *exchange, unsigned status, const char *type, const char *bytes,
                             size_t length) {
    pthread_mutex_lock(&exchange->lock);
    if (exchange->answer == FR_EXCHANGE_OPEN) {
        exchange->answer = FR_EXCHANGE_WHOLE;
        exchange->status = status;
        exchange->type = fr_http_copy_text(type);
        if (exchange->connection && length) append(exchange, bytes, length);
        start_deadline(exchange);
        wake(exchange);
    }
    pthread_mutex_unlock(&exchange->lock);
}

/* Stores an error's message for the log. The error may have the form of any dialect: {"error": {"message": ...}}, or
 * ollama's {"error": ...}. */
static void keep_error(fr_http_exchange *exchange, const json_t *value) {
    const json_t *error = json_object_get(value, "error"), *message = json_object_get(error, "message");
    const char *text = json_string_value(message ? message : error);
    pthread_mutex_lock(&exchange->lock);
    if (text && !exchange->error) exchange->error = fr_http_copy_text(text);
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_answer_json(fr_http_exchange *exchange, unsigned status, json_t *value) {
    if (status >= 400) keep_error(exchange, value);
    char *text = fr_json_line(value);
    fr_http_exchange_answer(exchange, status, "application/json; charset=utf-8", text, strlen(text));
    free(text);
    json_decref(value);
}

void fr_http_exchange_refuse(fr_http_exchange *exchange, unsigned status, const char *format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    fr_http_exchange_answer_json(exchange, status, fr_fault_at(exchange->path, status, message));
}

void fr_http_exchange_note_texts(fr_http_exchange *exchange, const fr_http_exchange_texts *texts) {
    pthread_mutex_lock(&exchange->lock);
    exchange->texts = *texts;
    exchange->has_texts = true;
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_begin(fr_http_exchange *exchange, const char *type) {
    pthread_mutex_lock(&exchange->lock);
    if (exchange->answer == FR_EXCHANGE_OPEN) {
        exchange->answer = FR_EXCHANGE_STREAM;
        exchange->status = 200;
        exchange->type = fr_http_copy_text(type);
        exchange->written = fr_http_clock();
        wake(exchange);
    }
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_write(fr_http_exchange *exchange, const char *bytes, size_t length) {
    pthread_mutex_lock(&exchange->lock);
    if (exchange->answer == FR_EXCHANGE_STREAM && !exchange->ended && exchange->connection && length) {
        append(exchange, bytes, length);
        wake(exchange);
    }
    pthread_mutex_unlock(&exchange->lock);
}

void fr_http_exchange_end(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    if (exchange->answer == FR_EXCHANGE_STREAM && !exchange->ended) {
        exchange->ended = true;
        start_deadline(exchange);
        wake(exchange);
    }
    pthread_mutex_unlock(&exchange->lock);
}

/* Gives bytes of the answer to the connection. The caller must hold the lock of the exchange. */
static ssize_t take(fr_http_exchange *exchange, char *bytes, size_t room) {
    size_t length = exchange->size - exchange->taken < room ? exchange->size - exchange->taken : room;
    memcpy(bytes, exchange->bytes + exchange->taken, length);
    exchange->taken += length;
    if (exchange->taken == exchange->size) exchange->taken = exchange->size = 0;
    return (ssize_t)length;
}

ssize_t fr_http_exchange_read(void *context, uint64_t position, char *bytes, size_t room) {
    (void)position;
    fr_http_exchange *exchange = context;
    ssize_t length = 0;
    pthread_mutex_lock(&exchange->lock);
    if (exchange->size) {
        length = take(exchange, bytes, room);
    } else if (exchange->ended) {
        length = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (exchange->cut) {
        length = MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        exchange->suspended = true;
        MHD_suspend_connection(exchange->connection);
    }
    pthread_mutex_unlock(&exchange->lock);
    return length;
}

/* ------------------------------------------------------------------------------------------------------- the client */

/* A client may close its sending side and still read the answer. Such a client closes its sending side within this many
 * milliseconds after its whole request has arrived. */
#define STAYS 50

/* Returns true if the client has gone. If a client closes its sending side, TCP does not show whether the client still
 * reads. A client such as `nc -N` closes its sending side together with the last byte of its request, and then reads
 * the answer. So a client counts as gone only if it closes its sending side later than that. */
bool fr_http_exchange_gone(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    bool gone = !exchange->connection;
    if (!gone) {
        struct pollfd socket = {.fd = exchange->fd, .events = POLLRDHUP};
        int seen = poll(&socket, 1, 0) > 0 ? socket.revents : 0;
        if (!seen && exchange->whole && fr_http_clock() - exchange->whole >= STAYS) exchange->stayed = true;
        gone = (seen & (POLLHUP | POLLERR)) || ((seen & POLLRDHUP) && exchange->stayed);
    }
    pthread_mutex_unlock(&exchange->lock);
    return gone;
}

size_t fr_http_exchange_unread(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    size_t length = exchange->size - exchange->taken;
    pthread_mutex_unlock(&exchange->lock);
    return length;
}

double fr_http_exchange_silent(fr_http_exchange *exchange) {
    pthread_mutex_lock(&exchange->lock);
    int64_t since = fr_http_clock() - exchange->written;
    pthread_mutex_unlock(&exchange->lock);
    return (double)since / 1000;
}
