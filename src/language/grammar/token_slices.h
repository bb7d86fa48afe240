/* Tokens of plain characters, sorted out beforehand: where a text may go on with any characters of a class, all tokens
 * of such characters are allowed without being walked to.
 *
 * In: a tree of tokens. Out: for each class and some lengths the tokens of at most so many of its characters, a bit an
 * id, and where the others leave the class (slice_stops.h); so of all tokens, and of those that begin with a blank, by
 * what stands behind it. For each node which of them have all tokens of its subtree. Each class has the characters of
 * those before it: small letters; letters, digits, - and _; all that stands in a JSON string as it is. Slices as in
 * llguidance (Moskal et al. 2025, github.com/guidance-ai/llguidance, docs/optimizations.md). */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H
#define FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H

#include "src/language/grammar/slice_stops.h"

enum { FR_SLICE_CLASSES = 3, FR_SLICE_ORIGINS = 2 };

struct fr_token_tree;

/* Tokens below a node, by what they have behind it. */
typedef struct fr_slice_origin {
    uint32_t node;
    uint64_t *bits[FR_SLICE_CLASSES][FR_SLICE_LENGTHS];
    fr_slice_stops stops[FR_SLICE_CLASSES];
} fr_slice_origin;

typedef struct fr_token_slices {
    uint8_t *classes, *lengths; /* by node: the least class and the most characters of a token in its subtree;
                                 * FR_NO_CLASS: of none */
    fr_slice_origin origins[FR_SLICE_ORIGINS]; /* the root, and a blank below it */
    size_t origin_count;
} fr_token_slices;

fr_status fr_token_slices_make(fr_token_slices *slices, const struct fr_token_tree *tree);
void fr_token_slices_free(fr_token_slices *slices);

#endif
