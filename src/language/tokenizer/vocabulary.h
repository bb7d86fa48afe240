/* Finds tokens by id and by text.
 *
 * In: the vocabulary and the added tokens of a tokenizer's source. Out: lookups of a text by id, and of an id by text.
 * Every id has at most one text, and every text has one id; other files are refused. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_VOCABULARY_H
#define FR_SRC_LANGUAGE_TOKENIZER_VOCABULARY_H

#include "formats/tokenizer_source.h"

/* Limit on the slots that a lookup in a hash table visits. Tables are at most half full, so with ordinary texts a
 * lookup visits far fewer slots. A file whose texts' hashes collide is refused; otherwise it could take hours to
 * read. */
#define FR_PROBES_MAX 256

typedef struct fr_token {
    const char *text; /* UTF-8, NUL-terminated; NULL: no token has this id */
    uint32_t length;
    /* the token is in the vocabulary that the model was trained with, even if it is also an added token */
    bool in_model;
    bool added;   /* an added token; added tokens are searched for in texts before all others */
    bool special; /* an added token that may be left out when ids are decoded */
    /* the token opens or closes something, such as a turn, so it is found only in trusted text */
    bool control;
} fr_token;

typedef struct fr_vocabulary {
    fr_token *tokens; /* [size] */
    size_t size;      /* one more than the largest id */
    uint32_t longest; /* bytes of the longest text */
    char *texts;
    struct fr_vocabulary_slot *slots;
    size_t slot_mask;
} fr_vocabulary;

fr_status fr_vocabulary_open(fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_vocabulary_close(fr_vocabulary *vocabulary);

/* Gives the id of a text; -1: there is none. */
int32_t fr_vocabulary_find(const fr_vocabulary *vocabulary, const char *text, size_t length);

/* Gives the id of a text among the tokens with in_model; -1: there is none. */
int32_t fr_vocabulary_find_in_model(const fr_vocabulary *vocabulary, const char *text, size_t length);

#endif
