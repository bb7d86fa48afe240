/* The kinds of tokenizers that GGUF files name: tokenizer.ggml.model, and with it tokenizer.ggml.pre, which says how
 * texts are cut into the pieces that merges stay within.
 *
 * In: the two names. Out: rules as a tokenizer.json would have them, and what else files of the kind leave unsaid. */
#ifndef FR_FORMATS_PRE_TOKENIZERS_H
#define FR_FORMATS_PRE_TOKENIZERS_H

#include "formats/tokenizer_source.h"

#define FR_MAX_PRE_NAMES     24
#define FR_MAX_PRE_PATTERNS  6
#define FR_MAX_ARCHITECTURES 4
#define FR_INSIDE_WORD       "##" /* what WordPiece's tokens begin with inside words, as they are published */

/* What llama.cpp takes for single tokens in files of a model. */
typedef struct fr_default_ids {
    int32_t unknown, begin, end, part; /* -1: none */
    bool some;                         /* false: for none */
} fr_default_ids;

typedef struct fr_pre_tokenizer {
    const char *model;                               /* tokenizer.ggml.model */
    fr_model_kind pieces;                            /* how a piece becomes tokens */
    const char *names[FR_MAX_PRE_NAMES];             /* tokenizer.ggml.pre; the first one is written and told */
    const char *patterns[FR_MAX_PRE_PATTERNS];       /* each cuts the pieces of the one before; inside, bytes */
    void (*rules)(fr_tokenizer_source *source);      /* of kinds whose pieces are no bytes; else NULL */
    const char *architectures[FR_MAX_ARCHITECTURES]; /* whose files are of the kind where they name none */
    const char *const *ends;  /* tokens that its files have, after which it is somebody else's turn; NULL: any */
    const char *const *shown; /* control tokens that the converter marks as user-defined, so that a parser sees them */
    bool composed;            /* texts are brought into NFC first */
    bool ignore_merges;       /* a piece that is a token stays whole */
    bool begins;              /* a bos stands before every text, whatever the file says */
    bool begins_unless_told;  /* the same where the file says nothing */
    bool ends_unless_told;    /* and an eos behind it */
    bool parts;               /* a sep stands behind every text */
    fr_default_ids ids;       /* where the file names none */
    bool end_for_all;         /* the end of a text stands for bos and unknown where there are none */
} fr_pre_tokenizer;

/* The kind at a place of the table, NULL behind its end. */
const fr_pre_tokenizer *fr_pre_tokenizer_at(size_t index);

/* Whether there are kinds of a model. */
bool fr_pre_tokenizer_has_model(fr_text model);

/* The kind of that model and name; NULL: there is none. */
const fr_pre_tokenizer *fr_pre_tokenizer_named(fr_text model, fr_text name);

/* The same; where a model has one kind alone, any name is its. */
const fr_pre_tokenizer *fr_pre_tokenizer_find(fr_text model, fr_text name);

/* Every name of every kind, one after the other; NULL past the end. */
const char *fr_pre_tokenizer_word(size_t index);

/* The names of a model's kinds, ", " between them, cut where size ends. */
void fr_pre_tokenizer_list(fr_text model, char *line, size_t size);

/* Makes the rules of a source those of the kind. */
void fr_pre_tokenizer_apply(const fr_pre_tokenizer *kind, fr_tokenizer_source *source);

/* The expression by which GPT-2 cut texts, and with it byte-level tokenizers that name no other. */
extern const char *const fr_gpt2_pieces;

#endif
