/* Merges by scores. This is SentencePiece's byte-pair encoding, whose files list no merges but give each token a score.
 *
 * In: bytes. Out: ids. Each character is a symbol. Two neighbouring symbols can be merged if together they are a token.
 * The pair whose token has the highest score is merged; if several have that score, the leftmost is merged. This is
 * repeated until no pair is a token. A character without a token becomes the tokens <0xNN> of its bytes, or the unknown
 * token. The time is O(n log n). Kudo and Richardson 2018, arXiv:1808.06226. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_SCORE_MERGES_H
#define FR_SRC_LANGUAGE_TOKENIZER_SCORE_MERGES_H

#include "src/language/tokenizer/bpe.h"

typedef struct fr_score_merges {
    const fr_vocabulary *vocabulary;
    uint32_t *ranks;       /* [vocabulary size] the token's rank: the highest score has rank 0, and equal scores have
                            * equal ranks */
    int32_t byte_ids[256]; /* [byte] the token <0xNN> of the byte; -1: there is none */
    int32_t unknown;       /* the unknown token; -1: characters without a token are dropped */
} fr_score_merges;

/* Memory that is used again for each text. Set it to zero before the first text, and free its pointers at the end. */
typedef struct fr_score_work {
    struct fr_score_symbol *symbols;
    uint64_t *heap;
    size_t heap_count, capacity;
    const char *text;
    bool foreign; /* the text is not trusted, so no control token may result from it */
} fr_score_work;

/* Opens the encoding of a source that has scores. The vocabulary is not copied, so it must outlive the encoding. */
fr_status fr_score_merges_open(fr_score_merges *merges, const fr_vocabulary *vocabulary,
                               const fr_tokenizer_source *source);
void fr_score_merges_close(fr_score_merges *merges);

/* Encodes a text; the arguments are those of fr_bpe_encode. */
fr_status fr_score_merges_encode(const fr_score_merges *merges, const char *text, size_t length, bool foreign,
                                 fr_score_work *work, fr_id_list *ids);
void fr_score_work_free(fr_score_work *work);

#endif
