/* Keeps a heap of candidate merges.
 *
 * In: candidates as rank << 32 | position. Out: candidates in ascending order, so the lowest rank comes first, and
 * among equal ranks the leftmost position. Each node has four children. So there are half as many levels as in a binary
 * heap, and siblings share a cache line. The caller provides the memory. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_MERGE_HEAP_H
#define FR_SRC_LANGUAGE_TOKENIZER_MERGE_HEAP_H

#include <stddef.h>
#include <stdint.h>

static inline void fr_merge_heap_push(uint64_t *heap, size_t *count, uint64_t key) {
    size_t at = (*count)++;
    for (; at > 0 && heap[(at - 1) / 4] > key; at = (at - 1) / 4) heap[at] = heap[(at - 1) / 4];
    heap[at] = key;
}

/* Takes the smallest candidate. The heap must not be empty. */
static inline uint64_t fr_merge_heap_pop(uint64_t *heap, size_t *count) {
    uint64_t top = heap[0], key = heap[--*count];
    size_t at = 0;
    for (size_t child; (child = 4 * at + 1) < *count; at = child) {
        size_t end = child + 4 < *count ? child + 4 : *count;
        for (size_t sibling = child + 1; sibling < end; sibling++)
            if (heap[sibling] < heap[child]) child = sibling;
        if (heap[child] >= key) break;
        heap[at] = heap[child];
    }
    heap[at] = key;
    return top;
}

#endif
