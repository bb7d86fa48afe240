/* Groups tokens in advance by the class of their characters. If a text may continue with any characters of a class, all
 * tokens that consist of such characters are allowed at once, without a test of each.
 *
 * In: a tree of tokens. Out: slices. There is a slice for each class and each of some lengths. It has one bit for each
 * id, which is set if the token has at most that many characters, and all of them are of the class. For all other
 * tokens there are the nodes at which they leave the class (slice_stops.h). All this is made twice: once for all
 * tokens, and once for the tokens that begin with a blank, of which only the characters after the blank are counted.
 * Each node also gets the largest class and length among the tokens of its subtree.
 *
 * There are three classes, and each contains the one before it. The first has the small letters. The second has
 * letters, digits, - and _. The third has all characters that need no escape in a JSON string. llguidance has such
 * slices, too (Moskal et al. 2025, github.com/guidance-ai/llguidance, docs/optimizations.md). */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H
#define FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H

#include "src/language/grammar/slice_stops.h"

enum { FR_SLICE_CLASSES = 3, FR_SLICE_ORIGINS = 2 };

struct fr_token_tree;

/* The tokens below a node, grouped by the part of their text that follows the node. */
typedef struct fr_slice_origin {
    uint32_t node;
    uint64_t *bits[FR_SLICE_CLASSES][FR_SLICE_LENGTHS];
    fr_slice_stops stops[FR_SLICE_CLASSES];
} fr_slice_origin;

typedef struct fr_token_slices {
    /* [nodes] classes: the smallest class to which all tokens of the subtree belong; FR_NO_CLASS: there is none.
     * lengths: the number of characters of the longest of these tokens. */
    uint8_t *classes, *lengths;
    /* the root, and the node below the root whose text is a blank */
    fr_slice_origin origins[FR_SLICE_ORIGINS];
    size_t origin_count;
} fr_token_slices;

fr_status fr_token_slices_make(fr_token_slices *slices, const struct fr_token_tree *tree);
void fr_token_slices_free(fr_token_slices *slices);

#endif
