/* Decides how many threads take part (team_size.h).
 *
 *     settled -- threads wait for a core ---------> trial of fewer ---- faster ---> settled on them
 *     settled -- some are parked, time is up -----> trial of one more - as fast --> settled on it
 *                                                               \---- else -----> settled as before, for longer
 *
 * A trial compares the time of its jobs with the time that the same kinds of jobs took before. It compares sums of
 * times, so long jobs count most. The time that threads wait for a core decides how many threads are parked at once,
 * because parking one is not always enough. For example, if three busy loops run on the same cores, seven threads are
 * no faster than eight. */
#include "base/team_size.h"

#define MILLISECOND  INT64_C(1000000)
#define WATCH        (100 * MILLISECOND) /* waits are judged once watched jobs have run this long (30 time slices) */
#define TRIAL        (100 * MILLISECOND) /* shortest total time of the jobs of a trial */
#define TRIAL_JOBS   3                   /* smallest number of jobs of a trial */
#define TRIAL_CLEAR  (TRIAL / 4)         /* a trial that has lost or gained this much time ends early */
#define TRIAL_MAX    (10 * TRIAL)        /* a trial that is undecided after this time ends */
#define FIRST_PERIOD (250 * MILLISECOND) /* first delay between trials in one direction; each failed trial doubles it */
#define PERIOD_MAX   (2000 * MILLISECOND)   /* largest delay that doubling gives */
#define COST_SHARE   0.04                   /* trials may cost this share of the possible gain */
#define COST_MAX     (6000.0 * MILLISECOND) /* largest delay that follows from the cost of a trial */
#define FAR_SLOWER   1.15 /* a failed trial below this share of its expected time makes the next one park more */
#define PAUSE        (1000 * MILLISECOND) /* after this long without a job, the load of other programs is unknown */

#define CROWDED 0.1  /* threads are parked if they wait for a core during this share of the time */
#define FREE    0.05 /* parked threads may come back if the others wait for less than this share */
#define FASTER  0.97 /* a trial is kept if its jobs take less than this share of their expected time */
#define AS_FAST 1.02 /* if threads hardly wait, a trial of more threads is kept below this share of its expected time */

void fr_team_size_open(fr_team_size *team_size, size_t threads) {
    *team_size = (fr_team_size){.threads = threads, .settled = threads, .taking = threads, .stride = 1};
    team_size->fewer.period = team_size->more.period = FIRST_PERIOD;
}

static void forget_watched(fr_team_size *team_size) {
    team_size->watched = team_size->in_line = 0;
}

static bool crowded(const fr_team_size *team_size) {
    return team_size->watched >= (double)WATCH && team_size->in_line >= CROWDED * team_size->watched;
}

/* ----------------------------------------------------------------------------------------------------------- trials */

static void begin_trial(fr_team_size *team_size, size_t taking, int64_t now) {
    team_size->share =
        team_size->watched > 0 && team_size->in_line < team_size->watched ? team_size->in_line / team_size->watched : 1;
    team_size->taking = taking;
    team_size->expected = team_size->actual = 0;
    team_size->tried = 0;
    team_size->first = team_size->jobs;
    team_size->began = now;
    forget_watched(team_size);
}

static void put_off(fr_team_size_patience *patience, int64_t now, double cost) {
    if (cost > COST_MAX) cost = COST_MAX;
    patience->until = now + (patience->period > cost ? patience->period : (int64_t)cost);
    patience->period = 2 * patience->period < PERIOD_MAX ? 2 * patience->period : PERIOD_MAX;
}

/* Settles on the number of threads that the trial used. The next trial in the same direction may follow at once. A
 * trial in the other direction waits for FIRST_PERIOD. */
static void settle(fr_team_size *team_size, int64_t now) {
    double ratio = team_size->tried ? team_size->actual / team_size->expected : 1;
    bool fewer = team_size->taking < team_size->settled;
    for (size_t i = 0; i < FR_TEAM_SIZE_KINDS; i++) { /* forgets kinds that the trial has not seen */
        fr_team_size_kind *kind = &team_size->kinds[i];
        kind->usual *= ratio;
        if (kind->used <= team_size->first) kind->times = 0;
    }
    team_size->fewer = team_size->more = (fr_team_size_patience){.until = now, .period = FIRST_PERIOD};
    put_off(fewer ? &team_size->more : &team_size->fewer, now, 0);
    team_size->settled = team_size->taking;
    team_size->stride = 1;
    forget_watched(team_size);
}

static void turn_back(fr_team_size *team_size, int64_t now) {
    bool fewer = team_size->taking < team_size->settled;
    double cost = team_size->actual - team_size->expected;
    put_off(fewer ? &team_size->fewer : &team_size->more, now, fewer ? cost / (COST_SHARE * team_size->share) : 0);
    bool further = team_size->taking > 1 && team_size->tried && team_size->actual < FAR_SLOWER * team_size->expected;
    if (fewer) team_size->stride = further ? 2 * team_size->stride : 1;
    team_size->taking = team_size->settled;
    forget_watched(team_size);
}

static bool is_better(const fr_team_size *team_size) {
    double ratio = team_size->actual / team_size->expected;
    if (ratio < FASTER) return true;
    return team_size->taking > team_size->settled && ratio < AS_FAST && team_size->in_line < FREE * team_size->watched;
}

/* Returns true if parked threads may come back without a comparison of times. The condition is that threads hardly ever
 * wait for a core, so no other program wants the cores. This rule brings back all threads even if only unknown kinds of
 * jobs run. */
static bool nobody_waits(const fr_team_size *team_size) {
    return team_size->taking > team_size->settled && team_size->watched > 0 &&
           team_size->in_line < FREE * team_size->watched;
}

static void look_at_trial(fr_team_size *team_size, int64_t now) {
    double cost = team_size->actual - team_size->expected;
    bool whole = team_size->expected >= (double)TRIAL && team_size->tried >= TRIAL_JOBS;
    bool clear = team_size->tried > 1 && (cost > (double)TRIAL_CLEAR || cost < -(double)TRIAL_CLEAR);
    clear |= cost > (double)TRIAL_CLEAR && team_size->actual > 1.5 * team_size->expected; /* even a single job is
                                                                                           * enough here */
    bool blind = team_size->tried == 0 && now - team_size->began >= TRIAL; /* no job of a known kind has run, so there
                                                                            * is nothing to compare */
    if (!whole && !clear && !blind && now - team_size->began < TRIAL_MAX) return;
    if ((whole || clear) ? is_better(team_size) : blind && nobody_waits(team_size))
        settle(team_size, now);
    else
        turn_back(team_size, now);
}

/* Gives the number of threads to park. A thread that shares a core with another program waits for half of the time. So
 * the number of threads that share a core is twice the average number of threads that wait. */
static size_t fewer_by(const fr_team_size *team_size) {
    size_t most = team_size->settled - 1, in_the_way = (size_t)(2 * team_size->in_line / team_size->watched + 0.5);
    size_t by = (in_the_way ? in_the_way : 1) * team_size->stride;
    return by < most ? by : most;
}

size_t fr_team_size_choose(fr_team_size *team_size, int64_t now) {
    bool paused = team_size->jobs && now - team_size->ended > PAUSE;
    if (paused) {
        team_size->taking = team_size->settled;
        team_size->more = (fr_team_size_patience){.until = now, .period = FIRST_PERIOD};
        forget_watched(team_size);
    }
    if (team_size->taking != team_size->settled) return team_size->taking;
    if (team_size->settled > 1 && now >= team_size->fewer.until && crowded(team_size))
        begin_trial(team_size, team_size->settled - fewer_by(team_size), now);
    else if (team_size->settled < team_size->threads && now >= team_size->more.until)
        begin_trial(team_size, paused ? team_size->threads : team_size->settled + 1, now);
    return team_size->taking;
}

/* ------------------------------------------------------------------------------------------------------------- jobs */

/* Finds the kind's entry. If there is none, empties and returns the entry whose kind was not seen for the longest
 * time. */
static fr_team_size_kind *find_kind(fr_team_size *team_size, uint64_t kind) {
    fr_team_size_kind *oldest = team_size->kinds;
    for (size_t i = 0; i < FR_TEAM_SIZE_KINDS; i++) {
        fr_team_size_kind *at = &team_size->kinds[i];
        if (at->times && at->kind == kind) return at;
        if (at->used < oldest->used) oldest = at;
    }
    *oldest = (fr_team_size_kind){.kind = kind};
    return oldest;
}

/* Updates the average time of a kind's jobs. The average is over the first eight jobs, and later over about the last
 * eight, because a job gets longer as the context grows. */
static void learn(fr_team_size_kind *kind, double took) {
    kind->times++;
    kind->usual += (took - kind->usual) / (double)(kind->times < 8 ? kind->times : 8);
}

/* Adds a job to the trial's sums, if enough earlier jobs of the same kind were seen to compare it with. */
static void compare(fr_team_size *team_size, const fr_team_size_kind *kind, double took) {
    if (kind->times < TRIAL_JOBS) return;
    team_size->expected += kind->usual;
    team_size->actual += took;
    team_size->tried++;
}

static void watch(fr_team_size *team_size, double took, double in_line) {
    team_size->watched += took;
    team_size->in_line += in_line;
    if (team_size->watched < 2 * (double)WATCH) return;
    team_size->watched /= 2;
    team_size->in_line /= 2;
}

void fr_team_size_learn(fr_team_size *team_size, uint64_t kind, int64_t now, int64_t took, int64_t in_line) {
    fr_team_size_kind *entry = find_kind(team_size, kind);
    team_size->jobs++;
    team_size->ended = now;
    entry->used = team_size->jobs;
    if (in_line >= 0) watch(team_size, (double)took, (double)in_line);
    if (team_size->taking == team_size->settled) {
        learn(entry, (double)took);
        return;
    }
    compare(team_size, entry, (double)took);
    look_at_trial(team_size, now);
}
