/* Shares of ranks, and rows that they make whole: see partition.h. */
#include "src/weights/partition.h"

enum { MOST_ARRAYS = 4 }; /* that are handed on at once */

/* KV heads are dealt to ranks; where there are fewer of them, ranks to KV heads, and a KV head's heads to those. */
static void share_heads(const fr_split *split, size_t rank, size_t ranks, size_t *begin, size_t *end) {
    size_t group = split->count / split->groups;
    if (split->groups >= ranks) {
        fr_partition(split->groups, 1, rank, ranks, begin, end);
        *begin *= group;
        *end *= group;
        return;
    }
    size_t kv_head = rank * split->groups / ranks;
    size_t first = (kv_head * ranks + split->groups - 1) / split->groups;
    size_t last = ((kv_head + 1) * ranks + split->groups - 1) / split->groups;
    fr_partition(group, 1, rank - first, last - first, begin, end);
    *begin += kv_head * group;
    *end += kv_head * group;
}

void fr_split_share(const fr_split *split, size_t rank, size_t ranks, size_t *begin, size_t *end) {
    if (split->groups) share_heads(split, rank, ranks, begin, end);
    else fr_partition(split->count, FR_RANK_UNIT, rank, ranks, begin, end);
}

/* Shares lie in the order of the ranks, one behind the other. */
static void find_bounds(const fr_split *split, size_t ranks, size_t *bounds) {
    size_t begin;
    bounds[0] = 0;
    for (size_t r = 0; r < ranks; r++) {
        fr_split_share(split, r, ranks, &begin, &bounds[r + 1]);
        bounds[r + 1] *= split->each * sizeof(float);
    }
}

static void gather(fr_ranks *ranks, const fr_shared_rows *rows, size_t count) {
    fr_ranks_rows to[MOST_ARRAYS];
    size_t bounds[MOST_ARRAYS][FR_MAX_RANKS + 1];
    for (size_t i = 0; i < count; i++) {
        find_bounds(&rows[i].split, fr_ranks_count(ranks), bounds[i]);
        to[i] = (fr_ranks_rows){.at = (uint8_t *)rows[i].at,
                                .stride = rows[i].stride * sizeof(float),
                                .rows = rows[i].rows,
                                .bounds = bounds[i]};
    }
    fr_ranks_gather(ranks, to, count);
}

void fr_gather_rows(const fr_team *team, const fr_shared_rows *rows, size_t count) {
    fr_team_sync(team);
    if (team->index == 0) gather(team->ranks, rows, count);
    fr_team_sync(team);
}
