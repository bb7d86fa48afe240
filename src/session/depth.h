/* How many drafts a round should ask for: a controller, and nothing but arithmetic on what it is told.
 *
 * In: of every round, how many drafts were asked for, came and stood, and the seconds that drafting and verifying took.
 * Out: the K (0 included) whose expected tokens a second are the most, now and then another one to learn from.
 *
 * With a(d) the share of drafts at depth d that stood where all before them had, and r(d) the share of rounds asked for
 * d or more drafts that got them, a round that asks for K is expected to give
 *     E(K) = 1 + sum over d = 1 .. K of r(d) * a(1) * ... * a(d)                                                 tokens
 * (Leviathan et al. 2023, arXiv:2211.17192, section 3.1, with a rate for each depth instead of one for all) in
 *     C(K) = D(K) + sum over n = 0 .. K of (r(n) - r(n + 1)) * T(n + 1),  r(0) = 1, r(K + 1) = 0                seconds
 * where T is measured for each number of rows, and D for each number asked for. Everything learned fades: the text
 * changes, the cache grows, other programs take memory bandwidth.
 *
 * What it does not know: a depth never reached is taken for as good as the one before it; T between two measured row
 * counts lies on a line, beyond the largest it is flat, so that what might pay is tried and measured, doubling. What
 * it may have stopped knowing: at growing intervals it tries another K, as long as such tries cost 0.5% of the time or
 * less; while they succeed it goes on with them. */
#ifndef FR_SRC_DEPTH_H
#define FR_SRC_DEPTH_H

#include "forerun.h"

typedef struct fr_depth_round {
    size_t asked, drafted, accepted;
    double draft_seconds, verify_seconds;
} fr_depth_round;

enum { FR_DEPTH_READINGS = 16 };

/* How long a work took, of one size. */
typedef struct fr_depth_timing {
    double seconds[FR_DEPTH_READINGS]; /* the latest readings, in a ring */
    size_t count;                      /* of all of them */
    double usual;                      /* what they come to */
    uint64_t when;                     /* the round of the last one */
} fr_depth_timing;

/* hits of tries, both fading. */
typedef struct fr_depth_rate {
    double hits, tries;
} fr_depth_rate;

typedef struct fr_depth {
    fr_depth_timing verify[FR_STEP_MAX + 1]; /* by rows */
    fr_depth_timing draft[FR_STEP_MAX];      /* by drafts asked for */
    fr_depth_rate stood[FR_STEP_MAX];        /* by depth, from 1 */
    fr_depth_rate came[FR_STEP_MAX];
    fr_depth_rate usual; /* stood[1] over a long time */
    uint64_t round;
    uint64_t next_try; /* the round from which another K may be tried */
    uint64_t interval;
    double allowance; /* seconds that tries may lose */
    double loss;      /* what the try that was chosen last is expected to lose, 0 for the best K */
    bool trying;
} fr_depth;

/* Knows nothing. */
void fr_depth_reset(fr_depth *depth);

/* How many drafts to ask for, at most `limit` (below FR_STEP_MAX). */
size_t fr_depth_choose(fr_depth *depth, size_t limit);

/* What came of it. */
void fr_depth_report(fr_depth *depth, const fr_depth_round *round);

#endif
