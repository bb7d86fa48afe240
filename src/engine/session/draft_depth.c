/* Chooses the number of drafts: see draft_depth.h. */
#include "src/engine/session/draft_depth.h"

#include <math.h>

#include "base/sizes.h"

/* Constants that were tuned in the simulations of tests/engine/session/test_draft_depth.c. The results hardly depend on
 * their values: if FADE, PRIOR or ALLOWANCE is halved or doubled, the mean of all cases changes by less than 0.5%. */
#define FADE          (1.0 / 64)  /* a timeline's counts of drafts lose this share with each round */
#define FADE_USUAL    (1.0 / 256) /* the counts of a `usual` rate of acceptance lose this share with each try */
#define PRIOR         4.0         /* a guessed rate of acceptance counts as this many tries */
#define FIRST_GUESS   0.6         /* rate of acceptance that is assumed before any try */
#define FIRST_TRIES   8.0         /* FIRST_GUESS counts as this many tries */
#define STALE         512         /* number of rounds after which a measured time may be out of date */
#define ALLOWANCE     0.0025      /* share of all time that tries may lose */
#define START         1.0         /* tries may lose the time of this many forwards at once */
#define LAST          64          /* largest number of rounds between tries */
#define CHEAP         0.05        /* a try that loses at most this share of a round is cheap */
#define LAST_CHEAP    8           /* a cheap try comes again after at most this many rounds */
/* the first draft counts as expensive if two drafts take less than this many times as long as one */
#define FIRST_DEAR    1.7
/* number of missed tokens (which the drafter has not run yet) that run at no cost in the forward of the first draft */
#define FOLLOWED      7
/* the time to run further missed tokens is spread over at least this many rounds */
#define FOLLOW_ROUNDS 32.0
#define FOLLOW_GUESS  (1.0 / 16) /* guessed time to run a missed token, as a share of a draft's time */
#define FEW           4          /* running fewer missed tokens than this takes too little time to be measured */
/* The cost of drafts for further timelines is measured as a share of what these drafts would cost alone. If this share
 * is more than ALMOST_ALONE, the drafter is assumed to draft for one timeline after another. */
#define ALMOST_ALONE  0.8
/* A chain that its probabilities may end early can be up to this many times as long as planned. */
#define LONGER        2
/* the most that a chain costs when made with others, as a multiple of its cost when made alone */
#define SHARE_MAX     2.0
#define HOPE          0.5   /* each row beyond the measured rows is assumed to cost this share of a measured row */
#define DEBT          1.0   /* looked-up drafts may lose the time of this many forwards */
#define CREDIT        4.0   /* looked-up drafts may also lose what they won before, up to this many forwards */
#define REPAID        0.005 /* each round takes this share of a forward off the loss of looked-up drafts */
/* to limit losses, each row beyond the largest measured number counts as this many measured rows */
#define FEARED        1.25

#define TRUSTED 64   /* number of rounds after which times of an earlier run are no longer used */
#define ENOUGH  8.0  /* if this run has this many readings of a time, the earlier run's time is no longer mixed in */
#define DOUBT   0.95 /* if a time was not measured again, this share of it is stored */

#define UNKNOWN (-1.0) /* stands for a time that is not known */

/* The next draft that a timeline may get. All drafts before it have been given to the timeline already. */
typedef struct candidate {
    size_t depth; /* number of drafts that are asked for before this draft */
    /* stands: probability that the draft is accepted if all drafts before it are accepted; came: probability that it is
     * proposed */
    double stands, came;
    double made;      /* probability that the draft is made */
    double all_stood; /* probability that the draft and all before it are accepted */
    double gain;      /* tokens that the draft is expected to add */
    double rows;      /* expected number of rows of the drafts before this draft */
    double follow;    /* seconds to run missed tokens; only a timeline's first draft adds them */
} candidate;

/* The expected tokens and seconds of a round, for each number of drafts. */
typedef struct outlook {
    const fr_draft_depth *draft_depth;
    const fr_draft_depth_drafter *drafter; /* the drafter that is asked for all timelines' drafts */
    const fr_draft_depth_part *parts;
    size_t count, base; /* count: number of timelines; base: number of rows of a round without drafts */
    size_t limit;       /* the most drafts that may be given to timelines */
    /* the number of drafts with the most tokens a second */
    size_t best;
    /* `verify` and `draft` are T and D of draft_depth.h in seconds; share: see fr_draft_depth_drafter */
    double verify[FR_DRAFT_DEPTH_ROWS + 1], draft[FR_STEP_MAX], share;
    double tokens[FR_DRAFT_DEPTH_ROWS + 1], seconds[FR_DRAFT_DEPTH_ROWS + 1]; /* by number of drafts given out */
    size_t whose[FR_DRAFT_DEPTH_ROWS + 1]; /* [n] the timeline to which the n-th draft is given */

    candidate next[FR_DRAFT_DEPTH_ROWS]; /* [timelines] the next draft of each timeline, while drafts are added one by
                                          * one */
    double rows;                         /* drafts that are expected to be proposed */
    double drafting;                     /* sum of the times that drafting would take each timeline alone */
    size_t longest;                      /* drafts in the longest chain */
} outlook;

static double lesser(double a, double b) {
    return a < b ? a : b;
}

static double greater(double a, double b) {
    return a > b ? a : b;
}

static double ratio(const fr_draft_rate *rate) {
    return rate->hits / rate->tries;
}

static double rate_or(const fr_draft_rate *rate, double guess) {
    return (rate->hits + PRIOR * guess) / (rate->tries + PRIOR);
}

void fr_draft_depth_reset(fr_draft_depth *draft_depth) {
    *draft_depth = (fr_draft_depth){.interval = 4, .next_try = 4, .elsewhere_interval = 4};
    for (size_t d = 0; d < FR_DRAFTERS_MAX; d++)
        draft_depth->by[d].usual = (fr_draft_rate){.hits = FIRST_GUESS * FIRST_TRIES, .tries = FIRST_TRIES};
}

void fr_draft_depth_join(const fr_draft_depth *draft_depth, fr_draft_depth_timeline *timeline) {
    *timeline = (fr_draft_depth_timeline){0};
    for (size_t d = 0; d < FR_DRAFTERS_MAX; d++) timeline->by[d].drafted = draft_depth->round;
}

void fr_draft_depth_followed(fr_draft_depth_timeline *timeline, size_t drafter) {
    fr_draft_depth_fell_behind(timeline, drafter, 0);
}

void fr_draft_depth_fell_behind(fr_draft_depth_timeline *timeline, size_t drafter, size_t ids) {
    timeline->by[drafter].behind = timeline->by[drafter].prompt = ids;
}

/* Gives the counts that the part's timeline has for the drafter that the part asks. */
static fr_draft_depth_drafts *drafts_of(const fr_draft_depth_part *part) {
    return &part->timeline->by[part->drafter];
}

/* ------------------------------------------------------------------------------------------------------------ times */

/* If another process interrupts this one, a reading is too long. These numbers limit how often that is assumed to
 * happen. For drafting it is assumed of at most one in DRAFT_HELD_UP readings: looked-up and computed drafts take
 * different times, so large readings may be right. For forwards it is assumed of at most one in VERIFY_HELD_UP, because
 * forwards of equally many rows take similar times. */
enum { DRAFT_HELD_UP = 4, VERIFY_HELD_UP = 2 };

/* Gives the mean of the readings, after the largest ones are lowered. One reading in every `held_up` is lowered, to the
 * value of the largest reading that is not lowered. If there are only two readings, one of them is lowered. */
static double usual_of(const fr_draft_depth_timing *timing, size_t held_up) {
    double sorted[FR_DRAFT_DEPTH_READINGS], sum = 0;
    size_t count = fr_smaller(timing->count, FR_DRAFT_DEPTH_READINGS);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && sorted[at - 1] > timing->readings[i]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = timing->readings[i];
    }
    size_t most = count == 1 ? 0 : count - 1 - (count + held_up / 2) / held_up;
    for (size_t i = 0; i < count; i++) sum += sorted[i < most ? i : most];
    return sum / (double)count;
}

static void add_reading(fr_draft_depth_timing *timing, double reading, uint64_t round, size_t held_up) {
    timing->readings[timing->count++ % FR_DRAFT_DEPTH_READINGS] = reading;
    timing->usual = usual_of(timing, held_up);
    timing->when = round;
}

/* Fills in the entries of seconds[1 .. count] that are UNKNOWN. First, known times that are too long are corrected by
 * two rules: less work takes no longer, and n times the work takes at most n times as long. Unknown entries between two
 * known values lie on a line, and those before the first known value on a line from 0. Entries after the last known
 * value are set to that value. Returns the index of the last known value. */
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

static bool is_known(const fr_draft_depth_timing *timing, uint64_t since) {
    return timing->count && timing->when >= since;
}

/* Gives the ratio of this run's times to an earlier run's times. The ratio is taken for the size of work that this run
 * measured most often. It is 1 if the two runs measured no common size. Other programs may have slowed one of the runs
 * down; that changes the times of all sizes by the same factor. */
static double compare_runs(const fr_draft_depth_timing *timings, const double *earlier, size_t count) {
    size_t most = 0;
    for (size_t i = 1; i <= count; i++)
        if (earlier[i] > 0 && timings[i].count > (most ? timings[most].count : 0)) most = i;
    return most ? timings[most].usual / earlier[most] : 1;
}

/* Returns true if times of an earlier run are still used where this run has measured none. They are used only in the
 * first rounds, because they may be wrong. If they were used longer, this run might never make the tries that would
 * correct them. */
static bool trusts_earlier(const fr_draft_depth *draft_depth) {
    return draft_depth->round < TRUSTED;
}

/* Puts times of an earlier run, scaled to this run, in the place of UNKNOWN in seconds[1 .. count]. */
static void fill_from_earlier(const fr_draft_depth_timing *timings, const double *earlier, double *seconds,
                              size_t count) {
    double factor = compare_runs(timings, earlier, count);
    for (size_t i = 1; i <= count; i++)
        if (seconds[i] == UNKNOWN && earlier[i] > 0) seconds[i] = factor * earlier[i];
}

/* Fills in T, the seconds of a forward by its number of rows. Only times that were measured since round `since` are
 * used. In the first rounds, times of an earlier run fill the gaps. Returns the largest number of rows that was
 * measured. */
static size_t verify_times(const fr_draft_depth *draft_depth, uint64_t since, double *seconds) {
    for (size_t rows = 1; rows <= FR_DRAFT_DEPTH_ROWS; rows++)
        seconds[rows] = is_known(&draft_depth->verify[rows], since) ? draft_depth->verify[rows].usual : UNKNOWN;
    seconds[0] = 0;
    if (trusts_earlier(draft_depth))
        fill_from_earlier(draft_depth->verify, draft_depth->earlier, seconds, FR_DRAFT_DEPTH_ROWS);
    return complete(seconds, FR_DRAFT_DEPTH_ROWS);
}

/* Fills in D, the seconds of drafting, by the number of drafts asked for, from 0. If only an earlier run measured a
 * number of drafts, that run's time is used. Beyond the largest known number, each further draft costs the mean of the
 * known drafts; if `hoped` is true, it costs nothing. A block takes equally long for every number of drafts, and its
 * time is stored as the time of 1 draft. */
static void draft_times(const fr_draft_depth *draft_depth, const fr_draft_depth_drafter *drafter, bool hoped,
                        bool block, double *seconds) {
    bool trusts = trusts_earlier(draft_depth), measured = drafter->draft[1].count > 0;
    double one = measured || !trusts ? drafter->draft[1].usual : drafter->earlier[1];
    for (size_t k = 1; block && k < FR_STEP_MAX; k++) seconds[k] = one;
    seconds[0] = 0;
    if (block) return;
    for (size_t k = 1; k < FR_STEP_MAX; k++) seconds[k] = drafter->draft[k].count ? drafter->draft[k].usual : UNKNOWN;
    if (trusts) fill_from_earlier(drafter->draft, drafter->earlier, seconds, FR_STEP_MAX - 1);
    size_t last = complete(seconds, FR_STEP_MAX - 1);
    for (size_t k = last + 1; last && k < FR_STEP_MAX; k++)
        seconds[k] = hoped ? seconds[last] : seconds[last] * (double)k / (double)last;
}

/* Returns true if the timelines' drafts are made in blocks. */
static bool makes_blocks(const fr_draft_depth_part *parts, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) any |= parts[i].block > 0;
    return any;
}

/* Counts the missed tokens that a timeline must run, except those that are run at no cost (FOLLOWED). */
static size_t rows_behind(const fr_draft_depth_drafts *drafts) {
    return drafts->behind > FOLLOWED ? drafts->behind - FOLLOWED : 0;
}

/* Gives the seconds to run one missed token. With fewer than two readings this time is guessed. The guess is a small
 * share of a draft's time, because weights are read once for all rows. A single reading may be too long, so it counts
 * only if it is below the guess. */
static double follow_time(const fr_draft_depth_drafter *drafter) {
    double guess = drafter->draft[1].usual * FOLLOW_GUESS, usual = drafter->follow.usual;
    return drafter->follow.count == 0 || (drafter->follow.count == 1 && usual > guess) ? guess : usual;
}

/* ---------------------------------------------------------------------------------------------------------- outlook */

/* Gives T, the seconds of a forward, for an expected number of rows, which need not be whole. */
static double verify_at(const outlook *o, double rows) {
    size_t below = fr_smaller((size_t)rows, FR_DRAFT_DEPTH_ROWS - 1);
    double beyond = lesser(rows - (double)below, 1.0);
    return o->verify[below] + beyond * (o->verify[below + 1] - o->verify[below]);
}

/* Gives D, the seconds of drafting, of several chains that are made together. longest: number of drafts of the longest
 * chain; alone: the sum of the times that each chain would take alone. */
static double drafting(const outlook *o, size_t longest, double alone) {
    return o->draft[longest] + o->share * (alone - o->draft[longest]);
}

/* Moves a candidate on to the next draft of its chain. */
static void deepen(const fr_draft_depth_drafts *drafts, candidate *c) {
    size_t depth = ++c->depth + 1;
    if (depth >= FR_STEP_MAX) return;
    c->came = lesser(c->came, rate_or(&drafts->came[depth], c->came));
    c->made = lesser(c->made, rate_or(&drafts->made[depth], c->made));
    c->stands = rate_or(&drafts->stood[depth], c->stands);
    c->all_stood *= c->stands;
    c->gain = c->came * c->all_stood;
}

static candidate first_draft(const fr_draft_depth_drafter *drafter, const fr_draft_depth_drafts *drafts) {
    candidate c = {.came = rate_or(&drafts->came[1], 1),
                   .made = rate_or(&drafts->made[1], 1),
                   .stands = rate_or(&drafts->stood[1], rate_or(&drafts->usual, ratio(&drafter->usual)))};
    c.all_stood = c.stands;
    c.gain = c.came * c.all_stood;
    double rounds = greater(FOLLOW_ROUNDS, (double)(drafts->behind - drafts->prompt));
    c.follow = follow_time(drafter) * (double)rows_behind(drafts) / rounds;
    return c;
}

/* Gives the seconds that making this draft would take if the timeline drafted alone. */
static double step(const outlook *o, const candidate *c) {
    return o->draft[c->depth + 1] - o->draft[c->depth];
}

/* Gives the seconds that a timeline's next draft adds to the round. */
static double cost(const outlook *o, const candidate *c) {
    double rows = (double)(o->base + c->depth) + o->rows - c->rows;
    double draft = drafting(o, fr_larger(o->longest, c->depth + 1), o->drafting + step(o, c)) -
                   drafting(o, o->longest, o->drafting);
    return c->came * (verify_at(o, rows + 1) - verify_at(o, rows)) + (c->depth ? 0 : c->follow) + c->made * draft;
}

/* Gives the tokens that a timeline's next draft gains, less the tokens that could be made in the draft's time at
 * `price` tokens a second. A first draft may cost much more than further drafts. So chains of every length that begin
 * with this draft are also compared. The result is then the mean surplus of a draft in the best of these chains. */
static double surplus_of(const outlook *o, size_t timeline, double price) {
    candidate c = o->next[timeline];
    double surplus = c.gain - price * cost(o, &c), best = surplus, tokens = 0, verify = 0, alone = 0;
    if (c.depth > 0 || o->draft[2] >= FIRST_DEAR * o->draft[1]) return surplus;
    while (c.depth < o->parts[timeline].limit) {
        double rows = (double)(o->base + c.depth) + o->rows;
        tokens += c.gain;
        verify += c.came * (verify_at(o, rows + 1) - verify_at(o, rows));
        alone += c.made * step(o, &c);
        deepen(drafts_of(&o->parts[timeline]), &c);
        double draft = drafting(o, fr_larger(o->longest, c.depth), o->drafting + o->draft[c.depth]) -
                       drafting(o, o->longest, o->drafting);
        /* the time of drafting is multiplied by the chance that a draft of this chain is made */
        if (o->draft[c.depth] > 0) draft *= alone / o->draft[c.depth];
        best = greater(best, (tokens - price * (verify + draft + c.follow)) / (double)c.depth);
    }
    return best;
}

/* Finds the timeline whose next draft has the largest surplus; o->count if no timeline may have another draft. */
static size_t most_gaining(const outlook *o, double price) {
    size_t found = o->count;
    double most = 0;
    for (size_t i = 0; i < o->count; i++) {
        if (o->next[i].depth == o->parts[i].limit) continue;
        double surplus = surplus_of(o, i, price);
        if (found < o->count && surplus <= most) continue;
        found = i;
        most = surplus;
    }
    return found;
}

static void add_draft(outlook *o, size_t timeline, size_t drafts) {
    candidate *c = &o->next[timeline];
    o->whose[drafts] = timeline;
    o->tokens[drafts] = o->tokens[drafts - 1] + c->gain;
    o->seconds[drafts] = o->seconds[drafts - 1] + cost(o, c);
    o->drafting += step(o, c);
    o->longest = fr_larger(o->longest, c->depth + 1);
    o->rows += c->came;
    c->rows += c->came;
    deepen(drafts_of(&o->parts[timeline]), c);
}

/* Gives the first round whose measured times count as recent. */
static uint64_t lately(const fr_draft_depth *draft_depth) {
    return draft_depth->round > STALE ? draft_depth->round - STALE : 0;
}

/* Begins an outlook, without any draft. If `hoped`, it uses only recent measurements and assumes that rows beyond the
 * largest measured number cost nothing. Otherwise it uses all measurements and assumes that such rows cost in
 * proportion. */
static size_t open_outlook(outlook *o, const fr_draft_depth *draft_depth, const fr_draft_depth_part *parts,
                           size_t count, size_t taken, bool hoped) {
    uint64_t since = hoped ? lately(draft_depth) : 0;
    const fr_draft_depth_drafter *drafter = &draft_depth->by[count ? parts[0].drafter : 0];
    *o = (outlook){
        .draft_depth = draft_depth, .drafter = drafter, .parts = parts, .count = count, .base = count + taken};
    size_t largest = verify_times(draft_depth, since, o->verify);
    for (size_t r = largest + 1; largest && !hoped && r <= FR_DRAFT_DEPTH_ROWS; r++)
        o->verify[r] = o->verify[largest] * (double)r / (double)largest;
    draft_times(draft_depth, drafter, hoped, makes_blocks(parts, count), o->draft);
    o->share = is_known(&drafter->share, since) ? drafter->share.usual : !hoped;
    o->tokens[0] = (double)count;
    o->seconds[0] = o->verify[o->base];
    for (size_t i = 0; i < count; i++) o->next[i] = first_draft(drafter, drafts_of(&parts[i]));
    return largest;
}

/* The arguments of a choice. */
typedef struct question {
    const fr_draft_depth *draft_depth;
    const fr_draft_depth_part *parts;
    size_t count, room, taken; /* count: number of timelines; room: the most drafts in all; taken: number of rows that
                                * the round has already, not counting one row for each timeline */
    bool hoped;
} question;

/* Adds drafts to the round one by one, as long as there is room and some timeline gains by one more draft. The forward
 * gets at most as many rows as the largest measured forward. If `hoped` is true, the number of drafts may be twice as
 * high as that limit, plus one. The time of a chain of `longest` drafts is counted at the start, so chains up to this
 * length add no time. */
static void grow(outlook *o, const question *q, size_t longest) {
    size_t largest = open_outlook(o, q->draft_depth, q->parts, q->count, q->taken, q->hoped);
    size_t measured = largest > o->base ? largest - o->base : 0;
    if (o->seconds[0] <= 0) return;
    o->longest = longest;
    o->seconds[0] += drafting(o, longest, 0);
    o->limit = fr_smaller(fr_smaller(q->room, FR_DRAFT_DEPTH_ROWS - o->base), q->hoped ? 2 * measured + 1 : measured);
    for (size_t drafts = 1; drafts <= o->limit; drafts++) {
        size_t timeline = most_gaining(o, o->tokens[o->best] / o->seconds[o->best]);
        if (timeline == o->count) {
            o->limit = drafts - 1;
            break;
        }
        add_draft(o, timeline, drafts);
        if (o->tokens[drafts] * o->seconds[o->best] > o->tokens[o->best] * o->seconds[drafts]) o->best = drafts;
    }
}

/* Gives the tokens a second of a round with this many drafts. */
static double rate_of(const outlook *o, size_t drafts) {
    return o->tokens[drafts] / o->seconds[drafts];
}

/* Makes the outlook. If several timelines draft in one batch, they share the time of each step. A further step may then
 * be worth its time for all timelines together, although it is not for any single timeline. So a few depths are also
 * tried in another way: the time of a chain of that depth is counted at the start (grow). */
static void look(outlook *o, const question *q) {
    static const size_t depths[] = {2, 3, 4, 6, 8, 11, 15};
    grow(o, q, 0);
    if (q->count == 1 || o->share > ALMOST_ALONE) return;
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        outlook deep;
        grow(&deep, q, depths[i]);
        if (rate_of(&deep, deep.best) > rate_of(o, o->best)) *o = deep;
    }
}

/* Fills in seconds[1 .. count] with the times that a later run can begin with; 0 where nothing is known. If a time has
 * few readings in this run, it is the weighted mean of this run's time and the earlier run's scaled time. This run's
 * time has more weight if it has more readings. Without an earlier time a single reading does not count, because it may
 * be too long. A time that was not measured again is stored as DOUBT times itself, but not below the time of one row or
 * draft. So a time that was too long shrinks from run to run, even if no run tries it. Returns true if anything was
 * measured. */
static bool merge_times(const fr_draft_depth_timing *timings, const double *earlier, double *seconds, size_t count) {
    double factor = compare_runs(timings, earlier, count);
    bool measured = false;
    seconds[0] = 0;
    for (size_t i = 1; i <= count; i++) {
        double before = factor * earlier[i], share = lesser(1, (double)timings[i].count / ENOUGH);
        if (before <= 0) share = timings[i].count > 1;
        if (i > 1 && timings[i].count == 0) before = lesser(before, greater(DOUBT * before, seconds[1]));
        seconds[i] = share * timings[i].usual + (1 - share) * before;
        measured |= timings[i].count > 1;
    }
    return measured;
}

void fr_draft_depth_inherit(const double *seconds, double *earlier, size_t count) {
    double times[FR_DRAFT_DEPTH_ROWS + 1];
    for (size_t i = 1; i <= count; i++) times[i] = seconds[i] > 0 ? seconds[i] : UNKNOWN;
    complete(times, count);
    for (size_t i = 1; i <= count; i++) earlier[i] = seconds[i] > 0 ? times[i] : 0;
}

bool fr_draft_depth_verify_times(const fr_draft_depth *draft_depth, double seconds[FR_DRAFT_DEPTH_ROWS + 1]) {
    return merge_times(draft_depth->verify, draft_depth->earlier, seconds, FR_DRAFT_DEPTH_ROWS);
}

bool fr_draft_depth_draft_times(const fr_draft_depth *draft_depth, size_t drafter, double seconds[FR_STEP_MAX]) {
    const fr_draft_depth_drafter *by = &draft_depth->by[drafter];
    return merge_times(by->draft, by->earlier, seconds, FR_STEP_MAX - 1);
}

double fr_draft_depth_rate(const fr_draft_depth *draft_depth) {
    return greater(draft_depth->rate, draft_depth->earned.tries > 0 ? ratio(&draft_depth->earned) : 0);
}

size_t fr_draft_depth_lately(const fr_draft_depth *draft_depth, double seconds[FR_DRAFT_DEPTH_ROWS + 1]) {
    uint64_t since = lately(draft_depth);
    size_t largest = verify_times(draft_depth, since, seconds), least = 1;
    while (least < largest && !is_known(&draft_depth->verify[least], since)) least++;
    double row = least < largest ? HOPE * (seconds[largest] - seconds[least]) / (double)(largest - least) : 0;
    for (size_t r = largest + 1; r <= FR_DRAFT_DEPTH_ROWS; r++) seconds[r] = seconds[r - 1] + row;
    return largest;
}

/* ----------------------------------------------------------------------------------------------------------- choose */

/* Describes a try: a number of drafts that is asked for only to measure it, although another number is the best known
 * one. */
typedef struct attempt {
    const size_t *whose; /* for each draft, the timeline that gets it; the array belongs to the outlook */
    size_t drafts;       /* number of drafts */
    size_t extra;        /* index of a timeline that gets one more draft than `whose` says; outlook.count: no timeline
                          * does */
    uint64_t when;       /* the last round in which a forward with `drafts` drafts was measured, or in which timeline
                          * `extra` drafted */
} attempt;

static attempt attempt_of(const outlook *o, size_t drafts) {
    return (attempt){
        .whose = o->whose, .drafts = drafts, .extra = o->count, .when = o->draft_depth->verify[o->base + drafts].when};
}

/* Gives the tokens and seconds that an attempt is expected to bring, by the measurements so far. */
static void price(const outlook *known, const attempt *a, double *tokens, double *seconds) {
    outlook o;
    size_t drafts = 0;
    open_outlook(&o, known->draft_depth, known->parts, known->count, known->base - known->count, false);
    for (size_t i = 0; i < o.count; i++)
        o.next[i].follow = follow_time(o.drafter) * (double)rows_behind(drafts_of(&o.parts[i]));
    while (drafts < a->drafts) {
        drafts++;
        add_draft(&o, a->whose[drafts], drafts);
    }
    if (a->extra < o.count) add_draft(&o, a->extra, ++drafts);
    *tokens = o.tokens[drafts];
    *seconds = o.seconds[drafts];
}

/* Counts the drafts of a timeline among the first `drafts` that are given out. */
static size_t depth_of(const outlook *o, size_t timeline, size_t drafts) {
    size_t depth = 0;
    for (size_t d = 1; d <= drafts; d++) depth += o->whose[d] == timeline;
    return depth;
}

/* Gives the best choice plus one draft for another timeline. Of the timelines that get no draft in the best choice, it
 * is the one that has not drafted for the longest time. */
static attempt attempt_other_timeline(const outlook *o) {
    attempt a = attempt_of(o, o->best);
    if (o->best == o->limit) return a;
    for (size_t i = 0; i < o->count; i++) {
        if (o->parts[i].limit == 0 || depth_of(o, i, o->best)) continue;
        if (a.extra == o->count || drafts_of(&o->parts[i])->drafted < drafts_of(&o->parts[a.extra])->drafted)
            a.extra = i;
    }
    if (a.extra < o->count) a.when = drafts_of(&o->parts[a.extra])->drafted;
    return a;
}

static size_t most_promising(const outlook *o) {
    size_t most = 0;
    for (size_t d = 1; d <= o->limit; d++)
        if (most == 0 || rate_of(o, d) > rate_of(o, most)) most = d;
    return most;
}

/* Gives an attempt near the best choice: one draft more, one less, none, about twice as many, or one for another
 * timeline. Of these attempts, the one that was measured the longest time ago is given. If there is nothing to try, the
 * best choice itself is given. */
static attempt attempt_near(const outlook *known) {
    const size_t near[] = {known->best + 1, known->best - 1, 0, 2 * known->best + 1};
    attempt found = attempt_other_timeline(known);
    bool any = found.extra < known->count;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        if (near[i] > known->limit || near[i] == known->best) continue;
        attempt a = attempt_of(known, near[i]);
        if (!any || a.when < found.when) found = a;
        any = true;
    }
    return found;
}

static void give_out(const attempt *a, fr_draft_depth_part *parts, size_t timelines) {
    for (size_t d = 1; d <= a->drafts; d++) parts[a->whose[d]].asked++;
    if (a->extra < timelines) parts[a->extra].asked++;
}

/* Makes the attempt and returns true if the attempt's expected loss is within what tries may lose. rate: the tokens a
 * second of the best choice. */
static bool try(fr_draft_depth *draft_depth, const outlook *known, const attempt *a, double rate) {
    double tokens, seconds;
    price(known, a, &tokens, &seconds);
    double loss = greater(0, seconds - tokens / rate);
    if (loss > draft_depth->allowance + (draft_depth->interval > 1 ? 0 : START * known->seconds[0])) return false;
    draft_depth->trying = true;
    draft_depth->loss = loss;
    draft_depth->tokens = tokens;
    return true;
}

/* Makes one attempt to learn whether another choice is better than the best known one. The first of these attempts
 * that applies is made.
 *
 *   1. The number of drafts that is best by the hoped times, if the hoped times promise more tokens a second than the
 *      best known choice gives. If this attempt applies, the other attempts are not considered.
 *   2. If there are several timelines, and the best known choice is to make no drafts: the number of drafts that is
 *      most promising by the hoped times. A step that does not pay for one timeline may pay for all together.
 *   3. An attempt near the best known choice. If the best known choice is to make no drafts, it is the number of drafts
 *      that is most promising by the known times. */
static bool try_other(fr_draft_depth *draft_depth, const outlook *known, const outlook *hoped, attempt *tried) {
    double rate = rate_of(known, known->best);
    *tried = attempt_of(hoped, hoped->best);
    if (hoped->best && hoped->best != known->best && rate_of(hoped, hoped->best) > rate)
        return try(draft_depth, known, tried, rate);
    *tried = attempt_of(hoped, most_promising(hoped));
    if (known->best == 0 && known->count > 1 && try(draft_depth, known, tried, rate)) return true;
    *tried = known->best ? attempt_near(known) : attempt_of(known, most_promising(known));
    bool same = tried->drafts == known->best && tried->extra == known->count;
    return !same && try(draft_depth, known, tried, rate);
}

/* Gives the number of drafts that a part is expected to propose. */
static double expect_drafts(const outlook *known, const fr_draft_depth_part *part) {
    double drafts = 0;
    candidate c = first_draft(known->drafter, drafts_of(part));
    for (; c.depth < part->asked; deepen(drafts_of(part), &c)) drafts += c.came;
    return drafts;
}

/* Expresses the times of a part's drafts and rows in tokens: the number of tokens that the best choice makes in that
 * time. others: number of drafts that the other parts are expected to propose. */
static void tell_worth(const outlook *known, fr_draft_depth_part *part, double others) {
    double rate = rate_of(known, known->best);
    fr_calibration_tell(&known->drafter->calibration, &part->gains);
    candidate c = first_draft(known->drafter, drafts_of(part));
    for (; c.depth < FR_STEP_MAX - 1; deepen(drafts_of(part), &c)) {
        double rows = (double)(known->base + c.depth) + others, beside = others > 0 ? known->share : 1;
        part->gains.next[c.depth] = c.stands;
        part->gains.step[c.depth] = rate * beside * step(known, &c);
        part->gains.row[c.depth] = rate * (verify_at(known, rows + 1) - verify_at(known, rows));
    }
}

/* Decides which chains may end early, and by which gains. In a try, chains do not end early, so that more is learned.
 * If several timelines draft in a try, only one of their chains is made whole, each time another timeline's. A chain
 * that ends by its own probabilities may become longer than the one that pays on average. A block is always made
 * whole. */
static void tell_worths(const outlook *known, bool trying, fr_draft_depth_part *parts, size_t count, size_t room) {
    size_t all = 0;
    double expected = 0;
    for (size_t i = 0; i < count; i++) all += parts[i].asked;
    for (size_t i = 0; i < count; i++) expected += expect_drafts(known, &parts[i]);
    for (size_t i = 0; i < count; i++) {
        fr_draft_depth_part *part = &parts[i];
        bool learns = !drafts_of(part)->tells || known->best == 0 || known->draft_depth->round % count == i;
        part->ends = part->asked && !(trying && learns);
        if (!part->ends) continue;
        tell_worth(known, part, count > 1 ? expected - expect_drafts(known, part) : 0);
        size_t most = fr_smaller(fr_smaller(part->limit, LONGER * part->asked), part->asked + room - all);
        if (trying || !drafts_of(part)->tells || part->block) continue;
        all += most - part->asked;
        part->asked = most;
    }
}

/* Gives the seconds that are lost if `count` drafts are verified in addition to `base` rows and all of them are
 * rejected. seconds: T, as fr_draft_depth_lately fills it in. Rows beyond the largest measured number are assumed to be
 * expensive. If more than `base` rows were measured, each such row costs FEARED times a measured row. Otherwise it
 * costs the mean of the `base` rows. */
static double at_risk(const double *seconds, size_t base, size_t largest, size_t count) {
    if (largest <= base) return (double)count * seconds[base] / (double)base;
    size_t measured = fr_smaller(base + count, largest);
    return seconds[measured] - seconds[base] + FEARED / HOPE * (seconds[base + count] - seconds[measured]);
}

/* Sets how many rows a part's looked-up drafts may take in addition to the rows that other parts need, and the price of
 * each row. The number is so small that at most the time of `risk` forwards is lost if all of these drafts are
 * rejected. */
static void tell_found(const outlook *known, fr_draft_depth_part *part, size_t others, size_t room, double risk) {
    double verify[FR_DRAFT_DEPTH_ROWS + 1], rate = fr_draft_depth_rate(known->draft_depth);
    size_t base = known->base + others, largest = fr_draft_depth_lately(known->draft_depth, verify);
    size_t hoped = largest > base ? 2 * (largest - base) + 1 : 1;
    part->found = fr_smaller(fr_smaller(part->most_found, room), hoped);
    while (part->found && at_risk(verify, base, largest, part->found) > risk * verify[base]) part->found--;
    for (size_t d = 0; d < part->found; d++) part->gains.found[d] = rate * (verify[base + d + 1] - verify[base + d]);
}

/* Divides the batch's rows among the parts for looked-up drafts. Rows for the drafts that the parts were asked for are
 * reserved first. The other rows are divided evenly among the parts that can look up drafts. */
static void tell_finds(const outlook *known, fr_draft_depth_part *parts, size_t count, size_t room) {
    size_t all = 0, finding = 0;
    double risk = DEBT + known->draft_depth->finds_won;
    for (size_t i = 0; i < count; i++) {
        all += parts[i].asked;
        finding += parts[i].most_found > 0;
    }
    for (size_t i = 0; i < count; i++)
        if (parts[i].most_found)
            tell_found(known, &parts[i], all - parts[i].asked, parts[i].asked + (room - all) / finding,
                       risk / (double)finding);
}

/* Makes all parts ask the drafter with this index. */
static void turn_to(fr_draft_depth_part *parts, size_t count, size_t drafter) {
    for (size_t i = 0; i < count; i++) {
        const fr_draft_depth_choice *choice = &parts[i].choices[drafter];
        parts[i].drafter = drafter;
        parts[i].limit = choice->limit;
        parts[i].block = choice->block;
        parts[i].lags = choice->lags;
    }
}

static bool has_drafter(const fr_draft_depth_part *parts, size_t count, size_t drafter) {
    bool has = false;
    for (size_t i = 0; i < count; i++) has |= parts[i].choices[drafter].limit > 0;
    return has;
}

/* Returns true if drafts of this drafter have been timed, in this run or in an earlier one. */
static bool was_tried(const fr_draft_depth *draft_depth, size_t drafter) {
    const fr_draft_depth_drafter *by = &draft_depth->by[drafter];
    bool tried = false, trusts = trusts_earlier(draft_depth);
    for (size_t k = 1; k < FR_STEP_MAX; k++) tried |= by->draft[k].count > 0 || (trusts && by->earlier[k] > 0);
    return tried;
}

/* Returns true if an earlier run measured all times that a first choice needs: T for one row and for more, and D of
 * all drafters that the parts may ask. */
static bool knows_times(const fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t count) {
    bool knows = false;
    for (size_t rows = 2; rows <= FR_DRAFT_DEPTH_ROWS; rows++) knows |= draft_depth->earlier[rows] > 0;
    knows &= draft_depth->earlier[1] > 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].limit) knows &= was_tried(draft_depth, parts[i].drafter);
        for (size_t d = 0; d < FR_DRAFTERS_MAX; d++)
            if (parts[i].choices[d].limit) knows &= was_tried(draft_depth, d);
    }
    return knows;
}

/* Gives the index of a drafter other than this one; FR_DRAFTERS_MAX: there is none. */
static size_t other_drafter(const fr_draft_depth_part *parts, size_t count, size_t drafter) {
    for (size_t d = 0; d < FR_DRAFTERS_MAX; d++)
        if (d != drafter && has_drafter(parts, count, d)) return d;
    return FR_DRAFTERS_MAX;
}

/* Gives the drafter whose best choice has the most tokens a second. Only drafters that were tried are compared. If none
 * was tried, gives the drafter that the parts have now. */
static size_t best_drafter(fr_draft_depth_part *parts, const question *q) {
    size_t best = parts[0].drafter;
    double most = 0;
    for (size_t d = 0; d < FR_DRAFTERS_MAX; d++) {
        outlook known;
        if (!has_drafter(parts, q->count, d) || !was_tried(q->draft_depth, d)) continue;
        turn_to(parts, q->count, d);
        look(&known, q);
        if (known.seconds[0] <= 0 || rate_of(&known, known.best) <= most) continue;
        most = rate_of(&known, known.best);
        best = d;
    }
    return best;
}

/* Tries a drafter other than that of the best choice. The best choice gives `rate` tokens a second. The other drafter
 * is asked for the number of drafts that would be best with the hoped times, or for one draft if it was never tried. */
static bool try_elsewhere(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, question q, double rate,
                          outlook *known, attempt *tried) {
    size_t best = parts[0].drafter, other = other_drafter(parts, q.count, best);
    outlook hoped;
    draft_depth->elsewhere = draft_depth->round >= draft_depth->next_elsewhere && other < FR_DRAFTERS_MAX;
    if (!draft_depth->elsewhere) return false;
    turn_to(parts, q.count, other);
    look(known, &q);
    q.hoped = true;
    look(&hoped, &q);
    size_t most = was_tried(draft_depth, other) ? fr_larger(hoped.best, 1) : 1;
    for (size_t d = 1; d <= fr_smaller(most, hoped.limit); d++) known->whose[d] = hoped.whose[d];
    *tried = attempt_of(known, fr_smaller(most, hoped.limit));
    if (tried->drafts && try(draft_depth, known, tried, rate)) return true;
    turn_to(parts, q.count, best);
    return false;
}

static void choose(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, question q, size_t rows) {
    outlook known, hoped, other;
    bool several = other_drafter(parts, q.count, parts[0].drafter) < FR_DRAFTERS_MAX;
    if (several) turn_to(parts, q.count, best_drafter(parts, &q));
    look(&known, &q);
    attempt best = attempt_of(&known, known.best), tried;
    draft_depth->rate = known.seconds[0] > 0 ? rate_of(&known, known.best) : 0;
    if (q.room && draft_depth->round >= draft_depth->next_try) {
        q.hoped = true;
        look(&hoped, &q);
        q.hoped = false;
        if (several && try_elsewhere(draft_depth, parts, q, draft_depth->rate, &other, &tried)) {
            best = tried;
        } else if (try_other(draft_depth, &known, &hoped, &tried)) {
            best = tried;
        }
    }
    give_out(&best, parts, q.count);
    bool elsewhere = draft_depth->trying && draft_depth->elsewhere;
    tell_worths(elsewhere ? &other : &known, draft_depth->trying, parts, q.count,
                fr_smaller(q.room, FR_DRAFT_DEPTH_ROWS - known.base));
    /* A try's expected tokens were estimated for whole chains. So they are not used if a chain may end early. */
    for (size_t i = 0; i < q.count; i++)
        if (draft_depth->trying && parts[i].ends) draft_depth->tokens = 0;
    if (!draft_depth->trying) tell_finds(&known, parts, q.count, fr_smaller(rows, FR_DRAFT_DEPTH_ROWS - known.base));
}

/* Asks timelines for one draft each: the first `drafting` timelines of those that may draft. */
static void ask_of_first(fr_draft_depth_part *parts, size_t count, size_t drafting) {
    for (size_t i = 0; i < count && drafting; i++) {
        parts[i].asked = fr_smaller(parts[i].limit, 1);
        drafting -= parts[i].asked;
    }
}

/* Returns true if a second timeline is asked as well, to learn how long two chains take together. If the second
 * timeline's method must first run a prompt, the second timeline is asked only if more than one draft may pay. */
static bool asks_second(question q) {
    outlook hoped;
    if (q.draft_depth->by[q.parts[0].drafter].share.count || q.room == 1 || q.count == 1) return false;
    if (rows_behind(drafts_of(&q.parts[1])) == 0) return true;
    q.hoped = true;
    look(&hoped, &q);
    return hoped.best > 1;
}

static void choose_counts(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                          size_t taken) {
    size_t most = 0, most_found = 0;
    draft_depth->trying = draft_depth->elsewhere = false;
    draft_depth->loss = 0;
    size_t first = other_drafter(parts, count, FR_DRAFTERS_MAX), second = other_drafter(parts, count, first);
    if (first < FR_DRAFTERS_MAX) turn_to(parts, count, first);
    for (size_t i = 0; i < count; i++) {
        parts[i].asked = parts[i].found = 0;
        parts[i].ends = false;
        most += parts[i].limit;
        most_found += parts[i].most_found;
    }
    for (size_t i = 0; i < count && second < FR_DRAFTERS_MAX; i++)
        most += parts[i].choices[second].limit > parts[i].limit ? parts[i].choices[second].limit - parts[i].limit : 0;
    if (room == 0 || most + most_found == 0 || count + taken >= FR_DRAFT_DEPTH_ROWS) return;
    /* The first four rounds measure one draft, no draft, one draft, and no draft. If there are two drafters, the third
     * round asks the second drafter. These rounds are left out if an earlier run measured the same times. */
    if (draft_depth->round < 4 && !knows_times(draft_depth, parts, count)) {
        if (draft_depth->round == 2 && second < FR_DRAFTERS_MAX) turn_to(parts, count, second);
        if (draft_depth->round % 2 == 0) ask_of_first(parts, count, 1);
        return;
    }
    question q = {draft_depth, parts, count, fr_smaller(most, room), taken, false};
    if (q.room && asks_second(q))
        ask_of_first(parts, count, 2);
    else
        choose(draft_depth, parts, q, room);
}

/* A block is asked for whole, because that costs no more. Which of its drafts are verified is chosen once their chances
 * are known (draft_cut.h). Rejection sampling is an exception: the drawn ids must not decide how many drafts are
 * verified, so exactly the planned number of drafts is asked for and verified. */
void fr_draft_depth_choose(fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t count, size_t room,
                           size_t taken) {
    choose_counts(draft_depth, parts, count, room, taken);
    for (size_t i = 0; i < count; i++) {
        fr_draft_depth_part *part = &parts[i];
        part->planned = part->asked;
        if (part->block && part->asked && !part->compares) part->asked = part->limit;
    }
}

/* ----------------------------------------------------------------------------------------------------------- report */

static void fade(fr_draft_rate *rate, double share) {
    rate->hits -= share * rate->hits;
    rate->tries -= share * rate->tries;
}

static void count(fr_draft_rate *rate, bool hit) {
    rate->hits += hit;
    rate->tries += 1;
}

/* Adds the drafts that were left out to the counts. Each of them counts as accepted with the probability that it would
 * have been accepted. The verified drafts are the more likely ones, so the shares would be too high if only these were
 * counted. */
static void count_left_out(fr_draft_depth_drafts *t, const fr_draft_depth_part *part) {
    size_t verified = fr_draft_depth_verified(part);
    double all_stand = 1;
    for (size_t d = verified + 1; d <= part->drafted && part->accepted == verified; d++) {
        double stands = (double)part->stands[d - 1];
        t->stood[d].hits += all_stand * stands;
        t->stood[d].tries += all_stand;
        all_stand *= stands;
    }
}

/* `asked` gives the number of drafts that a part was asked for, or 0 if the part's drafts were looked up instead.
 * `made` gives how many of these drafts the method made. */
static size_t asked(const fr_draft_depth_part *part) {
    return part->looked_up ? 0 : part->asked;
}
static size_t made(const fr_draft_depth_part *part) {
    return part->made && asked(part) ? part->made : asked(part);
}

/* Counts the steps that a part's drafts took: a block takes one step. */
static size_t count_steps(const fr_draft_depth_part *part) {
    return part->block ? fr_smaller(made(part), 1) : made(part);
}

static void learn_drafts(fr_draft_depth *draft_depth, const fr_draft_depth_part *part) {
    fr_draft_depth_drafts *t = drafts_of(part);
    fr_draft_depth_drafter *drafter = &draft_depth->by[part->drafter];
    size_t verified = fr_draft_depth_verified(part);
    if (part->looked_up) return;
    for (size_t d = 1; d < FR_STEP_MAX; d++) {
        fade(&t->came[d], FADE);
        fade(&t->made[d], FADE);
        fade(&t->stood[d], FADE);
        if (d <= part->asked) count(&t->came[d], d <= part->drafted);
        if (d <= part->asked) count(&t->made[d], d <= made(part));
        if (d <= verified && d <= part->accepted + 1) count(&t->stood[d], d <= part->accepted);
    }
    if (part->tells) count_left_out(t, part);
    if (part->asked) t->drafted = draft_depth->round;
    if (part->drafted) t->tells = part->tells;
    if (part->tells) fr_calibration_learn(&drafter->calibration, part->chances, verified, part->accepted);
    if (verified == 0) return;
    fade(&t->usual, FADE_USUAL);
    count(&t->usual, part->accepted > 0);
    fade(&drafter->usual, FADE_USUAL);
    count(&drafter->usual, part->accepted > 0);
}

/* Learns how much longer drafting took because a method first ran the ids that it had missed. An id is never counted as
 * more expensive than a draft, because the missed ids share forwards. */
static void learn_following(fr_draft_depth *draft_depth, fr_draft_depth_drafter *drafter, size_t rows, double seconds,
                            double draft) {
    if (rows >= FEW)
        add_reading(&drafter->follow, lesser(seconds / (double)rows, draft), draft_depth->round, DRAFT_HELD_UP);
    draft_depth->followed = follow_time(drafter) * (double)rows;
}

/* Gives the drafter that was asked for drafts; NULL if none was asked. Also NULL if several were asked, which happens
 * with drafts that were submitted before the round. */
static fr_draft_depth_drafter *asked_of(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts,
                                        size_t timelines) {
    size_t found = FR_DRAFTERS_MAX;
    for (size_t i = 0; i < timelines; i++) {
        if (asked(&parts[i]) == 0) continue;
        if (found < FR_DRAFTERS_MAX && parts[i].drafter != found) return NULL;
        found = parts[i].drafter;
    }
    return found < FR_DRAFTERS_MAX ? &draft_depth->by[found] : NULL;
}

/* Learns from the time that drafting took. If one timeline drafted, that is the time of its chain. If several drafted,
 * the time shows how much the other chains cost in addition to the longest chain. */
static void learn_drafting(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines,
                           double seconds) {
    size_t drafting = 0, longest = 0, behind = 0;
    double times[FR_STEP_MAX], alone = 0;
    fr_draft_depth_drafter *drafter = asked_of(draft_depth, parts, timelines);
    if (!drafter) return;
    draft_times(draft_depth, drafter, false, makes_blocks(parts, timelines), times);
    for (size_t i = 0; i < timelines; i++) {
        if (asked(&parts[i]) == 0) continue;
        drafting++;
        longest = fr_larger(longest, count_steps(&parts[i]));
        alone += times[count_steps(&parts[i])];
        behind += rows_behind(drafts_of(&parts[i]));
    }
    double known = times[longest] + drafter->share.usual * (alone - times[longest]);
    if (behind && known > 0 && seconds > known) { /* if drafting took less than the known time, the known time was too
                                                   * long */
        learn_following(draft_depth, drafter, behind, seconds - known, times[1]);
        return;
    }
    /* the longest chain alone can't take longer than all chains */
    bool bounds = drafting > 1 && seconds < times[longest];
    if (drafting == 1 || bounds) add_reading(&drafter->draft[longest], seconds, draft_depth->round, DRAFT_HELD_UP);
    if (drafting < 2 || alone <= times[longest]) return;
    double share = (seconds - times[longest]) / (alone - times[longest]);
    add_reading(&drafter->share, greater(0, lesser(share, SHARE_MAX)), draft_depth->round, DRAFT_HELD_UP);
}

static double tokens_of(const fr_draft_depth_part *parts, size_t timelines) {
    double tokens = (double)timelines;
    for (size_t i = 0; i < timelines; i++) tokens += (double)parts[i].accepted;
    return tokens;
}

static void learn_earned(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines,
                         double seconds) {
    /* The rate so far was measured with another number of timelines, so it starts anew. */
    if (draft_depth->earning != timelines) draft_depth->earned = (fr_draft_rate){0};
    draft_depth->earning = timelines;
    fade(&draft_depth->earned, FADE);
    draft_depth->earned.hits += tokens_of(parts, timelines);
    draft_depth->earned.tries += seconds;
}

/* Adds up the tokens that rounds with looked-up drafts gave beyond what their time is worth. The probabilities of such
 * drafts are only estimates. This sum limits what a text can lose by them. */
static void learn_finds(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines, size_t rows) {
    double seconds[FR_DRAFT_DEPTH_ROWS + 1];
    bool found = false;
    for (size_t i = 0; i < timelines; i++) found |= parts[i].looked_up && fr_draft_depth_verified(&parts[i]);
    if (draft_depth->finds_won < 0) draft_depth->finds_won += REPAID;
    if (!found || rows > FR_DRAFT_DEPTH_ROWS) return;
    fr_draft_depth_lately(draft_depth, seconds);
    double won = tokens_of(parts, timelines) - draft_depth->rate * seconds[rows];
    draft_depth->finds_won = lesser(CREDIT, draft_depth->finds_won + won / (double)timelines);
    /* A rate that is computed from an earlier run's times may be wrong, so no loss beyond DEBT is recorded. */
    if (draft_depth->verify[timelines].count == 0) draft_depth->finds_won = greater(-DEBT, draft_depth->finds_won);
}

/* Learns from a try. The next try follows at once in two cases: this try gave more tokens than the best choice would
 * have given in that time, or this try was expected to give more. Otherwise the next try waits longer. The time to run
 * missed ids is not counted, because it need not be spent again. The allowance for tries is lowered by the try's loss,
 * but at most by the expected loss, because the measured time may be too long. */
static void learn_of_try(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines,
                         double seconds) {
    double tokens = tokens_of(parts, timelines);
    draft_depth->allowance -= lesser(draft_depth->loss, greater(0, seconds - draft_depth->tokens / draft_depth->rate));
    bool won = greater(tokens, draft_depth->tokens) > (seconds - draft_depth->followed) * draft_depth->rate;
    if (draft_depth->elsewhere) { /* tries of another drafter have an interval of their own */
        draft_depth->elsewhere_interval = won ? 4 : fr_smaller(2 * draft_depth->elsewhere_interval, LAST);
        draft_depth->next_elsewhere = draft_depth->round + draft_depth->elsewhere_interval;
        return;
    }
    if (won)
        draft_depth->interval = 1;
    else
        draft_depth->interval = draft_depth->interval < 4 ? 4 : 2 * draft_depth->interval;
    uint64_t last = draft_depth->loss > CHEAP * seconds ? LAST : LAST_CHEAP;
    if (draft_depth->interval > last) draft_depth->interval = last;
    draft_depth->next_try = draft_depth->round + draft_depth->interval;
}

/* Learns from the times of a round with this many rows. */
static void learn_times(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines, size_t rows,
                        double draft_seconds, double verify_seconds) {
    if (draft_depth->round++ == 0) draft_depth->allowance = START * verify_seconds;
    if (rows <= FR_DRAFT_DEPTH_ROWS)
        add_reading(&draft_depth->verify[rows], verify_seconds, draft_depth->round, VERIFY_HELD_UP);
    learn_drafting(draft_depth, parts, timelines, draft_seconds);
    learn_finds(draft_depth, parts, timelines, rows);
    learn_earned(draft_depth, parts, timelines, draft_seconds + verify_seconds);
    draft_depth->allowance += ALLOWANCE * (draft_seconds + verify_seconds);
    if (draft_depth->trying) learn_of_try(draft_depth, parts, timelines, draft_seconds + verify_seconds);
}

/* Counts the ids that drafters have missed. A drafter misses ids if it follows the text only in rounds in which it
 * drafts. */
static void learn_behind(const fr_draft_depth_part *part) {
    for (size_t d = 0; d < FR_DRAFTERS_MAX; d++) {
        fr_draft_depth_drafts *t = &part->timeline->by[d];
        bool own = d == part->drafter, drafts = own && asked(part);
        if (!part->choices[d].lags && !(own && part->lags)) continue;
        t->behind = drafts ? 1 : t->behind + 1;
        if (drafts) t->prompt = 0;
    }
}

void fr_draft_depth_report(fr_draft_depth *draft_depth, const fr_draft_depth_part *parts, size_t timelines,
                           size_t taken, double draft_seconds, double verify_seconds) {
    size_t rows = timelines + taken;
    draft_depth->followed = 0;
    for (size_t i = 0; i < timelines; i++) {
        learn_drafts(draft_depth, &parts[i]);
        rows += fr_draft_depth_verified(&parts[i]);
    }
    if (verify_seconds > 0) learn_times(draft_depth, parts, timelines, rows, draft_seconds, verify_seconds);
    for (size_t i = 0; i < timelines; i++) learn_behind(&parts[i]);
}
