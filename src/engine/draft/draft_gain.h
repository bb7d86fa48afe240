/* Decides whether to draft one more token: only while its expected gain exceeds the time of the step; and tells what a
 * chain is expected to gain.
 *
 * In: how often drafts of such a chance stood, what the time of a step and of a verified row is worth in tokens, and
 * the chances that a drafter gave. Out: whether the last draft is kept, and whether another one follows it; what a
 * chain whose drafts are not made yet is expected to gain. Whoever measures fills it in
 * (src/engine/session/draft_depth.c); who drafts asks.
 *
 * With s(d) how often a draft of its chance at depth d stands where all before it did, a chain stands up to depth d
 * with S(d) = s(1) * ... * s(d). The draft is kept if S(d) >= row(d), and another one is made if S(d) * next(d) >=
 * step(d) + row(d + 1), where next(d) is how often the draft behind one that stood does so too. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "forerun.h"

enum { FR_DRAFT_GAIN_DEPTHS = 4, FR_DRAFT_GAIN_BINS = 10 };

typedef struct fr_draft_gain {
    double stands[FR_DRAFT_GAIN_DEPTHS][FR_DRAFT_GAIN_BINS]; /* s, by fr_draft_gain_depth and fr_draft_gain_bin */
    /* By drafts before: how often the next one stands where these do, and the tokens that would come of the time which
     * its step takes, and its row. */
    double next[FR_STEP_MAX], step[FR_STEP_MAX], row[FR_STEP_MAX];
    double found[FR_STEP_MAX]; /* row, of drafts that take no step */
} fr_draft_gain;

/* Of a draft behind `depth` others, and of one with such a chance; how often drafts of a bin are guessed to stand. */
size_t fr_draft_gain_depth(size_t depth);
size_t fr_draft_gain_bin(double chance);
double fr_draft_gain_guess(size_t bin);

typedef enum fr_draft_gain_verdict { FR_DRAFT_GAIN_NONE, FR_DRAFT_GAIN_LAST, FR_DRAFT_GAIN_MORE } fr_draft_gain_verdict;

/* Of the last draft of a chain, whose chances are given: none of it, its end, or followed by another one. */
fr_draft_gain_verdict fr_draft_gain_judge(const fr_draft_gain *gains, const float *chances, size_t count);

/* Tokens that a chain of up to `count` drafts that take steps is expected to gain beyond what its time is worth. */
double fr_draft_gain_expected(const fr_draft_gain *gains, size_t count);

#endif
