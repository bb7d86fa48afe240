/* The unigram language model: the split of a piece into tokens whose scores have the largest sum.
 *
 * In: bytes. Out: ids. Every token that a character begins with is a step over its bytes, and where none is that one
 * character, the unknown token is, at the score of the worst token less 10; of all ways through the piece the best is
 * taken, by Viterbi's algorithm, of equal ones the one whose last step was found first. Neighbouring unknown characters
 * are one: a token of their own text where there is one, else the tokens <0xNN> of their bytes, else the unknown token.
 * O(n times the longest token). Sums are of doubles, from left to right, as in Hugging Face's tokenizers. Kudo 2018,
 * arXiv:1804.10959. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_UNIGRAM_H
#define FR_SRC_LANGUAGE_TOKENIZER_UNIGRAM_H

#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/token_trie.h"

typedef struct fr_unigram {
    const fr_vocabulary *vocabulary;
    fr_token_trie trie;
    double *scores; /* by id */
    double unknown_score;
    int32_t unknown;       /* -1: what has no token is dropped */
    int32_t byte_ids[256]; /* <0xNN>, -1: none, or they aren't asked for */
} fr_unigram;

/* Memory that pieces use one after the other; zero it, then free it at the end. */
typedef struct fr_unigram_work {
    struct fr_unigram_end *ends; /* by where a step ends */
    size_t capacity;
    const unsigned char *text;
    size_t length;
    bool foreign; /* of the piece at hand */
} fr_unigram_work;

/* Of a source with scores; the vocabulary is kept, not copied. */
fr_status fr_unigram_open(fr_unigram *unigram, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_unigram_close(fr_unigram *unigram);

/* As fr_bpe_encode. */
fr_status fr_unigram_encode(const fr_unigram *unigram, const char *text, size_t length, bool foreign,
                            fr_unigram_work *work, fr_id_list *ids);
void fr_unigram_work_free(fr_unigram_work *work);

#endif
