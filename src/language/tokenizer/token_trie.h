/* Tokens as a tree of bytes: which of them a text begins with.
 *
 * In: the model's own tokens of a vocabulary. Out: a walk from the root, a byte a step, that says at each node which
 * token ends there. An edge costs eight bytes and is found by hash; a vocabulary of 250,000 tokens has less than a
 * million. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TOKEN_TRIE_H
#define FR_SRC_LANGUAGE_TOKENIZER_TOKEN_TRIE_H

#include "src/language/tokenizer/vocabulary.h"

#define FR_TRIE_ROOT       0u
#define FR_TRIE_NONE       UINT32_MAX
#define FR_MAX_TRIE_LENGTH 1024 /* bytes of a token: what bounds a walk, and with it a text of one letter */

typedef struct fr_token_trie {
    struct fr_trie_edge *edges; /* hash table, by node and byte */
    size_t edge_mask;
    int32_t *ids; /* by node; -1: no token ends there */
    size_t count, capacity;
} fr_token_trie;

fr_status fr_token_trie_open(fr_token_trie *trie, const fr_vocabulary *vocabulary, const char *where);
void fr_token_trie_close(fr_token_trie *trie);

/* The node behind a byte, FR_TRIE_NONE: no token goes on so. */
uint32_t fr_token_trie_step(const fr_token_trie *trie, uint32_t node, unsigned char byte);

/* The same behind all bytes of a text. */
uint32_t fr_token_trie_walk(const fr_token_trie *trie, fr_text text);

#endif
