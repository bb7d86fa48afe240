/* A grammar in a session: what its text may go on with.
 *
 * In: the timeline's ids, drafts behind them, rows of logits. Out: scores without what the grammar forbids, drafts up
 * to the first that it forbids. All of it is a function of the text's ids alone, so that drafts change no token. A text
 * begins behind a prompt; an id that ends a sequence is allowed where the grammar's text may end, and behind one
 * everything is. */
#ifndef FR_SRC_ENGINE_SESSION_CONSTRAINT_H
#define FR_SRC_ENGINE_SESSION_CONSTRAINT_H

#include "src/engine/draft/token_picker.h"
#include "src/engine/model/model.h"
#include "src/language/grammar/grammar.h"

typedef struct fr_constraint {
    fr_grammar *grammar; /* NULL: none */
    const fr_model *model;
    size_t begin;     /* ids before it are not of the text; SIZE_MAX: it has not begun */
    uint32_t *states; /* [known + 1] behind so many ids of the text, those from `first` on, */
    int32_t *ids;     /* [known] these */
    size_t first, known, sweeps;
    uint64_t *allowed; /* a row's mask, a bit an id of the model's vocabulary */
} fr_constraint;

/* Texts of at most `room` ids, of so many that there are, are to be of a grammar from now on, NULL: of none. A failure
 * changes nothing. */
fr_status fr_constraint_set(fr_constraint *constraint, fr_grammar *grammar, const fr_model *model, size_t vocab,
                            size_t room);
void fr_constraint_close(fr_constraint *constraint);

/* What comes next begins a text. */
void fr_constraint_begin_text(fr_constraint *constraint);

/* A text has begun at this position. */
void fr_constraint_begin_at(fr_constraint *constraint, size_t position);

/* Whether an id may follow. */
fr_status fr_constraint_allows(fr_constraint *constraint, const fr_past *past, int32_t id, bool *allows);

/* Leaves those of a whole row's scores that may follow: few as candidates in `logits` and `ids`, in their order, many
 * as a row in `logits` with the others at -infinity; ids NULL: always so. Each has room for a row, which may lie in
 * `logits`. */
fr_status fr_constraint_mask(fr_constraint *constraint, const fr_past *past, fr_scores *scores, float *logits,
                             int32_t *ids);

/* How many of past->drafted drafts are allowed, up to the first that isn't. */
fr_status fr_constraint_cut(fr_constraint *constraint, const fr_past *past, size_t *allowed);

/* Drafts of the bytes that have to follow past->length ids, at most `limit`; few or none where little has to. */
fr_status fr_constraint_forced(fr_constraint *constraint, const fr_past *past, size_t limit, int32_t *drafts,
                               size_t *count);

#endif
