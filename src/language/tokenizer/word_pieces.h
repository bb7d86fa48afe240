/* Encodes words as WordPiece does, by the longest tokens that fit, or as WordLevel does, as whole tokens.
 *
 * In: bytes, one word. Out: ids. WordPiece first takes the longest token that the word begins with. It then puts the
 * prefix ("##") before the rest of the word, takes the longest token that this text begins with, and repeats this
 * until the word ends. If there is no such token, or the word is too long, the word is the unknown token. WordLevel
 * has only whole words. The time is O(n times the longest token). Wu et al. 2016, arXiv:1609.08144. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_WORD_PIECES_H
#define FR_SRC_LANGUAGE_TOKENIZER_WORD_PIECES_H

#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/token_trie.h"

typedef struct fr_word_pieces {
    const fr_vocabulary *vocabulary;
    fr_token_trie trie;    /* empty if only whole words are tokens */
    uint32_t inside;       /* the node after the prefix of tokens inside a word ("##"); FR_TRIE_NONE: no token begins
                            * with it */
    size_t max_characters; /* a word with more characters becomes the unknown token */
    int32_t unknown;
} fr_word_pieces;

/* Opens the model. The vocabulary is not copied, so it must stay. */
fr_status fr_word_pieces_open(fr_word_pieces *pieces, const fr_vocabulary *vocabulary,
                              const fr_tokenizer_source *source);
void fr_word_pieces_close(fr_word_pieces *pieces);

/* Encodes a word; the arguments are those of fr_bpe_encode. */
fr_status fr_word_pieces_encode(const fr_word_pieces *pieces, const char *text, size_t length, bool foreign,
                                fr_id_list *ids);

#endif
