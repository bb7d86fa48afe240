/* The depth that pays: see depth.h. */
#include "src/session/depth.h"

#include <math.h>

/* Tuned in the simulations of tests/test_depth.c, where the optimum is flat: half or double of FADE, PRIOR or
 * ALLOWANCE moves the mean of all cases by less than 0.5%. */
#define FADE        (1.0 / 64)  /* of what is known of drafts, a round */
#define FADE_USUAL  (1.0 / 256) /* of the usual rate, a try */
#define PRIOR       4.0         /* tries that a guess is worth */
#define FIRST_GUESS 0.6         /* of acceptance, before any try */
#define FIRST_TRIES 8.0         /* that this guess is worth */
#define STALE       512         /* rounds after which a time is forgotten */
#define ALLOWANCE   0.005       /* of all time, for tries */
#define START       2.0         /* forwards that tries may lose at once */
#define LAST        64          /* rounds between tries, at most */
#define CHEAP       0.05        /* of a round: the loss of a try that */
#define LAST_CHEAP  8           /* may come after so many rounds */

#define UNKNOWN (-1.0)

/* An estimate of everything for one moment. */
typedef struct outlook {
    double tokens[FR_STEP_MAX], seconds[FR_STEP_MAX]; /* by drafts asked for */
    size_t limit, best;
} outlook;

void fr_depth_reset(fr_depth *depth) {
    *depth =
        (fr_depth){.usual = {.hits = FIRST_GUESS * FIRST_TRIES, .tries = FIRST_TRIES}, .interval = 4, .next_try = 4};
}

static double rate_or(const fr_depth_rate *rate, double guess) {
    return (rate->hits + PRIOR * guess) / (rate->tries + PRIOR);
}

/* ------------------------------------------------------------------------------------------------------------ times */

/* The mean of the readings, the largest quarter of them (of two, one) taken for as long as the next: a clock that was
 * held up says too much, never too little. Not the middle, for drafts looked up and drafts computed make two heaps. */
static double usual_of(const fr_depth_timing *timing) {
    double sorted[FR_DEPTH_READINGS], sum = 0;
    size_t count = timing->count < FR_DEPTH_READINGS ? timing->count : FR_DEPTH_READINGS;
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && sorted[at - 1] > timing->seconds[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = timing->seconds[i];
    }
    size_t most = count == 1 ? 0 : count - 1 - (count + 2) / 4;
    for (size_t i = 0; i < count; i++) sum += sorted[i < most ? i : most];
    return sum / (double)count;
}

static void add_reading(fr_depth_timing *timing, double seconds, uint64_t round) {
    timing->seconds[timing->count++ % FR_DEPTH_READINGS] = seconds;
    timing->usual = usual_of(timing);
    timing->when = round;
}

/* Fills seconds[1 .. count] in where they are UNKNOWN: on lines between those known and 0, the last beyond; gives the
 * index of the last. A clock that was held up is not believed beyond what holds of every work: less of it takes no
 * longer, and more no longer than so many times less. */
static size_t complete(double *seconds, size_t count) {
    double least = HUGE_VAL;
    for (size_t i = count; i > 0; i--) {
        if (seconds[i] == UNKNOWN) continue;
        if (seconds[i] > least) seconds[i] = least;
        least = seconds[i];
    }
    size_t below = 0;
    for (size_t i = 1; i <= count; i++) {
        if (seconds[i] == UNKNOWN) continue;
        double start = below ? seconds[below] : 0;
        double most = below ? start * (double)i / (double)below : seconds[i];
        if (seconds[i] > most) seconds[i] = most;
        double slope = (seconds[i] - start) / (double)(i - below);
        for (size_t j = below + 1; j < i; j++) seconds[j] = start + slope * (double)(j - below);
        below = i;
    }
    for (size_t i = below + 1; i <= count; i++) seconds[i] = below ? seconds[below] : 0;
    return below;
}

/* T by rows, 1 to FR_STEP_MAX; gives the largest number of rows that was measured. */
static size_t verify_times(const fr_depth *depth, double *seconds) {
    for (size_t rows = 1; rows <= FR_STEP_MAX; rows++)
        seconds[rows] = depth->verify[rows].count ? depth->verify[rows].usual : UNKNOWN;
    return complete(seconds, FR_STEP_MAX);
}

/* D by drafts asked for, from 0. Beyond the largest number, each draft costs what it does there. */
static void draft_times(const fr_depth *depth, double *seconds) {
    for (size_t k = 1; k < FR_STEP_MAX; k++) seconds[k] = depth->draft[k].count ? depth->draft[k].usual : UNKNOWN;
    size_t last = complete(seconds, FR_STEP_MAX - 1);
    for (size_t k = last + 1; last && k < FR_STEP_MAX; k++) seconds[k] = seconds[last] * (double)k / (double)last;
    seconds[0] = 0;
}

/* ----------------------------------------------------------------------------------------------------------- choose */

static outlook look(const fr_depth *depth, size_t limit) {
    outlook o = {.limit = limit};
    double verify[FR_STEP_MAX + 1], draft[FR_STEP_MAX], came = 1, all_stood = 1, stands, tokens = 1, shorter = 0;
    size_t largest = verify_times(depth, verify);
    if (o.limit > 2 * largest - 1) o.limit = 2 * largest - 1;
    draft_times(depth, draft);
    stands = rate_or(&depth->usual, FIRST_GUESS);
    for (size_t k = 0;; k++) {
        o.tokens[k] = tokens;
        o.seconds[k] = draft[k] + shorter + came * verify[k + 1];
        if (o.tokens[k] * o.seconds[o.best] > o.tokens[o.best] * o.seconds[k]) o.best = k;
        if (k == o.limit) return o;
        double longer = rate_or(&depth->came[k + 1], came);
        if (longer > came) longer = came;
        shorter += (came - longer) * verify[k + 1];
        came = longer;
        stands = rate_or(&depth->stood[k + 1], stands);
        all_stood *= stands;
        tokens += came * all_stood;
    }
}

/* What a round of k loses against the best one. */
static double loss_of(const outlook *o, size_t k) {
    double loss = o->seconds[k] - o->tokens[k] * o->seconds[o->best] / o->tokens[o->best];
    return loss > 0 ? loss : 0;
}

/* A K to learn from: where nothing is drafted, the most promising; else a neighbour of the best, or none, whichever was
 * timed the longest ago. */
static size_t other(const fr_depth *depth, const outlook *o) {
    size_t found = o->best;
    if (o->best == 0) {
        for (size_t k = 1; k <= o->limit; k++)
            if (found == 0 || o->tokens[k] * o->seconds[found] > o->tokens[found] * o->seconds[k]) found = k;
        return found;
    }
    const size_t near[] = {o->best + 1, o->best - 1, 0, 2 * o->best + 1};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        if (near[i] > o->limit || near[i] == o->best || loss_of(o, near[i]) > depth->allowance) continue;
        if (found == o->best || depth->verify[near[i] + 1].when < depth->verify[found + 1].when) found = near[i];
    }
    return found;
}

size_t fr_depth_choose(fr_depth *depth, size_t limit) {
    depth->trying = false;
    depth->loss = 0;
    if (limit == 0) return 0;
    if (depth->round < 4) return (depth->round + 1) % 2; /* one draft and none, twice */
    if (depth->verify[1].count == 0) return 0;
    outlook o = look(depth, limit);
    if (depth->round < depth->next_try) return o.best;
    size_t k = other(depth, &o);
    double loss = loss_of(&o, k);
    if (k == o.best || loss > depth->allowance + (depth->interval > 1 ? 0 : START * o.seconds[0])) return o.best;
    depth->trying = true;
    depth->loss = loss;
    return k;
}

/* ----------------------------------------------------------------------------------------------------------- report */

static void fade(fr_depth_rate *rate, double share) {
    rate->hits -= share * rate->hits;
    rate->tries -= share * rate->tries;
}

static void count(fr_depth_rate *rate, bool hit) {
    rate->hits += hit;
    rate->tries += 1;
}

static void learn_drafts(fr_depth *depth, const fr_depth_round *round) {
    for (size_t d = 1; d < FR_STEP_MAX; d++) {
        fade(&depth->came[d], FADE);
        fade(&depth->stood[d], FADE);
        if (d <= round->asked) count(&depth->came[d], d <= round->drafted);
        if (d <= round->drafted && d <= round->accepted + 1) count(&depth->stood[d], d <= round->accepted);
    }
    if (round->drafted == 0) return;
    fade(&depth->usual, FADE_USUAL);
    count(&depth->usual, round->accepted > 0);
}

static void learn_times(fr_depth *depth, const fr_depth_round *round) {
    add_reading(&depth->verify[round->drafted + 1], round->verify_seconds, depth->round);
    if (round->asked) add_reading(&depth->draft[round->asked], round->draft_seconds, depth->round);
    for (size_t i = 1; i <= FR_STEP_MAX; i++) {
        if (depth->verify[i].when + STALE < depth->round) depth->verify[i].count = 0;
        if (i < FR_STEP_MAX && depth->draft[i].when + STALE < depth->round) depth->draft[i].count = 0;
    }
}

/* A try in which every draft stood is followed by another one; after one that failed, the next waits longer. */
static void plan_next_try(fr_depth *depth, const fr_depth_round *round) {
    bool stood = round->drafted > 0 && round->accepted == round->drafted;
    if (stood)
        depth->interval = 1;
    else
        depth->interval = depth->interval < 4 ? 4 : 2 * depth->interval;
    uint64_t last = depth->loss > CHEAP * (round->draft_seconds + round->verify_seconds) ? LAST : LAST_CHEAP;
    if (depth->interval > last) depth->interval = last;
    depth->next_try = depth->round + depth->interval;
}

void fr_depth_report(fr_depth *depth, const fr_depth_round *round) {
    if (depth->round++ == 0) depth->allowance = START * round->verify_seconds;
    learn_drafts(depth, round);
    learn_times(depth, round);
    depth->allowance += ALLOWANCE * (round->draft_seconds + round->verify_seconds) - depth->loss;
    if (depth->trying) plan_next_try(depth, round);
}
