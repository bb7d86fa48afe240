/* Runs the texts of requests for embeddings and scores through a model's embedder, between two rounds of generation.
 *
 * In: a request with its texts or pairs as ids. Out: the embeddings or scores of these, and at the end the answer. If
 * several requests wait, their texts run together in one forward. The values are the same bits as if each text ran
 * alone. If a text fails, only its own request fails. */
#ifndef FR_TOOLS_SERVE_EMBEDDER_CHORE_H
#define FR_TOOLS_SERVE_EMBEDDER_CHORE_H

#include "tools/serve/models.h"

typedef struct fr_embedder_chore fr_embedder_chore;
struct fr_embedder_chore {
    fr_chore chore;             /* the first member, so that a pointer to it is a pointer to this struct */
    fr_http_exchange *exchange; /* held while the request waits */
    const fr_model_instance *model;
    fr_embedder_text *texts; /* [count] texts or pairs, allocated by the library */
    size_t count, done;      /* done: number of texts whose embeddings or scores were given to `take` */
    size_t tokens;           /* number of tokens of these texts */
    /* number of values of an embedding that are wanted; 0: not embeddings but scores of pairs are wanted */
    size_t dimensions;
    bool raw; /* scores are wanted without the function that the model's makers apply to them last */
    double scales[FR_LOADED_ADAPTERS_MAX]; /* scales of the adapters; used for a model that generates text */
    unsigned fault;                        /* HTTP status of an error, whose text is in `line`; 0: there was no error */
    char line[256];
    /* Receives the embedding or the score of the text whose index is `done`. */
    void (*take)(fr_embedder_chore *chore, const float *values);
    /* Gives the body of the answer as a new reference. */
    json_t *(*answer)(fr_embedder_chore *chore);
    /* Frees the request. Its texts have already been freed. */
    void (*free)(fr_embedder_chore *chore);
};

/* Prepares a request that has no texts yet. The request gets the scales that the model's adapters have at this time. */
void fr_embedder_chore_init(fr_embedder_chore *chore, fr_http_exchange *exchange, const fr_model_instance *model);

/* Passes the request to the scheduler, which answers it and frees it. If too many requests wait already, the request is
 * answered with an error at once. */
void fr_embedder_chore_start(fr_embedder_chore *chore);

void fr_embedder_chore_free(fr_embedder_chore *chore);

#endif
