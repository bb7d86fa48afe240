/* Stores a vocabulary's tokens as a tree of bytes. The nodes are in the order in which a search for the tokens that may
 * come next visits them.
 *
 * In: a tokenizer. Out: nodes. A parent comes before its children, and each node knows the end of its subtree. So if
 * the byte of a node can't come, the search skips all tokens below that node. Control tokens, unknown tokens, and
 * tokens that print nothing or a NUL are not in the tree as text.
 *
 * Added tokens and control tokens are also in the tree under a sign: the byte FR_TOKEN_SIGN, which no text contains,
 * and three bytes of the id. So a grammar can require the token itself, and text that looks like the token does not
 * match. The tree never changes once it is made. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TOKEN_TREE_H
#define FR_SRC_LANGUAGE_GRAMMAR_TOKEN_TREE_H

#include "forerun.h"
#include "src/language/grammar/token_slices.h"

#define FR_TREE_DEPTH_MAX 256  /* limit on the bytes of a token; longer tokens are left out */
#define FR_TOKEN_SIGN     0xFF /* the first byte of a sign; no text in UTF-8 contains it */
#define FR_TOKEN_SIZE     4    /* number of bytes of a token's sign */

typedef struct fr_token_node {
    uint32_t end;   /* the first node after this node's subtree */
    int32_t id;     /* the token that ends here; -1: none does. fr_token_tree.same gives others with the same bytes. */
    uint16_t depth; /* number of bytes from the root to this node */
    uint8_t byte;
    bool itself; /* the node is part of a token's sign, so all nodes below it belong to that token */
} fr_token_node;

struct fr_token_tree {
    const fr_tokenizer *tokenizer;
    fr_token_node *nodes; /* node 0 is the root, of depth 0 */
    size_t node_count, vocab;
    int32_t *same; /* [vocab] the next token with the same bytes; -1: there is none */
    fr_token_slices slices;
};

/* Gives the bytes that a token prints; NULL: the token is not in the tree as text. */
const char *fr_token_tree_bytes(const fr_token_tree *tree, int32_t id, size_t *length);

/* fr_token_sign gives the sign of an id. fr_token_signed gives the id of a sign. */
void fr_token_sign(int32_t id, uint8_t bytes[FR_TOKEN_SIZE]);
int32_t fr_token_signed(const uint8_t bytes[FR_TOKEN_SIZE]);

/* Returns true if the token is in the tree under its sign (fr_token_sign). */
bool fr_token_tree_has_sign(const fr_token_tree *tree, int32_t id);

#endif
