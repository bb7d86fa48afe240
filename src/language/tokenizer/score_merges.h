/* Merging by scores: SentencePiece's byte-pair encoding, whose files list no merges but give each token a score.
 *
 * In: bytes. Out: ids. Each character is a symbol; of neighbouring symbols that are a token together the pair of the
 * highest score is merged, the leftmost of equals, until no pair is one. A character that no token has is the tokens
 * <0xNN> of its bytes, or the unknown token. O(n log n). Kudo and Richardson 2018, arXiv:1808.06226. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_SCORE_MERGES_H
#define FR_SRC_LANGUAGE_TOKENIZER_SCORE_MERGES_H

#include "src/language/tokenizer/bpe.h"

typedef struct fr_score_merges {
    const fr_vocabulary *vocabulary;
    uint32_t *ranks;       /* by id; the highest score has 0, equal ones the same */
    int32_t byte_ids[256]; /* <0xNN>, -1: none */
    int32_t unknown;       /* -1: what has no token is dropped */
} fr_score_merges;

/* Memory that texts use one after the other; zero it, then free its pointers at the end. */
typedef struct fr_score_work {
    struct fr_score_symbol *symbols;
    uint64_t *heap;
    size_t heap_count, capacity;
    const char *text;
    bool foreign; /* of the text at hand */
} fr_score_work;

/* Of a source that has scores; the vocabulary is kept, not copied. */
fr_status fr_score_merges_open(fr_score_merges *merges, const fr_vocabulary *vocabulary,
                               const fr_tokenizer_source *source);
void fr_score_merges_close(fr_score_merges *merges);

/* As fr_bpe_encode. */
fr_status fr_score_merges_encode(const fr_score_merges *merges, const char *text, size_t length, bool foreign,
                                 fr_score_work *work, fr_id_list *ids);
void fr_score_work_free(fr_score_work *work);

#endif
