/* Runs the texts of requests for embeddings and scores through a model's embedder, between two rounds of generation.
 *
 * In: a request with its texts or pairs as ids. Out: their embeddings or scores, and in the end the answer. Texts of
 * several requests that wait run together in one forward. No bit depends on that, and a text that fails is the failure
 * of its own request. */
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
    size_t dimensions;       /* number of values of an embedding that are wanted; 0: scores of pairs are wanted */
    bool raw;                /* scores are wanted without the function that the model's makers apply last */
    double scales[FR_LOADED_ADAPTERS_MAX]; /* scales of the adapters; used for a model that generates text */
    unsigned fault;                        /* HTTP status of an error, whose text is in `line`; 0: no error */
    char line[256];
    /* Takes the embedding or the score of text number `done`. */
    void (*take)(fr_embedder_chore *chore, const float *values);
    /* Gives the body of the answer, a new reference. */
    json_t *(*answer)(fr_embedder_chore *chore);
    /* Frees the request, whose texts are freed already. */
    void (*free)(fr_embedder_chore *chore);
};

/* Prepares a request, which has no texts yet, and the scales that the model's adapters have now. */
void fr_embedder_chore_init(fr_embedder_chore *chore, fr_http_exchange *exchange, const fr_model_instance *model);

/* Hands the request over to the scheduler, which answers and frees it. If too many requests wait, this is done at
 * once. */
void fr_embedder_chore_start(fr_embedder_chore *chore);

void fr_embedder_chore_free(fr_embedder_chore *chore);

#endif
