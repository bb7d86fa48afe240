/* When a chain of drafts ends: where the next one is not worth its time; and what a chain is worth.
 *
 * In: how often drafts of such a chance stood, what the time of a step and of a verified row is worth in tokens, and
 * the chances that a drafter gave. Out: whether the last draft is kept, and whether another one follows it; what a
 * chain whose drafts are not made yet is expected to gain. Whoever measures fills it in (src/engine/session/budget.c);
 * who drafts asks.
 *
 * With s(d) how often a draft of its chance at depth d stands where all before it did, a chain stands up to depth d
 * with S(d) = s(1) * ... * s(d). The draft is kept if S(d) >= row(d), and another one is made if S(d) * next(d) >=
 * step(d) + row(d + 1), where next(d) is how often the draft behind one that stood does so too. */
#ifndef FR_SRC_ENGINE_DRAFT_WORTH_H
#define FR_SRC_ENGINE_DRAFT_WORTH_H

#include <stdbool.h>
#include <stddef.h>

#include "forerun.h"

enum { FR_WORTH_DEPTHS = 4, FR_WORTH_BINS = 10 };

typedef struct fr_draft_worth {
    double stands[FR_WORTH_DEPTHS][FR_WORTH_BINS]; /* s, by fr_worth_depth and fr_worth_bin */
    /* By drafts before: how often the next one stands where these do, and the tokens that would come of the time which
     * its step takes, and its row. */
    double next[FR_STEP_MAX], step[FR_STEP_MAX], row[FR_STEP_MAX];
    double found[FR_STEP_MAX]; /* row, of drafts that take no step */
} fr_draft_worth;

/* Of a draft behind `depth` others, and of one with such a chance; how often drafts of a bin are guessed to stand. */
size_t fr_worth_depth(size_t depth);
size_t fr_worth_bin(double chance);
double fr_worth_guess(size_t bin);

typedef enum fr_worth_verdict { FR_WORTH_NONE, FR_WORTH_LAST, FR_WORTH_MORE } fr_worth_verdict;

/* Of the last draft of a chain, whose chances are given: none of it, its end, or followed by another one. */
fr_worth_verdict fr_worth_judge(const fr_draft_worth *worth, const float *chances, size_t count);

/* Tokens that a chain of up to `count` drafts that take steps is expected to gain beyond what its time is worth. */
double fr_worth_expected(const fr_draft_worth *worth, size_t count);

#endif
