/* Declares exchanges. An exchange is an HTTP request and its answer.
 *
 * In: a client's complete request. Out: one answer, at once or later, as a whole or as a stream. The connection is the
 * first holder of an exchange. To answer later, another holder must be added (fr_http_exchange_hold). Any thread may
 * call these functions, so any thread may answer. If the client has gone, bytes for it are dropped. */
#ifndef FR_TOOLS_SERVE_HTTP_EXCHANGE_H
#define FR_TOOLS_SERVE_HTTP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fr_http_exchange fr_http_exchange;

/* These functions give the parts of the request. The texts are valid as long as the exchange. The path does not include
 * the query, and its %XX are decoded. fr_http_exchange_query gives the value of a key in the query. "": the key has no
 * value. NULL: there is no such key. */
const char *fr_http_exchange_method(const fr_http_exchange *exchange);
const char *fr_http_exchange_path(const fr_http_exchange *exchange);
const char *fr_http_exchange_query(const fr_http_exchange *exchange, const char *key);
const char *fr_http_exchange_body(const fr_http_exchange *exchange, size_t *length);

/* Gives the header If-None-Match, in which a client lists the versions of a file that it already has. NULL: the client
 * has sent no such header. */
const char *fr_http_exchange_has(const fr_http_exchange *exchange);

/* Figures about the texts of an exchange, for its line in the log. prompt: number of tokens of all prompts. cached:
 * number of these tokens that were in the cache. generated: number of generated tokens. first: seconds until the first
 * token. end: the reason why the texts ended, a constant string. */
typedef struct fr_http_exchange_texts {
    size_t prompt, cached, generated;
    double first;
    const char *end;
} fr_http_exchange_texts;

void fr_http_exchange_note_texts(fr_http_exchange *exchange, const fr_http_exchange_texts *texts);

/* A report on an exchange that has ended. status: the status of its answer; 499: the client left before the answer
 * began. error: the message of an error; "": there was no error. seconds: the time since the request began. texts:
 * figures about its texts; NULL: it had no texts. */
typedef struct fr_http_exchange_report {
    const char *client, *method, *path, *error;
    unsigned status;
    double seconds;
    const fr_http_exchange_texts *texts;
} fr_http_exchange_report;

typedef void fr_http_exchange_report_fn(void *context, const fr_http_exchange_report *report);

/* fr_http_exchange_keep stores the body as parsed JSON, so that it is parsed only once. The exchange takes ownership of
 * the body. fr_http_exchange_kept takes the body out and passes ownership to the caller. NULL: no body is stored. Only
 * one thread at a time may call these functions, and only before the answer. */
void fr_http_exchange_keep(fr_http_exchange *exchange, json_t *body);
json_t *fr_http_exchange_kept(fr_http_exchange *exchange);

/* fr_http_exchange_hold adds a holder, and fr_http_exchange_release removes one. Each holder must release the exchange
 * once. If only the connection is left and the answer is not complete, the exchange is cut off. */
void fr_http_exchange_hold(fr_http_exchange *exchange);
void fr_http_exchange_release(fr_http_exchange *exchange);

/* Adds a header to the answer, which must not have begun yet. The texts are copied. */
void fr_http_exchange_set_header(fr_http_exchange *exchange, const char *name, const char *value);

/* These functions answer the exchange. fr_http_exchange_answer sends a status, a content type and bytes, which are
 * copied. fr_http_exchange_answer_json sends a status and a JSON value, of which it takes ownership. */
void fr_http_exchange_answer(fr_http_exchange *exchange, unsigned status, const char *type, const char *bytes,
                             size_t length);
void fr_http_exchange_answer_json(fr_http_exchange *exchange, unsigned status, json_t *value);

/* Answers with an error in the form of the API to which the path belongs (fault.h), for example {"error": {"code":
 * STATUS, "message", "type"}}. The status decides the type. */
void fr_http_exchange_refuse(fr_http_exchange *exchange, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* These functions begin, continue and end an answer that is sent in pieces, such as server-sent events. Its status is
 * 200. */
void fr_http_exchange_begin(fr_http_exchange *exchange, const char *type);
void fr_http_exchange_write(fr_http_exchange *exchange, const char *bytes, size_t length);
void fr_http_exchange_end(fr_http_exchange *exchange);

/* Returns true if the client has gone, so that the answer can be dropped. Each call looks at the connection's current
 * state. */
bool fr_http_exchange_gone(fr_http_exchange *exchange);

/* fr_http_exchange_unread gives the number of bytes that were written but that the client has not read yet.
 * fr_http_exchange_silent gives the seconds since the last write. */
size_t fr_http_exchange_unread(fr_http_exchange *exchange);
double fr_http_exchange_silent(fr_http_exchange *exchange);

#endif
