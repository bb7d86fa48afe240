/* Groups the tokens of plain characters in advance: if a text may continue with any characters of a class, all tokens
 * of such characters are allowed without a walk over them.
 *
 * In: a tree of tokens. Out: slices. For each class and some lengths, a slice has one bit for each id: it is set if
 * the token has at most so many characters, all of the class. Beside the slices there are the nodes at which other
 * tokens leave the class (slice_stops.h). All this is made twice: for all tokens, and for the tokens that begin with a
 * blank, by the characters after the blank. Each node also has the class and the length that cover all tokens of its
 * subtree.
 *
 * Each class contains the one before it: small letters; letters, digits, - and _; all characters that a JSON string
 * has unescaped. Slices as in llguidance (Moskal et al. 2025, github.com/guidance-ai/llguidance,
 * docs/optimizations.md). */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H
#define FR_SRC_LANGUAGE_GRAMMAR_TOKEN_SLICES_H

#include "src/language/grammar/slice_stops.h"

enum { FR_SLICE_CLASSES = 3, FR_SLICE_ORIGINS = 2 };

struct fr_token_tree;

/* The tokens below a node, grouped by the part of their text after the node. */
typedef struct fr_slice_origin {
    uint32_t node;
    uint64_t *bits[FR_SLICE_CLASSES][FR_SLICE_LENGTHS];
    fr_slice_stops stops[FR_SLICE_CLASSES];
} fr_slice_origin;

typedef struct fr_token_slices {
    /* [nodes] the smallest class to which all tokens of the subtree belong, and the length of the longest of them in
     * characters; FR_NO_CLASS: there is no such class */
    uint8_t *classes, *lengths;
    fr_slice_origin origins[FR_SLICE_ORIGINS]; /* the root, and the node below it that stands for a blank */
    size_t origin_count;
} fr_token_slices;

fr_status fr_token_slices_make(fr_token_slices *slices, const struct fr_token_tree *tree);
void fr_token_slices_free(fr_token_slices *slices);

#endif
