/* Drafts by pairs, for MTP layers and EAGLE drafters: one decoder layer or a few, which have a cache of keys and values
 * of their own, are applied again and again.
 *
 * In: timelines, and the target's rows when the target runs them. Out: a chain of drafts for each timeline.
 *
 * Pair p is made of values for position p and of the token at position p + 1. Its keys and values lie in slot p of the
 * layers' cache. The values for position p are read from the target's row. Within a chain of drafts, they are the
 * output row of the pair before. The output of the last pair p gives scores for the token at position p + 2. Each
 * drafter defines how its pairs begin, and the layers (fr_pair_net). The functions below are the same for all drafters
 * that work by pairs. */
#ifndef FR_SRC_ENGINE_DRAFT_PAIRS_H
#define FR_SRC_ENGINE_DRAFT_PAIRS_H

#include "src/engine/draft/draft.h"

typedef struct fr_pair {
    size_t position; /* the position p of the target's row */
    int32_t id;      /* the token at position p + 1 */
    /* the token's input embedding, if it differs from the embedding of the token's id, for example within pictures;
     * otherwise NULL */
    const float *embedding;
    /* the values read from the target's row, or in a chain the [hidden] output of the pair before */
    const float *known;
} fr_pair;

typedef struct fr_pair_batch {
    const fr_drafter *drafter;
    const fr_pair *pairs; /* [count] the pairs to run, in the order of the rows */
    size_t count;
    /* the pairs continue chains, so each is made from the output of the pair before; if false, pairs are made from the
     * target's rows */
    bool chained;
    const fr_workspace *products; /* memory for the products of `input` */
    float *input;                 /* [count, input_width] memory for the inputs of products; a product may read fewer
                                   * columns */
} fr_pair_batch;

/* Defines a drafter that works by pairs. fr_drafter.net of such a drafter points to a struct that begins with an
 * fr_pair_net. */
typedef struct fr_pair_net {
    const char *what;          /* the model that gave the logits, for error lines */
    const fr_trunk *trunk;     /* the trunk whose widths and forms of rotation the layers have */
    const fr_layer_spec *spec; /* [layers] the specs of the layers, whose keys and values are in a cache of their own */
    const fr_layer *layer;     /* [layers] */
    size_t layers, number; /* layers: number of layers; number: index of the first of these layers in the trunk, which
                            * for an MTP layer is the number of the trunk's own layers */
    size_t input_width;    /* number of columns of the widest product at the beginning of pairs */
    const float *norm;     /* [hidden] the norm before the head; NULL: there is no norm */
    bool carries_norm;     /* a pair passes its output to the next pair after the norm */
    bool behind;           /* the rotary position of pair p is p + 1; if false, it is p */
    const fr_matrix *head; /* [candidates, hidden] the head that scores drafts */
    const int32_t *candidates; /* [candidates] the ids that the head scores; NULL: it scores all ids */
    float softcap;             /* softcap of the scores; 0: scores are not capped */
    bool packed;               /* some matrix is packed */

    /* Computes a->x for the pairs of a batch. If the first layer reads a->input, also computes a->input. The whole team
     * makes this call. On return each row is complete for the thread that owns it. */
    void (*begin)(const fr_team *team, const fr_pair_batch *batch, fr_activations *a);
} fr_pair_net;

/* The functions that all methods with pairs have in their fr_draft_method. */
const fr_matrix *fr_pairs_head(const fr_drafter *drafter);
void *fr_pairs_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);
fr_draft *fr_pairs_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);
void fr_pairs_fork(fr_draft *fork, const fr_draft *draft);
void fr_pairs_propose(fr_proposal *first);
void fr_pairs_cut(fr_draft *draft, const fr_draft_view *view);
fr_status fr_pairs_follow(fr_draft *draft, const fr_draft_view *view);
fr_kv *fr_pairs_kv(fr_draft *draft);
const fr_kv *fr_pairs_workspace_kv(const void *workspace);
void fr_pairs_close(fr_draft *draft);

/* Sets the functions fr_pairs_* in the initializer of a method. */
#define FR_PAIRS_METHOD                                                                                   \
    .head = fr_pairs_head, .workspace = fr_pairs_workspace, .open = fr_pairs_open, .fork = fr_pairs_fork, \
    .propose = fr_pairs_propose, .cut = fr_pairs_cut, .follow = fr_pairs_follow, .kv = fr_pairs_kv,       \
    .workspace_kv = fr_pairs_workspace_kv, .close = fr_pairs_close

#endif
