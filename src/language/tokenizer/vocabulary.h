/* Tokens by id and by text.
 *
 * In: the vocabulary and the added tokens of a tokenizer's source. Out: lookups both ways. Every id has at most one
 * text and every text one id; a file that says otherwise is refused. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_VOCABULARY_H
#define FR_SRC_LANGUAGE_TOKENIZER_VOCABULARY_H

#include "formats/tokenizer_source.h"

/* A hash table never looks further than this. Tables are at most half full, so that no text met by chance comes near
 * it; a file made of colliding texts is refused instead of read for hours. */
#define FR_MAX_PROBES 256

typedef struct fr_token {
    const char *text; /* UTF-8, NUL-terminated; NULL: no token has this id */
    uint32_t length;
    bool in_model; /* in the model's own vocabulary, not just an added token */
    bool added;    /* looked for in texts before anything else is */
    bool special;  /* an added token that decoding may leave out */
    bool control;  /* opens or closes something: only who is trusted may write it */
} fr_token;

typedef struct fr_vocabulary {
    fr_token *tokens; /* by id */
    size_t size;      /* one more than the largest id */
    uint32_t longest; /* length of the longest text */
    char *texts;
    struct fr_vocabulary_slot *slots;
    size_t slot_mask;
} fr_vocabulary;

fr_status fr_vocabulary_open(fr_vocabulary *vocabulary, const fr_tokenizer_source *source);
void fr_vocabulary_close(fr_vocabulary *vocabulary);

/* The id of a text, -1 when there is none. */
int32_t fr_vocabulary_find(const fr_vocabulary *vocabulary, const char *text, size_t length);

/* The same among the model's own tokens. */
int32_t fr_vocabulary_find_in_model(const fr_vocabulary *vocabulary, const char *text, size_t length);

#endif
