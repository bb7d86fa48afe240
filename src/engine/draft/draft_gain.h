/* Decides whether to draft one more token, and computes the expected gain of a chain. One more token is drafted only
 * while its expected gain exceeds the time to make and verify it.
 *
 * In: how often drafts of each chance were accepted; the time of a step and of a verified row, expressed as the tokens
 * that could be made in that time; and the chances that a drafter gave. Out: a verdict on the last draft: it is
 * dropped, or it is the last one, or another one follows; and the expected gain of a chain whose drafts are not made
 * yet. src/engine/session/draft_depth.c fills in the measured values, and the draft methods ask for verdicts.
 *
 * Let s(d) be how often drafts at depth d with this draft's chance were accepted, counted only where all drafts before
 * them were accepted. A chain is then accepted up to depth d with the probability S(d) = s(1) * ... * s(d). Let
 * step(d) be the tokens that could be made in the time of the step after depth d, and row(d) those in the time of the
 * row at depth d. Let next(d) be how often the draft after depth d is accepted if the draft at depth d is accepted.
 * The draft at depth d is kept if S(d) >= row(d). Another one is made if S(d) * next(d) >= step(d) + row(d + 1). */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "forerun.h"

/* Rates of acceptance are kept for each of the first few depths and for each bin of chances. FR_DRAFT_GAIN_DEPTHS is
 * the number of these depths; the last one stands for all deeper ones too. FR_DRAFT_GAIN_BINS is the number of
 * bins. */
enum { FR_DRAFT_GAIN_DEPTHS = 4, FR_DRAFT_GAIN_BINS = 10 };

/* The most drafters with weights that a session can have; each round drafts with one of them. */
enum { FR_DRAFTERS_MAX = 2 };

typedef struct fr_draft_gain {
    double stands[FR_DRAFT_GAIN_DEPTHS][FR_DRAFT_GAIN_BINS]; /* s(d) by fr_draft_gain_depth and fr_draft_gain_bin */
    /* Arrays, indexed by the number of drafts before the next draft. `next`: how often the next draft is accepted if
     * all before it are. `step`, `row`: the time of the drafter's step for the next draft, and the time of that
     * draft's row in the target's forward. Both are given as the number of tokens that could be made in that time
     * without the draft. */
    double next[FR_STEP_MAX], step[FR_STEP_MAX], row[FR_STEP_MAX];
    double found[FR_STEP_MAX]; /* like `row`, for drafts that are looked up and so take no step */
} fr_draft_gain;

/* fr_draft_gain_depth gives the first index of `stands` for a draft with `depth` drafts before it. fr_draft_gain_bin
 * gives the second index, which is the bin of a draft with this chance. fr_draft_gain_guess guesses how often drafts
 * of a bin are accepted. */
size_t fr_draft_gain_depth(size_t depth);
size_t fr_draft_gain_bin(double chance);
double fr_draft_gain_guess(size_t bin);

typedef enum fr_draft_gain_verdict { FR_DRAFT_GAIN_NONE, FR_DRAFT_GAIN_LAST, FR_DRAFT_GAIN_MORE } fr_draft_gain_verdict;

/* Judges the last draft of a chain by the chances of all its drafts. The verdict is that the draft is not worth its
 * row, that it is the last one, or that another one follows. */
fr_draft_gain_verdict fr_draft_gain_judge(const fr_draft_gain *gains, const float *chances, size_t count);

/* Gives the expected gain of a chain of up to `count` drafts that take steps: the tokens that it brings, less the
 * tokens that could be made without it in the same time. */
double fr_draft_gain_expected(const fr_draft_gain *gains, size_t count);

#endif
