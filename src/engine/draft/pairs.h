/* Drafting by pairs: one decoder layer with a KV cache of its own, applied again and again. What MTP layers and EAGLE
 * drafters have in common.
 *
 * In: timelines, the target's rows, as it runs them. Out: a chain of drafts each.
 *
 * Pair p is (what is known of position p, token p + 1), at slot p of the layer's cache: known is what the drafter sees
 * of the target's row; in a chain it is what the pair before left. The last pair's output gives scores of token p + 2.
 * A drafter says how its pairs begin and what the layer is (fr_pair_net); the functions below are its method's. */
#ifndef FR_SRC_ENGINE_DRAFT_PAIRS_H
#define FR_SRC_ENGINE_DRAFT_PAIRS_H

#include "src/engine/draft/draft.h"

typedef struct fr_pair {
    size_t position;        /* p */
    int32_t id;             /* token p + 1 */
    const float *embedding; /* its input embedding where that is not the id's; else NULL */
    const float *known;     /* of the target's row what is seen, or [hidden] what the pair before left */
} fr_pair;

typedef struct fr_pair_batch {
    const fr_drafter *drafter;
    const fr_pair *pairs; /* [count] */
    size_t count;
    bool chained;                 /* they follow others of their chains; else the target's rows */
    const fr_workspace *products; /* of input */
    float *input;                 /* [count, input_width], or less wide */
} fr_pair_batch;

/* What a drafter by pairs is: its own struct, fr_drafter.net, begins with it. */
typedef struct fr_pair_net {
    const char *what;          /* in a line of a failure */
    const fr_trunk *trunk;     /* whose widths and rotary forms the layer has */
    const fr_layer_spec *spec; /* its K/V is layer 0 of a cache of its own */
    const fr_layer *layer;
    size_t seen;        /* values of a row of the target's that it sees */
    size_t input_width; /* columns of the widest product that it begins with */
    const float *norm;  /* [hidden] before the head; NULL: none */
    bool carries_norm;  /* the pair leaves its row as normed, else as it is before */
    bool behind;        /* it stands where token p + 1 does, else where p does */
    const fr_matrix *head;    /* [candidates, hidden] */
    const int32_t *candidates; /* the ids that it scores; NULL: all */
    float softcap;             /* of the scores; 0: none */
    bool packed;               /* some matrix is */

    /* By the whole team: a->x, and a->input if it has that, of a batch's pairs, each row by its owner on return. */
    void (*begin)(const fr_team *team, const fr_pair_batch *batch, fr_activations *a);
} fr_pair_net;

/* Of fr_draft_method. */
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

/* The initializers of those. */
#define FR_PAIRS_METHOD                                                                                               \
    .head = fr_pairs_head, .workspace = fr_pairs_workspace, .open = fr_pairs_open, .fork = fr_pairs_fork,             \
    .propose = fr_pairs_propose, .cut = fr_pairs_cut, .follow = fr_pairs_follow, .kv = fr_pairs_kv,                   \
    .workspace_kv = fr_pairs_workspace_kv, .close = fr_pairs_close

#endif
