/* Decides whether to draft one more token, and computes the expected gain of a chain. One more token is drafted only
 * while its expected gain exceeds the time to make and verify it.
 *
 * In: how often drafts of each probability were accepted; the time of a step and of a verified row, expressed as the
 * number of tokens that could be made in that time; the probabilities that a drafter gave. Out: a verdict on the last
 * draft, and the expected gain of a chain whose drafts are not made yet. The verdict says that the draft is dropped,
 * that it is the last one, or that another one follows. src/engine/session/draft_depth.c fills in the measured values,
 * and the draft methods ask for verdicts.
 *
 * Depth d is the d-th draft of a chain. Let s(d) be how often drafts at depth d with this draft's probability were
 * accepted, counted only where all drafts before them were accepted. A chain is then accepted up to depth d with the
 * probability S(d) = s(1) * ... * s(d). Let step(d) be the number of tokens that could be made in the time of the step
 * after depth d. Let row(d) be the number that could be made in the time of the row at depth d. Let next(d) be how
 * often the draft after depth d is accepted if the draft at depth d is accepted. The draft at depth d is kept if S(d)
 * >= row(d). Another one is made if S(d) * next(d) >= step(d) + row(d + 1). */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_GAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "forerun.h"

/* Rates of acceptance are kept for each of the first few depths and for each bin of probabilities. FR_DRAFT_GAIN_DEPTHS
 * is the number of these depths; the last one also stands for all deeper ones. FR_DRAFT_GAIN_BINS is the number of
 * bins. */
enum { FR_DRAFT_GAIN_DEPTHS = 4, FR_DRAFT_GAIN_BINS = 10 };

/* The most drafters with weights that a session can have. Each round drafts with one of them. */
enum { FR_DRAFTERS_MAX = 2 };

typedef struct fr_draft_gain {
    double stands[FR_DRAFT_GAIN_DEPTHS][FR_DRAFT_GAIN_BINS]; /* s(d) by fr_draft_gain_depth and fr_draft_gain_bin */
    /* Arrays, indexed by the number of drafts before the next draft. next: how often the next draft is accepted if all
     * drafts before it are accepted. step: the time of the drafter's step for the next draft. row: the time of the next
     * draft's row in the target's forward. Both times are given as the number of tokens that could be made in that time
     * without the draft. */
    double next[FR_STEP_MAX], step[FR_STEP_MAX], row[FR_STEP_MAX];
    double found[FR_STEP_MAX]; /* like `row`, but for drafts that are looked up and so need no step */
} fr_draft_gain;

/* fr_draft_gain_depth gives the first index of a draft's entry in fr_draft_gain.stands; depth is the number of drafts
 * before this draft. fr_draft_gain_bin gives the second index, which is the bin for the draft's probability.
 * fr_draft_gain_guess estimates how often drafts of a bin are accepted. */
size_t fr_draft_gain_depth(size_t depth);
size_t fr_draft_gain_bin(double chance);
double fr_draft_gain_guess(size_t bin);

typedef enum fr_draft_gain_verdict { FR_DRAFT_GAIN_NONE, FR_DRAFT_GAIN_LAST, FR_DRAFT_GAIN_MORE } fr_draft_gain_verdict;

/* Gives the verdict on the last draft of a chain, from the probabilities of all drafts of the chain.
 * FR_DRAFT_GAIN_NONE: the draft is not worth its row. FR_DRAFT_GAIN_LAST: it is the last one. FR_DRAFT_GAIN_MORE:
 * another one follows. */
fr_draft_gain_verdict fr_draft_gain_judge(const fr_draft_gain *gains, const float *chances, size_t count);

/* Gives the expected gain of a chain of up to `count` drafts that take steps. The gain is the number of tokens that the
 * chain brings, minus the number of tokens that could be made in the same time without the chain. */
double fr_draft_gain_expected(const fr_draft_gain *gains, size_t count);

#endif
