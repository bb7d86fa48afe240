/* Encodes words by one of two methods: WordPiece, which takes the longest tokens that fit, or WordLevel, which takes
 * only whole words.
 *
 * In: the bytes of one word. Out: ids. WordPiece first takes the longest token with which the word begins. It then puts
 * the prefix ("##") before the rest of the word, takes the longest token with which this text begins, and repeats this
 * until the word ends. If at some place there is no such token, or if the word is too long, the whole word becomes the
 * unknown token. The time is O(n times the length of the longest token). Wu et al. 2016, arXiv:1609.08144. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_WORD_PIECES_H
#define FR_SRC_LANGUAGE_TOKENIZER_WORD_PIECES_H

#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/token_trie.h"

typedef struct fr_word_pieces {
    const fr_vocabulary *vocabulary;
    fr_token_trie trie; /* empty if only whole words are tokens */
    /* the node after the prefix of tokens inside a word ("##"); FR_TRIE_NONE: no token begins with this prefix */
    uint32_t inside;
    size_t max_characters; /* a word with more characters becomes the unknown token */
    int32_t unknown;
} fr_word_pieces;

/* Opens the model. The vocabulary is not copied, so it must outlive the model. */
fr_status fr_word_pieces_open(fr_word_pieces *pieces, const fr_vocabulary *vocabulary,
                              const fr_tokenizer_source *source);
void fr_word_pieces_close(fr_word_pieces *pieces);

/* Encodes a word; the arguments are those of fr_bpe_encode. */
fr_status fr_word_pieces_encode(const fr_word_pieces *pieces, const char *text, size_t length, bool foreign,
                                fr_id_list *ids);

#endif
