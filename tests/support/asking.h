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

/* The events of a stream, as they come. */
typedef struct fr_events {
    fr_client *client;
    char *bytes;
    size_t size, count; /* count: events so far */
    bool whole;         /* it has come to its proper end */
} fr_events;

/* A client that has sent the request, and the beginning of its answer has come: its status. */
fr_client *fr_ask_begin(uint16_t port, const char *path, const json_t *body, int *status);

/* The same for a stream, which must be one; the events are closed with its client. */
fr_events fr_ask_stream(uint16_t port, const char *path, const json_t *body);

/* The next event, a new value; NULL: there is none any more. */
json_t *fr_events_next(fr_events *events);
void fr_events_close(fr_events *events);

/* What all events that are still to come say; and what an answer says that is a whole. */
json_t *fr_events_said(fr_events *events);
json_t *fr_whole_said(const json_t *answer);

/* The request on a connection that stays open: what was said, or {"status", "error"}. NULL: the server has closed. */
json_t *fr_ask_on(fr_client *client, const char *path, const json_t *body);

/* On a connection of its own; what was said, which may be no error. */
json_t *fr_ask_ok(uint16_t port, const char *path, const json_t *body);

/* The same, any JSON; NULL body: GET. Gives the status, and the answer in *answer, a new value. */
int fr_ask_json(uint16_t port, const char *path, const json_t *body, json_t **answer);

/* A body from a text, with the values of json_pack's format. */
json_t *fr_body(const char *format, ...);

/* Fails the test with both where they differ. */
void fr_same_said(const json_t *expected, const json_t *got, const char *what);

/* Numbers by chance, the same for a seed; a request, {"path", "body"}, and another manner of the same: whole or as a
 * stream, with other numbers of drafts. */
size_t fr_chance(uint64_t *state, size_t below);
json_t *fr_draw_request(uint64_t *state);
json_t *fr_ask_otherwise(uint64_t *state, const json_t *body);

#endif
