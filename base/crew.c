/* Decides how many threads take part (crew.h).
 *
 *     settled -- threads wait for a core ---------> trial of fewer ---- faster ---> settled on them
 *     settled -- some are parked, time is up -----> trial of one more - as fast --> settled on it
 *                                                               \---- else -----> settled as before, for longer
 *
 * A trial compares the time of its jobs with the time that the same kinds of jobs took before. It compares sums, so
 * long jobs count most. The time that threads wait for a core decides how many are parked at once: of eight threads
 * beside three busy loops, seven are no faster than eight. */
#include "base/crew.h"

#define MILLISECOND INT64_C(1000000)
#define WATCH (100 * MILLISECOND)  /* job time after which the share of waiting is trusted: 30 turns of 3 ms */
#define TRIAL (100 * MILLISECOND)  /* least job time of a trial */
#define TRIAL_JOBS 3               /* least number of jobs of a trial */
#define TRIAL_CLEAR (TRIAL / 4)    /* a trial that has lost or gained this much ends early */
#define TRIAL_MAX (10 * TRIAL)    /* a trial that is undecided after this time ends */
#define FIRST_PERIOD (250 * MILLISECOND)
#define PERIOD_MAX (2000 * MILLISECOND)
#define COST_SHARE 0.04 /* share of the possible gain that trials may cost */
#define COST_MAX (6000.0 * MILLISECOND)
#define FAR_SLOWER 1.15 /* after a trial this much slower, parking more threads is not tried */
#define PAUSE (1000 * MILLISECOND) /* after so long without a job, the load of other programs is unknown */

#define CROWDED 0.1 /* share of time that threads wait for a core, from which on fewer are tried */
#define FREE 0.05   /* share below which one more thread stays if it does no harm */
#define FASTER 0.97
#define AS_FAST 1.02

void fr_crew_open(fr_crew *crew, size_t seats) {
    *crew = (fr_crew){.seats = seats, .settled = seats, .taking = seats, .stride = 1};
    crew->fewer.period = crew->more.period = FIRST_PERIOD;
}

static void forget_watched(fr_crew *crew) {
    crew->watched = crew->in_line = 0;
}

static bool crowded(const fr_crew *crew) {
    return crew->watched >= (double)WATCH && crew->in_line >= CROWDED * crew->watched;
}

/* ----------------------------------------------------------------------------------------------------------- trials */

static void begin_trial(fr_crew *crew, size_t taking, int64_t now) {
    crew->share = crew->watched > 0 && crew->in_line < crew->watched ? crew->in_line / crew->watched : 1;
    crew->taking = taking;
    crew->expected = crew->actual = 0;
    crew->tried = 0;
    crew->first = crew->jobs;
    crew->began = now;
    forget_watched(crew);
}

static void put_off(fr_crew_patience *patience, int64_t now, double cost) {
    if (cost > COST_MAX) cost = COST_MAX;
    patience->until = now + (patience->period > cost ? patience->period : (int64_t)cost);
    patience->period = 2 * patience->period < PERIOD_MAX ? 2 * patience->period : PERIOD_MAX;
}

/* Keeps the tried number of threads. The next step in the same direction may follow at once, a step back only after
 * the first period. */
static void settle(fr_crew *crew, int64_t now) {
    double ratio = crew->tried ? crew->actual / crew->expected : 1;
    bool fewer = crew->taking < crew->settled;
    for (size_t i = 0; i < FR_CREW_KINDS; i++) { /* kinds that the trial has not seen are forgotten */
        fr_crew_kind *kind = &crew->kinds[i];
        kind->usual *= ratio;
        if (kind->used <= crew->first) kind->times = 0;
    }
    crew->fewer = crew->more = (fr_crew_patience){.until = now, .period = FIRST_PERIOD};
    put_off(fewer ? &crew->more : &crew->fewer, now, 0);
    crew->settled = crew->taking;
    crew->stride = 1;
    forget_watched(crew);
}

static void turn_back(fr_crew *crew, int64_t now) {
    bool fewer = crew->taking < crew->settled;
    double cost = crew->actual - crew->expected;
    put_off(fewer ? &crew->fewer : &crew->more, now, fewer ? cost / (COST_SHARE * crew->share) : 0);
    bool further = crew->taking > 1 && crew->tried && crew->actual < FAR_SLOWER * crew->expected;
    if (fewer) crew->stride = further ? 2 * crew->stride : 1;
    crew->taking = crew->settled;
    forget_watched(crew);
}

static bool is_better(const fr_crew *crew) {
    double ratio = crew->actual / crew->expected;
    if (ratio < FASTER) return true;
    return crew->taking > crew->settled && ratio < AS_FAST && crew->in_line < FREE * crew->watched;
}

/* Returns true if parked threads may come back without a comparison of times: threads hardly ever wait for a core, so
 * no other program wants it. This brings back all threads even if only unknown kinds of jobs run. */
static bool nobody_waits(const fr_crew *crew) {
    return crew->taking > crew->settled && crew->watched > 0 && crew->in_line < FREE * crew->watched;
}

static void look_at_trial(fr_crew *crew, int64_t now) {
    double cost = crew->actual - crew->expected;
    bool whole = crew->expected >= (double)TRIAL && crew->tried >= TRIAL_JOBS;
    bool clear = crew->tried > 1 && (cost > (double)TRIAL_CLEAR || cost < -(double)TRIAL_CLEAR);
    clear |= cost > (double)TRIAL_CLEAR && crew->actual > 1.5 * crew->expected; /* one job is enough */
    bool blind = crew->tried == 0 && now - crew->began >= TRIAL; /* no job of a known kind has run */
    if (!whole && !clear && !blind && now - crew->began < TRIAL_MAX) return;
    if ((whole || clear) ? is_better(crew) : blind && nobody_waits(crew)) settle(crew, now);
    else turn_back(crew, now);
}

/* Gives the number of threads to park. A thread and another program that want the same core get half of it each, so
 * twice as many threads are in the way as wait at a time. */
static size_t fewer_by(const fr_crew *crew) {
    size_t most = crew->settled - 1, in_the_way = (size_t)(2 * crew->in_line / crew->watched + 0.5);
    size_t by = (in_the_way ? in_the_way : 1) * crew->stride;
    return by < most ? by : most;
}

size_t fr_crew_taking(fr_crew *crew, int64_t now) {
    bool paused = crew->jobs && now - crew->ended > PAUSE;
    if (paused) {
        crew->taking = crew->settled;
        crew->more = (fr_crew_patience){.until = now, .period = FIRST_PERIOD};
        forget_watched(crew);
    }
    if (crew->taking != crew->settled) return crew->taking;
    if (crew->settled > 1 && now >= crew->fewer.until && crowded(crew))
        begin_trial(crew, crew->settled - fewer_by(crew), now);
    else if (crew->settled < crew->seats && now >= crew->more.until)
        begin_trial(crew, paused ? crew->seats : crew->settled + 1, now);
    return crew->taking;
}

/* ------------------------------------------------------------------------------------------------------------- jobs */

/* Finds the kind's entry, or empties the entry of the kind that was not seen for longest. */
static fr_crew_kind *find_kind(fr_crew *crew, uint64_t kind) {
    fr_crew_kind *oldest = crew->kinds;
    for (size_t i = 0; i < FR_CREW_KINDS; i++) {
        fr_crew_kind *at = &crew->kinds[i];
        if (at->times && at->kind == kind) return at;
        if (at->used < oldest->used) oldest = at;
    }
    *oldest = (fr_crew_kind){.kind = kind};
    return oldest;
}

/* Averages the first eight jobs of a kind, then about the last eight, as a job gets longer with the context. */
static void learn(fr_crew_kind *kind, double took) {
    kind->times++;
    kind->usual += (took - kind->usual) / (double)(kind->times < 8 ? kind->times : 8);
}

/* Adds a job to the trial's sums, unless too few jobs of its kind were seen before to compare with. */
static void compare(fr_crew *crew, const fr_crew_kind *kind, double took) {
    if (kind->times < TRIAL_JOBS) return;
    crew->expected += kind->usual;
    crew->actual += took;
    crew->tried++;
}

static void watch(fr_crew *crew, double took, double in_line) {
    crew->watched += took;
    crew->in_line += in_line;
    if (crew->watched < 2 * (double)WATCH) return;
    crew->watched /= 2;
    crew->in_line /= 2;
}

void fr_crew_ran(fr_crew *crew, uint64_t kind, int64_t now, int64_t took, int64_t in_line) {
    fr_crew_kind *entry = find_kind(crew, kind);
    crew->jobs++;
    crew->ended = now;
    entry->used = crew->jobs;
    if (in_line >= 0) watch(crew, (double)took, (double)in_line);
    if (crew->taking == crew->settled) {
        learn(entry, (double)took);
        return;
    }
    compare(crew, entry, (double)took);
    look_at_trial(crew, now);
}
