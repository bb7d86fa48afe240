/* Added tokens found in a text before the model sees it.
 *
 * In: a set of added tokens, and texts of any bytes, of which the author of some may be trusted with control tokens.
 * Out: each text as tokens and the stretches between them. At each position the longest token wins, and the search goes
 * on behind it.
 *
 * Control tokens are found in trusted bytes alone, and there in the same places whatever foreign bytes stand around
 * them: each run of trusted bytes is searched by itself first. What lies between the control tokens found, foreign or
 * trusted, is then searched for all other tokens, as one text. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H
#define FR_SRC_LANGUAGE_TOKENIZER_ADDED_TOKENS_H

#include "formats/tokenizer_source.h"
#include "src/language/tokenizer/trust.h"

#define FR_MAX_ADDED_LENGTH 256 /* bytes: what bounds a search at one position */

typedef struct fr_added_token {
    char *text;
    size_t length;
    int32_t id;
    bool lstrip, rstrip; /* takes the white space before, behind it along */
    bool single_word;    /* only where no word character is its neighbour */
    bool control;        /* only in trusted bytes */
} fr_added_token;

typedef struct fr_added_tokens {
    fr_added_token *items; /* sorted by text, as memcmp orders */
    size_t count;
    size_t first[257]; /* items[first[b]] on begin with a byte of at least b */
    bool has_control;
} fr_added_tokens;

/* text: as it is to be found, which may be a rewritten entry->text. Fill the set, then seal it, or
 * sort it where a token may be there twice, and is called by the one id that its text has. */
fr_status fr_added_tokens_add(fr_added_tokens *set, const fr_added_entry *entry, fr_text text, bool control,
                              const char *where);
void fr_added_tokens_sort(fr_added_tokens *set);
fr_status fr_added_tokens_seal(fr_added_tokens *set, const char *where);
void fr_added_tokens_close(fr_added_tokens *set);

/* Called with the id of each token of the set that stands anywhere in a text, inside others too; maybe repeatedly. */
typedef void fr_mention_fn(void *context, int32_t id);
void fr_added_tokens_mentioned(const fr_added_tokens *set, const char *text, size_t length, fr_mention_fn *mention,
                               void *context);

/* Called for each stretch in order: a token's, or, with id -1, what lies between tokens, which is never empty. */
typedef fr_status fr_added_fn(void *context, const char *text, size_t length, int32_t id);

/* trust: of the text's bytes; its cursor moves. */
fr_status fr_added_tokens_walk(const fr_added_tokens *set, const char *text, size_t length, fr_trust trust,
                               fr_added_fn *stretch, void *context);

#endif
