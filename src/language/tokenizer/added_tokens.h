/* Finds added tokens in a text before the model's own tokens are made.
 *
 * In: a set of added tokens, and texts of any bytes. Control tokens may be found only in trusted bytes. Out: the text
 * as tokens, and the stretches of text between them. At each position the longest token is taken, and the search
 * continues after it.
 *
 * First, each run of trusted bytes is searched by itself for control tokens. So these are found in the same places,
 * whatever foreign bytes come before or after the run. Then the text between these control tokens, foreign or trusted,
 * is searched for all other tokens, as one text. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H
#define FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H

#include "formats/tokenizer_source.h"
#include "src/language/tokenizer/trust.h"

#define FR_ADDED_LENGTH_MAX 256 /* limit on the bytes of a token, and on the bytes that a search for a token reads */

typedef struct fr_added_token {
    char *text;
    size_t length;
    int32_t id;
    /* the white space before (lstrip) or after (rstrip) the token belongs to the token */
    bool lstrip, rstrip;
    bool single_word; /* the token is found only if no word character is next to it */
    bool control;     /* the token is found only in trusted bytes */
} fr_added_token;

typedef struct fr_added_tokens {
    fr_added_token *items; /* sorted by text, in memcmp's order */
    size_t count;
    size_t first[257]; /* [b] the index of the first item whose first byte is at least b */
    bool has_control;
} fr_added_tokens;

/* Adds a token. text: the text that is searched for; it may be a rewritten entry->text. After the last token,
 * fr_added_tokens_seal must be called, which refuses a text that occurs twice. If equal texts always have the same id,
 * call fr_added_tokens_sort instead. */
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

/* Receives each stretch in order. A stretch is a token. If the id is -1, it is the text between tokens, which is never
 * empty. */
typedef fr_status fr_added_fn(void *context, const char *text, size_t length, int32_t id);

/* Passes each stretch of a text to the function `stretch`, in order. trust: the trusted runs of the text's bytes. */
fr_status fr_added_tokens_walk(const fr_added_tokens *set, const char *text, size_t length, fr_trust trust,
                               fr_added_fn *stretch, void *context);

#endif
