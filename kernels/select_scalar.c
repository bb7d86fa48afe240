/* Defines how the largest value, and the k largest values, are chosen. The contracts are fr_argmax_fn and fr_topk_fn
 * in kernels.h. */
#include "kernels/scalar.h"

int64_t FR_SCALAR(argmax)(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return -1;
        if (x[i] > x[best]) best = i;
    }
    return (int64_t)best;
}

/* Returns true if a comes before b in the order of the result. */
static inline bool before(const float *x, int32_t a, int32_t b) {
    if (x[a] > x[b] || (isnan(x[b]) && !isnan(x[a]))) return true;
    bool equal = x[a] == x[b] || (isnan(x[a]) && isnan(x[b]));
    return equal && a < b;
}

/* Moves the id at `hole` down to its position in a heap. The root of the heap is the id that comes last in the order of
 * the result. */
static void sift_down(const float *x, int32_t *heap, size_t size, size_t hole) {
    int32_t id = heap[hole];
    for (size_t child; (child = 2 * hole + 1) < size; hole = child) {
        if (child + 1 < size && before(x, heap[child], heap[child + 1])) child++;
        if (!before(x, id, heap[child])) break;
        heap[hole] = heap[child];
    }
    heap[hole] = id;
}

/* Keeps the best k ids so far in a heap, then sorts the heap in place. scratch is not needed here. */
void FR_SCALAR(topk)(const float *x, size_t n, size_t k, int32_t *ids, int32_t *scratch) {
    (void)scratch;
    for (size_t i = 0; i < k; i++) ids[i] = (int32_t)i;
    for (size_t i = k / 2; i-- > 0;) sift_down(x, ids, k, i);
    for (size_t i = k; i < n; i++) {
        if (!before(x, (int32_t)i, ids[0])) continue;
        ids[0] = (int32_t)i;
        sift_down(x, ids, k, 0);
    }
    for (size_t size = k; size-- > 1;) {
        int32_t last = ids[0];
        ids[0] = ids[size];
        ids[size] = last;
        sift_down(x, ids, size, 0);
    }
}
