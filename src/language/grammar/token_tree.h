/* A vocabulary's tokens as a tree of bytes in the order of a walk through it: which tokens a text may go on with.
 *
 * In: a tokenizer. Out: nodes, parents before children, each with where its subtree ends, so that a walk that meets a
 * byte which can't come passes by all that begin with it. Control tokens, unknown ones, and those that print nothing
 * or a NUL are not among them as texts.
 *
 * Added tokens and control tokens are there as themselves, too: under bytes that no text has, FR_TOKEN_SIGN and three
 * of the id. What a token as itself opens or closes, no text does that looks like it. Immutable. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TOKEN_TREE_H
#define FR_SRC_LANGUAGE_GRAMMAR_TOKEN_TREE_H

#include "forerun.h"
#include "src/language/grammar/token_slices.h"

#define FR_MAX_TREE_DEPTH 256 /* bytes of a token; longer ones are left out */
#define FR_TOKEN_SIGN     0xFF
#define FR_TOKEN_SIZE     4 /* bytes of a token as itself */

typedef struct fr_token_node {
    uint32_t end;   /* the first node behind its subtree */
    int32_t id;     /* of the token that ends here, -1: none; the next of the same bytes: fr_token_tree.same */
    uint16_t depth; /* 1: its byte is a token's first */
    uint8_t byte;
    bool itself; /* the token as itself: no other has these bytes */
} fr_token_node;

struct fr_token_tree {
    const fr_tokenizer *tokenizer;
    fr_token_node *nodes; /* node 0 is the root, of depth 0 */
    size_t node_count, vocab;
    int32_t *same; /* by id: another token of the same bytes, -1: none */
    fr_token_slices slices;
};

/* The bytes that a token of the tree prints, NULL for one that isn't. */
const char *fr_token_tree_bytes(const fr_token_tree *tree, int32_t id, size_t *length);

/* The bytes of an id as itself; the id of such bytes. */
void fr_token_sign(int32_t id, uint8_t bytes[FR_TOKEN_SIZE]);
int32_t fr_token_signed(const uint8_t bytes[FR_TOKEN_SIZE]);

/* Whether the tree has it as itself. */
bool fr_token_tree_has_sign(const fr_token_tree *tree, int32_t id);

#endif
