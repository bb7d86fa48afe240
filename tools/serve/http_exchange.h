/* A request over HTTP, and its answer.
 *
 * In: what a client sent, whole. Out: one answer, at once or later, in one piece or as a stream of pieces. The first to
 * hold an exchange is the connection that it came by; who will answer later holds it too (fr_http_exchange_hold), and
 * then any thread may do so. All functions may be called by any thread; what is written to a client that has gone is
 * dropped. */
#ifndef FR_TOOLS_SERVE_HTTP_EXCHANGE_H
#define FR_TOOLS_SERVE_HTTP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fr_http_exchange fr_http_exchange;

/* What was asked for. The path has no query, and %XX in it has been read. Of the query a key's value, "" for a key that
 * has none, NULL for one that is not there. All last as long as the exchange. */
const char *fr_http_exchange_method(const fr_http_exchange *exchange);
const char *fr_http_exchange_path(const fr_http_exchange *exchange);
const char *fr_http_exchange_query(const fr_http_exchange *exchange, const char *key);
const char *fr_http_exchange_body(const fr_http_exchange *exchange, size_t *length);

/* Tags of what the client has already (If-None-Match); NULL: it has said nothing of that. */
const char *fr_http_exchange_has(const fr_http_exchange *exchange);

/* Figures of the texts that an exchange asked for, for its line in the log: tokens of its prompts, of these found in
 * the cache, generated; seconds until the first one; why they ended. `end` is a constant text. */
typedef struct fr_http_exchange_texts {
    size_t prompt, cached, generated;
    double first;
    const char *end;
} fr_http_exchange_texts;

void fr_http_exchange_note_texts(fr_http_exchange *exchange, const fr_http_exchange_texts *texts);

/* An exchange that has ended: the status of its answer (499: the client went away before there was one), the error's
 * message ("": none), seconds since its request began, and its texts (NULL: it asked for none). */
typedef struct fr_http_exchange_report {
    const char *client, *method, *path, *error;
    unsigned status;
    double seconds;
    const fr_http_exchange_texts *texts;
} fr_http_exchange_report;

typedef void fr_http_exchange_report_fn(void *context, const fr_http_exchange_report *report);

/* What its body was read to, for who reads it next: handed over, and taken back (NULL: nothing is kept). By one thread
 * at a time, before the answer. */
void fr_http_exchange_keep(fr_http_exchange *exchange, json_t *body);
json_t *fr_http_exchange_kept(fr_http_exchange *exchange);

/* Whoever holds an exchange releases it once. One that nobody holds besides its connection, and that has no answer or
 * half of one, is cut off. */
void fr_http_exchange_hold(fr_http_exchange *exchange);
void fr_http_exchange_release(fr_http_exchange *exchange);

/* One more header of the answer, which has not begun yet. Copied. */
void fr_http_exchange_set_header(fr_http_exchange *exchange, const char *name, const char *value);

/* The whole answer: an HTTP status, a content type, bytes, which are copied; or JSON, which is handed over. */
void fr_http_exchange_answer(fr_http_exchange *exchange, unsigned status, const char *type, const char *bytes,
                             size_t length);
void fr_http_exchange_answer_json(fr_http_exchange *exchange, unsigned status, json_t *value);

/* An error as the whole answer: {"error": {"code": STATUS, "message", "type"}}, of the type that goes with the status,
 * or as who asks at its path has them (fault.h). */
void fr_http_exchange_refuse(fr_http_exchange *exchange, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An answer in pieces, with status 200: server-sent events, say. */
void fr_http_exchange_begin(fr_http_exchange *exchange, const char *type);
void fr_http_exchange_write(fr_http_exchange *exchange, const char *bytes, size_t length);
void fr_http_exchange_end(fr_http_exchange *exchange);

/* Whether the client has gone away, so that nobody waits for an answer. Looks at the connection. */
bool fr_http_exchange_gone(fr_http_exchange *exchange);

/* Bytes that were written and that the client has not taken yet; seconds since anything was written. */
size_t fr_http_exchange_unread(fr_http_exchange *exchange);
double fr_http_exchange_silent(fr_http_exchange *exchange);

#endif
