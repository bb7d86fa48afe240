/* What a tokenizer is made of, as plain data, whatever file it came from.
 *
 * In: tokenizer.json (tokenizer_json.h) or GGUF metadata (tokenizer_gguf.h). Out: lists of what the file says, in its
 * order, each value of the right type and range. Whether tokens, merges and ids fit together is for whoever builds a
 * tokenizer of it to find out. Texts of tokens and rules are NUL-terminated and have no other NUL; those of merges are
 * neither. */
#ifndef FR_FORMATS_TOKENIZER_SOURCE_H
#define FR_FORMATS_TOKENIZER_SOURCE_H

#include <jansson.h>

#include "base/text.h"
#include "forerun.h"
#include "formats/notes.h"

#define FR_MAX_TOKEN_ID     ((1 << 24) - 1)
#define FR_MAX_TEXT_RULES   32
#define FR_MAX_TEMPLATE_IDS 64

/* How a piece of text becomes tokens. */
typedef enum fr_model_kind {
    FR_MODEL_BPE,        /* by listed merges */
    FR_MODEL_SCORED_BPE, /* by the scores of what is merged, SentencePiece's way */
    FR_MODEL_UNIGRAM,    /* by the largest sum of scores */
    FR_MODEL_WORD_PIECE, /* by the longest tokens */
    FR_MODEL_WORD_LEVEL  /* by whole words */
} fr_model_kind;

typedef enum fr_rule_kind {
    /* what rewrites a text, or a piece of one */
    FR_RULE_NFC,
    FR_RULE_NFD,
    FR_RULE_NFKC,
    FR_RULE_NFKD,
    FR_RULE_LOWERCASE,
    FR_RULE_DROP_MARKS,      /* all combining marks */
    FR_RULE_DROP_NONSPACING, /* those of category Mn */
    FR_RULE_NMT,             /* control characters dropped, spaces of other kinds made one */
    FR_RULE_CLEAN,           /* BERT's way of that */
    FR_RULE_SPACE_CHINESE,   /* a space before and behind each Chinese character */
    FR_RULE_TRIM,            /* white space gone, at the left or right end or both */
    FR_RULE_PRECOMPILED,     /* SentencePiece's map of characters, in content */
    FR_RULE_BYTE_CHARACTERS, /* bytes become the characters that stand for them (src/language/tokenizer/byte_level.h) */
    FR_RULE_PREPEND,         /* content before a text that isn't empty */
    FR_RULE_PREFIX,          /* content before a piece that doesn't begin with it; `first`: before a text's first one */
    FR_RULE_REPLACE,         /* each match of the pattern becomes content */
    /* what cuts pieces */
    FR_RULE_SPLIT,
    FR_RULE_CHUNK, /* after every so many characters */
    /* what prints tokens */
    FR_RULE_BYTE_FALLBACK, /* <0xNN> becomes the byte NN */
    FR_RULE_BYTE_LEVEL,    /* characters become the bytes that they stand for */
    FR_RULE_FUSE,
    FR_RULE_STRIP,      /* up to `start` times content, one character, from the beginning, `stop` times from the end */
    FR_RULE_METASPACE,  /* pattern becomes a space, in the first token, `first`, nothing */
    FR_RULE_WORD_PIECE, /* content gone from the beginning of all but the first token, else a space before it */
    FR_RULE_WORD_ENDS,  /* pattern becomes a space, in the last token nothing */
    FR_RULE_JOIN        /* a space between tokens */
} fr_rule_kind;

/* Characters that a Split finds one by one. */
typedef enum fr_character_class {
    FR_CHARACTERS_OF_PATTERN, /* none of these, but a pattern */
    FR_CHARACTERS_SPACE,
    FR_CHARACTERS_WORD,
    FR_CHARACTERS_NUMBER,
    FR_CHARACTERS_PUNCTUATION
} fr_character_class;

/* What becomes of the stretches that a Split finds: matches, and what lies between them. */
typedef enum fr_split_behavior {
    FR_SPLIT_REMOVED, /* matches are dropped */
    FR_SPLIT_ISOLATED,
    FR_SPLIT_MERGED_WITH_PREVIOUS,
    FR_SPLIT_MERGED_WITH_NEXT,
    FR_SPLIT_CONTIGUOUS /* neighbouring matches are one piece */
} fr_split_behavior;

typedef struct fr_text_rule {
    fr_rule_kind kind;
    fr_text content;
    fr_text pattern;
    bool regex; /* the pattern is a regular expression, otherwise text to be found as it is; never empty */
    bool own;   /* and not one that a file has */
    fr_character_class characters;
    fr_split_behavior behavior;
    bool invert; /* Split: matches and the rest change places */
    bool first, cleanup, left, right;
    size_t start, stop, length;
} fr_text_rule;

/* One stage's rules, sequences laid flat. */
typedef struct fr_text_rules {
    fr_text_rule items[FR_MAX_TEXT_RULES];
    size_t count;
} fr_text_rules;

typedef struct fr_vocabulary_entry {
    fr_text text;
    int32_t id; /* 0 to FR_MAX_TOKEN_ID */
} fr_vocabulary_entry;

typedef struct fr_merge_entry {
    fr_text left, right;
} fr_merge_entry;

typedef struct fr_added_entry {
    fr_text text;
    int32_t id;
    bool special, lstrip, rstrip, single_word, normalized;
} fr_added_entry;

typedef struct fr_tokenizer_source {
    char *path; /* of the file, for error lines */
    fr_vocabulary_entry *vocabulary;
    size_t vocabulary_count;
    fr_merge_entry *merges; /* the first one ranks first */
    size_t merge_count;
    fr_model_kind model;
    double *scores; /* of the vocabulary's entries, numbers all, in models that go by them; else NULL */
    fr_added_entry *added;
    size_t added_count;
    fr_text unknown;    /* bytes NULL: there is no unk_token */
    fr_text begin, end; /* bos_token, eos_token, for chat templates; bytes NULL: none */
    bool fuse_unknown, byte_fallback, ignore_merges;
    fr_text inside_prefix, end_suffix; /* of tokens inside words, at their end; bytes NULL: none */
    size_t max_word_characters;        /* WordPiece: longer words are unknown */
    bool byte_level;                   /* pieces are bytes, and tokens are written with a character for each */
    bool loose_merges;                 /* merges of what is not in the vocabulary are passed over, as llama.cpp does */
    fr_text_rules normalizer, pre_tokenizer, decoder;
    int32_t prefix[FR_MAX_TEMPLATE_IDS], suffix[FR_MAX_TEMPLATE_IDS]; /* what the post-processor adds */
    size_t prefix_count, suffix_count;
    fr_notes notes;        /* what was assumed, and what of the file was not taken */
    json_t *named;         /* texts of special tokens by their names in templates, "pad_token"; NULL: none */
    const json_t *config;  /* tokenizer_config.json; NULL: there is none */
    json_t *root, *beside; /* what the texts belong to, and */
    char *texts, *charsmap;
} fr_tokenizer_source;

void fr_tokenizer_source_close(fr_tokenizer_source *source);

#endif
