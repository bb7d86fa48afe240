/* Applies a grammar to a session: finds the ids that may follow in the session's text.
 *
 * In: the timeline's ids, drafts after them, rows of logits. Out: scores without the ids that the grammar forbids, and
 * the drafts before the first one that it forbids. Everything depends only on the text's ids, so drafts change no
 * token. The text begins after a prompt. An id that ends a sequence is allowed if the grammar's text may end there.
 * After such an id every id is allowed. */
#ifndef FR_SRC_ENGINE_SESSION_CONSTRAINT_H
#define FR_SRC_ENGINE_SESSION_CONSTRAINT_H

#include "src/engine/draft/token_picker.h"
#include "src/engine/model/model.h"
#include "src/language/grammar/grammar.h"

typedef struct fr_constraint {
    fr_grammar *grammar; /* NULL: none */
    const fr_model *model;
    size_t begin;     /* ids before this index are not part of the text; SIZE_MAX: the text has not begun */
    uint32_t *states; /* [known + 1] states[i] is the state after the first i ids of the text; valid from index `first`
                       * on */
    int32_t *ids;     /* [known] the first ids of the text */
    size_t first, known, sweeps; /* explained above make_room in constraint.c */
    uint64_t *allowed;           /* a row's mask, with a bit for each id of the model's vocabulary */
} fr_constraint;

/* Sets the grammar that texts of at most `room` ids follow from now on; NULL: none. vocab: ids of the model. A failure
 * changes nothing. */
fr_status fr_constraint_set(fr_constraint *constraint, fr_grammar *grammar, const fr_model *model, size_t vocab,
                            size_t room);
void fr_constraint_close(fr_constraint *constraint);

/* Makes the text begin with the next id of the timeline. */
void fr_constraint_begin_text(fr_constraint *constraint);

/* Makes the text begin at this position of the timeline. */
void fr_constraint_begin_at(fr_constraint *constraint, size_t position);

/* Sets *allows to true if the grammar allows the id after `past`. */
fr_status fr_constraint_allows(fr_constraint *constraint, const fr_past *past, int32_t id, bool *allows);

/* Reduces a whole row of scores to the ids that may follow. If few ids may follow, the result is a list of candidates
 * in `logits` and `ids`, with ids ascending. If many ids may follow, or if ids is NULL, the result is a row in
 * `logits`, with -infinity for each id that may not follow. Each array has room for a row, and the given row may lie in
 * `logits`. */
fr_status fr_constraint_mask(fr_constraint *constraint, const fr_past *past, fr_scores *scores, float *logits,
                             int32_t *ids);

/* Counts how many of past->drafted drafts are allowed, up to the first one that is not. */
fr_status fr_constraint_cut(fr_constraint *constraint, const fr_past *past, size_t *allowed);

/* Makes at most `limit` drafts from the bytes that the grammar forces after past->length ids. If few bytes are forced,
 * there are few drafts or none. */
fr_status fr_constraint_forced(fr_constraint *constraint, const fr_past *past, size_t limit, int32_t *drafts,
                               size_t *count);

#endif
