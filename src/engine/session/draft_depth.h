/* Who drafts how much in a round: a controller, and nothing but arithmetic on what it is told.
 *
 * In: of every round, for each timeline how many drafts were asked for, came and stood, and the seconds that drafting
 * and verifying took for all of them. Out: the drafts of each timeline (0 included) whose expected tokens a second, all
 * timelines together, are the most; now and then others to learn from.
 *
 * With a(d) a timeline's share of drafts at depth d that stood where all before them had, and r(d) the share of its
 * rounds asked for d or more drafts that got them, a timeline asked for K is expected to give
 *     E(K) = 1 + sum over d = 1 .. K of r(d) * a(1) * ... * a(d)                                                 tokens
 * (Leviathan et al. 2023, arXiv:2211.17192, section 3.1, with a rate for each depth instead of one for all). A draft
 * that came is one more row of the forward, whose seconds T are measured for each number of rows:
 *     C = T(timelines) + sum over drafts of r(d) * (T(m + 1) - T(m)) + D                                        seconds
 * where m is the number of rows before it: those of its own timeline, all of which came, and the expected ones of the
 * others. For one timeline that is exact. D(K) is measured for one timeline that drafts; of several, the drafts of all
 * but the longest chain cost a measured share of what they would cost alone (1: one timeline after the other; less
 * where they stand in one batch).
 *
 * A method that has a cache of its own follows the text when it drafts: of the ids that a timeline has got since it
 * drafted last those beyond a few, which stream no weight more, cost a measured time each. Once it drafts that is paid,
 * so it counts as spread over as many rounds as made them, or over a few at least, which a prompt's also are; what is
 * only tried pays it whole. A method that tells its drafts' chances ends a chain where the next draft is not worth its
 * time, which for others is known of the mean alone (src/engine/draft/draft_gain.h, calibration.h). Then D(K) is of K
 * drafts made, and asking for one more adds m(K + 1) * (D(K + 1) - D(K)), where m(d) is the share of rounds asked for d
 * or more in which the d-th was made. Such a chain may become longer than the mean one pays.
 *
 * Drafts that are looked up take no step: nothing here is learned of them but what their rows cost. So many as there is
 * room for may be found in place of those asked for; whoever looks them up knows how often they stand, and is told what
 * their rows are worth (fr_draft_gain.found) at the rate of the best, or at that of late where it is higher. Rows never
 * measured are hoped to cost nothing more, twice as many at a time.
 *
 * Drafts are added one at a time, the one first that gains most beyond what its time is worth; of all numbers of drafts
 * the best is taken. Everything learned fades: the text changes, the cache grows, other programs take memory bandwidth.
 *
 * What it does not know: a new timeline's rate is that of the engine's others, a depth never reached is taken for as
 * good as the one before it; T between two measured row counts lies on a line, beyond the largest it is flat, so that
 * what might pay is tried and measured, doubling. What it may have stopped knowing: at growing intervals it tries
 * another number of drafts, or a timeline that has none, as long as such tries cost 0.25% of the time or less; while
 * they succeed it goes on with them. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFT_DEPTH_H
#define FR_SRC_ENGINE_SESSION_DRAFT_DEPTH_H

#include "src/engine/session/calibration.h"

enum {
    FR_DRAFT_DEPTH_ROWS = 64, /* of timelines and drafts together; beyond, nothing is drafted */
    FR_DRAFT_DEPTH_READINGS = 16,
};

/* How long a work took, of one size. */
typedef struct fr_draft_depth_timing {
    double readings[FR_DRAFT_DEPTH_READINGS]; /* the latest, in a ring */
    size_t count;                        /* of all of them */
    double usual;                        /* what they come to */
    uint64_t when;                       /* the round of the last one */
} fr_draft_depth_timing;

/* What is known of one timeline's drafts. */
typedef struct fr_draft_depth_timeline {
    fr_draft_rate stood[FR_STEP_MAX]; /* by depth, from 1 */
    fr_draft_rate came[FR_STEP_MAX];
    fr_draft_rate made[FR_STEP_MAX];
    fr_draft_rate usual;  /* stood[1] over a long time */
    uint64_t drafted;     /* the round in which it drafted last */
    bool tells;           /* whether its method told chances then */
    size_t behind;        /* ids that it has got since that round, if its method lags */
    size_t prompt;        /* of those behind a prompt's */
} fr_draft_depth_timeline;

/* What is known of an engine. */
typedef struct fr_draft_depth {
    fr_draft_depth_timing verify[FR_DRAFT_DEPTH_ROWS + 1]; /* seconds by rows */
    fr_draft_depth_timing draft[FR_STEP_MAX];    /* seconds by drafts that one timeline was asked for, alone */
    fr_draft_depth_timing share;                 /* what drafts beside the longest chain cost of what they do alone */
    fr_draft_depth_timing follow;                /* seconds a row that timelines were behind, beyond a few */
    fr_draft_rate usual;                         /* every timeline's stood[1], over a long time */
    fr_calibration calibration;                  /* of every timeline's drafts */
    uint64_t round;
    uint64_t next_try; /* the round from which something else may be tried */
    uint64_t interval;
    double allowance; /* seconds that tries may lose */
    bool trying;      /* something else than the best was chosen last: */
    double loss;      /* what it is expected to lose */
    double tokens;    /* what it is expected to bring */
    double rate;      /* tokens a second of the best */
    fr_draft_rate earned; /* tokens of so many seconds, fading */
    double followed;  /* seconds of the last round that following is thought to have taken */
} fr_draft_depth;

/* A timeline's part in a round. */
typedef struct fr_draft_depth_part {
    fr_draft_depth_timeline *timeline;
    size_t limit; /* drafts that it may be asked for, below FR_STEP_MAX */
    size_t asked, drafted, accepted;
    size_t made; /* drafts, also one that was then left out; 0: as many as were asked for */
    bool tells;  /* its method tells chances: */
    float chances[FR_STEP_MAX]; /* of those drafted */
    size_t left_out; /* drafts, the last ones, that were not verified, whatever they are worth */
    bool lags; /* its method follows the text when it drafts: rounds without drafts leave it behind */
    size_t most_found; /* drafts that may be looked up for it, below FR_STEP_MAX */
    size_t found;      /* out: so many may now */
    bool looked_up;    /* what it drafted was */
    bool ends;             /* its chains may end by: */
    fr_draft_gain gains;   /* what its drafts must be worth in this round; found: so many of that are told */
} fr_draft_depth_part;

/* Rows that its drafts were. */
static inline size_t fr_draft_depth_verified(const fr_draft_depth_part *part) {
    return part->drafted - part->left_out;
}

/* Knows nothing. */
void fr_draft_depth_reset(fr_draft_depth *draft_depth);
void fr_draft_depth_join(const fr_draft_depth *draft_depth, fr_draft_depth_timeline *timeline);

/* After a prompt: a timeline's method has followed all of it, or has so many ids before it. */
void fr_draft_depth_followed(fr_draft_depth_timeline *timeline);
void fr_draft_depth_fell_behind(fr_draft_depth_timeline *timeline, size_t ids);

/* How many drafts to ask of each of `count` timelines, `room` in all, and what they must be worth. taken: rows that the
 * round has already beside one for each of them. */
void fr_draft_depth_choose(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                           size_t taken);

/* What came of it. Seconds of 0: they say nothing, as other work was in the forward. */
void fr_draft_depth_report(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t count, size_t taken,
                           double draft_seconds, double verify_seconds);

#endif
