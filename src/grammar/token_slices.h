/* Tokens of plain characters, sorted out beforehand: where a text may go on with any characters of a class, all tokens
 * of such characters are allowed without being walked to.
 *
 * In: a tree of tokens. Out: for each class and some lengths the tokens of at most so many of its characters, a bit an
 * id; for each node which of them have all tokens of its subtree. Each class has the characters of those before it:
 * small letters; letters, digits, - and _; all that stands in a JSON string as it is. Slices as in llguidance (Moskal
 * et al. 2025, github.com/guidance-ai/llguidance, docs/optimizations.md). */
#ifndef FR_SRC_GRAMMAR_TOKEN_SLICES_H
#define FR_SRC_GRAMMAR_TOKEN_SLICES_H

#include "base/error.h"

enum { FR_SLICE_CLASSES = 3, FR_SLICE_LENGTHS = 4, FR_SLICE_UNBOUND = 254 };

struct fr_token_tree;

typedef struct fr_token_slices {
    uint8_t *classes, *lengths; /* by node: the least class and the most characters of a token in its subtree; 255: of
                                 * none */
    uint64_t *bits[FR_SLICE_CLASSES][FR_SLICE_LENGTHS];
} fr_token_slices;

fr_status fr_token_slices_make(fr_token_slices *slices, const struct fr_token_tree *tree);
void fr_token_slices_free(fr_token_slices *slices);

/* The largest length that slices have of at most so many characters, as an index; -1: they have none. */
int fr_slice_of_length(size_t characters);
size_t fr_slice_length(int index);

#endif
