/* Finds the place where the end of a text occurred before. The index is a suffix automaton that grows by one id at a
 * time.
 *
 * In: the ids of a timeline, in order. Out: after each id, the longest suffix of the text that also ends at an earlier
 * place, and that place. Appending an id takes amortised O(1) time. Edges are never removed, and a text of n ids has
 * fewer than 3 n edges.
 *
 * A state is a set of substrings that end at the same places of the text. The longest of them has `length` ids. A
 * state's `link` leads to the state of the longest suffix that ends at more places. So the link of the whole text's
 * state is the longest suffix that occurred before. Source: Blumer et al. 1985, "The smallest automaton recognizing the
 * subwords of a text". Here edges lie in a hash table, because a vocabulary has many ids. */
#ifndef FR_SRC_ENGINE_DRAFT_SUFFIX_INDEX_H
#define FR_SRC_ENGINE_DRAFT_SUFFIX_INDEX_H

#include "base/arena.h"

typedef struct fr_suffix_state {
    uint32_t length;
    uint32_t link;
    uint32_t end;   /* this state's substrings end after this number of ids of the text; it is one of several such
                     * places */
    uint32_t edges; /* the first edge, 0: none */
} fr_suffix_state;

typedef struct fr_suffix_edge {
    uint32_t from, to;
    int32_t id;
    uint32_t next;    /* the next edge of the same state */
    uint32_t chained; /* the next edge of the same bucket */
} fr_suffix_edge;

typedef struct fr_suffix_index {
    fr_suffix_state *states; /* [2 * capacity] state 0 is the empty text */
    fr_suffix_edge *edges;   /* [3 * capacity + 1] index 0 stands for no edge */
    uint32_t *buckets;       /* [1 << bits] a hash table of edges: for each bucket, its first edge */
    unsigned bits;
    size_t capacity, longest; /* capacity: the most ids of the text; longest: longer matches are cut to this length */
    size_t count;             /* ids so far */
    uint32_t state_count, edge_count;
    uint32_t last;   /* the state that contains the whole text */
    uint32_t active; /* the state of the longest earlier match */

    size_t match; /* number of ids at the end of the text that also occurred before; at most `longest` */
    size_t end;   /* if match > 0: the earlier occurrence ends after `end` ids of the text, and end < count */
    size_t steps; /* number of steps taken so far, which tests read */
} fr_suffix_index;

/* Takes the index's memory from an arena: 100 to 108 bytes for each id. Pages of this memory are touched only when the
 * text grows. capacity: less than 2^30. */
void fr_suffix_layout(fr_suffix_index *index, fr_arena *arena, size_t capacity, size_t longest);

void fr_suffix_reset(fr_suffix_index *index);

/* Appends an id. At most `capacity` ids fit. */
void fr_suffix_add(fr_suffix_index *index, int32_t id);

#endif
