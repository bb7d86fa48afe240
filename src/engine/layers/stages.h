/* Layers dealt to ranks: which a rank runs, and what of rows goes from one rank to the next.
 *
 * In: a trunk whose tensors are bound, ranks. Out: for each rank a run of layers; rows of the stream handed on where
 * one ends and the next begins, with keys and values that layers behind borrow; and behind a forward what everybody
 * reads of it. A rank has no part of another's layers, neither weights nor what they keep of positions.
 *
 *     ids -> rank 0: layers -> rows -> rank 1: layers -> ... -> last rank: layers, norm -> hidden rows, to all
 *
 * Each rank looks ids up for itself, with what layers are told of their tokens, and computes rotary angles. */
#ifndef FR_SRC_ENGINE_LAYERS_STAGES_H
#define FR_SRC_ENGINE_LAYERS_STAGES_H

#include "src/engine/layers/activations.h"
#include "src/engine/layers/forward.h"

/* A layer's keys and values that others read. */
typedef struct fr_lent {
    size_t kv;          /* which they are */
    size_t owner, last; /* the layer that makes them; the last one that reads them */
    bool drafted;       /* a drafter may: they are the last that look so far back */
} fr_lent;

typedef struct fr_stages {
    struct fr_ranks *ranks;
    size_t *first; /* [ranks + 1] rank r runs layers [first[r], first[r + 1]) */
    fr_lent *lent;
    size_t lent_count;
    size_t lent_bytes; /* of a row, at most */
} fr_stages;

/* Deals layers of so many bytes, [layers], by what ranks have of all (fr_ranks_before): each has at least one, if there
 * are as many. */
fr_status fr_stages_open(const fr_trunk *trunk, struct fr_ranks *ranks, const uint64_t *bytes, fr_stages **stages);

/* Of NULL too. */
void fr_stages_close(fr_stages *stages);

/* The rank that runs a layer; of their number: that which ends. */
size_t fr_stages_of(const fr_stages *stages, size_t layer);

/* Whether a rank keeps those keys and values: its own layers', those that it is lent or hands on, and what a drafter
 * may read. */
bool fr_stages_keeps(const fr_trunk *trunk, size_t rank, size_t kv);

/* By the whole team: the stream as it comes to this rank's first layer, narrowed if it has been; barriers of its own,
 * one behind. And as it leaves the last one, `batch` being what came in. */
void fr_stages_receive(const fr_team *team, fr_activations *a);
void fr_stages_send(const fr_team *team, const fr_activations *a, const fr_batch *batch);

/* What a forward has made becomes all ranks': hidden rows, aux hidden ones, and what drafters borrow. The same
 * barriers. */
void fr_stages_finish(const fr_team *team, const fr_forward *forward);

/* In how many pieces of its rows a forward goes through the ranks, one behind the other. */
size_t fr_stages_pieces(const fr_trunk *trunk, size_t rows);

#endif
