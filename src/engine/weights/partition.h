/* Who does what of a forward, by what is dealt; and where what was made is handed on.
 *
 * In: a thread's seat, how much there is. Out: its part, [begin, end), the same one each time; a barrier.
 *
 * A team is the threads of one process. Where ranks run a model (team->ranks, base/ranks.h), each has all rows, and a
 * share of the features and heads; its threads have parts of that share. So where features or heads are handed on to
 * others than the same heads it says fr_publish_..., which makes the rows whole on all ranks; behind other barriers
 * (fr_team_sync) nobody reads what another process made. What is too small to be split is computed whole by each rank
 * (fr_matrix_apply_share of all features). Keys and values are made and kept by those that read them: of KV heads a
 * rank has those of its heads, of which several have one where there are fewer than ranks. Nothing is ever added up
 * across ranks: an output's chain of sums is one rank's, so the bits are those of one process. Behind the end of a run
 * its caller reads everything but keys and values. */
#ifndef FR_SRC_ENGINE_WEIGHTS_PARTITION_H
#define FR_SRC_ENGINE_WEIGHTS_PARTITION_H

#include "base/ranks.h"
#include "src/engine/weights/matrix.h"

/* ----------------------------------------------------------------------------------------------------- among ranks */

/* How columns of rows are split over ranks: in units of FR_RANK_UNIT features, or by heads, where a rank has heads of
 * one KV head, or all those of some. */
typedef struct fr_split {
    size_t count;  /* features, or heads */
    size_t groups; /* KV heads; 0: those are features */
    size_t each;   /* columns of a head */
    size_t whole;  /* 1 + the rank that has all of them; 0: they are dealt */
    bool kept;     /* those are KV heads, and all ranks whose heads read one have it */
} fr_split;

/* A unit of features: a quantized block of the product that reads them. */
#define FR_RANK_UNIT 32

static inline fr_split fr_split_features(size_t features) {
    return (fr_split){.count = features, .each = 1};
}

static inline fr_split fr_split_heads(size_t heads, size_t kv_heads, size_t each) {
    return (fr_split){.count = heads, .groups = kv_heads, .each = each};
}

static inline fr_split fr_split_whole(size_t features, size_t rank) {
    return (fr_split){.count = features, .each = 1, .whole = rank + 1};
}

static inline fr_split fr_split_kv_heads(size_t kv_heads, size_t each) {
    return (fr_split){.count = kv_heads, .groups = kv_heads, .each = each, .kept = true};
}

/* The features or heads of one of the ranks. */
void fr_split_share(const fr_split *split, const fr_ranks *ranks, size_t rank, size_t *begin, size_t *end);

/* Who of them has a feature or head, of which each has one rank. */
size_t fr_split_owner(const fr_split *split, const fr_ranks *ranks, size_t unit);

/* Those of the team's own rank: all, where there is one. */
static inline void fr_part_rank(const fr_team *team, fr_split split, size_t *begin, size_t *end) {
    *begin = 0;
    *end = split.count;
    if (team->ranks) fr_split_share(&split, team->ranks, fr_ranks_index(team->ranks), begin, end);
}

/* Of how many KV heads a rank's heads are. */
static inline size_t fr_kv_heads_of(const fr_split *heads, size_t begin, size_t end) {
    size_t group = heads->count / heads->groups;
    return (end - begin + group - 1) / group;
}

/* --------------------------------------------------------------------------------------------------- among threads */

/* Rows of a batch: in steps that work row by row, the same on each rank. */
static inline void fr_part_rows(const fr_team *team, size_t rows, size_t *begin, size_t *end) {
    fr_partition(rows, 1, team->index, team->count, begin, end);
}

/* Output features, in whole units, of the rank's share. */
static inline void fr_part_features(const fr_team *team, size_t features, size_t *begin, size_t *end) {
    size_t from, to;
    fr_part_rank(team, fr_split_features(features), &from, &to);
    fr_partition(to - from, FR_FEATURE_UNIT, team->index, team->count, begin, end);
    *begin += from;
    *end += from;
}

/* Heads that the rank has, with so many items each (rows, tiles of features, timelines); a head's items are side by
 * side. */
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

/* ----------------------------------------------------------------------------------------------------- handing on */

/* Float rows of which each rank has made its share, and each of its threads a part of that. Of KV heads `split` has one
 * rank that hands on each (fr_split_heads of as many). */
typedef struct fr_shared_rows {
    float *at;
    size_t stride, rows; /* floats from row to row */
    fr_split split;
} fr_shared_rows;

/* A barrier, behind which rows of ranks are whole: partition.c. next: a matrix, or NULL. */
void fr_gather_rows(const fr_team *team, const fr_shared_rows *rows, size_t count, const fr_matrix *next);

/* Float rows become whole, for the rows' owners: `count` arrays of them; none where each rank has made all. While they
 * are on their way between ranks the team begins to read `next`, which the next product is with. */
static inline void fr_publish_rows_before(const fr_team *team, const fr_shared_rows *rows, size_t count,
                                          const fr_matrix *next) {
    if (team->ranks && count) fr_gather_rows(team, rows, count, next);
    else fr_team_sync(team);
}

static inline void fr_publish_rows(const fr_team *team, const fr_shared_rows *rows, size_t count) {
    fr_publish_rows_before(team, rows, count, NULL);
}

/* A barrier, behind which rows are the input of a product with `matrix` on all ranks: partition.c. */
void fr_gather_input(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_shared_rows *x);

/* The same of rows that become the input of a product with `matrix`: whole for all, and quantized where weights are
 * packed. */
static inline void fr_publish_input(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                                    const fr_shared_rows *x) {
    if (team->ranks) {
        fr_gather_input(team, workspace, matrix, x);
        return;
    }
    fr_team_sync(team);
    fr_matrix_input_rows(team, workspace, x->at, x->stride, x->split.count * x->split.each, x->rows);
}

/* The same of rows that each rank has made whole. */
static inline void fr_publish_own_input(const fr_team *team, const fr_workspace *workspace, const float *x,
                                        size_t x_stride, size_t cols, size_t rows) {
    fr_team_sync(team);
    fr_matrix_input_rows(team, workspace, x, x_stride, cols, rows);
}

#endif
