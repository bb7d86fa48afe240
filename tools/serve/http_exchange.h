/* Declares exchanges. An exchange is an HTTP request and its answer.
 *
 * In: a client's complete request. Out: one answer, at once or later, as a whole or as a stream. The connection is the
 * first holder of an exchange. To answer later, another holder must be added (fr_http_exchange_hold). Any thread may
 * call the functions, and so may answer. Bytes for a client that has gone are dropped. */
#ifndef FR_TOOLS_SERVE_HTTP_EXCHANGE_H
#define FR_TOOLS_SERVE_HTTP_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fr_http_exchange fr_http_exchange;

/* Give the parts of the request; the texts are valid as long as the exchange. The path has no query, and its %XX are
 * decoded. fr_http_exchange_query gives the value of a key in the query: "" if the key has no value, NULL if there is
 * no such key. */
const char *fr_http_exchange_method(const fr_http_exchange *exchange);
const char *fr_http_exchange_path(const fr_http_exchange *exchange);
const char *fr_http_exchange_query(const fr_http_exchange *exchange, const char *key);
const char *fr_http_exchange_body(const fr_http_exchange *exchange, size_t *length);

/* Gives the header If-None-Match, which lists the versions of a file that the client has already; NULL if it sent
 * none. */
const char *fr_http_exchange_has(const fr_http_exchange *exchange);

/* Figures about the texts of an exchange, for its line in the log. prompt: number of tokens of all prompts; cached:
 * how many of these were in the cache; generated: number of generated tokens; first: seconds until the first token;
 * end: the reason why the texts ended, a constant string. */
typedef struct fr_http_exchange_texts {
    size_t prompt, cached, generated;
    double first;
    const char *end;
} fr_http_exchange_texts;

void fr_http_exchange_note_texts(fr_http_exchange *exchange, const fr_http_exchange_texts *texts);

/* A report on an exchange that has ended. status: the status of its answer (499: the client left before the answer
 * began); error: the message of an error ("": no error); seconds: the time since the request began; texts: figures
 * about its texts (NULL: it had none). */
typedef struct fr_http_exchange_report {
    const char *client, *method, *path, *error;
    unsigned status;
    double seconds;
    const fr_http_exchange_texts *texts;
} fr_http_exchange_report;

typedef void fr_http_exchange_report_fn(void *context, const fr_http_exchange_report *report);

/* fr_http_exchange_keep stores the body as parsed JSON, so that it need not be parsed again. fr_http_exchange_kept
 * takes it out (NULL: none is stored). Both pass the ownership of the body. Only one thread at a time may call them,
 * and only before the answer. */
void fr_http_exchange_keep(fr_http_exchange *exchange, json_t *body);
json_t *fr_http_exchange_kept(fr_http_exchange *exchange);

/* Add a holder, and release one. Each holder must release the exchange once. When only the connection is left and the
 * answer is not complete, the exchange is cut off. */
void fr_http_exchange_hold(fr_http_exchange *exchange);
void fr_http_exchange_release(fr_http_exchange *exchange);

/* Adds a header to the answer, which must not have begun. The texts are copied. */
void fr_http_exchange_set_header(fr_http_exchange *exchange, const char *name, const char *value);

/* Answer the exchange. fr_http_exchange_answer sends a status, a content type and bytes, which are copied.
 * fr_http_exchange_answer_json sends a status and a JSON value, which it takes over. */
void fr_http_exchange_answer(fr_http_exchange *exchange, unsigned status, const char *type, const char *bytes,
                             size_t length);
void fr_http_exchange_answer_json(fr_http_exchange *exchange, unsigned status, json_t *value);

/* Answers with an error in the form of the API to which the path belongs (fault.h), for example {"error": {"code":
 * STATUS, "message", "type"}}. The type follows from the status. */
void fr_http_exchange_refuse(fr_http_exchange *exchange, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Begin, continue and end an answer in pieces, with status 200: for example server-sent events. */
void fr_http_exchange_begin(fr_http_exchange *exchange, const char *type);
void fr_http_exchange_write(fr_http_exchange *exchange, const char *bytes, size_t length);
void fr_http_exchange_end(fr_http_exchange *exchange);

/* Returns true if the client has gone, so that the answer can be dropped. The function looks at the connection anew in
 * each call. */
bool fr_http_exchange_gone(fr_http_exchange *exchange);

/* Give the number of bytes that were written and that the client has not read yet, and the seconds since the last
 * write. */
size_t fr_http_exchange_unread(fr_http_exchange *exchange);
double fr_http_exchange_silent(fr_http_exchange *exchange);

#endif
