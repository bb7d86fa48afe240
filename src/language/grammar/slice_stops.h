/* Finds the nodes at which tokens leave a class of characters, which means that they have a character outside of the
 * class. If a text may continue with any characters of the class, only the tokens that leave the class must be tested
 * one by one.
 *
 * In: a tree of tokens, a node of the tree, and a class of token_slices.h. Out: two lists of nodes below that node. The
 * first list has the stops: the nodes at which a token leaves the class. Each stop has the number of the class's
 * characters before it. The second list has the nodes whose text is exactly as long as a slice and which have nodes
 * below them. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_SLICE_STOPS_H
#define FR_SRC_LANGUAGE_GRAMMAR_SLICE_STOPS_H

#include "base/error.h"

enum { FR_SLICE_LENGTHS = 6, FR_SLICE_UNBOUND = 254, FR_STOP_TEXTS_MAX = 64 };

struct fr_token_tree;

/* A stop is a node at which the text leaves the class. bytes: the first bytes, up to this node, of the character with
 * which the text leaves it. whole: true if these bytes show that the character is outside of the class; then the tokens
 * of this node and of all nodes below it leave the class. If it is false, the character may still belong to the class.
 * Then only the node's own token leaves the class, because a token that ends within a character is no text of the
 * class. */
typedef struct fr_slice_stop {
    uint32_t node;
    uint8_t behind; /* number of characters of the class before the stop, less than FR_STOP_TEXTS_MAX */
    uint8_t bytes[4], count;
    bool whole;
} fr_slice_stop;

/* The stops [first, end). They all have the same number of characters before them (`behind`), and their `bytes` begin
 * with the same byte (`byte`). */
typedef struct fr_stop_group {
    uint32_t first, end;
    uint8_t behind, byte;
} fr_stop_group;

/* The stops below a node. For each slice length, `longer` lists the nodes that are that many characters below the node
 * and have further nodes below them. If the slice length is above FR_STOP_TEXTS_MAX, it lists the nodes that are
 * FR_STOP_TEXTS_MAX characters below the node. */
typedef struct fr_slice_stops {
    fr_slice_stop *stops;
    fr_stop_group *groups;
    uint32_t *longer[FR_SLICE_LENGTHS];
    size_t count, group_count, longer_count[FR_SLICE_LENGTHS];
} fr_slice_stops;

fr_status fr_slice_stops_make(fr_slice_stops *stops, const struct fr_token_tree *tree, uint32_t node, int class);
void fr_slice_stops_free(fr_slice_stops *stops);

/* Gives the class of a character; FR_NO_CLASS: it is in no class. */
#define FR_NO_CLASS 255
uint8_t fr_slice_class_of(uint32_t code);

/* Gives the index of the largest slice length that is at most `characters`; -1: there is none. */
int fr_slice_of_length(size_t characters);
size_t fr_slice_length(int index);

#endif
