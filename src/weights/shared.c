/* What a rank has of a matrix that ranks share: see weights.h and bound.h.
 *
 * A shared matrix lies where it would lie whole, and the rows of others are pages that are never touched. Copies are
 * huge pages, which would span the rows of several ranks: only those wholly a rank's own stay such. */
#include <sys/mman.h>

#include "base/sizes.h"
#include "quant/packed.h"
#include "src/weights/bound.h"

#define HUGE_PAGE ((uintptr_t)2 << 20)
#define MOST_PIECES 4096 /* of huge pages: each is a mapping of its own, of which a process has some 65,000 */

/* Whose matrix it is: the index of what is bound, looked for from `first` on; as many as there are: nobody's. */
static size_t find_bound(const fr_weights *weights, const fr_matrix *matrix, size_t first) {
    for (size_t i = 0; i < weights->count && matrix->data; i++) {
        size_t at = (first + i) % weights->count;
        const uint8_t *from = fr_bound_data(&weights->bound[at]);
        if (matrix->data >= from && matrix->data < from + fr_bound_bytes(&weights->bound[at])) return at;
    }
    return weights->count;
}

void fr_weights_share(fr_weights *weights, const fr_matrix *matrix, fr_split split) {
    size_t at = find_bound(weights, matrix, weights->sharing);
    if (at == weights->count) return;
    weights->sharing = at;
    fr_bound *bound = &weights->bound[at];
    if (bound->rows != matrix->features || split.count * split.each != bound->rows || bound->order) return;
    bound->shared = true;
    bound->split = split;
}

void fr_weights_assign(fr_weights *weights, const fr_matrix *matrix, size_t rank) {
    size_t at = find_bound(weights, matrix, weights->sharing);
    if (at == weights->count) return;
    weights->sharing = at;
    weights->bound[at].shared = true;
    weights->bound[at].split = fr_split_whole(weights->bound[at].rows, rank);
}

void fr_weights_share_head(fr_weights *weights, const fr_matrix *head, fr_matrix *table) {
    size_t at = find_bound(weights, head, 0);
    if (at == weights->count) return;
    const fr_bound *bound = &weights->bound[at];
    if (table->data == head->data && weights->files->files[bound->tensor->file].fd >= 0) return;
    if (table->data == head->data && bound->packed) {
        table->data = bound->tensor->data;
        table->packed = false;
    }
    fr_weights_share(weights, head, fr_split_features(head->features));
}

const fr_bound *fr_bound_shared(const fr_weights *weights, const fr_matrix *matrix) {
    size_t at = find_bound(weights, matrix, 0);
    return at < weights->count && weights->bound[at].shared ? &weights->bound[at] : NULL;
}

bool fr_matrix_foreign(const fr_weights *weights, const fr_matrix *matrix) {
    const fr_bound *bound = fr_bound_shared(weights, matrix);
    return bound && bound->split.whole && bound->split.whole != fr_ranks_index(weights->ranks) + 1;
}

void fr_bound_own_rows(const fr_weights *weights, const fr_bound *bound, const fr_team *team, size_t *begin,
                       size_t *end) {
    size_t from, to;
    if (!bound->shared) {
        fr_part_features(team, bound->rows, begin, end);
        return;
    }
    fr_part_rank(&(fr_team){.ranks = weights->ranks}, bound->split, &from, &to);
    from = from * bound->split.each / FR_TILE_FEATURES * FR_TILE_FEATURES;
    to = fr_smaller((to * bound->split.each + FR_TILE_FEATURES - 1) / FR_TILE_FEATURES * FR_TILE_FEATURES, bound->rows);
    fr_partition(to > from ? to - from : 0, FR_FEATURE_UNIT, team->index, team->count, begin, end);
    *begin += from;
    *end += from;
}

uint64_t fr_bound_foreign_bytes(const fr_weights *weights, const fr_bound *bound) {
    size_t begin, end;
    if (!bound->shared) return 0;
    fr_bound_own_rows(weights, bound, &(fr_team){.count = 1}, &begin, &end);
    size_t own = fr_bound_rows_bytes(bound, end) - fr_bound_rows_bytes(bound, begin);
    return fr_bound_bytes(bound) - fr_bound_matrices(bound) * own;
}

/* Huge pages for what is wholly between. */
static size_t want_huge(uint8_t *from, uint8_t *to) {
    uintptr_t begin = ((uintptr_t)from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t end = (uintptr_t)to / HUGE_PAGE * HUGE_PAGE;
    return end > begin && madvise((void *)begin, end - begin, MADV_HUGEPAGE) == 0;
}

void fr_weights_separate(const fr_weights *weights) {
    size_t pieces = 0, begin, end;
    if (!weights->ranks || !weights->packed.base) return;
    madvise(weights->packed.base, weights->packed.size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < weights->count && pieces < MOST_PIECES; i++) {
        const fr_bound *bound = &weights->bound[i];
        if (!bound->packed) continue;
        fr_bound_own_rows(weights, bound, &(fr_team){.count = 1}, &begin, &end);
        for (size_t m = 0; m < bound->matrices && pieces < MOST_PIECES; m++) {
            uint8_t *copy = bound->packed + m * fr_bound_rows_bytes(bound, bound->rows);
            pieces += want_huge(copy + fr_bound_rows_bytes(bound, begin), copy + fr_bound_rows_bytes(bound, end));
        }
    }
}
