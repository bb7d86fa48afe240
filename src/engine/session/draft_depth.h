/* Chooses how many drafts each timeline is asked for in a round, so that all timelines together give the most tokens a
 * second.
 *
 * In: for every round and timeline, how many drafts were asked for, proposed and accepted; and the seconds that
 * drafting and verifying took for all timelines together. Out: the number of drafts of each timeline, which may be 0;
 * now and then another number, to learn from. The choice is arithmetic on these figures alone, and reads no clock.
 *
 * Expected tokens. Let a(d) be how often a timeline's draft at depth d was accepted if all before it were. Let r(d) be
 * how often d or more drafts were proposed in those rounds in which the timeline was asked for at least d. A timeline
 * that is asked for K drafts is expected to give
 *     E(K) = 1 + sum over d = 1 .. K of r(d) * a(1) * ... * a(d)                                                 tokens
 * (Leviathan et al. 2023, arXiv:2211.17192, section 3.1, with a rate for each depth instead of one for all).
 *
 * Expected time. A draft that is proposed is one more row of the forward, whose seconds T are measured for each number
 * of rows. With D for the time of drafting, a round is expected to take
 *     C = T(timelines) + sum over drafts of r(d) * (T(n + 1) - T(n)) + D                                        seconds
 * where n is the number of rows before this draft. All rows of its own timeline count, because a draft is proposed only
 * after those before it. The other timelines count with their expected number of rows. For one timeline this is exact.
 * D(K) is measured for one timeline that drafts alone. If several draft, the longest chain costs its full time. The
 * others cost a measured share of what they would cost alone: 1 if timelines draft one after the other, less if they
 * draft in one batch. A block drafter makes all its drafts in one forward, so D(K) is then the same for every K from 1
 * on.
 *
 * The choice. Drafts are added one at a time. The next draft is always the one that gains most beyond what its time is
 * worth. Of all numbers of drafts, the number with the most tokens a second is taken. Old measurements fade, because
 * the text changes, the cache grows, and other programs take memory bandwidth.
 *
 * Methods that lag. A method with a cache of its own follows the text only when it drafts. It first runs the tokens
 * that its timeline has got since it last drafted. A few of them cost nothing, because they stream no weight a second
 * time. Each further token costs a measured time. The cost arises once, when the timeline drafts again. So the cost is
 * spread over as many rounds as brought these tokens, and at least over a fixed number of rounds. A try counts the
 * whole cost.
 *
 * Chains that end early. A method that gives the probability of each draft ends a chain where the next draft is not
 * worth its time (src/engine/draft/draft_gain.h, calibration.h). For other methods only the mean is known. If chains
 * end early, D(K) is the time of K drafts that were really made. Let m(d) be how often the d-th draft was made in
 * rounds that were asked for d or more. Asking for one more draft adds m(K + 1) * (D(K + 1) - D(K)). Such a chain may
 * become longer than the one that pays on average. In a try chains don't end early, so that unlikely drafts are learned
 * from too. If several timelines draft, only one of them makes its whole chain, because whole chains of all timelines
 * would cost too much. In the next try it is another timeline's turn.
 *
 * Looked-up drafts take no time to make, so only the time of their rows is learned from them. They replace the drafts
 * that were asked for, and there may be as many as rows are left. The method that looks them up knows how often they
 * are accepted. This method gets the price of the drafts' rows in tokens (fr_draft_gain.found), at the best choice's
 * rate or the recent rate, whichever is higher. Each row beyond the largest measured number of rows is assumed to cost
 * half as much as a measured row. At most twice the largest measured number is tried. The controller adds up what such
 * drafts won and lost. The loss may never exceed 1 forward, even if all drafts of a round are rejected. Each round
 * reduces the loss by 0.5% of a forward. So an answer of 48 tokens loses at most 3%. The more such drafts have won, the
 * more may be looked up at a time.
 *
 * Several drafters. All facts about drafts, and the time to make them, are kept for each drafter. In each round one
 * drafter is chosen for all timelines: the one whose best choice gives the most tokens a second. Another drafter is
 * tried at growing intervals of its own, and a drafter is never chosen before it was tried.
 *
 * Times of an earlier run. Without such times the first four rounds only measure, so a short answer has few drafts. In
 * the first rounds, times that an earlier run stored (draft_times.h) stand for those that are not measured yet. They
 * are scaled by the time that both runs know best, because a busy machine slows all sizes of work down alike.
 *
 * What is not known. A new timeline begins with the rate of acceptance of the engine's other timelines. A depth that
 * was never reached begins with the rate of the depth before it. T between two measured numbers of rows lies on a line.
 * Beyond the largest measured number of rows, T is assumed to be constant. So larger numbers of rows are tried and
 * measured, up to twice as many each time. Known times may have changed: at growing intervals the controller tries
 * another number of drafts, or a draft for a timeline that has none. Such tries may cost 0.25% of the time or less.
 * After a successful try the next one follows at once. */
#ifndef FR_SRC_ENGINE_SESSION_DRAFT_DEPTH_H
#define FR_SRC_ENGINE_SESSION_DRAFT_DEPTH_H

#include "src/engine/session/calibration.h"

enum {
    FR_DRAFT_DEPTH_ROWS = 64, /* the most rows, of timelines and drafts together; if timelines have more rows, nothing
                               * is drafted */
    FR_DRAFT_DEPTH_READINGS = 16,
};

/* The measured times of work of one size. */
typedef struct fr_draft_depth_timing {
    double readings[FR_DRAFT_DEPTH_READINGS]; /* the latest readings, in a ring */
    size_t count;                             /* number of readings so far, including those that were overwritten */
    double usual;                             /* mean of the readings, without outliers */
    uint64_t when;                            /* round of the last reading */
} fr_draft_depth_timing;

/* Facts about one timeline's drafts by one drafter. */
typedef struct fr_draft_depth_drafts {
    /* rates at which drafts were accepted (stood), proposed (came) and made, by depth from 1 on */
    fr_draft_rate stood[FR_STEP_MAX];
    fr_draft_rate came[FR_STEP_MAX];
    fr_draft_rate made[FR_STEP_MAX];
    fr_draft_rate usual; /* rate of accepted first drafts, over a long time */
    uint64_t drafted;    /* the last round in which the timeline drafted */
    bool tells;          /* the method gave probabilities in the round `drafted` */
    size_t behind;       /* if the method lags: number of ids that the timeline got since round `drafted` */
    size_t prompt;       /* number of those ids in `behind` that came with a prompt */
} fr_draft_depth_drafts;

typedef struct fr_draft_depth_timeline {
    fr_draft_depth_drafts by[FR_DRAFTERS_MAX];
} fr_draft_depth_timeline;

/* Facts about one drafter in all timelines of an engine. */
typedef struct fr_draft_depth_drafter {
    fr_draft_depth_timing draft[FR_STEP_MAX]; /* seconds of drafting by number of drafts, in rounds in which one
                                               * timeline was asked alone */
    /* cost of all chains except the longest one, as a share of what they would cost alone */
    fr_draft_depth_timing share;
    fr_draft_depth_timing follow; /* seconds to run each token that a drafter had missed; the first few tokens are not
                                   * counted, because they cost no time */
    double earlier[FR_STEP_MAX];  /* like `draft`, as an earlier run measured it (draft_times.h); 0: unknown */
    fr_draft_rate usual;          /* rate of accepted first drafts of all timelines, over a long time */
    fr_calibration calibration;   /* counts of every timeline's drafts */
} fr_draft_depth_drafter;

/* Facts about all timelines of an engine. */
typedef struct fr_draft_depth {
    fr_draft_depth_timing verify[FR_DRAFT_DEPTH_ROWS + 1]; /* seconds of a forward by its number of rows */
    double earlier[FR_DRAFT_DEPTH_ROWS + 1]; /* seconds of a forward by its number of rows, as an earlier run measured
                                              * them; 0: unknown */
    fr_draft_depth_drafter by[FR_DRAFTERS_MAX];
    uint64_t round;                              /* number of rounds so far */
    uint64_t next_try;                           /* the first round in which another choice may be tried */
    uint64_t interval;                           /* rounds from a try to the next one */
    double allowance;                            /* seconds that tries may lose */
    bool elsewhere;                              /* the last try asked another drafter than that of the best choice */
    uint64_t next_elsewhere, elsewhere_interval; /* like next_try and interval, for tries of another drafter */
    bool trying;                                 /* the last choice was a try, not the best choice; only then the next
                                                  * three members are set: */
    double loss;                                 /* seconds that the try is expected to lose */
    double tokens;                               /* tokens that the try is expected to bring */
    double rate;                                 /* tokens a second of the best choice */
    fr_draft_rate earned;                        /* recent tokens (counted as hits) and their seconds (counted as
                                                  * tries) */
    size_t earning;                              /* number of timelines that `earned` is for */
    double finds_won;                            /* tokens that looked-up drafts have won so far, divided by the number
                                                  * of timelines; below 0 if they have lost tokens */
    double followed;                             /* estimated seconds of the last round for ids that drafters had
                                                  * missed */
} fr_draft_depth;

/* A drafter that a timeline may draft with. */
typedef struct fr_draft_depth_choice {
    size_t limit; /* the most drafts, like `limit` of fr_draft_depth_part; 0: the timeline does not have this drafter */
    size_t block;
    bool lags;
} fr_draft_depth_choice;

/* A timeline's part in a round. */
typedef struct fr_draft_depth_part {
    fr_draft_depth_timeline *timeline;
    /* the drafters to choose from. If there are any, fr_draft_depth_choose sets `drafter`, `limit`, `block` and
     * `lags`. Otherwise the caller of fr_draft_depth_choose sets these four members */
    fr_draft_depth_choice choices[FR_DRAFTERS_MAX];
    size_t drafter; /* index of the drafter that is asked */
    size_t limit;   /* the most drafts that the drafter may be asked for, below FR_STEP_MAX */
    size_t block;   /* fr_draft.block: drafts that one forward makes; the same in all parts of a round, or 0 */
    size_t asked, drafted, accepted; /* numbers of drafts: asked for (out), proposed, accepted */
    /* out: number of drafts that are expected to pay; `asked` is larger if a whole block costs no more */
    size_t planned;
    size_t made;                /* number of drafts that the method made, including a draft that it then dropped; 0: as
                                 * many as it was asked for */
    bool tells;                 /* the method gives probabilities, which are in `chances` */
    float chances[FR_STEP_MAX]; /* probabilities of the drafts, as the method gave them */
    float stands[FR_STEP_MAX];  /* probabilities corrected by how often such drafts were accepted (draft_cut.h) */
    bool compares;              /* the number of verified drafts may not depend on the drawn ids (rejection
                                 * sampling) */
    size_t left_out;            /* drafts at the chain's end that are not verified, because they are not worth a row or
                                 * got no page */
    bool lags;                  /* the method follows the text only when it drafts, and lags in other rounds */
    size_t most_found;          /* the most drafts that may ever be looked up for the timeline, below FR_STEP_MAX */
    size_t found;               /* out: number of drafts that may be looked up now */
    bool looked_up;             /* the drafts were looked up */
    bool ends;                  /* the chain may end early, by `gains` */
    /* the gains by which the timeline's drafts are judged in this round; gains.found has `found` values */
    fr_draft_gain gains;
} fr_draft_depth_part;

/* Counts the rows that the part's drafts took in the forward. */
static inline size_t fr_draft_depth_verified(const fr_draft_depth_part *part) {
    return part->drafted - part->left_out;
}

/* fr_draft_depth_reset makes an engine's facts empty, before anything is measured. fr_draft_depth_join prepares a
 * timeline that joins the engine. */
void fr_draft_depth_reset(fr_draft_depth *draft_depth);
void fr_draft_depth_join(const fr_draft_depth *draft_depth, fr_draft_depth_timeline *timeline);

/* Both functions report about a drafter after a prompt. fr_draft_depth_followed reports that the drafter has run all
 * ids of the timeline. fr_draft_depth_fell_behind reports that it still has to run `ids` of them. */
void fr_draft_depth_followed(fr_draft_depth_timeline *timeline, size_t drafter);
void fr_draft_depth_fell_behind(fr_draft_depth_timeline *timeline, size_t drafter, size_t ids);

/* Chooses how many drafts each of `count` timelines is asked for, at most `room` in all. Also chooses the gains by
 * which chains end early. taken: number of rows that the round has already, not counting one row for each of these
 * timelines. */
void fr_draft_depth_choose(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                           size_t taken);

/* Fills in earlier[1 .. count] from the times that an earlier run stored; a time that the earlier run did not know
 * becomes 0. Times that contradict each other are corrected: more rows or drafts never take less time, and n times as
 * many take at most n times as long. count: FR_DRAFT_DEPTH_ROWS for T, FR_STEP_MAX - 1 for D. */
void fr_draft_depth_inherit(const double *seconds, double *earlier, size_t count);

/* Both functions give the times that a later run can begin with; an unknown time is 0. fr_draft_depth_verify_times
 * gives T, the seconds of a forward, by its number of rows. fr_draft_depth_draft_times gives D, a drafter's seconds of
 * drafting, by its number of drafts. Both return true if this run has measured some of the times. */
bool fr_draft_depth_verify_times(const fr_draft_depth *draft_depth, double seconds[FR_DRAFT_DEPTH_ROWS + 1]);
bool fr_draft_depth_draft_times(const fr_draft_depth *draft_depth, size_t drafter, double seconds[FR_STEP_MAX]);

/* Gives the tokens a second of the best choice, or the recent tokens a second if these are more. */
double fr_draft_depth_rate(const fr_draft_depth *draft_depth);

/* Fills in T, the seconds of a forward by its number of rows, from recent measurements. Returns the largest number of
 * rows that was measured. Each row beyond that number is assumed to cost half as much as a measured row. */
size_t fr_draft_depth_lately(const fr_draft_depth *draft_depth, double seconds[FR_DRAFT_DEPTH_ROWS + 1]);

/* Reports the outcome of a round. If `verify_seconds` is 0, no time is learned, because the forward had other work
 * too. */
void fr_draft_depth_report(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t count, size_t taken,
                           double draft_seconds, double verify_seconds);

#endif
