/* Sends requests for text to a server. Brings whole answers and streams into the same form, so that they can be
 * compared.
 *
 * In: paths and bodies. Out: everything in an answer that must be the same whenever the request is repeated: texts,
 * ids, log-probabilities, finish reasons, counts. The id of an answer, times, the number of cached tokens, and empty
 * values are left out. */
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
    bool whole;         /* true if the stream has ended properly */
} fr_events;

/* Sends the request and reads the head of the answer. *status becomes its status. */
fr_client *fr_ask_begin(uint16_t port, const char *path, const json_t *body, int *status);

/* Sends a request whose answer must be a stream. fr_events_close closes the connection too. */
fr_events fr_ask_stream(uint16_t port, const char *path, const json_t *body);

/* Returns the next event, or NULL if there is none; the caller releases it. */
json_t *fr_events_next(fr_events *events);
void fr_events_close(fr_events *events);

/* fr_events_said returns the content of all remaining events, and fr_whole_said the content of a whole answer. */
json_t *fr_events_said(fr_events *events);
json_t *fr_whole_said(const json_t *answer);

/* Sends a request on a connection that stays open. Returns the content of the answer, or {"status", "error"}, or NULL
 * if the server has closed the connection. */
json_t *fr_ask_on(fr_client *client, const char *path, const json_t *body);

/* Sends a request on a connection of its own. Returns the content of the answer, and ends the test at an error. */
json_t *fr_ask_ok(uint16_t port, const char *path, const json_t *body);

/* Sends any JSON on a connection of its own; if `body` is NULL the method is GET. Returns the status. *answer becomes
 * the answer, which the caller releases. */
int fr_ask_json(uint16_t port, const char *path, const json_t *body, json_t **answer);

/* Makes the body of a request from the values of a json_pack format. */
json_t *fr_body(const char *format, ...);

/* If the answers differ, ends the test and prints both. */
void fr_same_said(const json_t *expected, const json_t *got, const char *what);

/* These functions make random choices, which are the same for the same seed. fr_chance returns a number below `below`.
 * fr_draw_request returns a request {"path", "body"}. fr_ask_otherwise returns a copy of a request that must have the
 * same answer, but as a stream or whole, or with another number of drafts. */
size_t fr_chance(uint64_t *state, size_t below);
json_t *fr_draw_request(uint64_t *state);
json_t *fr_ask_otherwise(uint64_t *state, const json_t *body);

#endif
