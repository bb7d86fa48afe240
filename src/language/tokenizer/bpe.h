/* Does byte-pair encoding of one piece of text.
 *
 * In: bytes. Out: ids. At the start, each character is its own token, the tokens <0xNN> of its bytes, or the unknown
 * token. In byte-level vocabularies, each byte is a token at the start. Then the neighbouring pair whose merge has the
 * lowest rank is merged; if several have that rank, the leftmost is merged. This is repeated until no pair has a merge.
 * The time is O(n log n), because symbols are in a linked list, and candidates for merges in a heap. Sennrich et al.
 * 2016, arXiv:1508.07909. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_BPE_H
#define FR_SRC_LANGUAGE_TOKENIZER_BPE_H

#include "src/language/tokenizer/vocabulary.h"

typedef struct fr_bpe {
    const fr_vocabulary *vocabulary;
    struct fr_bpe_merge *merges; /* a hash table of pairs */
    size_t merge_mask;
    int32_t byte_ids[256]; /* [byte] the token <0xNN> of the byte; -1: there is none */
    int32_t unknown;       /* the unknown token; -1: characters without a token are dropped */
    bool fuse_unknown;     /* neighbouring unknown characters become one token */
    bool ignore_merges;    /* a piece that is itself a token is not split */
    /* at the start each byte of a piece is one token, whose name is the printable character for that byte
     * (byte_level.h) */
    bool byte_level;
    /* texts that are added to a symbol's name: inside_prefix before every symbol except the first, end_suffix after the
     * last symbol; "": nothing is added */
    char *inside_prefix, *end_suffix;
} fr_bpe;

/* A list of ids that grows at its end. */
typedef struct fr_id_list {
    int32_t *items;
    size_t count, capacity;
} fr_id_list;

fr_status fr_ids_append(fr_id_list *ids, const int32_t *items, size_t count);

/* Memory that is used again for each piece. Set it to zero before the first piece, and free its pointers at the end. */
typedef struct fr_bpe_work {
    struct fr_bpe_symbol *symbols;
    uint64_t *heap;
    char *written; /* a piece in which each byte is replaced by its printable character, or the name of a symbol */
    size_t symbol_count, heap_count, capacity;
    bool foreign;      /* the piece is not trusted, so no control token may result from it */
    int64_t last_rank; /* the rank of the last merge of the piece; -1: there was none */
} fr_bpe_work;

/* Finds the tokens <0xNN>. If a token does not exist, its id is -1. If `wanted` is false, all ids are -1. */
void fr_find_byte_ids(const fr_vocabulary *vocabulary, bool wanted, int32_t ids[256]);

/* Opens the encoding. The vocabulary is not copied, so it must outlive the encoding. */
fr_status fr_bpe_open(fr_bpe *bpe, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_bpe_close(fr_bpe *bpe);

/* Encodes a piece, and appends its tokens to ids. length: at most FR_TEXT_MAX. foreign: control tokens count as missing
 * from the vocabulary, so no text becomes one. The exception is the unknown token, which replaces characters without a
 * token. */
fr_status fr_bpe_encode(const fr_bpe *bpe, const char *text, size_t length, bool foreign, fr_bpe_work *work,
                        fr_id_list *ids);
void fr_bpe_work_free(fr_bpe_work *work);

#endif
