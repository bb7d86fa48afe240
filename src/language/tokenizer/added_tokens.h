/* Finds added tokens in a text before the model's own tokens are made.
 *
 * In: a set of added tokens; texts of any bytes, some of which may be trusted with control tokens. Out: each text as
 * tokens and the stretches between them. At each position the longest token wins, and the search continues after it.
 *
 * Control tokens are found only in trusted bytes, and always in the same places, whatever foreign bytes are around
 * them: each run of trusted bytes is first searched by itself. The text between these control tokens, foreign or
 * trusted, is then searched for all other tokens, as one text. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H
#define FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H

#include "formats/tokenizer_source.h"
#include "src/language/tokenizer/trust.h"

#define FR_ADDED_LENGTH_MAX 256 /* limit on the bytes of a token, and on the bytes that a search for one looks at */

typedef struct fr_added_token {
    char *text;
    size_t length;
    int32_t id;
    bool lstrip, rstrip; /* the white space before (lstrip) or after (rstrip) the token belongs to it */
    bool single_word;    /* the token is found only if no word character is next to it */
    bool control;        /* the token is found only in trusted bytes */
} fr_added_token;

typedef struct fr_added_tokens {
    fr_added_token *items; /* sorted by text, in memcmp's order */
    size_t count;
    size_t first[257]; /* [b] the index of the first item whose first byte is at least b */
    bool has_control;
} fr_added_tokens;

/* Adds a token. text: the text to search for, which may be a rewritten entry->text. After the last token
 * fr_added_tokens_seal must be called, which refuses a text that occurs twice. fr_added_tokens_sort is enough if equal
 * texts always have the same id. */
fr_status fr_added_tokens_add(fr_added_tokens *set, const fr_added_entry *entry, fr_text text, bool control,
                              const char *where);
void fr_added_tokens_sort(fr_added_tokens *set);
fr_status fr_added_tokens_seal(fr_added_tokens *set, const char *where);
void fr_added_tokens_close(fr_added_tokens *set);

/* Calls `mention` with the id of each token of the set that occurs anywhere in a text, even within another token. An
 * id may be given several times. */
typedef void fr_mention_fn(void *context, int32_t id);
void fr_added_tokens_mentioned(const fr_added_tokens *set, const char *text, size_t length, fr_mention_fn *mention,
                               void *context);

/* Receives each stretch in order: a token, or, with id -1, the text between tokens, which is never empty. */
typedef fr_status fr_added_fn(void *context, const char *text, size_t length, int32_t id);

/* Hands each stretch of a text to `stretch`, in order. trust: the trusted runs of the text's bytes. */
fr_status fr_added_tokens_walk(const fr_added_tokens *set, const char *text, size_t length, fr_trust trust,
                               fr_added_fn *stretch, void *context);

#endif
