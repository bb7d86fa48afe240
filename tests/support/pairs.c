/* Chooses runs over several factors: see pairs.h. */
#include "tests/support/pairs.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TRIALS = 200, STALE = 10 };

/* met[f][a][g][b]: value a of factor f has run together with value b of factor g. */
typedef bool met_table[FR_PAIRS_FACTORS][FR_PAIRS_VALUES][FR_PAIRS_FACTORS][FR_PAIRS_VALUES];

static size_t new_pairs(met_table met, const size_t *run, size_t factors, bool mark) {
    size_t count = 0;
    for (size_t f = 0; f < factors; f++)
        for (size_t g = f + 1; g < factors; g++) {
            count += !met[f][run[f]][g][run[g]];
            if (mark) met[f][run[f]][g][run[g]] = true;
        }
    return count;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Each the best of many random ones, until many in a row bring nothing new. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_run runs[FR_PAIRS_RUNS]) {
    static met_table met;
    uint32_t state = 1;
    size_t count = 0;
    memset(met, 0, sizeof met);
    for (size_t stale = 0; stale < STALE;) {
        fr_pairs_run best = {0}, run = {0};
        size_t best_pairs = 0;
        for (size_t trial = 0; trial < TRIALS; trial++) {
            for (size_t f = 0; f < factors; f++) run[f] = next_random(&state) % values[f];
            size_t pairs = new_pairs(met, run, factors, false);
            if (pairs <= best_pairs) continue;
            best_pairs = pairs;
            memcpy(best, run, sizeof best);
        }
        stale = best_pairs ? 0 : stale + 1;
        if (best_pairs == 0) continue;
        ck_assert_uint_lt(count, FR_PAIRS_RUNS);
        new_pairs(met, best, factors, true);
        memcpy(runs[count++], best, sizeof best);
    }
    return count;
}

size_t fr_pairs_combinations(const size_t *values, size_t factors) {
    size_t count = 1;
    for (size_t f = 0; f < factors; f++) count *= values[f];
    return count;
}

void fr_pairs_combination(size_t number, const size_t *values, size_t factors, size_t *run) {
    for (size_t f = 0; f < factors; f++) {
        run[f] = number % values[f];
        number /= values[f];
    }
}
