/* Who of a team does what of a forward, by what is dealt; and where threads hand on what they made.
 *
 * In: a thread's seat, how much there is. Out: its part, [begin, end), the same one each time; a barrier.
 *
 * A team is one process now. Were it split over several, say the ranks of MPI, each would have all rows, and a share of
 * the features and heads: of q, k, v and in_* those of whole heads. So where features or heads are handed on to others
 * than the same heads it says fr_publish_...; behind other barriers (fr_team_sync) nobody reads what another process
 * made. Behind the end of a run its caller reads everything. */
#ifndef FR_SRC_PARTITION_H
#define FR_SRC_PARTITION_H

#include "src/weights/matrix.h"

/* Rows of a batch: in steps that work row by row. */
static inline void fr_part_rows(const fr_team *team, size_t rows, size_t *begin, size_t *end) {
    fr_partition(rows, 1, team->index, team->count, begin, end);
}

/* Output features, in whole units. */
static inline void fr_part_features(const fr_team *team, size_t features, size_t *begin, size_t *end) {
    fr_partition(features, FR_FEATURE_UNIT, team->index, team->count, begin, end);
}

/* Heads, with so many items each (rows, tiles of features, timelines); a head's items are side by side. */
static inline void fr_part_heads(const fr_team *team, size_t heads, size_t items, size_t *begin, size_t *end) {
    fr_partition(heads * items, 1, team->index, team->count, begin, end);
}

/* Quantized blocks of a row. */
static inline void fr_part_blocks(const fr_team *team, size_t blocks, size_t *begin, size_t *end) {
    fr_partition(blocks, 1, team->index, team->count, begin, end);
}

/* Pairs of a row and what was chosen for it, experts or clusters of ids; or the chosen ones, or what they cost. */
static inline void fr_part_pairs(const fr_team *team, size_t pairs, size_t *begin, size_t *end) {
    fr_partition(pairs, 1, team->index, team->count, begin, end);
}

/* Rows of which each thread has made its features or heads become the next product's input: whole for all, and
 * quantized where weights are packed. */
static inline void fr_publish_input(const fr_team *team, const fr_workspace *workspace, const float *x, size_t x_stride,
                                    size_t cols, size_t rows) {
    fr_team_sync(team);
    fr_matrix_input_rows(team, workspace, x, x_stride, cols, rows);
}

/* Float rows of which each thread has made its features become whole, for the rows' owners. */
static inline void fr_publish_rows(const fr_team *team) {
    fr_team_sync(team);
}

#endif
