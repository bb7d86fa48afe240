/* Finds the part of a matrix that a rank has if the matrix is divided among ranks: see weights.h and bound.h.
 *
 * A rank reserves addresses for all rows of a divided matrix, but never touches the pages of other ranks' rows, so
 * these pages take no memory. Copies use huge pages. A huge page could contain rows of several ranks. So huge pages are
 * used only where the whole page belongs to this rank. */
#include <sys/mman.h>

#include "base/sizes.h"
#include "quant/packed.h"
#include "src/engine/weights/bound.h"

#define HUGE_PAGE  ((uintptr_t)2 << 20)
#define PIECES_MAX 4096 /* the most ranges of huge pages; each is one of the about 65,000 mappings of a process */

/* Gives the index of the bound tensor that contains the matrix, or weights->count if there is none. The search begins
 * at index `first`. */
static size_t find_bound(const fr_weights *weights, const fr_matrix *matrix, size_t first) {
    for (size_t i = 0; i < weights->count && matrix->data; i++) {
        size_t at = (first + i) % weights->count;
        const uint8_t *from = fr_bound_data(&weights->bound[at]);
        if (matrix->data >= from && matrix->data < from + fr_bound_bytes(&weights->bound[at])) return at;
    }
    return weights->count;
}

/* Gives this rank's part of a split. */
static void own_part(const fr_weights *weights, fr_split split, size_t *begin, size_t *end) {
    fr_part_rank(&(fr_team){.ranks = weights->ranks}, split, begin, end);
}

/* Gives the bound tensor that contains a matrix, or NULL. The search begins at the tensor that was found last. */
static fr_bound *bound_of(fr_weights *weights, const fr_matrix *matrix) {
    size_t at = find_bound(weights, matrix, weights->sharing);
    if (at == weights->count) return NULL;
    weights->sharing = at;
    return &weights->bound[at];
}

void fr_weights_share(fr_weights *weights, const fr_matrix *matrix, fr_split split) {
    fr_bound *bound = bound_of(weights, matrix);
    if (!bound || split.count * split.each != matrix->features || bound->order) return;
    size_t unit = matrix->packed ? FR_TILE_FEATURES : 1;
    size_t bytes = fr_bound_rows_bytes(bound, bound->rows), at = (size_t)(matrix->data - fr_bound_data(bound));
    size_t first = at % bytes / fr_bound_rows_bytes(bound, unit) * unit; /* row within the tensor's matrix */
    fr_bound_share share = {first, matrix->features, split};
    for (size_t i = 0; i < bound->shares; i++) /* another matrix of the same tensor may have added this share */
        if (bound->share[i].first == share.first) return;
    if (bound->shares < FR_BOUND_SHARES) bound->share[bound->shares++] = share;
}

void fr_weights_share_heads(fr_weights *weights, const fr_matrix *matrices, fr_split heads) {
    fr_bound *bound = bound_of(weights, matrices);
    if (!bound) return;
    size_t each = bound->rows / heads.count;
    if (fr_bound_matrices(bound) == heads.count) bound->heads = heads;
    /* one float matrix has the rows of all heads, one head after another */
    else if (fr_bound_matrices(bound) == 1 && each * heads.count == bound->rows) {
        heads.each = each;
        bound->share[0] = (fr_bound_share){0, bound->rows, heads};
        bound->shares = 1;
    } else
        return;
    for (size_t i = 0; i < weights->transposed_count; i++)
        if (weights->transposed[i].from == matrices) weights->transposed[i].heads = heads;
}

void fr_transposed_own(const fr_weights *weights, const fr_transposed *transposed, size_t *first, size_t *last) {
    const fr_bound *from = fr_bound_find_rank_share(weights, transposed->from);
    size_t whole = from && from->shares ? from->share[0].split.whole : 0;
    *first = 0;
    *last = whole && whole != fr_ranks_index(weights->ranks) + 1 ? 0 : transposed->count;
    if (transposed->heads.count) own_part(weights, transposed->heads, first, last);
}

void fr_weights_assign(fr_weights *weights, const fr_matrix *matrix, size_t rank) {
    fr_bound *bound = bound_of(weights, matrix);
    if (!bound) return;
    bound->share[0] = (fr_bound_share){0, bound->rows, fr_split_whole(bound->rows, rank)};
    bound->shares = 1;
}

void fr_weights_share_head(fr_weights *weights, const fr_matrix *head, fr_matrix *table) {
    size_t at = find_bound(weights, head, 0);
    if (at == weights->count) return;
    const fr_bound *bound = &weights->bound[at];
    if (table->data == head->data && weights->files->files[bound->tensor->file].fd >= 0) return;
    if (table->data == head->data && bound->packed) {
        table->data = bound->tensor->data;
        table->packed = false;
        table->tiles = NULL;
    }
    fr_weights_share(weights, head, fr_split_features(head->features));
}

/* Returns true if the shares added so far cover all rows of the tensor. */
static bool shares_rows(const fr_bound *bound) {
    size_t rows = 0;
    for (size_t i = 0; i < bound->shares; i++) rows += bound->share[i].rows;
    return rows > 0 && rows == bound->rows;
}

bool fr_bound_has_rank_share(const fr_bound *bound) {
    return bound->heads.count || shares_rows(bound);
}

const fr_bound *fr_bound_find_rank_share(const fr_weights *weights, const fr_matrix *matrix) {
    size_t at = find_bound(weights, matrix, 0);
    return at < weights->count && fr_bound_has_rank_share(&weights->bound[at]) ? &weights->bound[at] : NULL;
}

fr_bound fr_bound_whole(const fr_bound *shared) {
    fr_bound whole = *shared;
    whole.shares = whole.heads.count = 0;
    return whole;
}

void fr_bound_own_matrices(const fr_weights *weights, const fr_bound *bound, size_t *first, size_t *last) {
    *first = 0;
    *last = fr_bound_matrices(bound);
    if (bound->heads.count) own_part(weights, bound->heads, first, last);
}

size_t fr_bound_runs(const fr_bound *bound) {
    return shares_rows(bound) ? bound->shares : 1;
}

void fr_bound_own_rows(const fr_weights *weights, const fr_bound *bound, size_t run, const fr_team *team, size_t *begin,
                       size_t *end) {
    const fr_bound_share *share = &bound->share[run];
    size_t from, to;
    if (!shares_rows(bound)) {
        fr_part_features(team, bound->rows, begin, end);
        return;
    }
    own_part(weights, share->split, &from, &to);
    bool none = from == to;
    from = (share->first + from * share->split.each) / FR_TILE_FEATURES * FR_TILE_FEATURES;
    to = (share->first + to * share->split.each + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES * FR_TILE_FEATURES;
    to = none ? from : fr_smaller(to, bound->rows);
    fr_partition(to - from, FR_FEATURE_UNIT, team->index, team->count, begin, end);
    *begin += from;
    *end += from;
}

uint64_t fr_bound_foreign_bytes(const fr_weights *weights, const fr_bound *bound) {
    size_t begin, end, first, last;
    uint64_t own = 0, all = fr_bound_bytes(bound);
    if (!fr_bound_has_rank_share(bound)) return 0;
    for (size_t run = 0; run < fr_bound_runs(bound); run++) {
        fr_bound_own_rows(weights, bound, run, &(fr_team){.count = 1}, &begin, &end);
        own += fr_bound_rows_bytes(bound, end) - fr_bound_rows_bytes(bound, begin);
    }
    fr_bound_own_matrices(weights, bound, &first, &last);
    return all - fr_smaller((last - first) * own, all);
}

/* Requests huge pages for one run of the rank's rows, in each matrix of the tensor. Returns the number of mappings that
 * this made, which is at most `most`. */
static size_t separate(const fr_weights *weights, const fr_bound *bound, size_t run, size_t most) {
    size_t pieces = 0, begin, end, first, last;
    fr_bound_own_rows(weights, bound, run, &(fr_team){.count = 1}, &begin, &end);
    fr_bound_own_matrices(weights, bound, &first, &last);
    for (size_t m = first; m < last && pieces < most; m++) {
        uint8_t *copy = bound->packed + m * fr_bound_rows_bytes(bound, bound->rows);
        uintptr_t low = (uintptr_t)(copy + fr_bound_rows_bytes(bound, begin));
        uintptr_t high = (uintptr_t)(copy + fr_bound_rows_bytes(bound, end)) / HUGE_PAGE * HUGE_PAGE;
        low = (low + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        pieces += high > low && madvise((void *)low, high - low, MADV_HUGEPAGE) == 0;
    }
    return pieces;
}

void fr_weights_separate(const fr_weights *weights) {
    size_t pieces = 0;
    if (!weights->ranks || !weights->packed.base) return;
    madvise(weights->packed.base, weights->packed.size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < weights->count; i++)
        for (size_t run = 0; weights->bound[i].packed && run < fr_bound_runs(&weights->bound[i]); run++)
            pieces += separate(weights, &weights->bound[i], run, PIECES_MAX - fr_smaller(pieces, PIECES_MAX));
}
