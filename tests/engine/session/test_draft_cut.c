/* Simulates drafts that come in blocks, and several timelines (texts of sessions) that share the rows of one forward
 * pass.
 *
 * A simulated drafter gives each draft a probability, and the draft is accepted with that probability. The mean at each
 * position is that of a published block drafter. The controller chooses how many drafts are made and verified. A block
 * is always made whole, so for a block the controller decides only where to cut off its unlikely end. For comparison,
 * an oracle makes the best cut. The oracle knows the probabilities, the times and the long-run rate of tokens.
 *
 * Eight timelines run together. On each simulated machine, forward passes become slower with each row beyond some
 * number of rows. */
/* suite: native no-valgrind */
#include <check.h>
#include <math.h>

#include "base/sizes.h"
#include "src/engine/session/draft_cut.h"
#include "tests/support/suite.h"

enum { MOST = FR_STEP_MAX - 1, CROWD = 8, ROWS = CROWD * FR_STEP_MAX, ROUNDS = 2000, WARM = 300, SEEDS = 1 };

static double uniform(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) * 0x1p-53;
}

/* Returns the clock's reading of a time. The reading has an error of up to 5 %. One reading in a hundred is ten times
 * too long. */
static double read_clock(double seconds, uint64_t *random) {
    double read = 1e-3 * seconds * (0.95 + 0.1 * uniform(random));
    return uniform(random) < 0.01 ? 10 * read : read;
}

/* --------------------------------------------------------------------------------------------------------- drafters */

/* A simulated drafter. `first` is the share of first drafts that are accepted. `further` is the share of later drafts
 * that are accepted if all drafts before them are. The name states the resulting number of tokens per forward pass of
 * the target. */
typedef struct drafter {
    const char *name;
    size_t drafts; /* number of drafts in a block, or the greatest number of drafts made in single steps */
    double first, further;
    /* true: the drafter gives each draft its own probability; false: it gives the mean of the draft's position */
    bool tells;
    bool in_blocks;
} drafter;

/* The numbers come from published results. With DFlash for Qwen3-8B, 82 % of first drafts are accepted, a step has 3.74
 * accepted tokens, and a call of the target gives 6.3 tokens on GSM8K. DFlash2 for Qwen3.8-27B gives 3.58 tokens a call
 * with 7 drafts. With 15 drafts, Muse-Glimmer's DFlash gives 3.69 tokens a call, and its DFlash2 gives 8.0 on retrieved
 * texts. The shares of further drafts are fitted to these means. */
static const drafter drafters[] = {
    {"7 drafts, 3.6 a call", 7, 0.76, 0.71, true, true},
    {"7 drafts, 4.7 a call", 7, 0.82, 0.87, true, true},
    {"15 drafts, 3.7 a call", 15, 0.78, 0.72, true, true},
    {"15 drafts, 6.3 a call", 15, 0.88, 0.855, true, true},
    {"15 drafts, 8.0 a call", 15, 0.92, 0.90, true, true},
    {"15 drafts, 3.7 a call, no chances", 15, 0.78, 0.72, false, true},
    {"7 drafts, useless", 7, 0.1, 0.1, true, true},
};
#define DRAFTERS (sizeof drafters / sizeof *drafters)

static double share_of(const drafter *d, size_t depth) {
    return depth ? d->further : d->first;
}

/* Draws the probability of a draft: either 0.97 or a value up to 0.7. The share of drafts with 0.97 is chosen such that
 * the mean at this position is the drafter's. */
static double draw_chance(const drafter *d, size_t depth, uint64_t *random) {
    double mean = share_of(d, depth), sure = fmax(0, (mean - 0.35) / 0.62), drawn = uniform(random);
    if (!d->tells) return mean;
    if (drawn < sure) return 0.97;
    return uniform(random) * fmin(0.7, 2 * (mean - 0.97 * sure) / (1 - sure));
}

/* Draws the probabilities of a drafter's drafts, and which of the drafts are right. Returns how many drafts would be
 * accepted. */
static size_t draw_drafts(const drafter *d, double chances[FR_STEP_MAX], uint64_t *random) {
    size_t stood = 0;
    for (size_t i = 0; i < d->drafts; i++) {
        chances[i] = draw_chance(d, i, random);
        stood += stood == i && uniform(random) < chances[i];
    }
    return stood;
}

/* ----------------------------------------------------------------------------------------------------------- worlds */

/* The costs of a simulated machine, in units of the time in which it reads the weights. With few rows a forward pass
 * takes about 1. With many rows the cores are busy, and the pass takes `row` for each row; `sharp` tells how abruptly
 * this begins. A block of drafts takes `block`, and a single draft step takes `step`. If several timelines draft in one
 * batch, each timeline after the first costs `beside` times as much as the first. */
typedef struct world {
    const char *name;
    double row, sharp, block, step, beside;
} world;

static const world worlds[] = {
    {"bound by memory", 0.04, 3, 0.12, 0.05, 0.1},
    {"in between", 0.08, 2, 0.15, 0.05, 0.2},
    {"bound by arithmetic", 0.3, 2, 0.25, 0.1, 0.5},
};
#define WORLDS (sizeof worlds / sizeof *worlds)

static double verify_seconds(const world *w, size_t rows) {
    return pow(1 + pow(w->row * (double)rows, w->sharp), 1 / w->sharp);
}

/* Returns the time of one draft step, or of one block, that is made for this number of timelines in one batch. */
static double step_seconds(const world *w, const drafter *d, size_t timelines) {
    double one = d->in_blocks ? w->block : w->step;
    return timelines ? one * (1 + w->beside * (double)(timelines - 1)) : 0;
}

typedef struct sums {
    double tokens, seconds;
} sums;

/* Returns the tokens per second of an oracle that knows all probabilities and times. In its policy either all timelines
 * draft or none does. `rate` is an estimate of the result, from the previous call. The oracle verifies one more row if
 * the expected tokens of this row exceed `rate` times the seconds that the row adds. */
static double oracle(const world *w, const drafter *d, size_t timelines, double rate) {
    uint64_t random = 99;
    sums sum = {0};
    for (size_t round = 0; round < 800; round++) {
        double chances[CROWD][FR_STEP_MAX], all[CROWD], gain = 0, most = 0, tokens = 0;
        size_t kept[CROWD] = {0}, rows = timelines, best_rows = timelines;
        double got = 0;
        for (size_t i = 0; i < timelines; i++) {
            draw_drafts(d, chances[i], &random);
            all[i] = 1;
        }
        for (;;) {
            size_t next = timelines;
            for (size_t i = 0; i < timelines; i++)
                if (kept[i] < d->drafts &&
                    (next == timelines || all[i] * chances[i][kept[i]] > all[next] * chances[next][kept[next]]))
                    next = i;
            if (next == timelines || rows >= FR_DRAFT_DEPTH_ROWS) break;
            all[next] *= chances[next][kept[next]++];
            rows++;
            gain += all[next] - rate * (verify_seconds(w, rows) - verify_seconds(w, rows - 1));
            tokens += all[next];
            if (gain <= most) continue;
            most = gain;
            got = tokens;
            best_rows = rows;
        }
        sum.tokens += (double)timelines + got;
        sum.seconds += step_seconds(w, d, timelines) + verify_seconds(w, best_rows);
    }
    return sum.tokens / sum.seconds;
}

static double best_rate(const world *w, const drafter *d, size_t timelines) {
    double none = (double)timelines / verify_seconds(w, timelines), rate = none;
    for (int i = 0; i < 3; i++) rate = fmax(none, oracle(w, d, timelines, rate));
    return rate;
}

/* Makes a timeline's drafts, in one block or in single steps. steps[i] counts the timelines that made draft step i.
 * Returns how many of the drafts would be accepted. */
static size_t make_drafts(const drafter *d, fr_draft_depth_part *part, double chances[FR_STEP_MAX],
                          size_t steps[FR_STEP_MAX], uint64_t *random) {
    size_t stood = draw_drafts(d, chances, random);
    fr_draft_gain_verdict verdict = FR_DRAFT_GAIN_MORE;
    part->tells = d->tells && part->asked;
    while (part->made < part->asked && verdict == FR_DRAFT_GAIN_MORE) {
        if (!d->in_blocks || part->made == 0) steps[part->made]++;
        part->chances[part->made] = (float)chances[part->made];
        part->made++;
        if (!d->in_blocks && d->tells && part->ends)
            verdict = fr_draft_gain_judge(&part->gains, part->chances, part->made);
        part->drafted += verdict != FR_DRAFT_GAIN_NONE;
    }
    return stood;
}

/* Runs one round. Adds the round's time to *seconds and returns its expected number of tokens. */
static double run_round(const world *w, const drafter *d, fr_draft_depth *depth, fr_draft_depth_timeline *states,
                        size_t timelines, uint64_t *random, double *seconds) {
    fr_draft_depth_part parts[CROWD];
    size_t rows = timelines, stood[CROWD], steps[FR_STEP_MAX] = {0};
    double chances[CROWD][FR_STEP_MAX], draft = 0, tokens = (double)timelines;
    for (size_t i = 0; i < timelines; i++)
        parts[i] =
            (fr_draft_depth_part){.timeline = &states[i], .limit = d->drafts, .block = d->in_blocks ? d->drafts : 0};
    fr_draft_depth_choose(depth, parts, timelines, FR_DRAFT_DEPTH_ROWS - timelines, 0);
    for (size_t i = 0; i < timelines; i++) stood[i] = make_drafts(d, &parts[i], chances[i], steps, random);
    for (size_t k = 0; k < d->drafts; k++) draft += step_seconds(w, d, steps[k]);
    fr_draft_cut(depth, parts, timelines, FR_DRAFT_DEPTH_ROWS - timelines, 0);
    for (size_t i = 0; i < timelines; i++) {
        size_t verified = fr_draft_depth_verified(&parts[i]);
        double all = 1;
        parts[i].accepted = fr_smaller(stood[i], verified);
        rows += verified;
        for (size_t k = 0; k < verified; k++) tokens += all *= chances[i][k];
    }
    ck_assert_uint_le(rows, FR_DRAFT_DEPTH_ROWS);
    double verify = verify_seconds(w, rows), draft_read = read_clock(draft, random);
    fr_draft_depth_report(depth, parts, timelines, 0, draft_read, read_clock(verify, random));
    *seconds += draft + verify;
    return tokens;
}

/* Returns the expected tokens per second when the controller chooses, over the rounds from `first` to `end`. */
static double controlled(const world *w, const drafter *d, size_t timelines, size_t first, size_t end,
                         uint64_t random) {
    static fr_draft_depth depth;
    fr_draft_depth_timeline states[CROWD];
    sums sum = {0};
    fr_draft_depth_reset(&depth);
    for (size_t i = 0; i < timelines; i++) fr_draft_depth_join(&depth, &states[i]);
    for (size_t round = 0; round < end; round++) {
        double seconds = 0, tokens = run_round(w, d, &depth, states, timelines, &random, &seconds);
        if (round < first) continue;
        sum.tokens += tokens;
        sum.seconds += seconds;
    }
    return sum.tokens / sum.seconds;
}

START_TEST(blocks_are_cut_nearly_as_an_oracle_does) {
    for (size_t i = 0; i < DRAFTERS; i++)
        for (size_t timelines = 1; timelines <= CROWD; timelines *= 8) {
            const world *w = &worlds[_i];
            double best = best_rate(w, &drafters[i], timelines), got = 0;
            double none = (double)timelines / verify_seconds(w, timelines);
            for (uint64_t seed = 1; seed <= SEEDS; seed++)
                got += controlled(w, &drafters[i], timelines, WARM, ROUNDS, 31 * seed) / SEEDS;
            ck_assert_msg(got >= 0.96 * best, "%s, %s, %zu timelines: %.3f of the oracle", w->name, drafters[i].name,
                          timelines, got / best);
            ck_assert_msg(got >= 0.99 * none, "%s, %s, %zu timelines: %.3f of none", w->name, drafters[i].name,
                          timelines, got / none);
        }
}
END_TEST

/* A block drafter needs the time of a whole block, even if only a few of its drafts are requested. The controller must
 * count this time once, before the first draft. Otherwise it would compare looked-up drafts with a block that seems too
 * cheap. */
START_TEST(a_block_is_paid_once) {
    const world *w = &worlds[1];
    const drafter *d = &drafters[0];
    static fr_draft_depth depth;
    fr_draft_depth_timeline state;
    uint64_t random = 1;
    double seconds = 0;
    fr_draft_depth_reset(&depth);
    fr_draft_depth_join(&depth, &state);
    for (size_t round = 0; round < 500; round++) run_round(w, d, &depth, &state, 1, &random, &seconds);
    depth.next_try = UINT64_MAX;
    for (size_t limit = 2; limit <= 7; limit += 5) {
        fr_draft_depth_part part = {.timeline = &state, .limit = limit, .block = 7, .most_found = MOST};
        fr_draft_depth_choose(&depth, &part, 1, MOST, 0);
        ck_assert_uint_eq(part.asked, limit);
        ck_assert_double_eq_tol(part.gains.step[0] / (1e-3 * depth.rate), w->block, 0.1 * w->block);
        for (size_t k = 1; k < limit; k++) ck_assert_double_eq(part.gains.step[k], 0);
        double all = d->first, gain = -part.gains.step[0];
        for (size_t k = 0; k < limit; k++, all *= d->further) gain += all - part.gains.row[k];
        ck_assert_double_eq_tol(fr_draft_gain_expected(&part.gains, part.asked), gain, 0.25);
    }
}
END_TEST

/* Rejection sampling compares the drafter's distribution with the target's. All planned drafts must be verified, and
 * the controller must not cut a chain by the drafts' probabilities. These probabilities depend on the sampled ids, so
 * cutting by them would change the text's distribution. */
START_TEST(compared_drafts_are_not_cut_by_chances) {
    static fr_draft_depth depth;
    fr_draft_depth_timeline state;
    uint64_t random = 1;
    double seconds = 0;
    fr_draft_depth_reset(&depth);
    fr_draft_depth_join(&depth, &state);
    for (size_t round = 0; round < 500; round++)
        run_round(&worlds[1], &drafters[0], &depth, &state, 1, &random, &seconds);
    for (int compares = 0; compares < 2; compares++) {
        fr_draft_depth_part part = {.timeline = &state, .limit = 7, .block = 7, .compares = compares > 0};
        depth.next_try = UINT64_MAX;
        fr_draft_depth_choose(&depth, &part, 1, MOST, 0);
        ck_assert_uint_gt(part.planned, 1);
        ck_assert_uint_eq(part.asked, compares ? part.planned : 7);
        part.drafted = part.made = part.asked;
        part.tells = true; /* here the drafter reports probability 0 for each draft */
        fr_draft_cut(&depth, &part, 1, MOST, 0);
        ck_assert_uint_eq(fr_draft_depth_verified(&part), compares ? part.planned : 0);
    }
}
END_TEST

/* Drafters that make each draft in a single step. A "chance" is a probability that the drafter reports. */
static const drafter stepping[] = {
    {"0.7, with chances", MOST, 0.7, 0.7, true, false},
    {"0.7, without chances", MOST, 0.7, 0.7, false, false},
    {"0.3, with chances", MOST, 0.3, 0.3, true, false},
    {"useless", MOST, 0.05, 0.05, true, false},
};
#define STEPPING (sizeof stepping / sizeof *stepping)

/* A rate in this test is the tokens per second, divided by those of the same timelines without drafts. If rows are
 * cheap and drafts are useful, the rate must be at least 1.15, or 1.1 if the drafter reports no probabilities. If rows
 * are expensive or drafts are useless, the rate must be at least 0.99. In the first 100 rounds the controller knows
 * little, so 0.97 is enough in all cases. */
START_TEST(a_crowd_gains_by_drafts_and_never_loses) {
    const world *w = &worlds[_i];
    double none = CROWD / verify_seconds(w, CROWD);
    for (size_t i = 0; i < STEPPING; i++) {
        const drafter *d = &stepping[i];
        double got = 0, early = 0;
        for (uint64_t seed = 1; seed <= 8; seed++) {
            got += controlled(w, d, CROWD, 100, 500, 31 * seed) / 8;
            early += controlled(w, d, CROWD, 0, 100, 31 * seed) / 8;
        }
        double least = d->first < 0.5 || w->row > 0.1 ? 0.99 : d->tells ? 1.15 : 1.1;
        ck_assert_msg(got >= least * none, "%s, %s: %.3f of none", w->name, d->name, got / none);
        ck_assert_msg(early >= 0.97 * none, "%s, %s: first rounds %.3f of none", w->name, d->name, early / none);
    }
}
END_TEST

/* Simulated machines. On some, memory still limits a forward pass of 8 rows. On the others, arithmetic already limits
 * it. A pass of 16 rows costs 1.07 to 1.95 times as much as a pass of 8 rows. */
static const world crowded[] = {
    {"16 rows cost 1.07 of 8", 0.03, 2, 0.12, 0.05, 0.1},
    {"16 rows cost 1.4 of 8", 0.1, 2, 0.12, 0.05, 0.1},
    {"16 rows cost 1.7 of 8", 0.18, 2, 0.12, 0.05, 0.1},
    {"16 rows cost 1.95 of 8", 0.18, 8, 0.12, 0.05, 0.1},
};
#define CROWDED (sizeof crowded / sizeof *crowded)

/* Returns the greatest tokens per second that a policy can reach if it knows only what share of drafts is accepted at
 * each depth. For such a policy all drafts at one depth have the same value. So only the total number of drafts
 * matters: every timeline gets a draft at one depth before any timeline gets one at the next depth.
 * bench/crowd_bound.py computes the same from measured times. */
static double bound_without_chances(const world *w, const drafter *d) {
    double best = 0, tokens = CROWD, draft = 0, all = 1;
    for (size_t depth = 0; depth < d->drafts && CROWD * (depth + 1) < FR_DRAFT_DEPTH_ROWS; depth++) {
        all *= share_of(d, depth);
        for (size_t more = 0; more <= CROWD; more++) {
            size_t rows = CROWD * (depth + 1) + more;
            bool steps = !d->in_blocks || depth == 0;
            double seconds = verify_seconds(w, rows) + draft + (steps ? step_seconds(w, d, more) : 0);
            best = fmax(best, (tokens + all * (double)more) / seconds);
        }
        if (!d->in_blocks || depth == 0) draft += step_seconds(w, d, CROWD);
        tokens += all * CROWD;
    }
    return best;
}

START_TEST(a_crowd_without_chances_comes_near_the_bound) {
    static const drafter silent[] = {{"steps of 0.7", MOST, 0.7, 0.7, false, false},
                                     {"blocks of 0.7", 7, 0.7, 0.7, false, true},
                                     {"steps of 0.85", MOST, 0.85, 0.85, false, false}};
    const world *w = &crowded[_i];
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        double got = 0, bound = bound_without_chances(w, &silent[i]), none = CROWD / verify_seconds(w, CROWD);
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            got += controlled(w, &silent[i], CROWD, WARM, ROUNDS, 31 * seed) / SEEDS;
        ck_assert_msg(got >= 0.96 * bound, "%s, %s: %.3f of the bound, which is %.3f of none", w->name, silent[i].name,
                      got / bound, bound / none);
    }
}
END_TEST

FR_SUITE("draft_cut") {
    TCase *cases = tcase_create("draft_cut");
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, blocks_are_cut_nearly_as_an_oracle_does, 0, WORLDS);
    tcase_add_test(cases, a_block_is_paid_once);
    tcase_add_test(cases, compared_drafts_are_not_cut_by_chances);
    tcase_add_loop_test(cases, a_crowd_gains_by_drafts_and_never_loses, 0, WORLDS);
    tcase_add_loop_test(cases, a_crowd_without_chances_comes_near_the_bound, 0, CROWDED);
    suite_add_tcase(suite, cases);
}
