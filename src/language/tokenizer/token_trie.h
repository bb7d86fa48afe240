/* Keeps a tree of tokens by their bytes, which finds the tokens with which a text begins.
 *
 * In: the model's own tokens of a vocabulary. Out: a walk from the root, one byte at a time, which gives at each node
 * the token that ends there. An edge takes eight bytes and is found by hash; a vocabulary of 250,000 tokens has less
 * than a million edges. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TOKEN_TRIE_H
#define FR_SRC_LANGUAGE_TOKENIZER_TOKEN_TRIE_H

#include "src/language/tokenizer/vocabulary.h"

#define FR_TRIE_ROOT       0u
#define FR_TRIE_NONE       UINT32_MAX
/* limit on the bytes of a token, and on the bytes that a walk reads; without this limit, a text of one repeated letter
 * could take very long */
#define FR_TRIE_LENGTH_MAX 1024

typedef struct fr_token_trie {
    struct fr_trie_edge *edges; /* a hash table; the key is a node and a byte */
    size_t edge_mask;
    int32_t *ids; /* [nodes] the token that ends at the node; -1: none does */
    size_t count, capacity;
} fr_token_trie;

fr_status fr_token_trie_open(fr_token_trie *trie, const fr_vocabulary *vocabulary, const char *where);
void fr_token_trie_close(fr_token_trie *trie);

/* Gives the node after one more byte. FR_TRIE_NONE: no token goes on with this byte. */
uint32_t fr_token_trie_step(const fr_token_trie *trie, uint32_t node, unsigned char byte);

/* Gives the node after all bytes of a text. */
uint32_t fr_token_trie_walk(const fr_token_trie *trie, fr_text text);

#endif
