/* Computes the shares of ranks, and exchanges rows until all ranks have the whole rows: see partition.h.
 *
 * Rows that are only the input of an integer kernel are sent as quantized blocks: a block depends only on its own
 * columns, so any rank may quantize it. All other rows are sent as float32. */
#include "src/engine/weights/partition.h"

#include "base/sizes.h"

enum {
    ARRAYS_MAX = 4, /* the most arrays that are exchanged at once */
    BLOCK = 32,     /* columns of a quantized block */
    LINE = 64,      /* bytes of a cache line */
    AHEAD = 1 << 17 /* bytes of weights that a thread reads in advance, few enough to stay in a core's own cache */
};

/* Gives the unit at which the share of `rank` begins, if ranks [first, last) divide `count` units. That is the sum of
 * the shares of ranks [first, rank), rounded to a whole unit. */
static size_t units_before(const fr_ranks *ranks, size_t count, size_t rank, size_t first, size_t last) {
    uint64_t from = fr_ranks_before(ranks, first), all = fr_ranks_before(ranks, last) - from;
    return (size_t)((2 * count * (fr_ranks_before(ranks, rank) - from) + all) / (2 * all));
}

/* Gives the KV heads of a rank. If there are fewer KV heads than ranks, several ranks share one KV head, and each of
 * them has it. */
static void share_kv_heads(size_t kv_heads, const fr_ranks *ranks, size_t rank, size_t *begin, size_t *end) {
    size_t count = fr_ranks_count(ranks);
    bool enough = kv_heads >= count;
    *begin = enough ? units_before(ranks, kv_heads, rank, 0, count) : rank * kv_heads / count;
    *end = enough ? units_before(ranks, kv_heads, rank + 1, 0, count) : *begin + 1;
}

/* Gives the query heads of a rank: all those of its KV heads. If several ranks have the same KV head, they divide its
 * query heads. */
static void share_heads(const fr_split *split, const fr_ranks *ranks, size_t rank, size_t *begin, size_t *end) {
    size_t group = split->count / split->groups, count = fr_ranks_count(ranks), kv_head;
    share_kv_heads(split->groups, ranks, rank, &kv_head, end);
    if (split->groups >= count) {
        *begin = kv_head * group;
        *end *= group;
        return;
    }
    size_t first = (kv_head * count + split->groups - 1) / split->groups;
    size_t last = ((kv_head + 1) * count + split->groups - 1) / split->groups;
    *begin = kv_head * group + units_before(ranks, group, rank, first, last);
    *end = kv_head * group + units_before(ranks, group, rank + 1, first, last);
}

void fr_split_share(const fr_split *split, const fr_ranks *ranks, size_t rank, size_t *begin, size_t *end) {
    *begin = 0;
    *end = split->whole == rank + 1 ? split->count : 0;
    if (split->whole) return;
    if (split->kept) {
        share_kv_heads(split->groups, ranks, rank, begin, end);
        return;
    }
    if (split->groups) {
        share_heads(split, ranks, rank, begin, end);
        return;
    }
    size_t units = (split->count + FR_RANK_UNIT - 1) / FR_RANK_UNIT, count = fr_ranks_count(ranks);
    *begin = fr_smaller(units_before(ranks, units, rank, 0, count) * FR_RANK_UNIT, split->count);
    *end = fr_smaller(units_before(ranks, units, rank + 1, 0, count) * FR_RANK_UNIT, split->count);
}

size_t fr_split_owner(const fr_split *split, const fr_ranks *ranks, size_t unit) {
    size_t rank = 0, begin, end;
    do fr_split_share(split, ranks, rank, &begin, &end);
    while (unit >= end && ++rank < fr_ranks_count(ranks));
    return rank;
}

/* Finds the columns at which the ranks' shares end. Shares follow each other in the order of the ranks. */
static void find_bounds(const fr_split *split, const fr_ranks *ranks, size_t *bounds) {
    size_t begin;
    bounds[0] = 0;
    for (size_t r = 0; r < fr_ranks_count(ranks); r++) {
        fr_split_share(split, ranks, r, &begin, &bounds[r + 1]);
        bounds[r + 1] *= split->each;
    }
}

static void scale_bounds(size_t *bounds, size_t ranks, size_t item, size_t bytes) {
    for (size_t r = 0; r <= ranks; r++) bounds[r] = (bounds[r] + item - 1) / item * bytes;
}

/* While rows are on their way, reads the first of the weights that this thread needs for the next product into its
 * cache. If all ranks are on one machine, nothing is read ahead, because these ranks exchange rows too fast. On a Zen
 * 1, reading ahead made a forward of one row take 1% longer on one machine. If messages were delayed by 50 us, reading
 * ahead made it take 2% less. */
static void read_ahead(const fr_team *team, const fr_matrix *matrix) {
    size_t begin, end;
    if (!matrix || !matrix->data || fr_ranks_hosts(team->ranks) == 1) return;
    fr_part_features(team, matrix->features, &begin, &end);
    const fr_matrix part = fr_matrix_features(matrix, begin, end);
    size_t bytes = fr_smaller(fr_matrix_bytes(&part), AHEAD);
    for (size_t at = 0; at < bytes; at += LINE) __builtin_prefetch(part.data + at, 0, 2);
}

/* Exchanges rows. The whole team calls this after a barrier; it ends with another barrier. */
static void gather(const fr_team *team, const fr_ranks_rows *rows, size_t count, const fr_matrix *next) {
    if (team->index == 0) fr_ranks_gather_begin(team->ranks, rows, count);
    read_ahead(team, next);
    if (team->index == 0) fr_ranks_gather_end(team->ranks, rows, count);
    fr_team_sync(team);
}

void fr_gather_rows(const fr_team *team, const fr_shared_rows *rows, size_t count, const fr_matrix *next) {
    fr_ranks_rows to[ARRAYS_MAX];
    size_t bounds[ARRAYS_MAX][FR_RANKS_MAX + 1];
    fr_team_sync(team);
    for (size_t i = 0; i < count && team->index == 0; i++) {
        find_bounds(&rows[i].split, team->ranks, bounds[i]);
        scale_bounds(bounds[i], fr_ranks_count(team->ranks), 1, sizeof(float));
        to[i] = (fr_ranks_rows){.at = (uint8_t *)rows[i].at,
                                .stride = rows[i].stride * sizeof(float),
                                .rows = rows[i].rows,
                                .bounds = bounds[i]};
    }
    gather(team, to, count, next);
}

/* Returns true if each rank's share consists of whole blocks; the last block may be short. */
static bool whole_blocks(const size_t *bounds, size_t ranks) {
    for (size_t r = 1; r < ranks; r++)
        if (bounds[r] % BLOCK && bounds[r] < bounds[ranks]) return false;
    return true;
}

/* Quantizes this thread's part of the blocks in the rank's share. */
static void quantize_share(const fr_team *team, const fr_workspace *workspace, const fr_shared_rows *x, size_t from,
                           size_t to) {
    size_t begin, end;
    fr_part_blocks(team, (to - from + BLOCK - 1) / BLOCK, &begin, &end);
    size_t at = from + begin * BLOCK, last = from + end * BLOCK < to ? from + end * BLOCK : to;
    for (size_t r = 0; r < x->rows && at < last; r++)
        workspace->kernels->quantize(workspace->blocks + r * workspace->block_stride + at / BLOCK,
                                     x->at + r * x->stride + at, last - at);
}

static void gather_blocks(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                          const fr_shared_rows *x, size_t *bounds) {
    size_t ranks = fr_ranks_count(team->ranks), own = fr_ranks_index(team->ranks);
    fr_team_sync(team);
    quantize_share(team, workspace, x, bounds[own], bounds[own + 1]);
    fr_team_sync(team);
    scale_bounds(bounds, ranks, BLOCK, sizeof *workspace->blocks);
    const fr_ranks_rows blocks = {.at = (uint8_t *)workspace->blocks,
                                  .stride = workspace->block_stride * sizeof *workspace->blocks,
                                  .rows = x->rows,
                                  .bounds = bounds};
    gather(team, &blocks, 1, matrix);
}

void fr_gather_input(const fr_team *team, const fr_workspace *workspace, const fr_matrix *matrix,
                     const fr_shared_rows *x) {
    size_t bounds[FR_RANKS_MAX + 1], ranks = fr_ranks_count(team->ranks);
    find_bounds(&x->split, team->ranks, bounds);
    if (matrix->packed && !matrix->stats && !matrix->rotation && whole_blocks(bounds, ranks)) {
        gather_blocks(team, workspace, matrix, x, bounds);
        return;
    }
    fr_gather_rows(team, x, 1, matrix);
    fr_matrix_input_rows(team, workspace, matrix, x->at, x->stride, x->split.count * x->split.each, x->rows);
}
