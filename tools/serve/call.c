/* A request over HTTP, and its answer: who holds it, and what has been written and not yet taken (call_parts.h). */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/output.h"
#include "tools/serve/call_parts.h"
#include "tools/serve/fault.h"

int64_t fr_call_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *fr_call_copy(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(fr_resize(NULL, size, 1), text, size);
}

/* ----------------------------------------------------------------------------------------------------- who holds it */

fr_call *fr_call_new(const fr_call_origin *origin) {
    fr_call *call = fr_resize(NULL, 1, sizeof(*call));
    *call = (fr_call){.holders = 1, .connection = origin->connection, .fd = origin->fd, .deadline = origin->deadline,
                      .timeout = origin->timeout, .bodies = origin->bodies, .report = origin->report,
                      .context = origin->context, .client = fr_call_copy(origin->client)};
    call->begun = call->written = fr_call_clock();
    pthread_mutex_init(&call->lock, NULL);
    return call;
}

static void free_pairs(fr_call_pairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->list[i].name);
        free(pairs->list[i].value);
    }
    free(pairs->list);
}

#define CLIENT_GONE 499 /* the status that nginx logs where a client has closed before its answer began */

/* Reports a call when its last holder releases it, so that its figures are complete. */
static void report_call(const fr_call *call) {
    fr_call_report report = {
        .client = call->client, .method = call->method ? call->method : "", .path = call->path ? call->path : "",
        .error = call->error ? call->error : "", .status = call->status ? call->status : CLIENT_GONE,
        .seconds = (double)(fr_call_clock() - call->begun) / 1000, .texts = call->has_texts ? &call->texts : NULL};
    call->report(call->context, &report);
}

static void free_call(fr_call *call) {
    if (call->report) report_call(call);
    if (call->bodies) atomic_fetch_sub(call->bodies, call->capacity);
    pthread_mutex_destroy(&call->lock);
    free(call->client);
    free(call->error);
    free_pairs(&call->query);
    free_pairs(&call->headers);
    free(call->method);
    free(call->path);
    free(call->has);
    free(call->body);
    json_decref(call->kept);
    free(call->type);
    free(call->bytes);
    free(call);
}

/* The connection goes on, if it waits: there is something for it to do. Under the lock. */
static void wake(fr_call *call) {
    if (!call->suspended) return;
    call->suspended = false;
    MHD_resume_connection(call->connection);
}

/* Under the lock. */
static bool is_complete(const fr_call *call) {
    return call->answer == FR_CALL_WHOLE || call->ended;
}

static void cut(fr_call *call) {
    if (!call->connection || is_complete(call)) return;
    call->cut = true;
    wake(call);
}

void fr_call_cut(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    cut(call);
    pthread_mutex_unlock(&call->lock);
}

void fr_call_hold(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    call->holders++;
    pthread_mutex_unlock(&call->lock);
}

void fr_call_release(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    unsigned left = --call->holders;
    if (left == 1) cut(call);
    pthread_mutex_unlock(&call->lock);
    if (left == 0) free_call(call);
}

void fr_call_detach(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    call->connection = NULL;
    call->deadline = NULL;
    call->suspended = false;
    free(call->bytes);
    call->bytes = NULL;
    call->taken = call->size = call->room = 0;
    pthread_mutex_unlock(&call->lock);
}

/* ------------------------------------------------------------------------------------------------------- its answer */

void fr_call_set_header(fr_call *call, const char *name, const char *value) {
    pthread_mutex_lock(&call->lock);
    fr_call_pairs *pairs = &call->headers;
    pairs->list = fr_resize(pairs->list, pairs->count + 1, sizeof(*pairs->list));
    pairs->list[pairs->count++] = (fr_call_pair){.name = fr_call_copy(name), .value = fr_call_copy(value)};
    pthread_mutex_unlock(&call->lock);
}

/* Under the lock. */
static void append(fr_call *call, const char *bytes, size_t length) {
    if (call->taken > call->size / 2) {
        memmove(call->bytes, call->bytes + call->taken, call->size - call->taken);
        call->size -= call->taken;
        call->taken = 0;
    }
    if (length > call->room - call->size) {
        size_t room = call->room ? call->room : 1024;
        while (room < call->size + length) room *= 2;
        call->bytes = fr_resize(call->bytes, room, 1);
        call->room = room;
    }
    memcpy(call->bytes + call->size, bytes, length);
    call->size += length;
    call->written = fr_call_clock();
}

/* From now on the client has to take it. Under the lock. */
static void start_deadline(fr_call *call) {
    int64_t pace = (int64_t)(call->size - call->taken) / FR_CALL_PACE;
    if (call->deadline) atomic_store(call->deadline, fr_call_clock() + call->timeout + pace);
}

void fr_call_answer(fr_call *call, unsigned status, const char *type, const char *bytes, size_t length) {
    pthread_mutex_lock(&call->lock);
    if (call->answer == FR_CALL_OPEN) {
        call->answer = FR_CALL_WHOLE;
        call->status = status;
        call->type = fr_call_copy(type);
        if (call->connection && length) append(call, bytes, length);
        start_deadline(call);
        wake(call);
    }
    pthread_mutex_unlock(&call->lock);
}

/* The message of an error in any dialect: {"error": {"message": ...}}, or ollama's {"error": ...}. */
static void keep_error(fr_call *call, const json_t *value) {
    const json_t *error = json_object_get(value, "error"), *message = json_object_get(error, "message");
    const char *text = json_string_value(message ? message : error);
    pthread_mutex_lock(&call->lock);
    if (text && !call->error) call->error = fr_call_copy(text);
    pthread_mutex_unlock(&call->lock);
}

void fr_call_answer_json(fr_call *call, unsigned status, json_t *value) {
    if (status >= 400) keep_error(call, value);
    char *text = fr_json_line(value);
    fr_call_answer(call, status, "application/json; charset=utf-8", text, strlen(text));
    free(text);
    json_decref(value);
}

void fr_call_refuse(fr_call *call, unsigned status, const char *format, ...) {
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    fr_call_answer_json(call, status, fr_fault_at(call->path, status, message));
}

void fr_call_note_texts(fr_call *call, const fr_call_texts *texts) {
    pthread_mutex_lock(&call->lock);
    call->texts = *texts;
    call->has_texts = true;
    pthread_mutex_unlock(&call->lock);
}

void fr_call_begin(fr_call *call, const char *type) {
    pthread_mutex_lock(&call->lock);
    if (call->answer == FR_CALL_OPEN) {
        call->answer = FR_CALL_STREAM;
        call->status = 200;
        call->type = fr_call_copy(type);
        call->written = fr_call_clock();
        wake(call);
    }
    pthread_mutex_unlock(&call->lock);
}

void fr_call_write(fr_call *call, const char *bytes, size_t length) {
    pthread_mutex_lock(&call->lock);
    if (call->answer == FR_CALL_STREAM && !call->ended && call->connection && length) {
        append(call, bytes, length);
        wake(call);
    }
    pthread_mutex_unlock(&call->lock);
}

void fr_call_end(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    if (call->answer == FR_CALL_STREAM && !call->ended) {
        call->ended = true;
        start_deadline(call);
        wake(call);
    }
    pthread_mutex_unlock(&call->lock);
}

/* Under the lock. */
static ssize_t take(fr_call *call, char *bytes, size_t room) {
    size_t length = call->size - call->taken < room ? call->size - call->taken : room;
    memcpy(bytes, call->bytes + call->taken, length);
    call->taken += length;
    if (call->taken == call->size) call->taken = call->size = 0;
    return (ssize_t)length;
}

ssize_t fr_call_read(void *context, uint64_t position, char *bytes, size_t room) {
    (void)position;
    fr_call *call = context;
    ssize_t length = 0;
    pthread_mutex_lock(&call->lock);
    if (call->size) {
        length = take(call, bytes, room);
    } else if (call->ended) {
        length = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (call->cut) {
        length = MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
        call->suspended = true;
        MHD_suspend_connection(call->connection);
    }
    pthread_mutex_unlock(&call->lock);
    return length;
}

/* ------------------------------------------------------------------------------------------------------- its client */

#define STAYS 50 /* milliseconds */

/* TCP can't distinguish a client that closed only its sending side from one that has gone. A client that only closes
 * its side, as `nc -N` does, does so with the last byte of its request, so one that closes later has gone. */
bool fr_call_gone(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    bool gone = !call->connection;
    if (!gone) {
        struct pollfd socket = {.fd = call->fd, .events = POLLRDHUP};
        int seen = poll(&socket, 1, 0) > 0 ? socket.revents : 0;
        if (!seen && call->whole && fr_call_clock() - call->whole >= STAYS) call->stayed = true;
        gone = (seen & (POLLHUP | POLLERR)) || ((seen & POLLRDHUP) && call->stayed);
    }
    pthread_mutex_unlock(&call->lock);
    return gone;
}

size_t fr_call_unread(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    size_t length = call->size - call->taken;
    pthread_mutex_unlock(&call->lock);
    return length;
}

double fr_call_silent(fr_call *call) {
    pthread_mutex_lock(&call->lock);
    int64_t since = fr_call_clock() - call->written;
    pthread_mutex_unlock(&call->lock);
    return (double)since / 1000;
}
