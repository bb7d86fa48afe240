/* A request over HTTP, and its answer.
 *
 * In: what a client sent, whole. Out: one answer, at once or later, in one piece or as a stream of pieces. The first to
 * hold a call is the connection that it came by; who will answer later holds it too (fr_call_hold), and then any thread
 * may do so. All functions may be called by any thread; what is written to a client that has gone is dropped. */
#ifndef FR_TOOLS_SERVE_CALL_H
#define FR_TOOLS_SERVE_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct fr_call fr_call;

/* What was asked for. The path has no query, and %XX in it has been read. Of the query a key's value, "" for a key that
 * has none, NULL for one that is not there. All last as long as the call. */
const char *fr_call_method(const fr_call *call);
const char *fr_call_path(const fr_call *call);
const char *fr_call_query(const fr_call *call, const char *key);
const char *fr_call_body(const fr_call *call, size_t *length);

/* Tags of what the client has already (If-None-Match); NULL: it has said nothing of that. */
const char *fr_call_has(const fr_call *call);

/* Figures of the texts that a call asked for, for its line in the log: tokens of its prompts, of these found in the
 * cache, generated; seconds until the first one; why they ended. `end` is a constant text. */
typedef struct fr_call_texts {
    size_t prompt, cached, generated;
    double first;
    const char *end;
} fr_call_texts;

void fr_call_note_texts(fr_call *call, const fr_call_texts *texts);

/* A call that has ended: the status of its answer (499: the client went away before there was one), the error's message
 * ("": none), seconds since its request began, and its texts (NULL: it asked for none). */
typedef struct fr_call_report {
    const char *client, *method, *path, *error;
    unsigned status;
    double seconds;
    const fr_call_texts *texts;
} fr_call_report;

typedef void fr_call_report_fn(void *context, const fr_call_report *report);

/* What its body was read to, for who reads it next: handed over, and taken back (NULL: nothing is kept). By one thread
 * at a time, before the answer. */
void fr_call_keep(fr_call *call, json_t *body);
json_t *fr_call_kept(fr_call *call);

/* Whoever holds a call releases it once. One that nobody holds besides its connection, and that has no answer or half
 * of one, is cut off. */
void fr_call_hold(fr_call *call);
void fr_call_release(fr_call *call);

/* One more header of the answer, which has not begun yet. Copied. */
void fr_call_set_header(fr_call *call, const char *name, const char *value);

/* The whole answer: an HTTP status, a content type, bytes, which are copied; or JSON, which is handed over. */
void fr_call_answer(fr_call *call, unsigned status, const char *type, const char *bytes, size_t length);
void fr_call_answer_json(fr_call *call, unsigned status, json_t *value);

/* An error as the whole answer: {"error": {"code": STATUS, "message", "type"}}, of the type that goes with the status,
 * or as who asks at its path has them (fault.h). */
void fr_call_refuse(fr_call *call, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An answer in pieces, with status 200: server-sent events, say. */
void fr_call_begin(fr_call *call, const char *type);
void fr_call_write(fr_call *call, const char *bytes, size_t length);
void fr_call_end(fr_call *call);

/* Whether the client has gone away, so that nobody waits for an answer. Looks at the connection. */
bool fr_call_gone(fr_call *call);

/* Bytes that were written and that the client has not taken yet; seconds since anything was written. */
size_t fr_call_unread(fr_call *call);
double fr_call_silent(fr_call *call);

#endif
