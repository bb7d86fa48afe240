/* Declares the parts of an fr_tokenizer. tokenizer.c (text to ids), detokenizer.c (ids to text) and src/language/chat
 * use them; the last opens a tokenizer together with its chat templates. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_PARTS_H
#define FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_PARTS_H

#include "src/language/tokenizer/added_tokens.h"
#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/score_merges.h"
#include "src/language/tokenizer/text_rules.h"
#include "src/language/tokenizer/tokenizer.h"
#include "src/language/tokenizer/unigram.h"
#include "src/language/tokenizer/vocabulary.h"
#include "src/language/tokenizer/word_pieces.h"

/* Bits of a token's form. A token at the beginning or at the end of a text may print differently. */
enum { FR_PRINT_FIRST = 1, FR_PRINT_LAST = 2, FR_PRINT_FORMS = 4 };

typedef struct fr_printed_token {
    uint32_t offset, length;
} fr_printed_token;

/* The text that each id prints. It was computed in advance by applying the decoder's rules to each token. */
typedef struct fr_printed_tokens {
    /* a table for each form, indexed by id; equal forms have the same table */
    const fr_printed_token *tokens[FR_PRINT_FORMS];
    fr_printed_token *owned[FR_PRINT_FORMS];
    char *bytes;
    size_t longest;
    /* a text that is removed from the decoded text: up to strip_limit times from its beginning, and up to strip_stop
     * times from its end */
    char *strip;
    size_t strip_limit, strip_stop;
} fr_printed_tokens;

struct fr_tokenizer {
    fr_vocabulary vocabulary;
    fr_model_kind model; /* says which of the tokenizer models below is in use */
    fr_bpe bpe;
    fr_score_merges score_merges;
    fr_unigram unigram;
    fr_word_pieces word_pieces;
    /* raw: tokens that are searched for before the normalizer; normalized: those that are searched for after it */
    fr_added_tokens raw, normalized;
    fr_ready_rules normalizer, pre_tokenizer;
    fr_printed_tokens printed;
    int32_t prefix[FR_TEMPLATE_IDS_MAX], suffix[FR_TEMPLATE_IDS_MAX];
    size_t prefix_count, suffix_count;
    fr_pair_piece pair[FR_TEMPLATE_IDS_MAX]; /* the template of a pair of texts; pair_count 0: there is none */
    size_t pair_count;
    char *begin, *end; /* bos_token, eos_token, or NULL */
    /* texts of special tokens by name, such as "pad_token", including those in `begin` and `end`; not changed after
     * opening */
    json_t *named;
    struct fr_chat_templates *chat; /* the chat templates; the caller that opened them closes them */
    fr_notes notes;                 /* notes about the tokenizer's source */
};

/* These two functions open a tokenizer, in zeroed memory: the first its vocabulary, the second all the rest. texts: the
 * sources of chat templates; an added token that occurs in one of them becomes a control token. */
fr_status fr_tokenizer_start(fr_tokenizer *tokenizer, const fr_tokenizer_source *source);
fr_status fr_tokenizer_finish(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_text *texts,
                              size_t count);

/* Frees everything except the chat templates. It may also be called after opening has failed. */
void fr_tokenizer_free(fr_tokenizer *tokenizer);

fr_status fr_printed_tokens_open(fr_printed_tokens *printed, const fr_vocabulary *vocabulary,
                                 const fr_ready_rules *normalizer, const fr_tokenizer_source *source);

/* Gives the bytes that a token prints in this form. */
fr_text fr_printed_text(const fr_printed_tokens *printed, unsigned form, int32_t id);

/* fr_printed_bytes gives the bytes that a token prints inside a text. fr_printed_as_byte returns true if the token
 * prints a single byte (<0xNN>). */
const char *fr_printed_bytes(const fr_printed_tokens *printed, int32_t id, size_t *length);
bool fr_printed_as_byte(const fr_printed_tokens *printed, const fr_token *token, int32_t id);

void fr_printed_tokens_close(fr_printed_tokens *printed);

#endif
