/* Where tokens leave the characters of a class: what is left to be walked to where a text may go on with any of them.
 *
 * In: a tree of tokens, a node of it, a class of token_slices.h. Out: for the tokens below that node, which are looked
 * at from there on, the nodes at which the first character of another class stands, behind how many of this one; and
 * those behind exactly as many characters as a slice has, which have more behind them. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_SLICE_STOPS_H
#define FR_SRC_LANGUAGE_GRAMMAR_SLICE_STOPS_H

#include "base/error.h"

enum { FR_SLICE_LENGTHS = 6, FR_SLICE_UNBOUND = 254, FR_STOPS_MOST = 64 };

struct fr_token_tree;

/* bytes: of the character, as far as the node goes. whole: with all tokens below it; else its own token alone, which
 * ends within a character. */
typedef struct fr_slice_stop {
    uint32_t node;
    uint8_t behind; /* characters of the class, fewer than FR_STOPS_MOST */
    uint8_t bytes[4], count;
    bool whole;
} fr_slice_stop;

/* Stops [first, end) behind as many characters, which begin with one byte. */
typedef struct fr_stop_group {
    uint32_t first, end;
    uint8_t behind, byte;
} fr_stop_group;

/* longer: by length of slices the nodes; beyond FR_STOPS_MOST it is those behind that many. */
typedef struct fr_slice_stops {
    fr_slice_stop *stops;
    fr_stop_group *groups;
    uint32_t *longer[FR_SLICE_LENGTHS];
    size_t count, group_count, longer_count[FR_SLICE_LENGTHS];
} fr_slice_stops;

fr_status fr_slice_stops_make(fr_slice_stops *stops, const struct fr_token_tree *tree, uint32_t node, int class);
void fr_slice_stops_free(fr_slice_stops *stops);

/* The class of a character, FR_NO_CLASS: of none. */
#define FR_NO_CLASS 255
uint8_t fr_slice_class_of(uint32_t code);

/* The largest length that slices have of at most so many characters, as an index; -1: they have none. */
int fr_slice_of_length(size_t characters);
size_t fr_slice_length(int index);

#endif
