/* Simulates how the controller chooses the number of drafts of each session. A timeline is the text of one session.
 *
 * The first part has one timeline and long texts, recorded or invented. The controller is compared with the best fixed
 * number of drafts. A text lists for each position how many drafts a drafter would make there and how many of them
 * would be accepted. So any choice of the number of drafts (K) can be simulated exactly. tests/data/depth/README.md
 * describes the recorded texts.
 *
 * The second part has short texts of one timeline, where the cost of learning matters. Some of its models are mixtures
 * of experts, whose forward passes cost more with each row.
 *
 * The third part has drafters that report probabilities. Chains that end before an unlikely draft are compared with
 * chains that do not.
 *
 * The last part has several timelines with random costs and acceptance rates. The controller is compared with an oracle
 * that knows them. */
/* suite: native no-valgrind */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/session/draft_depth.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"

#define TOKENS  8000 /* number of ids in a text */
#define MOST    (FR_STEP_MAX - 1)
#define STREAMS 8 /* number of random texts with which each case runs; the mean over them is tested */

/* ------------------------------------------------------------------------------------------------------------ times */

/* The times of a simulated machine, relative to a forward pass of one row. verify[r] is the time of a forward pass of r
 * rows. `draft_start` is added once in each round that drafts. `draft_step` is the time of each draft. */
typedef struct machine {
    const char *name;
    double verify[FR_STEP_MAX + 1];
    double draft_start, draft_step;
} machine;

/* The first two machines and their drafters follow measurements on two cores. One machine reads 1.1 GB of BF16 weights
 * from memory. The other has the demo model, which fits in the processor's cache. Forward passes of more than 8 rows
 * were not measured; their times are guesses. The third machine has llama.cpp's times from the design document,
 * interpolated. The next two are the first two machines with a drafter that costs as much as the target. On the last
 * machine further rows cost nothing. */
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

/* Sets what happens at positions `first` to end - 1. If all earlier drafts of a chain are right, the next draft is
 * right with probability `rate`. */
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

/* Makes a text whose acceptance rate alternates between two values. It changes after every `stretch` ids. */
static text *switching(const char *name, double one, double other, size_t stretch, uint64_t random) {
    text *t = calloc(1, sizeof *t);
    t->name = name;
    for (size_t p = 0; p < TOKENS; p += stretch) {
        size_t end = p + stretch < TOKENS ? p + stretch : TOKENS + FR_STEP_MAX;
        stand_at_rate(t, p, end, p / stretch % 2 ? other : one, &random);
    }
    return t;
}

/* Reads a recorded text. Repeats the text until it has TOKENS ids. */
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
    double spread; /* largest relative error of a clock's reading */
    double jumps;  /* probability that a clock's reading is ten times too long */
    uint64_t random;
} clock_noise;

static double reading(clock_noise *noise, double seconds) {
    double first = uniform(&noise->random), factor = 1 + noise->spread * (first + uniform(&noise->random) - 1);
    if (uniform(&noise->random) < noise->jumps) factor *= 10;
    return seconds * factor;
}

static double draft_seconds(const machine *m, size_t asked) {
    return asked ? m->draft_start + m->draft_step * (double)asked : 0;
}

/* A controller with one timeline. */
typedef struct single {
    fr_draft_depth draft_depth;
    fr_draft_depth_timeline timeline;
    bool lags;
} single;

static void reset(single *one) {
    fr_draft_depth_reset(&one->draft_depth);
    fr_draft_depth_join(&one->draft_depth, &one->timeline);
    one->lags = false;
}

static size_t choose(single *one, size_t limit) {
    fr_draft_depth_part part = {.timeline = &one->timeline, .limit = limit};
    fr_draft_depth_choose(&one->draft_depth, &part, 1, limit, 0);
    return part.asked;
}

static void report(single *one, size_t asked, size_t drafted, size_t accepted, double draft, double verify) {
    fr_draft_depth_part part = {
        .timeline = &one->timeline, .asked = asked, .drafted = drafted, .accepted = accepted, .lags = one->lags};
    fr_draft_depth_report(&one->draft_depth, &part, 1, 0, draft, verify);
}

/* Runs a whole text and returns the tokens per second. If `depth` is NULL, each round makes `fixed` drafts. Otherwise
 * the controller `depth` chooses their number. The result is computed from the machine's true times, but the controller
 * sees the readings of a noisy clock. */
static double run(const machine *m, const text *t, size_t fixed, single *depth, clock_noise noise) {
    double seconds = 0;
    size_t at = 0;
    while (at < TOKENS) {
        size_t asked = depth ? choose(depth, MOST) : fixed;
        size_t drafted = asked < t->came[at] ? asked : t->came[at];
        size_t accepted = drafted < t->stand[at] ? drafted : t->stand[at];
        double draft = draft_seconds(m, asked), verify = m->verify[drafted + 1];
        seconds += draft + verify;
        if (depth) {
            /* two statements, so that with every compiler this reading's noise is drawn first */
            double draft_read = reading(&noise, 1e-3 * draft);
            report(depth, asked, drafted, accepted, draft_read, reading(&noise, 1e-3 * verify));
        }
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

/* Returns the controller's tokens per second divided by those of the best fixed number of drafts, averaged over several
 * random texts. If neither the text nor the clock is random, one text is enough. */
static double share_of_best(const machine *m, size_t which, double spread, double jumps) {
    double sum = 0;
    bool equal = spread == 0 && memcmp(texts[0][which], texts[1][which], sizeof(text)) == 0;
    size_t streams = equal ? 1 : fr_test_times(5, STREAMS);
    for (size_t stream = 0; stream < streams; stream++) {
        single depth;
        reset(&depth);
        clock_noise noise = {spread, jumps, stream + 1};
        const text *t = texts[stream][which];
        sum += run(m, t, 0, &depth, noise) / best_fixed(m, t);
    }
    return sum / (double)streams;
}

START_TEST(within_3_percent_of_the_best_fixed_depth) {
    const machine *m = &machines[_i];
    for (size_t which = 0; which < TEXTS; which++) {
        double share = share_of_best(m, which, 0, 0);
        ck_assert_msg(share >= 0.97, "%s, %s: %.3f of the best", m->name, texts[0][which]->name, share);
    }
}
END_TEST

/* The clock has errors of up to a tenth, and one reading in a hundred is ten times too long. */
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
    for (size_t stream = 0; stream < fr_test_times(5, STREAMS); stream++) {
        const text *t = texts[stream][USELESS];
        single depth;
        reset(&depth);
        double none = run(m, t, 0, NULL, (clock_noise){0}),
               got = run(m, t, 0, &depth, (clock_noise){0.1, 0.01, stream});
        ck_assert_msg(got >= 0.97 * none, "%s: %.3f of none", m->name, got / none);
    }
}
END_TEST

/* Runs rounds in which all drafts are accepted (if `stand` is true) or none. Stops when the controller's choice has
 * been the wanted one three times in a row: to draft if `drafting` is true, not to draft otherwise. Returns the number
 * of rounds. */
static size_t rounds_until(single *depth, const machine *m, bool stand, bool drafting) {
    size_t rounds = 0;
    for (size_t right = 0; right < 3 && rounds < 10000; rounds++) {
        size_t asked = choose(depth, MOST);
        right = (asked > 0) == drafting ? right + 1 : 0;
        report(depth, asked, asked, stand ? asked : 0, draft_seconds(m, asked), m->verify[asked + 1]);
    }
    return rounds;
}

START_TEST(it_stops_drafting_and_comes_back) {
    const machine *m = &machines[1];
    single depth;
    reset(&depth);
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
    single depth;
    reset(&depth);
    size_t first = 0, last = 0;
    for (size_t round = 0; round < 2000; round++) {
        size_t asked = choose(&depth, MOST);
        if (asked && round < 200) first++;
        if (asked && round >= 1800) last++;
        report(&depth, asked, asked, 0, draft_seconds(m, asked), m->verify[asked + 1]);
    }
    ck_assert_uint_gt(first, 2 * last);
    ck_assert_uint_ge(last, 1);
}
END_TEST

START_TEST(no_more_than_the_limit_is_asked_for) {
    const machine *m = &machines[5];
    single depth;
    reset(&depth);
    for (size_t round = 0; round < 1000; round++) {
        size_t limit = round % FR_STEP_MAX, asked = choose(&depth, limit);
        ck_assert_uint_le(asked, limit);
        report(&depth, asked, asked, asked, draft_seconds(m, asked), m->verify[asked + 1]);
    }
}
END_TEST

/* The controller must not learn anything about acceptance from drafts that were made but not verified. */
START_TEST(drafts_left_out_say_nothing_of_the_drafter) {
    fr_draft_depth draft_depth;
    fr_draft_depth_timeline timeline;
    fr_draft_depth_reset(&draft_depth);
    fr_draft_depth_join(&draft_depth, &timeline);
    fr_draft_depth_part part = {
        .timeline = &timeline, .limit = 3, .asked = 3, .drafted = 3, .accepted = 1, .left_out = 2};
    fr_draft_depth_timeline fresh = timeline;
    for (int round = 0; round < 5; round++) fr_draft_depth_report(&draft_depth, &part, 1, 0, 0.1, 1);
    for (size_t d = 1; d <= 3; d++) ck_assert_double_eq(timeline.by[0].came[d].hits, timeline.by[0].came[d].tries);
    ck_assert_double_eq(timeline.by[0].stood[1].hits, timeline.by[0].stood[1].tries);
    ck_assert_double_le(timeline.by[0].stood[2].tries, fresh.by[0].stood[2].tries);
    ck_assert_double_gt(draft_depth.verify[2].usual, 0);
    ck_assert_uint_eq(draft_depth.verify[4].count, 0);
}
END_TEST

START_TEST(the_same_readings_give_the_same_depths) {
    single one, other;
    uint64_t random = 5;
    reset(&one);
    reset(&other);
    for (size_t round = 0; round < 5000; round++) {
        size_t asked = choose(&one, MOST);
        ck_assert_uint_eq(choose(&other, MOST), asked);
        size_t accepted = (size_t)((double)asked * uniform(&random));
        double draft = uniform(&random), verify = uniform(&random);
        report(&one, asked, asked, accepted, draft, verify);
        report(&other, asked, asked, accepted, draft, verify);
    }
}
END_TEST

/* The clock stops or gives absurd readings. The controller must not divide by zero, and the numbers of drafts must stay
 * valid. */
START_TEST(senseless_readings_do_no_harm) {
    const double readings[] = {0, 0, 1e-300, 1e300, 0, 1};
    single depth;
    reset(&depth);
    for (size_t round = 0; round < 5000; round++) {
        size_t asked = choose(&depth, MOST);
        ck_assert_uint_le(asked, MOST);
        report(&depth, asked, asked, asked * (round % 2), readings[round / 7 % 6], readings[round / 3 % 6]);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ short texts */

/* A model with a drafter, described by the times of forward passes and drafts.
 *
 * stands[d] is the probability that draft d is accepted if all drafts before it are; the last value holds for all
 * deeper drafts too. If `experts` is 0, the model is dense, and `verify` has the times of its forward passes. Otherwise
 * it is a mixture. Each row chooses `chosen` of `experts` experts, and a forward pass of one row spends the share
 * `reading` of its time on reading experts. The rows of a forward pass choose different experts, and each chosen expert
 * is read once. So the time of reading grows with the number of rows. */
typedef struct shape {
    const char *name;
    double experts, chosen, reading;
    double verify[6]; /* times of 1 to 5 rows, and then the time of each further row */
    double draft_start, draft_step;
    double stands[4];
    /* Extra time of the first draft after a pause, for each id that was generated since the last draft. The first 7 ids
     * are free. */
    double follow;
} shape;

static const shape shapes[] = {
    {"mixture, of 64 experts 4", 64, 4, 0.72, {0}, 0, 0.15, {0.85, 0.70, 0.70, 0.70}, 0},
    {"mixture, of 256 experts 8", 256, 8, 0.80, {0}, 0, 0.08, {0.88, 0.80, 0.72, 0.72}, 0},
    {"mixture, dear drafter", 256, 8, 0.55, {0}, 0.1, 0.25, {0.88, 0.80, 0.72, 0.72}, 0},
    {"mixture, useless drafter", 64, 4, 0.72, {0}, 0, 0.15, {0.2, 0.1, 0.1, 0.1}, 0},
    {"mixture, half", 64, 4, 0.72, {0}, 0, 0.15, {0.5, 0.4, 0.4, 0.4}, 0},
    {"mixture, good drafter", 64, 4, 0.40, {0}, 0, 0.05, {0.9, 0.85, 0.85, 0.85}, 0},
    {"one depth is best", 0, 0, 0, {1, 1.1, 1.13, 1.30, 1.45, 0.15}, 0.1, 0.08, {0.72, 0.50, 0.34, 0.22}, 0},
    {"dense, cheap drafter", 0, 0, 0, {1, 1.02, 1.04, 1.06, 1.1, 0.1}, 0, 0.03, {0.8, 0.775, 0.758, 0.758}, 0},
    {"dense, useless drafter", 0, 0, 0, {1, 1.02, 1.04, 1.06, 1.1, 0.1}, 0, 0.1, {0.05, 0.05, 0.05, 0.05}, 0},
    {"a model that drafts", 0, 0, 0, {1, 1.03, 1.05, 1.07, 1.12, 0.1}, 0, 0.74, {0.72, 0.50, 0.34, 0.22}, 0.043},
    {"a useless model", 0, 0, 0, {1, 1.03, 1.05, 1.07, 1.12, 0.1}, 0, 0.74, {0.1, 0.1, 0.1, 0.1}, 0.043},
    {"a small model", 0, 0, 0, {1, 1.03, 1.05, 1.07, 1.12, 0.1}, 0, 0.2, {0.72, 0.50, 0.34, 0.22}, 0.02},
    {"a small useless model", 0, 0, 0, {1, 1.03, 1.05, 1.07, 1.12, 0.1}, 0, 0.2, {0.15, 0.1, 0.1, 0.1}, 0.02},
};
#define SHAPES (sizeof shapes / sizeof *shapes)
#define LAGGING \
    4                  /* number of shapes, at the end of the list, whose drafter must first run the ids since its last
                        * draft */
#define SHORT_RUNS 100 /* number of runs of each shape; the clock's errors differ from run to run */

static double shape_verify(const shape *s, size_t rows) {
    if (s->experts == 0) return rows <= 5 ? s->verify[rows - 1] : s->verify[4] + (double)(rows - 5) * s->verify[5];
    double different = s->experts * (1 - pow(1 - s->chosen / s->experts, (double)rows));
    return 1 + s->reading * (different / s->chosen - 1);
}

static double shape_draft(const shape *s, size_t drafts) {
    return drafts ? s->draft_start + s->draft_step * (double)drafts : 0;
}

/* Returns the extra time of a draft that follows after this many ids without drafts. */
static double follow_seconds(double row, size_t ids) {
    return ids > 7 ? row * (double)(ids - 7) : 0;
}

static double shape_stands(const shape *s, size_t depth) {
    return s->stands[depth < 4 ? depth : 3];
}

static double shape_tokens(const shape *s, size_t drafts) {
    double tokens = 1, all = 1;
    for (size_t d = 0; d < drafts; d++) tokens += all *= shape_stands(s, d);
    return tokens;
}

static double shape_best(const shape *s) {
    double best = 0;
    for (size_t k = 0; k <= MOST; k++) {
        double rate = shape_tokens(s, k) / (shape_verify(s, k + 1) + shape_draft(s, k));
        if (rate > best) best = rate;
    }
    return best;
}

/* Returns how many of `drafts` drafts are accepted. As in `forerun bench model`, accepted drafts are spread evenly over
 * the rounds. owed[k] is the number of times that the draft at depth k should have been accepted so far, minus the
 * number of times that it was. */
static size_t stand_evenly(const shape *s, size_t drafts, double *owed) {
    size_t stood = 0;
    for (; stood < drafts; stood++) {
        owed[stood] += shape_stands(s, stood);
        if (owed[stood] < 1 - 1e-9) break;
        owed[stood] -= 1;
    }
    return stood;
}

/* The expected tokens and the time of several texts that one controller handles one after the other. */
typedef struct sums {
    double tokens, seconds;
} sums;

static void write_texts(const shape *s, single *depth, size_t count, size_t ids, clock_noise *noise, sums *sum) {
    double owed[MOST] = {0};
    for (size_t t = 0; t < count; t++) {
        size_t behind = 0;
        depth->lags = s->follow > 0;
        fr_draft_depth_followed(&depth->timeline, 0);
        for (size_t made = 0; made < ids;) {
            size_t asked = choose(depth, ids - made - 1 < MOST ? ids - made - 1 : MOST);
            size_t stood = stand_evenly(s, asked, owed);
            double draft = shape_draft(s, asked), verify = shape_verify(s, asked + 1);
            if (asked) draft += follow_seconds(s->follow, behind);
            behind = asked ? 1 : behind + 1;
            double draft_read = reading(noise, 1e-3 * draft);
            report(depth, asked, asked, stood, draft_read, reading(noise, 1e-3 * verify));
            sum->tokens += shape_tokens(s, asked);
            sum->seconds += draft + verify;
            made += stood + 1;
        }
    }
}

/* Measures as `forerun bench model` does: one text runs before the measurement, then three texts are measured. */
START_TEST(short_texts_are_within_5_percent_of_the_best_fixed_depth_and_1_of_none) {
    const shape *s = &shapes[_i];
    for (size_t ids = 48; ids <= 128; ids += 80) {
        sums sum = {0}, before = {0};
        for (size_t run = 0; run < fr_test_times(34, SHORT_RUNS); run++) {
            single depth;
            clock_noise noise = {0.08, 0.02, 77 * run + 5};
            reset(&depth);
            write_texts(s, &depth, 1, ids, &noise, &before);
            write_texts(s, &depth, 3, ids, &noise, &sum);
        }
        double rate = sum.tokens / sum.seconds;
        ck_assert_msg(rate >= 0.95 * shape_best(s), "%s, %zu ids: %.3f of the best", s->name, ids,
                      rate / shape_best(s));
        ck_assert_msg(rate >= 0.99, "%s, %zu ids: %.3f of none", s->name, ids, rate);
    }
}
END_TEST

/* During the very first text the controller knows nothing. Even then drafting may cost at most three forward passes and
 * 1% of the time. */
START_TEST(a_first_text_loses_three_forwards_at_most) {
    const shape *s = &shapes[_i];
    for (size_t ids = 48; ids <= 128; ids += 80) {
        sums sum = {0};
        for (size_t run = 0; run < fr_test_times(34, SHORT_RUNS); run++) {
            single depth;
            clock_noise noise = {0.08, 0.02, 77 * run + 5};
            reset(&depth);
            write_texts(s, &depth, 1, ids, &noise, &sum);
        }
        double lost = (sum.seconds - sum.tokens) / (double)fr_test_times(34, SHORT_RUNS);
        ck_assert_msg(lost <= 3 + 0.01 * (double)ids, "%s, %zu ids: %.2f forwards lost", s->name, ids, lost);
    }
}
END_TEST

/* One reading in 20 is ten times too long, and sometimes several such readings concern the same number of rows. This
 * must not keep any text at a wrong number of drafts. The LAGGING shapes are left out. For them it is too expensive to
 * try drafts again soon, so they may stay at a wrong number until the next prompt. */
START_TEST(no_text_is_lost_to_clocks_held_up) {
    const shape *s = &shapes[_i];
    ck_assert_double_eq(s->follow, 0);
    for (size_t run = 0; run < fr_test_times(34, SHORT_RUNS); run++) {
        single depth;
        clock_noise noise = {0.08, 0.05, 77 * run + 5};
        sums sum = {0};
        reset(&depth);
        write_texts(s, &depth, 1, 1000, &noise, &sum);
        double share = sum.tokens / sum.seconds / shape_best(s);
        ck_assert_msg(share >= 0.85, "%s, run %zu: %.3f of the best", s->name, run, share);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------- reported probabilities */

/* A drafter that reports probabilities, high ones for some drafts and low ones for others. */
typedef struct teller {
    const char *name;
    double sure; /* share of drafts with a probability of 0.97; the other drafts have 0.1 to 0.7 */
    /* If the drafter reports p, the draft is accepted with probability p^power. With a power of 1 the reports are
     * right. */
    double power;
    /* Chains of drafts may end early, depending on the reported probabilities. This must multiply the tokens per second
     * by at least this factor. */
    double least;
} teller;

/* The last two drafters report nearly the same probability for all drafts. With them, ending chains by the reported
 * probabilities can't help. It must then cost almost nothing. */
static const teller tellers[] = {{"knows", 0.7, 1, 1.05},
                                 {"is too sure", 0.7, 3, 1.04},
                                 {"is sure of all", 1, 1, 0.98},
                                 {"is sure of nothing", 0, 1, 0.98}};

/* A machine whose drafter is a smaller model. A draft step takes a third of the time of a target's forward pass. */
static const machine third = {
    "a third",
    {0, 1.00, 1.03, 1.08, 1.09, 1.14, 1.14, 1.35, 1.46, 1.54, 1.60, 1.63, 1.84, 1.90, 1.95, 1.99, 2.09},
    0,
    0.33};

/* Makes one chain of drafts as draft methods do. If `ends` is true, the chain may end early. Returns how many drafts
 * are accepted. */
static size_t draft_chain(const teller *t, fr_draft_depth_part *part, bool ends, uint64_t *random) {
    size_t stood = 0;
    fr_draft_gain_verdict verdict = FR_DRAFT_GAIN_MORE;
    part->drafted = part->made = 0;
    part->tells = ends;
    while (part->drafted < part->asked && verdict == FR_DRAFT_GAIN_MORE) {
        double chance = uniform(random) < t->sure ? 0.97 : 0.1 + 0.6 * uniform(random);
        bool stands = stood == part->drafted && uniform(random) < pow(chance, t->power);
        part->chances[part->made++] = (float)chance;
        if (ends && part->ends) verdict = fr_draft_gain_judge(&part->gains, part->chances, part->made);
        if (verdict == FR_DRAFT_GAIN_NONE) break;
        part->drafted++;
        stood += stands;
    }
    return stood;
}

static double chances_rate(const teller *t, bool ends, uint64_t random) {
    single one;
    clock_noise noise = {0.05, 0.01, random};
    double tokens = 0, seconds = 0;
    reset(&one);
    while (tokens < TOKENS) {
        fr_draft_depth_part part = {.timeline = &one.timeline, .limit = MOST};
        fr_draft_depth_choose(&one.draft_depth, &part, 1, MOST, 0);
        part.accepted = draft_chain(t, &part, ends, &random);
        double draft = draft_seconds(&third, part.made), verify = third.verify[part.drafted + 1];
        double draft_read = reading(&noise, 1e-3 * draft);
        fr_draft_depth_report(&one.draft_depth, &part, 1, 0, draft_read, reading(&noise, 1e-3 * verify));
        tokens += 1 + (double)part.accepted;
        seconds += draft + verify;
    }
    return tokens / seconds;
}

START_TEST(chains_end_where_that_pays) {
    const teller *t = &tellers[_i];
    double with = 0, without = 0;
    for (uint64_t stream = 1; stream <= fr_test_times(5, STREAMS); stream++) {
        with += chances_rate(t, true, stream);
        without += chances_rate(t, false, stream);
    }
    ck_assert_msg(with >= t->least * without, "a drafter that %s: %.3f of whole chains", t->name, with / without);
}
END_TEST

/* The drafter reports the probability 1/2 for some drafts and 1 for the others. The controller has already found out
 * that these reports are right. */
START_TEST(a_draft_is_judged_by_the_whole_chain) {
    fr_draft_gain gains = {0};
    const float sure[] = {1, 1}, once[] = {0.5f}, twice[] = {0.5f, 0.5f};
    for (size_t d = 0; d < FR_DRAFT_GAIN_DEPTHS; d++)
        for (size_t bin = 0; bin < FR_DRAFT_GAIN_BINS; bin++)
            gains.stands[d][bin] = bin == fr_draft_gain_bin(1) ? 1 : 0.5;
    for (size_t d = 0; d < FR_STEP_MAX; d++) {
        gains.next[d] = 0.8;
        gains.step[d] = 0.3;
        gains.row[d] = 0.05;
    }
    ck_assert_int_eq(fr_draft_gain_judge(&gains, sure, 2), FR_DRAFT_GAIN_MORE);
    ck_assert_int_eq(fr_draft_gain_judge(&gains, once, 1), FR_DRAFT_GAIN_MORE);  /* the gain 0.4 exceeds 0.35 */
    ck_assert_int_eq(fr_draft_gain_judge(&gains, twice, 2), FR_DRAFT_GAIN_LAST); /* the gain 0.2 is below 0.35 */
    gains.row[1] = 0.3;
    ck_assert_int_eq(fr_draft_gain_judge(&gains, twice, 2), FR_DRAFT_GAIN_NONE);
    ck_assert_int_eq(fr_draft_gain_judge(&gains, once, 1), FR_DRAFT_GAIN_LAST);
}
END_TEST

START_TEST(bins_are_what_became_of_their_drafts) {
    fr_calibration calibration = {0};
    fr_draft_gain gains;
    const float chances[] = {0.95f, 0.3f, 0.3f};
    size_t sure = fr_draft_gain_bin(0.95), unsure = fr_draft_gain_bin(0.3);
    fr_calibration_tell(&calibration, &gains);
    ck_assert_double_eq_tol(gains.stands[0][sure], fr_draft_gain_guess(sure), 1e-9);
    for (int i = 0; i < 100; i++) fr_calibration_learn(&calibration, chances, 3, 1);
    fr_calibration_tell(&calibration, &gains);
    ck_assert_double_gt(gains.stands[0][sure], 0.99);
    ck_assert_double_lt(gains.stands[1][unsure], 0.02);
    /* At depth 1 all drafts with such a low report were rejected, so at depth 0 such a draft is not trusted either. */
    ck_assert_double_lt(gains.stands[0][unsure], 0.1);
    /* the second draft was rejected, so nothing is known of the third */
    ck_assert_double_eq(calibration.bins[2][unsure].tries, 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------- drafts that are looked up */

/* Runs a round on a machine on which each further row costs 0.2 of the first row. The drafter may make up to `made`
 * drafts. `drafted` is the number of drafts that the text allows, looked up or made by the drafter. `accepted` is the
 * number of right ones among them. The controller's choice limits both numbers. */
static fr_draft_depth_part find_round(single *one, size_t made, size_t drafted, size_t accepted) {
    fr_draft_depth_part part = {.timeline = &one->timeline, .limit = made, .most_found = MOST};
    fr_draft_depth_choose(&one->draft_depth, &part, 1, MOST, 0);
    part.looked_up = part.found > 0;
    part.drafted = fr_smaller(drafted, part.looked_up ? part.found : part.asked);
    part.accepted = fr_smaller(accepted, part.drafted);
    fr_draft_depth_report(&one->draft_depth, &part, 1, 0, part.looked_up ? 0 : 0.3 * (double)part.asked,
                          1 + 0.2 * (double)part.drafted);
    return part;
}

START_TEST(rows_of_finds_are_hoped_then_known) {
    single one;
    reset(&one);
    for (int round = 0; round < 4; round++) ck_assert_uint_eq(find_round(&one, 0, 0, 0).found, 0);
    fr_draft_depth_part part = find_round(&one, 0, 15, 0);
    /* the time of two rows is still unknown, so a first try counts as free */
    ck_assert(part.found == 1 && part.gains.found[0] == 0);
    part = find_round(&one, 0, 15, 15);
    ck_assert_uint_eq(part.found, 3);
    /* gains.found[d] is the price, in tokens, of the row that verifies draft d. The price is the number of seconds that
     * the row adds to a forward pass, multiplied by a rate in tokens per second. The rate is that of the best choice or
     * that of the last rounds, whichever is higher. Here the row adds 0.2 seconds. The best choice, which is no drafts,
     * gives 1 token per second. The five rounds so far gave 5 tokens in 5.2 seconds. So the rate is 1. */
    ck_assert_double_eq_tol(part.gains.found[0], 0.2, 1e-9);
    /* The time of the next row has not been measured yet, so the controller assumes half of a measured row's time. */
    ck_assert_double_eq_tol(part.gains.found[1], 0.1, 1e-9);
    ck_assert_uint_eq(find_round(&one, 0, 15, 15).found, 7);
    ck_assert_uint_eq(find_round(&one, 0, 15, 0).found, MOST);
    for (int round = 0; round < 200; round++) part = find_round(&one, 0, 4, 4);
    /* Now the last rounds have the higher rate: each gives 5 tokens in 1.8 seconds. */
    ck_assert_double_gt(part.gains.found[0], 0.2 * 0.95 * 5 / 1.8);
}
END_TEST

START_TEST(finds_teach_nothing_of_what_is_made) {
    single one;
    reset(&one);
    for (int round = 0; round < 4; round++) find_round(&one, MOST, MOST, MOST);
    size_t found = 0, tried = 0;
    for (int round = 0; round < 300; round++) {
        const single before = one;
        fr_draft_depth_part part = find_round(&one, MOST, MOST, MOST);
        found += part.found > 0;
        tried += before.draft_depth.round >= before.draft_depth.next_try && part.found == 0;
        if (part.found == 0) continue;
        ck_assert_mem_eq(one.timeline.by[0].stood, before.timeline.by[0].stood, sizeof one.timeline.by[0].stood);
        ck_assert_mem_eq(one.draft_depth.by[0].draft, before.draft_depth.by[0].draft,
                         sizeof one.draft_depth.by[0].draft);
    }
    ck_assert_msg(found > 200 && tried > 1, "%zu rounds found, %zu tried", found, tried);
}
END_TEST

/* The session uses looked-up drafts whenever the controller allows it. At first none is accepted, which may cost at
 * most one forward pass and 0.5 % of the time. Later all are accepted, and the controller must soon allow lookups
 * again. */
START_TEST(finds_that_lose_are_given_up_for_a_time) {
    single one;
    double seconds = 0;
    reset(&one);
    for (int round = 0; round < 1000; round++) {
        fr_draft_depth_part part = find_round(&one, 0, MOST, 0);
        seconds += 1 + 0.2 * (double)part.drafted;
    }
    ck_assert_msg(seconds < 1000 + 1 + 5 + 1, "%.1f seconds for 1000 tokens", seconds);
    double tokens = 0;
    for (int round = 0; round < 300; round++) tokens += 1 + (double)find_round(&one, 0, 4, 4).accepted;
    ck_assert_double_gt(tokens, 4.5 * 300);
}
END_TEST

/* Generates an answer of 48 ids with looked-up drafts. The lookup finds as many drafts as the controller allows. In the
 * first `good` rounds with drafts all are accepted, and later none. Returns the tokens per second. */
static double short_answer(const machine *m, size_t good, clock_noise noise) {
    single one;
    double seconds = 0;
    size_t made = 0;
    reset(&one);
    while (made < 48) {
        fr_draft_depth_part part = {.timeline = &one.timeline, .most_found = fr_smaller(MOST, 47 - made)};
        fr_draft_depth_choose(&one.draft_depth, &part, 1, MOST, 0);
        part.drafted = part.found;
        part.looked_up = part.found > 0;
        part.accepted = good ? part.drafted : 0;
        good -= good && part.found;
        double verify = m->verify[part.drafted + 1];
        fr_draft_depth_report(&one.draft_depth, &part, 1, 0, 0, reading(&noise, 1e-3 * verify));
        made += part.accepted + 1;
        seconds += verify;
    }
    return (double)made / seconds;
}

/* Without drafts the machine gives 1 token per second. Looked-up drafts do most harm if all are wrong, either from the
 * beginning or after a few rounds in which they were right. */
START_TEST(finds_cost_a_short_answer_3_percent_at_most) {
    const machine *m = &machines[_i];
    for (size_t good = 0; good < 4; good++)
        for (uint64_t seed = 1; seed <= 50; seed++) {
            double rate = short_answer(m, good, (clock_noise){0.02, 0, seed});
            ck_assert_msg(rate >= 0.97, "%s, %zu rounds right, then wrong: %.3f of none", m->name, good, rate);
        }
}
END_TEST

/* In a text that repeats another text, all looked-up drafts are right. Even if the controller is cautious at first,
 * such a text must gain at least these factors. */
START_TEST(finds_that_are_right_gain_in_a_short_answer) {
    static const double least[MACHINES] = {4, 2, 1.15, 4, 2, 4};
    double rate = short_answer(&machines[_i], SIZE_MAX, (clock_noise){0.05, 0.01, 7});
    ck_assert_msg(rate >= least[_i], "%s: %.3f of none", machines[_i].name, rate);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ several timelines */

enum { TIMELINES = 16, WORLDS = 4, ROUNDS = 3000, ROWS = TIMELINES * FR_STEP_MAX };

/* A simulated engine. Only the oracle knows its true costs and acceptance rates. If `batched` is false, the drafts of
 * several timelines are made one timeline after the other. If it is true, they are made in one batch. A step of the
 * batch costs `draft_step`, and each draft in the step costs `draft_row` in addition. */
typedef struct world {
    size_t timelines;
    /* the probability that the draft at each depth (counted from 1) is accepted if all drafts before it are */
    double stands[TIMELINES][FR_STEP_MAX];
    double verify[ROWS + 1];
    double draft_start, draft_step, draft_row;
    /* Extra time of a timeline's next draft, for each id that was generated since its last draft. The first 7 ids are
     * free. */
    double follow;
    bool batched;
} world;

static double between(uint64_t *random, double low, double high) {
    return low * pow(high / low, uniform(random));
}

/* Makes a random engine. With few rows memory is the limit, and the time of a forward pass stays about the same. From
 * some number of rows on, the time grows with the number of rows. This growth begins abruptly or smoothly. */
static world make_world(uint64_t random, size_t timelines) {
    world w = {.timelines = timelines, .batched = uniform(&random) < 0.5};
    double row = between(&random, 0.01, 1), sharp = between(&random, 1, 8);
    for (size_t rows = 1; rows <= ROWS; rows++) w.verify[rows] = pow(1 + pow(row * (double)rows, sharp), 1 / sharp);
    for (size_t i = 0; i < timelines; i++) {
        double stands = uniform(&random) < 0.1 ? 0 : uniform(&random), decay = 1 - 0.2 * uniform(&random);
        for (size_t d = 1; d < FR_STEP_MAX; d++, stands *= decay) w.stands[i][d] = stands;
    }
    w.draft_step = between(&random, 0.003, 0.5);
    w.draft_start = uniform(&random) < 0.5 ? 0 : w.draft_step * between(&random, 0.1, 5);
    w.draft_row = w.batched ? w.draft_step * between(&random, 0.01, 0.5) : 0;
    if (uniform(&random) < 0.5) w.follow = w.draft_step * between(&random, 0.02, 0.2);
    return w;
}

static double tokens_of(const world *w, size_t timeline, size_t drafts) {
    double tokens = 1, all = 1;
    for (size_t d = 1; d <= drafts; d++) tokens += all *= w->stands[timeline][d];
    return tokens;
}

/* Returns the time that this timeline's drafts add. If drafts are made in a batch, this is the time of the timeline's
 * rows. The time of the batch's steps, which all timelines share, is counted in longest_seconds. */
static double chain_seconds(const world *w, size_t drafts) {
    if (drafts == 0) return 0;
    return w->batched ? w->draft_row * (double)(drafts) : w->draft_start + w->draft_step * (double)drafts;
}

static double longest_seconds(const world *w, size_t drafts) {
    return w->batched && drafts ? w->draft_start + w->draft_step * (double)drafts : 0;
}

/* Finds the best distribution of drafts among the timelines, with at most `longest` drafts for each. The best
 * distribution has the largest tokens - price * seconds, where `price` is the number of tokens that a second is worth.
 * Returns this largest value. Sets *rate to the tokens per second of the best distribution. Entry [i][r] of each table
 * describes the best distribution of r drafts among the first i timelines. */
static double best_at(const world *w, double price, size_t longest, double *rate) {
    static double gain[TIMELINES + 1][ROWS + 1], tokens[TIMELINES + 1][ROWS + 1], seconds[TIMELINES + 1][ROWS + 1];
    for (size_t i = 0; i <= w->timelines; i++)
        for (size_t r = 0; r <= ROWS; r++) gain[i][r] = i || r ? -HUGE_VAL : 0;
    for (size_t i = 0; i < w->timelines; i++)
        for (size_t r = 0; r <= i * longest; r++)
            for (size_t k = 0; k <= longest; k++) {
                double t = tokens_of(w, i, k), s = chain_seconds(w, k), g = gain[i][r] + t - price * s;
                if (g <= gain[i + 1][r + k]) continue;
                gain[i + 1][r + k] = g;
                tokens[i + 1][r + k] = (i ? tokens[i][r] : 0) + t;
                seconds[i + 1][r + k] = (i ? seconds[i][r] : 0) + s;
            }
    double most = -HUGE_VAL;
    for (size_t r = 0; r <= w->timelines * longest && w->timelines + r <= FR_DRAFT_DEPTH_ROWS; r++) {
        double s = seconds[w->timelines][r] + w->verify[w->timelines + r] + longest_seconds(w, longest);
        double surplus = tokens[w->timelines][r] - price * s;
        if (surplus <= most) continue;
        most = surplus;
        *rate = tokens[w->timelines][r] / s;
    }
    return most;
}

/* Returns the highest possible tokens per second, found by Dinkelbach's method (1967). At this rate as the price, the
 * largest value of tokens - price * seconds is 0. */
static double oracle(const world *w) {
    double best = 0;
    for (bool better = true; better;) {
        double now = best;
        for (size_t longest = 0; longest < FR_STEP_MAX; longest += w->batched || !longest ? 1 : FR_STEP_MAX) {
            double rate = 0;
            best_at(w, now, w->batched ? longest : MOST, &rate);
            if (rate > best) best = rate;
        }
        better = best > now * (1 + 1e-12);
    }
    return best;
}

/* Draws how many of the `drafted` drafts are accepted. */
static size_t draw(const world *w, size_t timeline, size_t drafted, uint64_t *random) {
    size_t stood = 0;
    while (stood < drafted && uniform(random) < w->stands[timeline][stood + 1]) stood++;
    return stood;
}

/* Runs a round with the controller's choice, randomly accepted drafts and a noisy clock. Returns the round's true
 * time. */
static double run_round(const world *w, fr_draft_depth *draft_depth, fr_draft_depth_part *parts, size_t *behind,
                        clock_noise *noise) {
    size_t longest = 0, rows = w->timelines;
    double draft = 0;
    fr_draft_depth_choose(draft_depth, parts, w->timelines, FR_DRAFT_DEPTH_ROWS - w->timelines, 0);
    for (size_t i = 0; i < w->timelines; i++) {
        parts[i].drafted = parts[i].asked;
        parts[i].accepted = draw(w, i, parts[i].drafted, &noise->random);
        draft += chain_seconds(w, parts[i].asked);
        if (parts[i].asked) draft += follow_seconds(w->follow, behind[i]);
        behind[i] = parts[i].asked ? 1 : behind[i] + 1;
        rows += parts[i].asked;
        if (parts[i].asked > longest) longest = parts[i].asked;
    }
    draft += longest_seconds(w, longest);
    double draft_read = reading(noise, 1e-3 * draft);
    fr_draft_depth_report(draft_depth, parts, w->timelines, 0, draft_read, reading(noise, 1e-3 * w->verify[rows]));
    return draft + w->verify[rows];
}

/* Returns the expected tokens per second when the controller chooses. */
static double controlled(const world *w, clock_noise noise) {
    static fr_draft_depth draft_depth;
    fr_draft_depth_timeline timelines[TIMELINES];
    fr_draft_depth_part parts[TIMELINES];
    double tokens = 0, seconds = 0;
    size_t behind[TIMELINES] = {0};
    fr_draft_depth_reset(&draft_depth);
    for (size_t i = 0; i < w->timelines; i++) fr_draft_depth_join(&draft_depth, &timelines[i]);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < w->timelines; i++)
            parts[i] = (fr_draft_depth_part){.timeline = &timelines[i], .limit = MOST, .lags = w->follow > 0};
        seconds += run_round(w, &draft_depth, parts, behind, &noise);
        for (size_t i = 0; i < w->timelines; i++) tokens += tokens_of(w, i, parts[i].asked);
    }
    return tokens / seconds;
}

/* The controller must reach 95% of the oracle's tokens per second, and 99% of the tokens per second without drafts. The
 * clock's readings have errors of up to 3%, and one in a hundred is ten times too long. */
START_TEST(within_5_percent_of_an_oracle) {
    for (uint64_t i = 0; i < fr_test_times(1, WORLDS); i++) {
        size_t timelines = (size_t)_i + 1;
        world w = make_world(1000 * (uint64_t)_i + i, timelines);
        double got = controlled(&w, (clock_noise){0.03, 0.01, i + 1});
        double none = (double)timelines / w.verify[timelines], best = oracle(&w);
        ck_assert_msg(got >= 0.95 * best, "%zu timelines, world %d: %.3f of the oracle", timelines, (int)i, got / best);
        ck_assert_msg(got >= 0.99 * none, "%zu timelines, world %d: %.3f of none", timelines, (int)i, got / none);
    }
}
END_TEST

/* Generates short texts after prompts that the draft method has not run yet. When a text ends, the next text takes its
 * place in the timeline. Each timeline may make at most `most` drafts in a round. Returns the tokens per second. */
static double crowded(const world *w, size_t most, size_t prompt, clock_noise noise) {
    enum { CROWD = 16, IDS = 150 };
    static fr_draft_depth draft_depth;
    fr_draft_depth_timeline timelines[TIMELINES];
    fr_draft_depth_part parts[TIMELINES];
    size_t behind[TIMELINES], made[TIMELINES], begun = 0, done = 0;
    double tokens = 0, seconds = 0;
    fr_draft_depth_reset(&draft_depth);
    for (size_t i = 0; i < w->timelines; i++) made[i] = IDS;
    while (done < CROWD) {
        for (size_t i = 0; i < w->timelines; i++) {
            if (made[i] >= IDS && begun++ < CROWD) {
                fr_draft_depth_join(&draft_depth, &timelines[i]);
                fr_draft_depth_fell_behind(&timelines[i], 0, prompt);
                behind[i] = prompt;
                made[i] = 0;
            }
            parts[i] =
                (fr_draft_depth_part){.timeline = &timelines[i], .limit = made[i] < IDS ? most : 0, .lags = true};
        }
        seconds += run_round(w, &draft_depth, parts, behind, &noise);
        for (size_t i = 0; i < w->timelines; i++) {
            if (made[i] >= IDS) continue;
            tokens += 1 + (double)parts[i].accepted;
            made[i] += 1 + parts[i].accepted;
            done += made[i] >= IDS;
        }
    }
    return tokens / seconds;
}

/* The drafter has a third of the target's size, and eight rows already keep the cores busy. So no draft is worth the
 * cost of its row. It must cost little to find this out. */
START_TEST(a_crowd_is_never_slower_by_3_percent) {
    world w = {.timelines = 8, .batched = true, .draft_step = 0.3, .draft_row = 0.02, .follow = 0.015 * (double)_i};
    for (size_t rows = 1; rows <= ROWS; rows++) w.verify[rows] = rows < 8 ? 0.9 : 0.1 + 0.1 * (double)rows;
    for (size_t i = 0; i < w.timelines; i++)
        for (size_t d = 1; d < FR_STEP_MAX; d++) w.stands[i][d] = 0.6;
    for (size_t prompt = 20; prompt <= 200; prompt *= 10)
        for (uint64_t seed = 1; seed < 9; seed++) {
            clock_noise noise = {0.05, 0.01, seed};
            double rate = crowded(&w, MOST, prompt, noise) / crowded(&w, 0, prompt, noise);
            ck_assert_msg(rate >= 0.97, "prompts of %zu ids: %.3f of none", prompt, rate);
        }
}
END_TEST

/* The controller first assumes that a new timeline has the acceptance rate of the other timelines of its engine. */
START_TEST(a_new_timeline_is_guessed_to_be_like_the_others) {
    single useless, good;
    reset(&useless);
    reset(&good);
    for (size_t round = 0; round < 300; round++) {
        size_t asked = choose(&useless, MOST);
        report(&useless, asked, asked, 0, 0.4 * (double)asked, 1);
        asked = choose(&good, MOST);
        report(&good, asked, asked, asked, 0.2 * (double)asked, 1);
    }
    fr_draft_depth_join(&useless.draft_depth, &useless.timeline);
    fr_draft_depth_join(&good.draft_depth, &good.timeline);
    useless.draft_depth.next_try = good.draft_depth.next_try = UINT64_MAX;
    ck_assert_uint_eq(choose(&useless, MOST), 0);
    ck_assert_uint_ge(choose(&good, MOST), 3);
}
END_TEST

/* A round has room for a limited number of rows. If rows without drafts fill all the room, no timeline may draft. */
START_TEST(there_are_never_more_rows_than_there_is_room_for) {
    static fr_draft_depth draft_depth;
    fr_draft_depth_timeline timelines[TIMELINES];
    fr_draft_depth_part parts[TIMELINES];
    uint64_t random = 3;
    fr_draft_depth_reset(&draft_depth);
    for (size_t i = 0; i < TIMELINES; i++) fr_draft_depth_join(&draft_depth, &timelines[i]);
    for (size_t round = 0; round < 3000; round++) {
        size_t count = 1 + (size_t)(uniform(&random) * TIMELINES), room = (size_t)(uniform(&random) * 70), asked = 0;
        size_t taken = (size_t)(uniform(&random) * 70);
        for (size_t i = 0; i < count; i++)
            parts[i] =
                (fr_draft_depth_part){.timeline = &timelines[i], .limit = (size_t)(uniform(&random) * FR_STEP_MAX)};
        fr_draft_depth_choose(&draft_depth, parts, count, room, taken);
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_le(parts[i].asked, parts[i].limit);
            asked += parts[i].asked;
            parts[i].drafted = parts[i].accepted = parts[i].asked;
        }
        ck_assert_uint_le(asked, room);
        ck_assert(asked == 0 || asked + count + taken <= FR_DRAFT_DEPTH_ROWS);
        fr_draft_depth_report(&draft_depth, parts, count, taken, 0.01 * (double)asked, round % 3 ? 1 : 0);
    }
}
END_TEST

FR_SUITE("draft_depth") {
    TCase *cases = tcase_create("draft_depth");
    tcase_set_timeout(cases, 120);
    tcase_add_unchecked_fixture(cases, make_texts, free_texts);
    tcase_add_loop_test(cases, within_3_percent_of_the_best_fixed_depth, 0, MACHINES);
    tcase_add_loop_test(cases, and_so_with_a_noisy_clock, 0, MACHINES);
    tcase_add_loop_test(cases, a_useless_drafter_costs_less_than_3_percent, 0, MACHINES);
    tcase_add_test(cases, it_stops_drafting_and_comes_back);
    tcase_add_test(cases, tries_of_a_useless_drafter_grow_rare);
    tcase_add_test(cases, no_more_than_the_limit_is_asked_for);
    tcase_add_test(cases, drafts_left_out_say_nothing_of_the_drafter);
    tcase_add_test(cases, the_same_readings_give_the_same_depths);
    tcase_add_test(cases, senseless_readings_do_no_harm);
    tcase_add_loop_test(cases, short_texts_are_within_5_percent_of_the_best_fixed_depth_and_1_of_none, 0, SHAPES);
    tcase_add_loop_test(cases, a_first_text_loses_three_forwards_at_most, 0, SHAPES);
    tcase_add_loop_test(cases, no_text_is_lost_to_clocks_held_up, 0, SHAPES - LAGGING);
    tcase_add_loop_test(cases, chains_end_where_that_pays, 0, sizeof tellers / sizeof *tellers);
    tcase_add_test(cases, a_draft_is_judged_by_the_whole_chain);
    tcase_add_test(cases, bins_are_what_became_of_their_drafts);
    tcase_add_test(cases, rows_of_finds_are_hoped_then_known);
    tcase_add_test(cases, finds_teach_nothing_of_what_is_made);
    tcase_add_test(cases, finds_that_lose_are_given_up_for_a_time);
    tcase_add_loop_test(cases, finds_cost_a_short_answer_3_percent_at_most, 0, MACHINES);
    tcase_add_loop_test(cases, finds_that_are_right_gain_in_a_short_answer, 0, MACHINES);
    tcase_add_loop_test(cases, within_5_percent_of_an_oracle, 0, TIMELINES);
    tcase_add_loop_test(cases, a_crowd_is_never_slower_by_3_percent, 0, 3);
    tcase_add_test(cases, a_new_timeline_is_guessed_to_be_like_the_others);
    tcase_add_test(cases, there_are_never_more_rows_than_there_is_room_for);
    suite_add_tcase(suite, cases);
}
