/* Sends requests for text to a server. Converts whole answers and streams to the same form, so that they can be
 * compared.
 *
 * In: paths and bodies. Out: everything in an answer that must be the same when the request is repeated: texts, ids,
 * log-probabilities, finish reasons and counts. The result has no id of the answer, no times, no number of cached
 * tokens, and no empty values. */
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
    size_t size, count; /* count: number of events so far */
    bool whole;         /* true: the stream has ended properly */
} fr_events;

/* Sends the request and reads the head of the answer. Sets *status to the answer's status. */
fr_client *fr_ask_begin(uint16_t port, const char *path, const json_t *body, int *status);

/* Sends a request whose answer must be a stream. fr_events_close later closes the connection too. */
fr_events fr_ask_stream(uint16_t port, const char *path, const json_t *body);

/* Returns the next event, or NULL if there is no more event. The caller frees the event. */
json_t *fr_events_next(fr_events *events);
void fr_events_close(fr_events *events);

/* fr_events_said returns the content of all remaining events. fr_whole_said returns the content of a whole answer. */
json_t *fr_events_said(fr_events *events);
json_t *fr_whole_said(const json_t *answer);

/* Sends a request on a connection that stays open. Returns the content of the answer. If the answer is an error,
 * returns {"status", "error"}. If the server has closed the connection, returns NULL. */
json_t *fr_ask_on(fr_client *client, const char *path, const json_t *body);

/* Sends a request on a new connection. Returns the content of the answer. If the answer is an error, ends the test. */
json_t *fr_ask_ok(uint16_t port, const char *path, const json_t *body);

/* Sends any JSON on a new connection. If `body` is NULL, the method is GET. Returns the status. Sets *answer to the
 * answer, which the caller frees. */
int fr_ask_json(uint16_t port, const char *path, const json_t *body, json_t **answer);

/* Makes the body of a request from the values of a json_pack format. */
json_t *fr_body(const char *format, ...);

/* If the two answers differ, prints both and ends the test. */
void fr_same_said(const json_t *expected, const json_t *got, const char *what);

/* These functions make random choices; the same seed gives the same choices. fr_chance returns a number less than
 * `below`. fr_draw_request returns a request {"path", "body"}. fr_ask_otherwise returns a changed copy of a request
 * that must have the same answer: it is a stream instead of whole, or the reverse, or it has another number of
 * drafts. */
size_t fr_chance(uint64_t *state, size_t below);
json_t *fr_draw_request(uint64_t *state);
json_t *fr_ask_otherwise(uint64_t *state, const json_t *body);

#endif
