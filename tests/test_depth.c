/* The controller of the draft depth, in simulation: recorded times and recorded or made-up texts, against the best
 * fixed number of drafts in hindsight.
 *
 * A text is, for each of its positions, how many drafts would come there and how many of them would stand; then any way
 * of choosing K can be followed exactly. tests/data/depth/README.md says where the recorded texts are from. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/session/depth.h"

#define TOKENS  8000 /* a stream's length */
#define MOST    (FR_STEP_MAX - 1)
#define STREAMS 8 /* of each case, with other random numbers; their mean counts */

/* ------------------------------------------------------------------------------------------------------------ times */

/* Seconds of a forward of 1 to 16 rows over one of one row, and of drafting. */
typedef struct machine {
    const char *name;
    double verify[FR_STEP_MAX + 1];
    double draft_start, draft_step;
} machine;

/* The first two and their drafters are like what two cores measured (the figures of more than 8 rows, and the demo's,
 * beside other work): 1.1 GB of BF16 read from memory, and the demo, which lies in the cache. The third is llama.cpp's,
 * as the design document has it, with lines between. The others are the first two with a drafter that costs as much as
 * the target, and a perfectly flat one. */
static const machine machines[] = {
    {"memory",
     {0, 1.00, 1.03, 1.08, 1.09, 1.14, 1.14, 1.35, 1.46, 1.54, 1.60, 1.63, 1.84, 1.90, 1.95, 1.99, 2.09},
     0,
     0.0054},
    {"cache",
     {0, 1.00, 1.10, 1.32, 1.60, 1.86, 2.14, 2.74, 3.07, 3.38, 3.60, 3.96, 4.26, 4.82, 5.03, 5.33, 5.67},
     0,
     0.232},
    {"rows cost", {0, 1.0, 1.8, 2.25, 2.7, 3.28, 3.85, 4.43, 5.0, 5.6, 6.2, 6.8, 7.4, 8.0, 8.6, 9.2, 9.8}, 0, 0.1},
    {"memory, dear drafter",
     {0, 1.00, 1.03, 1.08, 1.09, 1.14, 1.14, 1.35, 1.46, 1.54, 1.60, 1.63, 1.84, 1.90, 1.95, 1.99, 2.09},
     0.2,
     0.8},
    {"cache, dear drafter",
     {0, 1.00, 1.10, 1.32, 1.60, 1.86, 2.14, 2.74, 3.07, 3.38, 3.60, 3.96, 4.26, 4.82, 5.03, 5.33, 5.67},
     0.2,
     0.8},
    {"flat", {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0.02},
};
#define MACHINES (sizeof machines / sizeof *machines)

/* ------------------------------------------------------------------------------------------------------------ texts */

typedef struct text {
    const char *name;
    uint8_t came[TOKENS + FR_STEP_MAX], stand[TOKENS + FR_STEP_MAX];
} text;

static double uniform(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) * 0x1p-53;
}

/* Each draft after a right one is right with this probability, at positions first .. end - 1. */
static void stand_at_rate(text *t, size_t first, size_t end, double rate, uint64_t *random) {
    for (size_t p = first; p < end; p++) {
        t->came[p] = MOST;
        while (t->stand[p] < MOST && uniform(random) < rate) t->stand[p]++;
    }
}

static text *stationary(const char *name, double rate, uint64_t random) {
    text *t = calloc(1, sizeof *t);
    t->name = name;
    stand_at_rate(t, 0, TOKENS + FR_STEP_MAX, rate, &random);
    return t;
}

/* Stretches of one rate and of the other in turn. */
static text *switching(const char *name, double one, double other, size_t stretch, uint64_t random) {
    text *t = calloc(1, sizeof *t);
    t->name = name;
    for (size_t p = 0; p < TOKENS; p += stretch) {
        size_t end = p + stretch < TOKENS ? p + stretch : TOKENS + FR_STEP_MAX;
        stand_at_rate(t, p, end, p / stretch % 2 ? other : one, &random);
    }
    return t;
}

/* A recorded text again and again. */
static text *recorded(const char *name, const char *path) {
    text *t = calloc(1, sizeof *t);
    unsigned stand, came;
    size_t count = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    t->name = name;
    for (; count < TOKENS + FR_STEP_MAX && fscanf(file, "%u/%u", &stand, &came) == 2; count++) {
        t->stand[count] = (uint8_t)stand;
        t->came[count] = (uint8_t)came;
    }
    fclose(file);
    ck_assert_uint_ge(count, 1000);
    for (size_t p = count; p < TOKENS + FR_STEP_MAX; p++) {
        t->stand[p] = t->stand[p - count];
        t->came[p] = t->came[p - count];
    }
    return t;
}

enum { TEXTS = 13, USELESS = 2 };
static text *texts[STREAMS][TEXTS];

static void make_texts(void) {
    for (uint64_t stream = 0; stream < STREAMS; stream++) {
        uint64_t random = 7919 * stream + 1;
        text *made[TEXTS] = {
            recorded("the demo and its assistant", "tests/data/depth/demo-mtp.txt"),
            recorded("the demo and ngram", "tests/data/depth/demo-ngram.txt"),
            stationary("useless", 0, random),
            stationary("one in ten", 0.1, random),
            stationary("three in ten", 0.3, random),
            stationary("half", 0.5, random),
            stationary("0.7", 0.7, random),
            stationary("0.85", 0.85, random),
            stationary("0.95", 0.95, random),
            stationary("perfect", 1, random),
            switching("perfect or useless, 1000 tokens each", 1, 0, 1000, random),
            switching("useless or good, 500 tokens each", 0, 0.8, 500, random),
            switching("fair or good, 200 tokens each", 0.4, 0.9, 200, random),
        };
        memcpy(texts[stream], made, sizeof made);
    }
}

static void free_texts(void) {
    for (size_t stream = 0; stream < STREAMS; stream++)
        for (size_t i = 0; i < TEXTS; i++) free(texts[stream][i]);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

typedef struct clock_noise {
    double spread; /* of each reading, as a share of it */
    double jumps;  /* how often a reading is held up, to ten times as long */
    uint64_t random;
} clock_noise;

static double reading(clock_noise *noise, double seconds) {
    double factor = 1 + noise->spread * (uniform(&noise->random) + uniform(&noise->random) - 1);
    if (uniform(&noise->random) < noise->jumps) factor *= 10;
    return seconds * factor;
}

static double draft_seconds(const machine *m, size_t asked) {
    return asked ? m->draft_start + m->draft_step * (double)asked : 0;
}

/* Tokens a second over a text, with a fixed K, or the controller's if depth is given. Time is the machine's; the
 * controller sees a noisy clock's. */
static double run(const machine *m, const text *t, size_t fixed, fr_depth *depth, clock_noise noise) {
    double seconds = 0;
    size_t at = 0;
    while (at < TOKENS) {
        size_t asked = depth ? fr_depth_choose(depth, MOST) : fixed;
        size_t drafted = asked < t->came[at] ? asked : t->came[at];
        size_t accepted = drafted < t->stand[at] ? drafted : t->stand[at];
        double draft = draft_seconds(m, asked), verify = m->verify[drafted + 1];
        seconds += draft + verify;
        if (depth)
            fr_depth_report(depth, &(fr_depth_round){asked, drafted, accepted, reading(&noise, 1e-3 * draft),
                                                     reading(&noise, 1e-3 * verify)});
        at += accepted + 1;
    }
    return (double)at / seconds;
}

static double best_fixed(const machine *m, const text *t) {
    double best = 0;
    for (size_t fixed = 0; fixed <= MOST; fixed++) {
        double rate = run(m, t, fixed, NULL, (clock_noise){0});
        if (rate > best) best = rate;
    }
    return best;
}

/* The controller's tokens a second as a share of the best fixed number's, the mean of all streams. */
static double share_of_best(const machine *m, size_t which, double spread, double jumps) {
    double sum = 0;
    for (size_t stream = 0; stream < STREAMS; stream++) {
        fr_depth depth;
        fr_depth_reset(&depth);
        clock_noise noise = {spread, jumps, stream + 1};
        const text *t = texts[stream][which];
        sum += run(m, t, 0, &depth, noise) / best_fixed(m, t);
    }
    return sum / STREAMS;
}

START_TEST(within_3_percent_of_the_best_fixed_depth) {
    const machine *m = &machines[_i];
    for (size_t which = 0; which < TEXTS; which++) {
        double share = share_of_best(m, which, 0, 0);
        ck_assert_msg(share >= 0.97, "%s, %s: %.3f of the best", m->name, texts[0][which]->name, share);
    }
}
END_TEST

/* Readings off by up to a tenth, and one in a hundred ten times too long. */
START_TEST(and_so_with_a_noisy_clock) {
    const machine *m = &machines[_i];
    for (size_t which = 0; which < TEXTS; which++) {
        double share = share_of_best(m, which, 0.1, 0.01);
        ck_assert_msg(share >= 0.97, "%s, %s: %.3f of the best", m->name, texts[0][which]->name, share);
    }
}
END_TEST

START_TEST(a_useless_drafter_costs_less_than_3_percent) {
    const machine *m = &machines[_i];
    for (size_t stream = 0; stream < STREAMS; stream++) {
        const text *t = texts[stream][USELESS];
        fr_depth depth;
        fr_depth_reset(&depth);
        double none = run(m, t, 0, NULL, (clock_noise){0}),
               got = run(m, t, 0, &depth, (clock_noise){0.1, 0.01, stream});
        ck_assert_msg(got >= 0.97 * none, "%s: %.3f of none", m->name, got / none);
    }
}
END_TEST

/* Rounds from one moment on, all drafts standing or none; gives how many until the wanted kind of depth was asked for
 * three times in a row. */
static size_t rounds_until(fr_depth *depth, const machine *m, bool stand, bool drafting) {
    size_t rounds = 0;
    for (size_t right = 0; right < 3 && rounds < 10000; rounds++) {
        size_t asked = fr_depth_choose(depth, MOST);
        right = (asked > 0) == drafting ? right + 1 : 0;
        fr_depth_report(
            depth, &(fr_depth_round){asked, asked, stand ? asked : 0, draft_seconds(m, asked), m->verify[asked + 1]});
    }
    return rounds;
}

START_TEST(it_stops_drafting_and_comes_back) {
    const machine *m = &machines[1];
    fr_depth depth;
    fr_depth_reset(&depth);
    for (int again = 0; again < 3; again++) {
        ck_assert_uint_lt(rounds_until(&depth, m, false, false), 100);
        for (size_t i = 0; i < 2000; i++) rounds_until(&depth, m, false, false);
        ck_assert_uint_lt(rounds_until(&depth, m, true, true), 400);
        for (size_t i = 0; i < 50; i++) rounds_until(&depth, m, true, true);
    }
}
END_TEST

START_TEST(tries_of_a_useless_drafter_grow_rare) {
    const machine *m = &machines[1];
    fr_depth depth;
    fr_depth_reset(&depth);
    size_t first = 0, last = 0;
    for (size_t round = 0; round < 2000; round++) {
        size_t asked = fr_depth_choose(&depth, MOST);
        if (asked && round < 200) first++;
        if (asked && round >= 1800) last++;
        fr_depth_report(&depth, &(fr_depth_round){asked, asked, 0, draft_seconds(m, asked), m->verify[asked + 1]});
    }
    ck_assert_uint_gt(first, 2 * last);
    ck_assert_uint_ge(last, 1);
}
END_TEST

START_TEST(no_more_than_the_limit_is_asked_for) {
    const machine *m = &machines[5];
    fr_depth depth;
    fr_depth_reset(&depth);
    for (size_t round = 0; round < 1000; round++) {
        size_t limit = round % FR_STEP_MAX, asked = fr_depth_choose(&depth, limit);
        ck_assert_uint_le(asked, limit);
        fr_depth_report(&depth, &(fr_depth_round){asked, asked, asked, draft_seconds(m, asked), m->verify[asked + 1]});
    }
}
END_TEST

START_TEST(the_same_readings_give_the_same_depths) {
    fr_depth one, other;
    uint64_t random = 5;
    fr_depth_reset(&one);
    fr_depth_reset(&other);
    for (size_t round = 0; round < 5000; round++) {
        size_t asked = fr_depth_choose(&one, MOST);
        ck_assert_uint_eq(fr_depth_choose(&other, MOST), asked);
        fr_depth_round r = {asked, asked, (size_t)((double)asked * uniform(&random)), uniform(&random),
                            uniform(&random)};
        fr_depth_report(&one, &r);
        fr_depth_report(&other, &r);
    }
}
END_TEST

/* Clocks that stand still, or readings beyond all sense, are no reason to divide by zero or to ask for nonsense. */
START_TEST(senseless_readings_do_no_harm) {
    const double readings[] = {0, 0, 1e-300, 1e300, 0, 1};
    fr_depth depth;
    fr_depth_reset(&depth);
    for (size_t round = 0; round < 5000; round++) {
        size_t asked = fr_depth_choose(&depth, MOST);
        ck_assert_uint_le(asked, MOST);
        fr_depth_report(&depth, &(fr_depth_round){asked, asked, asked * (round % 2), readings[round / 7 % 6],
                                                  readings[round / 3 % 6]});
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("depth");
    tcase_set_timeout(cases, 120);
    tcase_add_unchecked_fixture(cases, make_texts, free_texts);
    tcase_add_loop_test(cases, within_3_percent_of_the_best_fixed_depth, 0, MACHINES);
    tcase_add_loop_test(cases, and_so_with_a_noisy_clock, 0, MACHINES);
    tcase_add_loop_test(cases, a_useless_drafter_costs_less_than_3_percent, 0, MACHINES);
    tcase_add_test(cases, it_stops_drafting_and_comes_back);
    tcase_add_test(cases, tries_of_a_useless_drafter_grow_rare);
    tcase_add_test(cases, no_more_than_the_limit_is_asked_for);
    tcase_add_test(cases, the_same_readings_give_the_same_depths);
    tcase_add_test(cases, senseless_readings_do_no_harm);
    Suite *suite = suite_create("depth");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
