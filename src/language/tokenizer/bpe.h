/* Byte-pair encoding of one piece of text.
 *
 * In: bytes. Out: ids. Each character starts as its own token, or as the tokens <0xNN> of its bytes, or as the unknown
 * token, or, in byte-level vocabularies, each byte as a token; then the neighbouring pair with the lowest rank is
 * merged, the leftmost of equals, until no pair has a merge. O(n log n): a linked list of symbols and a heap of
 * candidate merges. Sennrich et al. 2016, arXiv:1508.07909. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_BPE_H
#define FR_SRC_LANGUAGE_TOKENIZER_BPE_H

#include "src/language/tokenizer/vocabulary.h"

typedef struct fr_bpe {
    const fr_vocabulary *vocabulary;
    struct fr_bpe_merge *merges; /* hash table of pairs */
    size_t merge_mask;
    int32_t byte_ids[256];            /* <0xNN>, -1: none */
    int32_t unknown;                  /* -1: what has no token is dropped */
    bool fuse_unknown;                /* a run of unknown characters is one token */
    bool ignore_merges;               /* a piece that is a token stays whole */
    bool byte_level;                  /* each byte starts as the token of the character that stands for it */
    char *inside_prefix, *end_suffix; /* of symbols behind the first one, of the last one; "": none */
} fr_bpe;

/* Ids as they come. */
typedef struct fr_id_list {
    int32_t *items;
    size_t count, capacity;
} fr_id_list;

fr_status fr_ids_append(fr_id_list *ids, const int32_t *items, size_t count);

/* Memory that pieces use one after the other; zero it, then free its pointers at the end. */
typedef struct fr_bpe_work {
    struct fr_bpe_symbol *symbols;
    uint64_t *heap;
    char *written; /* a piece in characters that stand for its bytes, or the name of a symbol */
    size_t symbol_count, heap_count, capacity;
    bool foreign; /* of the piece at hand */
} fr_bpe_work;

/* The tokens <0xNN>; -1 for each that there is none of, or for all where they aren't wanted. */
void fr_find_byte_ids(const fr_vocabulary *vocabulary, bool wanted, int32_t ids[256]);

/* The vocabulary is kept, not copied. */
fr_status fr_bpe_open(fr_bpe *bpe, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_bpe_close(fr_bpe *bpe);

/* Appends to ids. length <= FR_MAX_TEXT. foreign: control tokens count as absent from the vocabulary, so that no text
 * yields one; but for the unknown token, which stands for what has no other. */
fr_status fr_bpe_encode(const fr_bpe *bpe, const char *text, size_t length, bool foreign, fr_bpe_work *work,
                        fr_id_list *ids);
void fr_bpe_work_free(fr_bpe_work *work);

#endif
