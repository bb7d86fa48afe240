/* What a normalizer and a pre-tokenizer do to a text.
 *
 * In: one stage's rules of a tokenizer.json, and texts of any bytes. Out: a text rewritten, or its pieces. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TEXT_RULES_H
#define FR_SRC_LANGUAGE_TOKENIZER_TEXT_RULES_H

#include "base/text_buffer.h"
#include "src/language/tokenizer/charsmap.h"
#include "src/language/tokenizer/text_pattern.h"

typedef struct fr_ready_rule {
    fr_rule_kind kind;
    fr_text_pattern pattern;
    fr_text content; /* bytes never NULL */
    fr_charsmap charsmap;
    fr_split_behavior behavior;
    bool invert, first, left, right;
    size_t length;
} fr_ready_rule;

typedef struct fr_ready_rules {
    fr_ready_rule items[FR_MAX_TEXT_RULES];
    size_t count;
} fr_ready_rules;

fr_status fr_rules_open(fr_ready_rules *rules, const fr_text_rules *json, const char *where);
void fr_rules_close(fr_ready_rules *rules);

/* Appends what one rule makes of a text. first: how many bytes at its beginning are the first character of a whole
 * text; then, how many of those that came out count as that; 0: none. */
fr_status fr_rule_rewrite(const fr_ready_rule *rule, fr_text text, size_t *first, uint64_t *allowance,
                          fr_text_buffer *out);

/* Texts take turns in the two buffers; zero it, then free both at the end. */
typedef struct fr_rewrite_work {
    fr_text_buffer texts[2];
} fr_rewrite_work;

/* Applies each rule to all that the one before made. *text then belongs to the work, or is the same as before. begins:
 * whether the text is the beginning of one, and no later part: what goes before a text goes before that. first: as
 * above. */
fr_status fr_rules_rewrite(const fr_ready_rules *rules, bool begins, fr_text *text, size_t *first,
                           fr_rewrite_work *work, uint64_t *allowance);
void fr_rewrite_work_free(fr_rewrite_work *work);

/* Pieces that a rule has rewritten, one a rule; zero it, then free it at the end. */
typedef struct fr_split_work {
    fr_text_buffer pieces[FR_MAX_TEXT_RULES];
} fr_split_work;

/* Called for each piece in order; none is empty. */
typedef fr_status fr_piece_fn(void *context, const char *piece, size_t length);

/* Each rule splits or rewrites every piece of the rule before. first: as above. */
fr_status fr_rules_split(const fr_ready_rules *rules, fr_text text, size_t first, fr_split_work *work,
                         uint64_t *allowance, fr_piece_fn *piece, void *context);
void fr_split_work_free(fr_split_work *work);

#endif
