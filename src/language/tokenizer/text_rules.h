/* Applies the rules of a normalizer and of a pre-tokenizer to a text.
 *
 * In: the rules of the normalizer or of the pre-tokenizer in a tokenizer.json, and texts of any bytes. Out: a rewritten
 * text, or its pieces. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TEXT_RULES_H
#define FR_SRC_LANGUAGE_TOKENIZER_TEXT_RULES_H

#include "base/text_buffer.h"
#include "src/language/tokenizer/charsmap.h"
#include "src/language/tokenizer/text_pattern.h"

typedef struct fr_ready_rule {
    fr_rule_kind kind;
    fr_text_pattern pattern;
    fr_text content; /* content.bytes is never NULL */
    fr_charsmap charsmap;
    fr_split_behavior behavior;
    bool invert, first, left, right;
    size_t length;
} fr_ready_rule;

typedef struct fr_ready_rules {
    fr_ready_rule items[FR_TEXT_RULES_MAX];
    size_t count;
} fr_ready_rules;

fr_status fr_rules_open(fr_ready_rules *rules, const fr_text_rules *json, const char *where);
void fr_rules_close(fr_ready_rules *rules);

/* Appends the text as one rule rewrites it. *first, before the call: if this text is the beginning of the tokenizer's
 * input, the length of its first character; otherwise 0. After the call, it is the length of the output into which that
 * character was rewritten. */
fr_status fr_rule_rewrite(const fr_ready_rule *rule, fr_text text, size_t *first, uint64_t *allowance,
                          fr_text_buffer *out);

/* Two buffers: each rule reads one and writes the other. Set them to zero before the first use, and free them at the
 * end. */
typedef struct fr_rewrite_work {
    fr_text_buffer texts[2];
} fr_rewrite_work;

/* Applies the rules, each to the output of the rule before it. If some rule has changed the text, *text then belongs to
 * `work`. begins: true if the text begins the tokenizer's input; then rules that put something before the input are
 * applied. first: as in fr_rule_rewrite. */
fr_status fr_rules_rewrite(const fr_ready_rules *rules, bool begins, fr_text *text, size_t *first,
                           fr_rewrite_work *work, uint64_t *allowance);
void fr_rewrite_work_free(fr_rewrite_work *work);

/* Holds, for each rule, the piece that it has rewritten. Set the buffers to zero before the first use, and free them at
 * the end. */
typedef struct fr_split_work {
    fr_text_buffer pieces[FR_TEXT_RULES_MAX];
} fr_split_work;

/* Receives each piece in order; no piece is empty. */
typedef fr_status fr_piece_fn(void *context, const char *piece, size_t length);

/* Splits a text into pieces. Each rule splits or rewrites every piece that the rule before it has made. first: as in
 * fr_rule_rewrite. */
fr_status fr_rules_split(const fr_ready_rules *rules, fr_text text, size_t first, fr_split_work *work,
                         uint64_t *allowance, fr_piece_fn *piece, void *context);
void fr_split_work_free(fr_split_work *work);

#endif
