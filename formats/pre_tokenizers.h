/* The kinds of tokenizers that GGUF files name by tokenizer.ggml.model and tokenizer.ggml.pre.
 *
 * The second key tells how texts are cut into pieces; merges never cross from one piece into another. In: the two
 * names. Out: rules as a tokenizer.json would have them, and settings that files of the kind leave out. */
#ifndef FR_FORMATS_PRE_TOKENIZERS_H
#define FR_FORMATS_PRE_TOKENIZERS_H

#include "formats/tokenizer_source.h"

#define FR_PRE_NAMES_MAX     24
#define FR_PRE_PATTERNS_MAX  6
#define FR_ARCHITECTURES_MAX 4
#define FR_INSIDE_WORD       "##" /* begins the published tokens of WordPiece that stand inside words */

/* The ids of single tokens that llama.cpp assumes in files of a model that don't name them. */
typedef struct fr_default_ids {
    int32_t unknown, begin, end, part; /* -1: none */
    bool some;                         /* false: this kind has no default ids */
} fr_default_ids;

typedef struct fr_pre_tokenizer {
    const char *model;    /* tokenizer.ggml.model */
    fr_model_kind pieces; /* the way in which a piece becomes tokens */
    /* tokenizer.ggml.pre; the first name is the one that is written and shown */
    const char *names[FR_PRE_NAMES_MAX];
    /* each cuts the pieces of the one before; the pieces are then bytes */
    const char *patterns[FR_PRE_PATTERNS_MAX];
    void (*rules)(fr_tokenizer_source *source);      /* for kinds whose pieces are not bytes; else NULL */
    const char *architectures[FR_ARCHITECTURES_MAX]; /* their files are taken to be of this kind if they name none */
    const char *const *ends;  /* control tokens of its files after which the other side speaks; NULL: any */
    const char *const *shown; /* control tokens that the converter marks as user-defined, so that a parser sees them */
    bool composed;            /* texts are brought into NFC first */
    bool ignore_merges;       /* a piece that is a token stays whole */
    bool begins;              /* a bos stands before every text, even if the file says no */
    bool begins_unless_told;  /* a bos stands before every text if the file doesn't say */
    bool ends_unless_told;    /* an eos stands after every text if the file doesn't say */
    bool parts;               /* a sep stands after every text */
    fr_default_ids ids;       /* used for files that name none */
    bool end_for_all;         /* the end-of-text token also serves as bos and unknown if there are none */
} fr_pre_tokenizer;

/* Gives the kind at a place of the table; NULL past its end. */
const fr_pre_tokenizer *fr_pre_tokenizer_at(size_t index);

/* True if the table has kinds for the model. */
bool fr_pre_tokenizer_has_model(fr_text model);

/* Finds the kind by model and name; NULL if there is none. */
const fr_pre_tokenizer *fr_pre_tokenizer_named(fr_text model, fr_text name);

/* Does the same, but if a model has only one kind, any name finds it. */
const fr_pre_tokenizer *fr_pre_tokenizer_find(fr_text model, fr_text name);

/* Gives every name of every kind, one after the other; NULL past the end. */
const char *fr_pre_tokenizer_word(size_t index);

/* Writes the names of a model's kinds with ", " between them, cut at `size` bytes. */
void fr_pre_tokenizer_list(fr_text model, char *line, size_t size);

/* Gives a source the rules of the kind. */
void fr_pre_tokenizer_apply(const fr_pre_tokenizer *kind, fr_tokenizer_source *source);

/* GPT-2's expression for cutting texts; byte-level tokenizers use it if they name no other. */
extern const char *const fr_gpt2_pieces;

#endif
