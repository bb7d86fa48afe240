/* Assigns layers to ranks, and passes rows from one rank to the next.
 *
 * In: a trunk whose tensors are bound, ranks. Out: a run of consecutive layers for each rank. Each rank passes the rows
 * of the stream on to the next rank, with the keys and values that later layers borrow. After a forward all ranks get
 * its results. A rank has nothing of another rank's layers: neither their weights, nor their keys, values and states.
 *
 *     ids -> rank 0: layers -> rows -> rank 1: layers -> ... -> last rank: layers, norm -> hidden rows, to all
 *
 * Each rank looks up the embeddings of ids itself, including per-layer embeddings, and computes rotary angles
 * itself. */
#ifndef FR_SRC_ENGINE_LAYERS_STAGES_H
#define FR_SRC_ENGINE_LAYERS_STAGES_H

#include "src/engine/layers/activations.h"
#include "src/engine/layers/forward.h"

/* A layer's keys and values that other layers or a drafter read. */
typedef struct fr_lent {
    size_t kv;          /* the KV layer that holds the keys and values */
    size_t owner, last; /* owner: the layer that computes the lent keys and values; last: the last layer that reads
                         * them */
    bool drafted;       /* a drafter may read the lent keys and values: no later layer of the same kind (full or
                         * sliding) owns keys and values */
} fr_lent;

typedef struct fr_stages {
    struct fr_ranks *ranks;
    size_t *first; /* [ranks + 1] rank r runs layers [first[r], first[r + 1]) */
    fr_lent *lent;
    size_t lent_count;
    size_t lent_bytes; /* the largest number of bytes that are lent for one row */
} fr_stages;

/* Assigns layers to ranks in proportion to the ranks' shares of the work (fr_ranks_before). bytes: [layers] the bytes
 * of each layer. Each rank gets at least one layer, if there are enough layers. */
fr_status fr_stages_open(const fr_trunk *trunk, struct fr_ranks *ranks, const uint64_t *bytes, fr_stages **stages);

/* stages may be NULL. */
void fr_stages_close(fr_stages *stages);

/* Gives the rank that runs a layer. `layer` may also be the number of layers, which gives the last rank. */
size_t fr_stages_of(const fr_stages *stages, size_t layer);

/* Returns true if a rank keeps the keys and values of KV layer `kv`. There are three reasons to keep them: one of the
 * rank's own layers owns or borrows them, the rank passes them on to later ranks, or a drafter may read them. */
bool fr_stages_keeps(const fr_trunk *trunk, size_t rank, size_t kv);

/* fr_stages_receive receives the stream for this rank's first layer; fr_stages_send sends the stream after the rank's
 * last layer. Rows that neither a later layer nor the head reads are dropped from the stream. `batch` still has all
 * rows: the keys and values of all of them are sent if later layers borrow them. All threads of the team call both
 * functions. Each function has barriers of its own, the last of them at its end. */
void fr_stages_receive(const fr_team *team, fr_activations *a);
void fr_stages_send(const fr_team *team, const fr_activations *a, const fr_batch *batch);

/* Gives all ranks the results of a forward: hidden rows, aux hidden rows, and the keys and values that drafters borrow.
 * The function has barriers of its own, the last of them at its end. */
void fr_stages_finish(const fr_team *team, const fr_forward *forward);

/* Gives the number of slices into which the rows of a forward are cut. Each slice goes through the ranks one after the
 * other, and all ranks can work at the same time on different slices. */
size_t fr_stages_pieces(const fr_trunk *trunk, const fr_batch *batch);

#endif
