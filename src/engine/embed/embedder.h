/* Makes embeddings and scores of texts: the embedder of forerun.h.
 *
 * In: a model, and texts as ids. Out: rows and scores. src/api checks the arguments and sets the floating-point
 * environment. Several texts are run in one forward. A text encoder has all these texts in its memory. A model that
 * generates text has a session for each text (text_group.h). */
#ifndef FR_SRC_ENGINE_EMBED_EMBEDDER_H
#define FR_SRC_ENGINE_EMBED_EMBEDDER_H

#include "src/engine/embed/recipe.h"
#include "src/engine/encoder/encoder.h"
#include "src/engine/session/session.h"
#include "src/engine/session/text_group.h"

struct fr_embedder {
    const fr_model *model;
    fr_options options;
    fr_recipe recipe;
    size_t limit; /* the most tokens of a text */
    size_t done;  /* number of texts that the last call finished; these are the first ones */
    /* These members are for a text encoder. */
    fr_plan plan; /* the encoder's threads */
    fr_pool *pool;
    fr_encoder_memory *memory;
    size_t memory_rows;
    /* These members are for a model that generates text. */
    fr_engine *engine;     /* the caller's engine; NULL: the embedder uses own_engine */
    fr_engine *own_engine; /* the embedder's own engine, which is opened for the first texts; NULL: it is not open */
    size_t own_texts;      /* the most texts in one forward for which own_engine was opened */
    /* sessions of the engine; count 0: none is open. All sessions after the first are copies of the first, so they have
     * its adapters */
    fr_text_group group;
};

fr_status fr_embedder_create(const fr_model *model, fr_engine *engine, const fr_options *options, fr_pooling pooling,
                             fr_embedder **embedder);
void fr_embedder_destroy(fr_embedder *embedder);

/* These functions of embedder_texts.c make the ids of a text, of a pair, and of a text that is given as ids. */
fr_status fr_embedder_text_of(const fr_embedder *embedder, const char *prompt, fr_text text, fr_embedder_text *encoded);
fr_status fr_embedder_pair_of(const fr_embedder *embedder, const char *instruction, fr_text query, fr_text document,
                              fr_embedder_text *encoded);
fr_status fr_embedder_ids_of(const fr_embedder *embedder, const int32_t *ids, size_t count, fr_embedder_text *encoded);

fr_status fr_embedder_run(fr_embedder *embedder, const fr_embedder_text *texts, size_t count, size_t dimensions,
                          int normalize, float *rows);
fr_status fr_embedder_score(fr_embedder *embedder, const fr_embedder_text *pairs, size_t count, bool raw,
                            float *scores);

/* Check that texts can be run, and that ids are in the vocabulary. */
fr_status fr_embedder_check(const fr_embedder *embedder, const fr_embedder_text *texts, size_t count);
fr_status fr_embedder_check_ids(const fr_embedder *embedder, const int32_t *ids, size_t count);

bool fr_embedder_can_score(const fr_embedder *embedder);
bool fr_embedder_normalizes(const fr_embedder *embedder);

#endif
