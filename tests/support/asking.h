/* Sends requests to a server of texts and reads its answers, in one form for whole answers and streams.
 *
 * In: paths and bodies. Out: everything of an answer that must be the same whenever the request is repeated: texts,
 * ids, log-probabilities, finish reasons, counts. An answer's own id, times and the number of cached tokens are left
 * out, and so are empty values. */
#ifndef FR_TESTS_ASKING_H
#define FR_TESTS_ASKING_H

#include <jansson.h>

#include "tests/support/http_client.h"

#define CHAT       "/v1/chat/completions"
#define COMPLETION "/v1/completions"
#define NATIVE     "/completion"

/* The events of a stream, in order. */
typedef struct fr_events {
    fr_client *client;
    char *bytes;
    size_t size, count; /* count: events so far */
    bool whole;         /* it has ended properly */
} fr_events;

/* Sends the request and reads the answer's head. *status: its status. */
fr_client *fr_ask_begin(uint16_t port, const char *path, const json_t *body, int *status);

/* Does the same for a stream, which must be one; close the events with their client. */
fr_events fr_ask_stream(uint16_t port, const char *path, const json_t *body);

/* Returns the next event, a new value; NULL: there is none. */
json_t *fr_events_next(fr_events *events);
void fr_events_close(fr_events *events);

/* Returns the content of all remaining events; the second gives that of a whole answer. */
json_t *fr_events_said(fr_events *events);
json_t *fr_whole_said(const json_t *answer);

/* Sends a request on a connection that stays open. Returns the answer's content, or {"status", "error"}. NULL: the
 * server has closed. */
json_t *fr_ask_on(fr_client *client, const char *path, const json_t *body);

/* Sends a request on a connection of its own. Returns the answer's content; an error ends the test. */
json_t *fr_ask_ok(uint16_t port, const char *path, const json_t *body);

/* Does the same with any JSON; NULL body: GET. Returns the status; *answer: the answer, a new value. */
int fr_ask_json(uint16_t port, const char *path, const json_t *body, json_t **answer);

/* Makes a body of a text and the values of json_pack's format. */
json_t *fr_body(const char *format, ...);

/* Ends the test with both answers if they differ. */
void fr_same_said(const json_t *expected, const json_t *got, const char *what);

/* Draw by chance, in the same way for a seed: a number; a request, {"path", "body"}; and the same request in another
 * manner, whole or as a stream, with other numbers of drafts. */
size_t fr_chance(uint64_t *state, size_t below);
json_t *fr_draw_request(uint64_t *state);
json_t *fr_ask_otherwise(uint64_t *state, const json_t *body);

#endif
