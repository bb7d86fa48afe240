/* Runs the unigram language model, which splits a piece into the tokens whose scores have the largest sum.
 *
 * In: bytes. Out: ids. A path through the piece consists of steps. Every token that begins at a character is a step
 * over the token's bytes. If a character has no token of its own, the unknown token is a step over that character; its
 * score is 10 below that of the worst token. Viterbi's algorithm finds the path with the largest sum of scores. If
 * several paths have that sum, the one whose last step was found first is taken. Neighbouring unknown characters are
 * encoded together: as the token of their text, if there is one; otherwise as the tokens <0xNN> of their bytes, if
 * these exist; otherwise as the unknown token. The time is O(n times the length of the longest token). Scores are added
 * as doubles, from left to right, as in Hugging Face's tokenizers. Kudo 2018, arXiv:1804.10959. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_UNIGRAM_H
#define FR_SRC_LANGUAGE_TOKENIZER_UNIGRAM_H

#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/token_trie.h"

typedef struct fr_unigram {
    const fr_vocabulary *vocabulary;
    fr_token_trie trie;
    double *scores; /* [vocabulary size] */
    double unknown_score;
    int32_t unknown; /* the unknown token; -1: characters without a token are dropped */
    /* [byte] the token <0xNN> of the byte; -1: the vocabulary lacks it, or the model uses no tokens of bytes */
    int32_t byte_ids[256];
} fr_unigram;

/* Memory that is used again for each piece. Set it to zero before the first piece, and free it at the end. */
typedef struct fr_unigram_work {
    struct fr_unigram_end *ends; /* one for each place in the piece at which a step may end */
    size_t capacity;
    const unsigned char *text;
    size_t length;
    bool foreign; /* the piece is not trusted, so no control token may result from it */
} fr_unigram_work;

/* Opens the model of a source that has scores. The vocabulary is not copied, so it must outlive the model. */
fr_status fr_unigram_open(fr_unigram *unigram, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_unigram_close(fr_unigram *unigram);

/* Encodes a piece; the arguments are those of fr_bpe_encode. */
fr_status fr_unigram_encode(const fr_unigram *unigram, const char *text, size_t length, bool foreign,
                            fr_unigram_work *work, fr_id_list *ids);
void fr_unigram_work_free(fr_unigram_work *work);

#endif
