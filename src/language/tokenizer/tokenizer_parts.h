/* What an fr_tokenizer is made of, for tokenizer.c (text to ids), detokenizer.c (ids to text) and for
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

/* Where a token is may change how it is printed. */
enum { FR_PRINT_FIRST = 1, FR_PRINT_LAST = 2, FR_PRINT_FORMS = 4 };

typedef struct fr_printed_token {
    uint32_t offset, length;
} fr_printed_token;

/* How ids are printed: the decoder's rules, applied to each token once and for all. */
typedef struct fr_printed_tokens {
    const fr_printed_token *tokens[FR_PRINT_FORMS]; /* by form and id; forms that don't differ are one */
    fr_printed_token *owned[FR_PRINT_FORMS];
    char *bytes;
    size_t longest;
    char *strip; /* taken off the beginning of a text up to strip_limit times, off its end strip_stop times */
    size_t strip_limit, strip_stop;
} fr_printed_tokens;

struct fr_tokenizer {
    fr_vocabulary vocabulary;
    fr_model_kind model; /* which of these four is open */
    fr_bpe bpe;
    fr_score_merges score_merges;
    fr_unigram unigram;
    fr_word_pieces word_pieces;
    fr_added_tokens raw, normalized; /* found before the normalizer, behind it */
    fr_ready_rules normalizer, pre_tokenizer;
    fr_printed_tokens printed;
    int32_t prefix[FR_MAX_TEMPLATE_IDS], suffix[FR_MAX_TEMPLATE_IDS];
    size_t prefix_count, suffix_count;
    char *begin, *end;              /* bos_token, eos_token, or NULL */
    json_t *named;                  /* texts of these and other special tokens by name, "pad_token"; never written to */
    struct fr_chat_templates *chat; /* who opened it closes them */
    fr_notes notes;                 /* of its source */
};

/* Opens one in two steps, into memory that is zero: its vocabulary; then the rest. texts: added tokens that one of them
 * names are control tokens. */
fr_status fr_tokenizer_start(fr_tokenizer *tokenizer, const fr_tokenizer_source *source);
fr_status fr_tokenizer_finish(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_text *texts,
                              size_t count);

/* All but the chat templates; of one that failed to open too. */
void fr_tokenizer_free(fr_tokenizer *tokenizer);

fr_status fr_printed_tokens_open(fr_printed_tokens *printed, const fr_vocabulary *vocabulary,
                                 const fr_ready_rules *normalizer, const fr_tokenizer_source *source);

/* The bytes that a token prints as where it is. */
fr_text fr_printed_text(const fr_printed_tokens *printed, unsigned form, int32_t id);

/* The same inside a text, and whether it stands for a single byte (<0xNN>). */
const char *fr_printed_bytes(const fr_printed_tokens *printed, int32_t id, size_t *length);
bool fr_printed_as_byte(const fr_printed_tokens *printed, const fr_token *token, int32_t id);

void fr_printed_tokens_close(fr_printed_tokens *printed);

#endif
