/* Tests base/team_size on simulated jobs. team_size chooses how many of a pool's threads take part in a job. The other
 * threads are parked. Busy neighbours are other programs that use cores; if they take cores away, team_size parks
 * threads.
 *
 * A series simulates a machine. It says how long a job takes with a given number of threads at a given time, and how
 * much of that time threads waited for a core. The choice of team_size is compared with the best fixed number of
 * threads for the same series. */
#include "base/team_size.h"

#include <check.h>
#include <stdlib.h>

#include "tests/support/suite.h"

#define MS INT64_C(1000000)

/* ----------------------------------------------------------------------------------------------- simulated machines */

typedef struct series series;
struct series {
    size_t threads, cores;
    double work;                  /* time of a job with one thread, in milliseconds */
    double gain;                  /* speed that each further thread adds, as a share of the speed of one thread */
    double noise;                 /* size of the random part of a job's time, as a share of the job's time */
    size_t (*loops)(int64_t now); /* number of busy neighbours, each of which uses one core; NULL: none */
    uint64_t seed;
};

static double draw(series *s) {
    s->seed = s->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(s->seed >> 11) / (double)(UINT64_C(1) << 53);
}

/* Returns the simulated time of a job. A job ends at a barrier, which waits for the slowest thread. If there are more
 * threads than free cores, some threads share a core with a neighbour. *in_line: the time that threads waited for a
 * core, summed over the threads. */
static double job_time(series *s, size_t threads, int64_t now, double *in_line) {
    double alone = s->work / (1 + s->gain * (double)(threads - 1)) * (1 + s->noise * (draw(s) - 0.5));
    size_t loops = s->loops ? s->loops(now) : 0;
    size_t crowded = threads + loops > s->cores ? threads + loops - s->cores : 0;
    double late = crowded ? alone * (0.7 + 0.6 * draw(s)) : 0;
    *in_line = late * (double)crowded;
    return alone + late;
}

/* Returns how many milliseconds `jobs` jobs take. If `threads` is 0, team_size chooses the number of threads of each
 * job, and seen[n] counts how often it chose n. */
static double run_series(series s, size_t jobs, size_t threads, size_t *seen) {
    fr_team_size team_size;
    int64_t now = 5000 * MS, begin = now;
    fr_team_size_open(&team_size, s.threads);
    for (size_t i = 0; i < jobs; i++) {
        double in_line;
        size_t taking = threads ? threads : fr_team_size_choose(&team_size, now);
        ck_assert(taking >= 1 && taking <= s.threads);
        if (seen) seen[taking]++;
        int64_t took = (int64_t)(job_time(&s, taking, now, &in_line) * (double)MS);
        now += took;
        fr_team_size_learn(&team_size, 1, now, took, (int64_t)(in_line * (double)MS));
    }
    return (double)(now - begin) / (double)MS;
}

static size_t one(int64_t now) {
    (void)now;
    return 1;
}
static size_t three(int64_t now) {
    (void)now;
    return 3;
}
static size_t until_ten_seconds(int64_t now) {
    return now < 15000 * MS;
}
static size_t every_other_five_seconds(int64_t now) {
    return now / (5000 * MS) % 2;
}

/* ---------------------------------------------------------------------------------------------------- no neighbours */

static const size_t team_sizes[] = {1, 2, 3, 4, 8, 16, 64};

START_TEST(alone_none_is_parked) {
    size_t threads = team_sizes[_i], seen[65] = {0};
    run_series((series){.threads = threads, .cores = threads, .work = 20, .gain = 0.8, .noise = 0.2}, 20000, 0, seen);
    ck_assert_uint_eq(seen[threads], 20000);
}
END_TEST

/* During one of twenty jobs, the operating system uses a core for a moment. This is not a busy neighbour, so no thread
 * may be parked. */
START_TEST(interruptions_park_none) {
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 4);
    for (int i = 0; i < 20000; i++) {
        int64_t late = i % 20 == 0 ? 5 * MS : 0;
        ck_assert_uint_eq(fr_team_size_choose(&team_size, now), 4);
        now += 5 * MS + late;
        fr_team_size_learn(&team_size, 1, now, 5 * MS + late, late);
    }
}
END_TEST

/* Each thread waits for a core in at most a hundredth of the time. Over many threads, these times add up to as much as
 * one busy neighbour would cause. Parking threads does not help here, and the attempt must cost almost nothing. */
START_TEST(many_small_interruptions_cost_little) {
    static const size_t threads[] = {16, 64};
    fr_team_size team_size;
    int64_t now = 0, longest = 0, whole = 50 * MS;
    enum { JOBS = 2000 };
    fr_team_size_open(&team_size, threads[_i]);
    for (int i = 0; i < JOBS; i++) {
        int64_t took = whole * (int64_t)threads[_i] / (int64_t)fr_team_size_choose(&team_size, now);
        longest = took > longest ? took : longest;
        fr_team_size_learn(&team_size, 1, now += took, took, took * 12 / 100);
    }
    ck_assert_int_le(now, JOBS * whole / 100 * 102);
    ck_assert_int_le(longest, 2 * whole);
}
END_TEST

/* Jobs take twice as long although no thread waits for a core, because another program uses the memory's bandwidth.
 * Parking threads would not help, so no thread may be parked. */
START_TEST(slow_memory_parks_none) {
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 4);
    for (int i = 0; i < 5000; i++) {
        int64_t took = i / 100 % 2 ? 10 * MS : 5 * MS;
        ck_assert_uint_eq(fr_team_size_choose(&team_size, now), 4);
        fr_team_size_learn(&team_size, 1, now += took, took, 0);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------- busy neighbours */

static const struct {
    series s;
    size_t best; /* the best fixed number of threads for the series */
} loads[] = {
    {{.threads = 2, .cores = 2, .work = 46, .gain = 0.45, .noise = 0.1, .loops = one}, 1},
    {{.threads = 2, .cores = 2, .work = 3, .gain = 0.9, .noise = 0.3, .loops = one}, 1},
    {{.threads = 4, .cores = 4, .work = 60, .gain = 0.7, .noise = 0.2, .loops = one}, 3},
    {{.threads = 8, .cores = 8, .work = 100, .gain = 0.8, .noise = 0.2, .loops = three}, 5},
    {{.threads = 16, .cores = 16, .work = 200, .gain = 0.9, .noise = 0.2, .loops = one}, 15},
    /* 16 cores have room for all threads and for the neighbours */
    {{.threads = 8, .cores = 16, .work = 100, .gain = 0.8, .noise = 0.2, .loops = three}, 8},
};

/* team_size's choice must be as fast as the best fixed number of threads. The time that it needs to find that number is
 * allowed in addition. */
START_TEST(beside_busy_loops) {
    const series *s = &loads[_i].s;
    size_t seen[65] = {0}, jobs = (size_t)(60000 / s->work); /* a minute of one thread */
    double took = run_series(*s, jobs, 0, seen), best = 1e30;
    size_t which = 0;
    for (size_t n = 1; n <= s->threads; n++) {
        double fixed = run_series(*s, jobs, n, NULL);
        if (fixed < best) best = fixed, which = n;
    }
    ck_assert_uint_eq(which, loads[_i].best);
    ck_assert_uint_gt(10 * seen[which], 8 * jobs);
    ck_assert_msg(took < best / 0.95, "%g ms, with %zu threads %g", took, which, best);
}
END_TEST

/* One of two threads waits for a core during a quarter of the time, but two threads are still faster than one. So the
 * second thread may be parked only for a trial. */
START_TEST(what_does_not_pay_is_undone) {
    size_t seen[3] = {0};
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 2);
    for (int i = 0; i < 4000; i++) {
        size_t taking = fr_team_size_choose(&team_size, now);
        int64_t took = taking == 2 ? 12 * MS : 20 * MS;
        seen[taking]++;
        fr_team_size_learn(&team_size, 1, now += took, took, taking == 2 ? 3 * MS : 0);
    }
    ck_assert_uint_gt(seen[1], 0);
    ck_assert_uint_lt(seen[1], 4000 / 25);
}
END_TEST

START_TEST(a_neighbour_leaves) {
    series s = {.threads = 2, .cores = 2, .work = 46, .gain = 0.45, .noise = 0.1, .loops = until_ten_seconds};
    double before = run_series(s, 200, 0, NULL);
    size_t seen[3] = {0};
    ck_assert(before > 9000 && before < 10000);
    run_series(s, 500, 0, seen);
    /* The neighbour leaves after ten seconds, in which 217 jobs of 46 ms were run */
    size_t after = 500 - 217;
    ck_assert_uint_gt(seen[2], after - 80); /* team_size may need 80 jobs, about two and a half seconds, to notice that
                                             * the neighbour has left */
}
END_TEST

/* A neighbour comes and goes, and the chosen number of threads must follow. */
START_TEST(a_neighbour_comes_and_goes) {
    series s = {.threads = 2, .cores = 2, .work = 10, .gain = 0.6, .noise = 0.1, .loops = every_other_five_seconds};
    double took = run_series(s, 6000, 0, NULL);
    ck_assert_msg(took < 0.9 * run_series(s, 6000, 1, NULL), "%g", took);
    ck_assert_msg(took < 1.05 * run_series(s, 6000, 2, NULL), "%g", took);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- kinds of jobs */

/* Jobs of very different lengths alternate, as prompts, rounds and drafts do in use. Only times of jobs of the same
 * kind may be compared. */
START_TEST(kinds_of_jobs_are_not_mixed_up) {
    static const int64_t work[] = {1, 1, 30, 1, 1, 1, 40, 200};
    size_t seen[3] = {0};
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 2);
    for (int i = 0; i < 20000; i++) {
        int64_t alone = work[i * 7 / 5 % 8] * MS;
        size_t taking = fr_team_size_choose(&team_size, now);
        int64_t took = taking == 2 ? alone * 18 / 10 : alone * 14 / 10;
        seen[taking]++;
        fr_team_size_learn(&team_size, (uint64_t)work[i * 7 / 5 % 8], now += took, took,
                           taking == 2 ? alone * 8 / 10 : 0);
    }
    ck_assert_uint_gt(seen[1], 17500);
}
END_TEST

/* There are more kinds of jobs than team_size remembers. */
START_TEST(any_number_of_kinds) {
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 3);
    for (uint64_t i = 0; i < 10000; i++) {
        size_t taking = fr_team_size_choose(&team_size, now);
        ck_assert(taking >= 1 && taking <= 3);
        fr_team_size_learn(&team_size, i * i % 1009, now += 5 * MS, 5 * MS, i % 3 ? 2 * MS : -1);
    }
}
END_TEST

/* Jobs whose waiting time was not measured are no evidence of a neighbour. Neither is a time without jobs. So no thread
 * may be parked. */
START_TEST(without_evidence_none_is_parked) {
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 2);
    for (int i = 0; i < 5000; i++) {
        ck_assert_uint_eq(fr_team_size_choose(&team_size, now), 2);
        fr_team_size_learn(&team_size, 1, now += 60 * MS, 60 * MS, -1);
    }
}
END_TEST

/* Only one job in ten has its waiting time measured. This must be enough to find a neighbour. */
START_TEST(some_jobs_are_watched) {
    fr_team_size team_size;
    int64_t now = 0;
    int i = 0;
    fr_team_size_open(&team_size, 2);
    for (; fr_team_size_choose(&team_size, now) == 2; i++) {
        ck_assert_int_lt(i, 1000);
        fr_team_size_learn(&team_size, 1, now += 10 * MS, 10 * MS, i % 10 ? -1 : 3 * MS);
    }
    ck_assert_int_gt(i, 50);
}
END_TEST

/* After a pause, the parked threads are tried again at once. */
START_TEST(after_a_pause_all_are_asked) {
    fr_team_size team_size;
    int64_t now = 0;
    fr_team_size_open(&team_size, 2);
    for (int i = 0; i < 3000; i++) {
        size_t taking = fr_team_size_choose(&team_size, now);
        int64_t took = taking == 2 ? 60 * MS : 40 * MS;
        fr_team_size_learn(&team_size, 1, now += took, took, taking == 2 ? 30 * MS : 0);
    }
    while (fr_team_size_choose(&team_size, now) == 2)
        fr_team_size_learn(&team_size, 1, now += 60 * MS, 60 * MS, 30 * MS);
    ck_assert_uint_eq(fr_team_size_choose(&team_size, now), 1);
    ck_assert_uint_eq(fr_team_size_choose(&team_size, now + 1100 * MS), 2);
}
END_TEST

FR_SUITE("team_size") {
    enum { TEAMS = sizeof team_sizes / sizeof *team_sizes, LOADS = sizeof loads / sizeof *loads };
    TCase *cases = tcase_create("team_size");
    tcase_add_loop_test(cases, alone_none_is_parked, 0, TEAMS);
    tcase_add_test(cases, interruptions_park_none);
    tcase_add_loop_test(cases, many_small_interruptions_cost_little, 0, 2);
    tcase_add_test(cases, slow_memory_parks_none);
    tcase_add_loop_test(cases, beside_busy_loops, 0, LOADS);
    tcase_add_test(cases, what_does_not_pay_is_undone);
    tcase_add_test(cases, a_neighbour_leaves);
    tcase_add_test(cases, a_neighbour_comes_and_goes);
    tcase_add_test(cases, kinds_of_jobs_are_not_mixed_up);
    tcase_add_test(cases, any_number_of_kinds);
    tcase_add_test(cases, without_evidence_none_is_parked);
    tcase_add_test(cases, some_jobs_are_watched);
    tcase_add_test(cases, after_a_pause_all_are_asked);
    suite_add_tcase(suite, cases);
}
