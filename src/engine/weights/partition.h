/* Divides a forward's work among ranks and threads. Rows of which each rank has computed only a share are completed on
 * all ranks.
 *
 * In: a thread's place in its team, the amount of work. Out: the thread's part, [begin, end), which is the same each
 * time; a barrier.
 *
 * A team is the threads of one process. If several ranks run a model together (team->ranks, base/ranks.h), each rank
 * has all rows, but only a share of the features and heads. The rank's threads divide that share. If other ranks read
 * the results of a step too, the step ends with fr_publish_..., which completes the rows on all ranks. After any other
 * barrier (fr_team_sync) a rank may read only its own rows and features. Work that is too small to be divided is done
 * completely by each rank (fr_matrix_apply_share of all features).
 *
 * A rank computes and keeps the keys and values that its own query heads read. If there are fewer KV heads than ranks,
 * several ranks have the same KV head. After a run, its caller may read everything except keys and values.
 *
 * Nothing is ever added up across ranks: one rank computes the whole chain of sums of an output, so the bits are the
 * same as in one process. */
#ifndef FR_SRC_ENGINE_WEIGHTS_PARTITION_H
#define FR_SRC_ENGINE_WEIGHTS_PARTITION_H

#include "base/ranks.h"
#include "src/engine/weights/matrix.h"

/* ----- shares of ranks */

/* Says how the columns of rows are divided among ranks. One way is by features, in units of FR_RANK_UNIT. The other is
 * by heads: a rank has some query heads of one KV head, or all query heads of several. */
typedef struct fr_split {
    size_t count;  /* number of features, or of heads */
    size_t groups; /* number of KV heads; 0: `count` counts features */
    size_t each;   /* columns of a head */
    size_t whole;  /* 1 + number of the rank that has everything; 0: the ranks divide it */
    bool kept;     /* `count` is the number of KV heads, and each rank has all those that its query heads read */
} fr_split;

/* Number of features in a unit. It is the number of columns in a quantized block, because the features of one product
 * are the columns of the next product's input. */
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

/* Gives the features or heads that one rank has. */
void fr_split_share(const fr_split *split, const fr_ranks *ranks, size_t rank, size_t *begin, size_t *end);

/* Gives the rank that has a feature or head. */
size_t fr_split_owner(const fr_split *split, const fr_ranks *ranks, size_t unit);

/* Gives the features or heads that this process's rank has: all of them if there is only one rank. */
static inline void fr_part_rank(const fr_team *team, fr_split split, size_t *begin, size_t *end) {
    *begin = 0;
    *end = split.count;
    if (team->ranks) fr_split_share(&split, team->ranks, fr_ranks_index(team->ranks), begin, end);
}

/* Counts the KV heads that a rank's heads [begin, end) read. */
static inline size_t fr_kv_heads_of(const fr_split *heads, size_t begin, size_t end) {
    size_t group = heads->count / heads->groups;
    return (end - begin + group - 1) / group;
}

/* ----- parts of threads */

/* Divides the rows of a batch among the threads, for work that is done row by row. Each rank does such work for all
 * rows. */
static inline void fr_part_rows(const fr_team *team, size_t rows, size_t *begin, size_t *end) {
    fr_partition(rows, 1, team->index, team->count, begin, end);
}

/* Divides the output features of the rank's share among the threads, in whole units. */
static inline void fr_part_features(const fr_team *team, size_t features, size_t *begin, size_t *end) {
    size_t from, to;
    fr_part_rank(team, fr_split_features(features), &from, &to);
    fr_partition(to - from, FR_FEATURE_UNIT, team->index, team->count, begin, end);
    *begin += from;
    *end += from;
}

/* Divides the rank's heads among the threads. Each head has `items` items, such as rows, tiles of features or
 * timelines. The items of a head are adjacent. */
static inline void fr_part_heads(const fr_team *team, size_t heads, size_t items, size_t *begin, size_t *end) {
    fr_partition(heads * items, 1, team->index, team->count, begin, end);
}

/* Divides the quantized blocks of a row among the threads. */
static inline void fr_part_blocks(const fr_team *team, size_t blocks, size_t *begin, size_t *end) {
    fr_partition(blocks, 1, team->index, team->count, begin, end);
}

/* Divides pairs among the threads. A pair is a row together with an expert (or a cluster of ids) that was chosen for
 * the row. This function also divides experts, clusters and units of cost. */
static inline void fr_part_pairs(const fr_team *team, size_t pairs, size_t *begin, size_t *end) {
    fr_partition(pairs, 1, team->index, team->count, begin, end);
}

/* ----- completion of rows */

/* Float rows that are to be completed: each rank has computed its share of them. `split` says how the rows' columns are
 * divided. For keys or values, the heads of `split` are the KV heads (fr_split_heads divides query heads). So each KV
 * head is sent by one rank only. */
typedef struct fr_shared_rows {
    float *at;
    size_t stride, rows; /* floats from row to row */
    fr_split split;
} fr_shared_rows;

/* partition.c: completes the rows on all ranks, and ends with a barrier. next: the weights of the next product, as in
 * fr_publish_rows_before, or NULL. */
void fr_gather_rows(const fr_team *team, const fr_shared_rows *rows, size_t count, const fr_matrix *next);

/* Completes `count` arrays of float rows on all ranks. If each rank has computed the rows completely, count is 0.
 * While ranks exchange rows, the team begins to read `next`, the weights of the next product; NULL: it reads
 * nothing. */
static inline void fr_publish_rows_before(const fr_team *team, const fr_shared_rows *rows, size_t count,
                                          const fr_matrix *next) {
    if (team->ranks && count)
        fr_gather_rows(team, rows, count, next);
    else
        fr_team_sync(team);
}

static inline void fr_publish_rows(const fr_team *team, const fr_shared_rows *rows, size_t count) {
    fr_publish_rows_before(team, rows, count, NULL);
}

/* partition.c: prepares the rows on all ranks as the input of a product with `matrix`, and ends with a barrier. */
void fr_gather_input(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_shared_rows *x);

/* Completes rows that become the input of a product with `matrix`, and quantizes them if weights are packed. */
static inline void fr_publish_input(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                                    const fr_shared_rows *x) {
    if (team->ranks) {
        fr_gather_input(team, workspace, matrix, x);
        return;
    }
    fr_team_sync(team);
    fr_matrix_input_rows(team, workspace, matrix, x->at, x->stride, x->split.count * x->split.each, x->rows);
}

/* Quantizes rows that become the input of a product, if each rank has computed all of them itself. */
static inline void fr_publish_own_input(const fr_team *team, const fr_workspace *workspace, const float *x,
                                        size_t x_stride, size_t cols, size_t rows) {
    fr_team_sync(team);
    fr_matrix_input_rows(team, workspace, NULL, x, x_stride, cols, rows);
}

#endif
