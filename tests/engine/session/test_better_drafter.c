/* Simulates a timeline (the text of a session) that can choose between two drafters. The tokens per second must come
 * near those of the better drafter alone, whichever of the two is better. Both drafters must be tried. */
/* suite: native no-valgrind */
#include <check.h>

#include "src/engine/session/draft_depth.h"
#include "tests/support/suite.h"

enum { MOST = FR_STEP_MAX - 1, TOKENS = 800, SEEDS = 20, BOTH = 3 };

/* A simulated drafter. `stands` is the probability that a draft is accepted if all drafts before it are accepted.
 * `step` is the time of a draft step. If `block` is not 0, the drafter makes blocks of `block` drafts, and `step` is
 * the time of a whole block. */
typedef struct drafter {
    double stands, step;
    size_t block;
} drafter;

static const drafter pairs[][FR_DRAFTERS_MAX] = {
    {{.8, .05, 0}, {.3, .05, 0}},  {{.3, .05, 0}, {.8, .05, 0}}, {{.75, .15, 7}, {.8, .06, 0}},
    {{.05, .15, 7}, {.7, .06, 0}}, {{.9, .12, 15}, {.8, .1, 0}}, {{.1, .1, 0}, {.1, .3, 7}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Times of forward passes of 1 to 16 rows, relative to one row. They were measured on a machine that reads the weights
 * from memory. */
static const double verify[FR_STEP_MAX + 1] = {0,    1.00, 1.03, 1.08, 1.09, 1.14, 1.14, 1.35, 1.46,
                                               1.54, 1.60, 1.63, 1.84, 1.90, 1.95, 1.99, 2.09};

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

/* Simulates a text. `set` is the set of drafters that may be used, one bit for each. Returns the tokens per second.
 * asked[d] counts the rounds in which drafter d was asked for drafts. */
static double write_text(const drafter *drafters, unsigned set, uint64_t random, size_t asked[FR_DRAFTERS_MAX]) {
    static fr_draft_depth depth;
    fr_draft_depth_timeline timeline;
    double tokens = 0, seconds = 0;
    fr_draft_depth_reset(&depth);
    fr_draft_depth_join(&depth, &timeline);
    while (tokens < TOKENS) {
        fr_draft_depth_part part = {.timeline = &timeline, .limit = MOST};
        for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
            size_t block = drafters[i].block;
            if (set >> i & 1) part.choices[i] = (fr_draft_depth_choice){.limit = block ? block : MOST, .block = block};
        }
        fr_draft_depth_choose(&depth, &part, 1, MOST, 0);
        const drafter *d = &drafters[part.drafter];
        double draft = part.asked ? d->step * (d->block ? 1 : (double)part.asked) : 0;
        asked[part.drafter] += part.asked > 0;
        ck_assert_uint_le(part.asked, part.limit);
        ck_assert(set >> part.drafter & 1);
        part.drafted = part.asked;
        part.left_out = part.asked - part.planned;
        while (part.accepted < part.planned && uniform(&random) < d->stands) part.accepted++;
        tokens += 1 + (double)part.accepted;
        seconds += draft + verify[part.planned + 1];
        double draft_read = read_clock(draft, &random);
        fr_draft_depth_report(&depth, &part, 1, 0, draft_read, read_clock(verify[part.planned + 1], &random));
    }
    return tokens / seconds;
}

START_TEST(two_come_near_the_better_one) {
    double rates[BOTH + 1] = {0};
    size_t asked[BOTH + 1][FR_DRAFTERS_MAX] = {{0}};
    for (unsigned set = 1; set <= BOTH; set++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            rates[set] += write_text(pairs[_i], set, seed, asked[set]) / SEEDS;
    double better = rates[1] > rates[2] ? rates[1] : rates[2];
    ck_assert_msg(rates[BOTH] >= 0.95 * better, "pair %d: %.3f alone and %.3f alone, together %.3f", _i, rates[1],
                  rates[2], rates[BOTH]);
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) ck_assert_uint_ge(asked[BOTH][i], SEEDS);
    ck_assert(asked[1][1] == 0 && asked[2][0] == 0);
}
END_TEST

FR_SUITE("better drafter") {
    TCase *cases = tcase_create("better drafter");
    tcase_add_loop_test(cases, two_come_near_the_better_one, 0, PAIRS);
    suite_add_tcase(suite, cases);
}
