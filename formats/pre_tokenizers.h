/* Describes the kinds of tokenizers that GGUF files name in tokenizer.ggml.model and tokenizer.ggml.pre.
 *
 * tokenizer.ggml.pre names the rules by which texts are cut into pieces. Merges never cross the end of a piece. In: the
 * two names. Out: the rules that a tokenizer.json would have, and the settings that files of this kind omit. */
#ifndef FR_FORMATS_PRE_TOKENIZERS_H
#define FR_FORMATS_PRE_TOKENIZERS_H

#include "formats/tokenizer_source.h"

#define FR_PRE_NAMES_MAX     24
#define FR_PRE_PATTERNS_MAX  6
#define FR_ARCHITECTURES_MAX 4
#define FR_LOWER_BLOCK       "\xe2\x96\x81" /* U+2581, which replaces a space in SentencePiece's tokens */
#define FR_INSIDE_WORD       "##"           /* comes before WordPiece's tokens inside words in published vocabularies */

/* Holds the ids of special tokens that llama.cpp assumes if a file doesn't give them. */
typedef struct fr_default_ids {
    int32_t unknown, begin, end, part; /* -1 if there is no such token */
    bool some;                         /* false: this kind has no default ids */
} fr_default_ids;

typedef struct fr_pre_tokenizer {
    const char *model;    /* tokenizer.ggml.model */
    fr_model_kind pieces; /* how a piece becomes tokens */
    /* tokenizer.ggml.pre; forerun writes and shows the first name */
    const char *names[FR_PRE_NAMES_MAX];
    /* Each pattern cuts the pieces that the previous pattern made. Merging begins with the bytes of the final
     * pieces. */
    const char *patterns[FR_PRE_PATTERNS_MAX];
    void (*rules)(fr_tokenizer_source *source);      /* sets all rules of a kind that does not cut texts by `patterns`;
                                                      * NULL for a kind that does */
    const char *architectures[FR_ARCHITECTURES_MAX]; /* a file that names no kind may be of this kind if it has one of
                                                      * these architectures */
    const char *const *ends;  /* tokens that end a turn of a conversation; a file that names no kind can be of this kind
                               * only if it has one of these tokens */
    const char *const *shown; /* control tokens that the converter marks as user-defined, so that a parser of replies
                               * sees them */
    bool composed;            /* texts are normalized to NFC first */
    bool ignore_merges;       /* a piece that is itself a token is not merged */
    bool begins;              /* every text gets a bos before it, even if the file's key says that it should not */
    bool begins_unless_told;  /* every text gets a bos before it if the file has no key for it */
    bool ends_unless_told;    /* every text gets an eos after it if the file has no key for it */
    bool parts;               /* every text gets a separator token after it */
    fr_default_ids ids;       /* ids that are used if a file doesn't give its own */
    bool end_for_all;         /* the end-of-text token replaces a missing bos or unknown token */
} fr_pre_tokenizer;

/* Gives the kind at an index of the table; NULL past its end. */
const fr_pre_tokenizer *fr_pre_tokenizer_at(size_t index);

/* Returns true if the table has kinds for the model. */
bool fr_pre_tokenizer_has_model(fr_text model);

/* Finds the kind with this model and name; NULL if there is none. */
const fr_pre_tokenizer *fr_pre_tokenizer_named(fr_text model, fr_text name);

/* Finds the kind with this model and name. If the model has only one kind, that kind is returned for any name. Returns
 * NULL if there is none. */
const fr_pre_tokenizer *fr_pre_tokenizer_find(fr_text model, fr_text name);

/* Gives a name by its index among the names of all kinds; NULL past the end. */
const char *fr_pre_tokenizer_word(size_t index);

/* Writes the names of a model's kinds with ", " between them, cut at `size` bytes. */
void fr_pre_tokenizer_list(fr_text model, char *line, size_t size);

/* Adds the rules of the kind to a tokenizer source. */
void fr_pre_tokenizer_apply(const fr_pre_tokenizer *kind, fr_tokenizer_source *source);

/* GPT-2's expression for cutting texts. Byte-level tokenizers use it if they have no expression of their own. */
extern const char *const fr_gpt2_pieces;

#endif
