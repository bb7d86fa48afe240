/* Maps the paths of a server to their answers.
 *
 * In: exchanges. Out: answers, or requests on a scheduler. */
#ifndef FR_TOOLS_SERVE_ROUTES_H
#define FR_TOOLS_SERVE_ROUTES_H

#include "tools/serve/models.h"

typedef struct fr_routes {
    const fr_arguments *args;
    fr_models *models;
    fr_metrics *metrics;
} fr_routes;

/* Answers an exchange (an fr_http_fn whose context is an fr_routes). */
void fr_routes_answer(void *context, fr_http_exchange *exchange);

/* Returns true for a path that is answered without a key. */
bool fr_routes_open(const char *path);

/* Returns true if a body may ask for a grammar, which takes long to build: the body contains one of the words in the
 * names of such members. */
bool fr_routes_slow(const char *body, size_t length);

#endif
