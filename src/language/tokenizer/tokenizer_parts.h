/* Declares the parts of an fr_tokenizer, for tokenizer.c (text to ids), detokenizer.c (ids to text) and
 * src/language/chat, which opens one with its chat templates. */
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

/* Bits of a token's form: a token at the beginning or at the end of a text may print differently. */
enum { FR_PRINT_FIRST = 1, FR_PRINT_LAST = 2, FR_PRINT_FORMS = 4 };

typedef struct fr_printed_token {
    uint32_t offset, length;
} fr_printed_token;

/* The text that each id prints: the result of the decoder's rules, which were applied to each token in advance. */
typedef struct fr_printed_tokens {
    const fr_printed_token *tokens[FR_PRINT_FORMS]; /* a table for each form, by id; equal forms share a table */
    fr_printed_token *owned[FR_PRINT_FORMS];
    char *bytes;
    size_t longest;
    /* the text that is removed from the beginning of a text up to strip_limit times, and from its end up to strip_stop
     * times */
    char *strip;
    size_t strip_limit, strip_stop;
} fr_printed_tokens;

struct fr_tokenizer {
    fr_vocabulary vocabulary;
    fr_model_kind model; /* says which of the next four members is in use */
    fr_bpe bpe;
    fr_score_merges score_merges;
    fr_unigram unigram;
    fr_word_pieces word_pieces;
    fr_added_tokens raw, normalized; /* raw: searched for before the normalizer; normalized: after it */
    fr_ready_rules normalizer, pre_tokenizer;
    fr_printed_tokens printed;
    int32_t prefix[FR_TEMPLATE_IDS_MAX], suffix[FR_TEMPLATE_IDS_MAX];
    size_t prefix_count, suffix_count;
    fr_pair_piece pair[FR_TEMPLATE_IDS_MAX]; /* the template of a pair of texts; pair_count 0: there is none */
    size_t pair_count;
    char *begin, *end; /* bos_token, eos_token, or NULL */
    /* texts of special tokens by name, such as "pad_token", including those in `begin` and `end`; never changed */
    json_t *named;
    struct fr_chat_templates *chat; /* the chat templates; the caller that opened them closes them */
    fr_notes notes;                 /* notes about the tokenizer's source */
};

/* Open a tokenizer in two steps, in zeroed memory: first its vocabulary, then the rest. `texts` are the sources of
 * chat templates: an added token that occurs in one of them becomes a control token. */
fr_status fr_tokenizer_start(fr_tokenizer *tokenizer, const fr_tokenizer_source *source);
fr_status fr_tokenizer_finish(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_text *texts,
                              size_t count);

/* Frees everything but the chat templates. May also be called after a failure to open. */
void fr_tokenizer_free(fr_tokenizer *tokenizer);

fr_status fr_printed_tokens_open(fr_printed_tokens *printed, const fr_vocabulary *vocabulary,
                                 const fr_ready_rules *normalizer, const fr_tokenizer_source *source);

/* Gives the bytes that a token prints in this form. */
fr_text fr_printed_text(const fr_printed_tokens *printed, unsigned form, int32_t id);

/* fr_printed_bytes gives the bytes that a token prints inside a text. fr_printed_as_byte is true if the token stands
 * for a single byte (<0xNN>). */
const char *fr_printed_bytes(const fr_printed_tokens *printed, int32_t id, size_t *length);
bool fr_printed_as_byte(const fr_printed_tokens *printed, const fr_token *token, int32_t id);

void fr_printed_tokens_close(fr_printed_tokens *printed);

#endif
