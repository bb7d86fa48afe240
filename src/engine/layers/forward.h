/* The arguments and results of a forward, which runs a batch of rows through a model.
 *
 * In: rows of timelines. Out: hidden rows, logits. The trunk computes the hidden rows (trunk.h), and the head computes
 * logits from them (head.h). */
#ifndef FR_SRC_ENGINE_LAYERS_FORWARD_H
#define FR_SRC_ENGINE_LAYERS_FORWARD_H

#include "forerun.h"
#include "src/engine/cache/kv.h"
#include "src/engine/weights/matrix.h"

/* A token's rotary position along time, height and width. A token of text has the same number on all axes. */
#define FR_AXES 3
typedef struct fr_rope_position {
    int32_t at[FR_AXES];
} fr_rope_position;

/* Input embeddings for consecutive positions that don't use the embedding of their id, for example the tokens of an
 * image. */
typedef struct fr_input_embeddings {
    size_t first, count;
    const float *rows; /* [count, width] in each row an embedding, and after it the rows that fr_spec_picture_width
                        * counts */
} fr_input_embeddings;

/* Gives a position's input embedding, or NULL if there is none. The last entry of `spans` has no rows. width: the
 * result of fr_spec_picture_width. */
static inline const float *fr_input_embedding(const fr_input_embeddings *spans, size_t position, size_t width) {
    for (; spans->count; spans++)
        if (position >= spans->first && position - spans->first < spans->count)
            return spans->rows + (position - spans->first) * width;
    return NULL;
}

/* A row of a batch: a token, and its position in a timeline. */
typedef struct fr_row {
    int32_t id;
    int32_t timeline; /* number of the row's timeline in the batch; the row reads the cache of this timeline */
    int32_t position; /* the row's position in its timeline. The row's keys and values are stored in the slot with this
                       * number, and the row sees this slot and the slots before it */
    /* the row of the same batch that precedes this row in its timeline; -1: this row follows the positions in the
     * cache */
    int32_t parent;
    /* The last position of the picture in which the row lies, if attention between the picture's rows is not causal. If
     * this is at most the row's own position, the row lies in no such picture. */
    int32_t block_last;
    fr_rope_position rope_position;
    /* the row's input embedding, if it is not the embedding of the id; otherwise NULL. It has [hidden] values, and then
     * [hidden] values for each layer that adds a row of the picture (fr_spec_picture_width) */
    const float *embedding;
} fr_row;

/* The positions that a row sees, `first` and `last` included. Rows without a sight see all positions up to their
 * own. */
typedef struct fr_sight {
    int64_t first, last;
} fr_sight;

/* Rows that are run through a model together. In a prompt the rows are a long chain. Decoding has a single row, and K
 * drafts are verified by a chain of K + 1 rows. A batch may have rows of several timelines. */
typedef struct fr_batch {
    const fr_row *rows;
    size_t count;
    fr_kv *const *timelines; /* the timelines' caches. A forward writes a row to the slot of the row's position, but
                              * does not commit */
    const fr_adapter_set *const *adapters; /* [timelines] the adapters of each timeline, or NULL for a timeline without
                                            * adapters; NULL: no timeline has adapters */
} fr_batch;

/* Layers whose inputs a forward returns in addition to its hidden rows. An entry that equals the number of layers
 * stands for the output of the last layer, before the final norm. */
enum { FR_AUX_LAYERS = 8 };
typedef struct fr_aux_layers {
    size_t count, layer[FR_AUX_LAYERS];
} fr_aux_layers;

/* One forward. Its input is rows of tokens. Its results are hidden rows and, for some rows, logits. */
typedef struct fr_forward {
    const fr_model *model;
    void *activations; /* fr_activations of the model */
    fr_batch batch;
    size_t keep;                     /* rows before this row are run only for their keys and values */
    float *hidden;                   /* [rows, hidden] out, from row `keep` on: hidden rows after the final norm */
    const fr_aux_layers *aux_layers; /* NULL: none */
    float *aux_hidden;               /* [rows, aux_layers, hidden] out, from row `keep` on: inputs of the aux_layers */
    bool lends; /* A drafter reads the keys and values of the last layers that have their own, so all ranks need these
                 * keys and values. */
    size_t head_first, head_rows; /* the rows whose logits are wanted, all at or after row `keep`; head_rows 0: no
                                   * logits are wanted */
    const fr_matrix *head;        /* the head that computes the logits; NULL: the model's own */
    float *logits;                /* [head_rows, features of the head] out: logits after soft capping */
    bool best_alone; /* the caller reads only `best`; so if there are ranks, each rank needs only its own part of the
                      * logits */
    /* [threads, best_stride] out: entry r, for r < head_rows, is the feature with the largest logit in row r, or -1 if
     * some logit is not finite */
    int64_t *best;
    size_t best_stride; /* the maximum of head_rows */
} fr_forward;

/* The head that computes logits from hidden rows. */
typedef struct fr_head {
    const fr_matrix *matrix; /* [vocab, hidden] */
    const fr_workspace *workspace;
    size_t stride;                         /* number of floats between the beginnings of two hidden rows */
    const float *bias;                     /* [vocab] a bias that is added to the products; NULL: there is none */
    const fr_adapter_set *const *adapters; /* the adapters of the rows with logits; NULL: no row has adapters */
    float scale, softcap; /* the logits are multiplied by `scale` and then capped by `softcap`; if one of these is 0,
                           * its step is left out */
} fr_head;

#endif
