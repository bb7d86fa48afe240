/* A batch on its way through a target: what goes in, what comes out, and where.
 *
 * In: rows of a timeline. Out: hidden rows, logits. The trunk fills the hidden rows (trunk.h), the head makes logits of
 * them (head.h). */
#ifndef FR_SRC_ENGINE_LAYERS_FORWARD_H
#define FR_SRC_ENGINE_LAYERS_FORWARD_H

#include "forerun.h"
#include "src/engine/cache/kv.h"
#include "src/engine/weights/matrix.h"

/* Where a token stands for rotary positions, along time, height and width: of text all the same. */
#define FR_AXES 3
typedef struct fr_rope_position {
    int32_t at[FR_AXES];
} fr_rope_position;

/* Input embeddings: those of positions of a timeline that are not looked up by id, such as what an image's tokens
 * say. */
typedef struct fr_input_embeddings {
    size_t first, count;
    const float *rows; /* [count, hidden] */
} fr_input_embeddings;

/* A position's input embedding, NULL where there is none. spans end with one of no rows. */
static inline const float *fr_input_embedding(const fr_input_embeddings *spans, size_t position, size_t hidden) {
    for (; spans->count; spans++)
        if (position >= spans->first && position - spans->first < spans->count)
            return spans->rows + (position - spans->first) * hidden;
    return NULL;
}

/* A row of a batch: a token, and where it stands. */
typedef struct fr_row {
    int32_t id;
    int32_t timeline; /* of the batch's: whose cache it sees */
    int32_t position; /* in its timeline: the slot of its K/V; it sees what is there and before it */
    int32_t parent;   /* the row of the same batch that it follows; -1: what its timeline has in the cache already */
    fr_rope_position rope_position;
    const float *embedding; /* [hidden] its input embedding, where that is not the id's; else NULL */
} fr_row;

/* Rows that go through a model together. A prompt is a chain of many rows, decode one row, verify a chain of K + 1;
 * several timelines lie side by side. */
typedef struct fr_batch {
    const fr_row *rows;
    size_t count;
    fr_kv *const *timelines; /* their caches: written at slot = position; not committed here */
} fr_batch;

/* Layers whose inputs a forward hands out beside its hidden rows; the number of layers stands for what the last one
 * gives, before the final norm. */
enum { FR_AUX_LAYERS = 8 };
typedef struct fr_aux_layers {
    size_t count, layer[FR_AUX_LAYERS];
} fr_aux_layers;

/* One batch through the target: rows in; hidden rows, and for some rows logits, out. */
typedef struct fr_forward {
    const fr_model *model;
    void *activations; /* of the model */
    fr_batch batch;
    size_t keep;           /* rows before it are run for their K/V alone */
    float *hidden;         /* [rows, hidden] out, from row `keep` on: after the final norm */
    const fr_aux_layers *aux_layers; /* NULL: none */
    float *aux_hidden;               /* [rows, aux_layers, hidden] out, from row `keep` on */
    bool lends; /* a drafter reads keys and values of the last layers that keep some: all ranks need them */
    size_t head_first, head_rows; /* rows whose logits are wanted, none before keep; 0: none */
    const fr_matrix *head; /* what makes them; NULL: the model's own */
    float *logits;         /* [head_rows, features of the head] out: after soft capping */
    bool best_alone;       /* nobody reads those: where ranks run it, each has its own share of them */
    /* [threads, best_stride]: the first head_rows out: the largest logit's feature, -1 if any is not finite. */
    int64_t *best;
    size_t best_stride;    /* head_rows at most */
} fr_forward;

/* What makes logits of hidden rows. */
typedef struct fr_head {
    const fr_matrix *matrix; /* [vocab, hidden] */
    const fr_workspace *workspace;
    float scale, softcap; /* of logits, in this order; 0: none */
} fr_head;

#endif
