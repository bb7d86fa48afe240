/* Maps the paths of a server to their answers.
 *
 * In: exchanges. Out: their answers, or requests in the queue of a scheduler. */
#ifndef FR_TOOLS_SERVE_ROUTES_H
#define FR_TOOLS_SERVE_ROUTES_H

#include "tools/serve/models.h"

typedef struct fr_routes {
    const fr_arguments *args;
    fr_models *models;
    fr_metrics *metrics;
} fr_routes;

/* Answers an exchange, or starts its request. It is an fr_http_fn whose context is an fr_routes. */
void fr_routes_answer(void *context, fr_http_exchange *exchange);

/* Returns true for a path that needs no key. */
bool fr_routes_open(const char *path);

/* Returns true if the body may ask for a grammar. Building a grammar takes long. The body is searched for words from
 * the names of the members that ask for a grammar, and for \u, because an escaped letter can hide such a word. */
bool fr_routes_slow(const char *body, size_t length);

#endif
