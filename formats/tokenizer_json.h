/* tokenizer.json and tokenizer_config.json as plain data.
 *
 * In: a folder with tokenizer.json as Hugging Face publishes it, and tokenizer_config.json if there is one. Out: lists
 * of what the two say, in the file's order, each value of the right type and range. Whether tokens, merges and ids fit
 * together is for whoever builds a tokenizer of it to find out. Kinds of model, of normalizer and so on that forerun
 * does not implement are refused by name.
 *
 *   {"added_tokens":   [{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}, ...],
 *    "normalizer":     null, or a rule: {"type": "Replace", ...}, or {"type": "Sequence", "normalizers": [rule, ...]}
 *    "pre_tokenizer":  the same with "pretokenizers"
 *    "post_processor": null, or {"type": "TemplateProcessing", "single": [...], "special_tokens": {...}}
 *    "decoder":        a rule, or a Sequence of "decoders"
 *    "model":          {"type": "BPE", "vocab": {text: id}, "merges": [["a", "b"] or "a b", ...], "unk_token", ...}}
 *
 * Of tokenizer_config.json only "bos_token" is used, for chat templates. add_bos_token and its like are not read: where
 * they contradict the post-processor, the post-processor wins in transformers too. */
#ifndef FR_FORMATS_TOKENIZER_JSON_H
#define FR_FORMATS_TOKENIZER_JSON_H

#include "formats/json.h"

#define FR_MAX_TOKEN_ID     ((1 << 24) - 1)
#define FR_MAX_TEXT_RULES   16
#define FR_MAX_TEMPLATE_IDS 64

/* Bytes that belong to someone else: here to the description, and then they are UTF-8 without NUL bytes. */
typedef struct fr_text {
    const char *bytes;
    size_t length;
} fr_text;

typedef enum fr_rule_kind {
    FR_RULE_NFC,
    FR_RULE_NFD,
    FR_RULE_NFKC,
    FR_RULE_NFKD,
    FR_RULE_PREPEND, /* content before a text that isn't empty */
    FR_RULE_REPLACE, /* each match of the pattern becomes content */
    FR_RULE_SPLIT,
    FR_RULE_BYTE_FALLBACK, /* <0xNN> becomes the byte NN */
    FR_RULE_FUSE,
    FR_RULE_STRIP /* up to `start` times content, one character, from the beginning */
} fr_rule_kind;

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
    fr_split_behavior behavior;
    bool invert; /* Split: matches and the rest change places */
    int64_t start;
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

typedef struct fr_tokenizer_json {
    char *path; /* of tokenizer.json, for error lines */
    fr_vocabulary_entry *vocabulary;
    size_t vocabulary_count;
    fr_merge_entry *merges; /* the first one ranks first */
    size_t merge_count;
    fr_added_entry *added;
    size_t added_count;
    fr_text unknown; /* bytes NULL: there is no unk_token */
    fr_text begin;   /* tokenizer_config.json's bos_token; bytes NULL: none */
    bool fuse_unknown, byte_fallback, ignore_merges;
    fr_text_rules normalizer, pre_tokenizer, decoder;
    int32_t prefix[FR_MAX_TEMPLATE_IDS], suffix[FR_MAX_TEMPLATE_IDS]; /* what the post-processor adds */
    size_t prefix_count, suffix_count;
    json_t *root, *config; /* what the texts belong to */
} fr_tokenizer_json;

/* A failure leaves nothing open. */
fr_status fr_tokenizer_json_open(fr_tokenizer_json *json, const char *folder);
void fr_tokenizer_json_close(fr_tokenizer_json *json);

#endif
