/* Describes a tokenizer as plain data, whatever file it came from.
 *
 * In: tokenizer.json (tokenizer_json.h) or GGUF metadata (tokenizer_gguf.h). Out: the lists in the file, in their
 * order, each value of the right type and range. The code that builds a tokenizer checks that tokens, merges and ids
 * fit together. The text of a token or rule ends with a NUL and has no other NUL. The text of a merge may contain
 * NULs, and no NUL ends it. */
#ifndef FR_FORMATS_TOKENIZER_SOURCE_H
#define FR_FORMATS_TOKENIZER_SOURCE_H

#include <jansson.h>

#include "base/text.h"
#include "forerun.h"
#include "formats/notes.h"

#define FR_TOKEN_ID_MAX     ((1 << 24) - 1)
#define FR_TEXT_RULES_MAX   32
#define FR_TEMPLATE_IDS_MAX 64

/* Names the way in which a piece of text becomes tokens. */
typedef enum fr_model_kind {
    FR_MODEL_BPE,        /* merges pairs by a list of merges */
    FR_MODEL_SCORED_BPE, /* merges the pair whose result has the best score, as SentencePiece does */
    FR_MODEL_UNIGRAM,    /* chooses the tokens whose scores have the largest sum */
    FR_MODEL_WORD_PIECE, /* takes the longest token that fits at the current position, again and again */
    FR_MODEL_WORD_LEVEL  /* takes whole words only */
} fr_model_kind;

typedef enum fr_rule_kind {
    /* rules that rewrite a text, or a piece of one */
    FR_RULE_NFC,
    FR_RULE_NFD,
    FR_RULE_NFKC,
    FR_RULE_NFKD,
    FR_RULE_LOWERCASE,
    FR_RULE_DROP_MARKS,      /* drops all combining marks */
    FR_RULE_DROP_NONSPACING, /* drops combining marks of category Mn */
    FR_RULE_NMT,             /* drops control characters, turns other kinds of spaces into a plain space */
    FR_RULE_CLEAN,           /* drops control characters and turns white space into spaces, as BERT does */
    FR_RULE_SPACE_CHINESE,   /* puts a space before and after each Chinese character */
    FR_RULE_TRIM,            /* removes white space at the left end (`left`), at the right end (`right`), or at both */
    FR_RULE_PRECOMPILED,     /* applies SentencePiece's map of characters, which is in `content` */
    /* turns each byte into the character that represents it (src/language/tokenizer/byte_level.h) */
    FR_RULE_BYTE_CHARACTERS,
    FR_RULE_PREPEND, /* puts `content` before a text that isn't empty */
    /* puts `content` before a piece that doesn't begin with it; if `first` is set, only before the first piece */
    FR_RULE_PREFIX,
    FR_RULE_REPLACE, /* replaces each match of the pattern by `content` */
    /* rules that cut pieces */
    FR_RULE_SPLIT,
    FR_RULE_CHUNK, /* cuts after every `length` characters */
    /* rules that turn tokens into text */
    FR_RULE_BYTE_FALLBACK, /* turns <0xNN> into the byte NN */
    FR_RULE_BYTE_LEVEL,    /* turns each character into the byte that it represents */
    FR_RULE_FUSE,          /* joins the texts of all tokens */
    /* removes `content`, one character, up to `start` times from the beginning and `stop` times from the end */
    FR_RULE_STRIP,
    FR_RULE_METASPACE, /* turns the pattern into a space; if `first` is set, removes it from the first token instead */
    /* For a token that begins with `content`, removes `content`. For any other token, puts a space before it. The first
     * token is left as it is */
    FR_RULE_WORD_PIECE,
    FR_RULE_WORD_ENDS, /* turns the pattern into a space; in the last token, removes the pattern instead */
    FR_RULE_JOIN       /* puts a space between tokens */
} fr_rule_kind;

/* Names the class of characters that a Split matches. Each character of the class is one match. */
typedef enum fr_character_class {
    FR_CHARACTERS_OF_PATTERN, /* the Split has no class but a pattern */
    FR_CHARACTERS_SPACE,
    FR_CHARACTERS_WORD,
    FR_CHARACTERS_NUMBER,
    FR_CHARACTERS_PUNCTUATION
} fr_character_class;

/* Says what a Split does with the matches and with the text between them. */
typedef enum fr_split_behavior {
    FR_SPLIT_REMOVED,              /* the matches are dropped */
    FR_SPLIT_ISOLATED,             /* each match is a piece of its own */
    FR_SPLIT_MERGED_WITH_PREVIOUS, /* a match belongs to the piece before it */
    FR_SPLIT_MERGED_WITH_NEXT,     /* a match belongs to the piece after it */
    FR_SPLIT_CONTIGUOUS            /* neighbouring matches are one piece */
} fr_split_behavior;

typedef struct fr_text_rule {
    fr_rule_kind kind;
    fr_text content;
    fr_text pattern;
    bool regex; /* whether the pattern is a regular expression; if not, it is a text that is searched literally, and
                 * never empty */
    bool own;   /* the expression is forerun's own, and may use syntax that files may not */
    fr_character_class characters;
    fr_split_behavior behavior;
    bool invert; /* for Split: the text between matches is treated as the match, and the matches as the text between */
    bool first, left, right;
    size_t start, stop, length;
} fr_text_rule;

/* Lists the rules of one stage. Sequences inside sequences are flattened. */
typedef struct fr_text_rules {
    fr_text_rule items[FR_TEXT_RULES_MAX];
    size_t count;
} fr_text_rules;

typedef struct fr_vocabulary_entry {
    fr_text text;
    int32_t id; /* 0 to FR_TOKEN_ID_MAX */
} fr_vocabulary_entry;

typedef struct fr_merge_entry {
    fr_text left, right;
} fr_merge_entry;

typedef struct fr_added_entry {
    fr_text text;
    int32_t id;
    bool special, lstrip, rstrip, single_word, normalized;
} fr_added_entry;

/* A template says how a pair of texts becomes ids. This is one piece of it: an id that the post-processor adds, or one
 * of the two texts. */
enum { FR_PAIR_FIRST = -1, FR_PAIR_SECOND = -2 };
typedef struct fr_pair_piece {
    int32_t id;   /* an id; FR_PAIR_FIRST means the first text, and FR_PAIR_SECOND the second one */
    uint8_t type; /* the token type, 0 or 1, of this id or of all ids of this text */
} fr_pair_piece;

typedef struct fr_tokenizer_source {
    char *path; /* the file's path, for error lines */
    fr_vocabulary_entry *vocabulary;
    size_t vocabulary_count;
    fr_merge_entry *merges; /* the first one has the highest rank */
    size_t merge_count;
    fr_model_kind model;
    double *scores; /* one for each entry of the vocabulary, never NaN; NULL for models that do not use scores */
    fr_added_entry *added;
    size_t added_count;
    fr_text unknown;    /* unk_token; bytes NULL if the file has none */
    fr_text begin, end; /* bos_token and eos_token, for chat templates; bytes NULL if there is none */
    bool fuse_unknown, byte_fallback, ignore_merges;
    /* inside_prefix: the text with which tokens inside words begin; end_suffix: the text with which tokens at the end
     * of words end; bytes NULL: there is no such text */
    fr_text inside_prefix, end_suffix;
    size_t max_word_characters; /* WordPiece: a longer word becomes the unknown token */
    bool byte_level;            /* pieces are bytes, and the file writes tokens with one character for each byte */
    /* a merge is skipped if its parts or its result are not in the vocabulary, as in llama.cpp */
    bool loose_merges;
    fr_text_rules normalizer, pre_tokenizer, decoder;
    int32_t prefix[FR_TEMPLATE_IDS_MAX], suffix[FR_TEMPLATE_IDS_MAX]; /* ids that the post-processor puts before
                                                                       * (prefix) and after (suffix) a text */
    size_t prefix_count, suffix_count;
    fr_pair_piece pair[FR_TEMPLATE_IDS_MAX]; /* the template for a pair of texts; pair_count is 0 if the post-processor
                                              * has none */
    size_t pair_count;
    fr_notes notes;         /* for example, assumptions that were made, and entries of the file that were left out */
    json_t *named;          /* maps the names that templates use for special tokens, such as "pad_token", to the tokens'
                             * texts; may be NULL */
    const json_t *config;   /* tokenizer_config.json; NULL: the folder has none */
    json_t *root, *beside;  /* own the JSON and the bytes that the texts of the other members point into */
    char *texts, *charsmap; /* own the texts of a GGUF file's tokens, and the bytes of SentencePiece's map */
} fr_tokenizer_source;

void fr_tokenizer_source_close(fr_tokenizer_source *source);

#endif
