/* Implements pairs.h: chooses runs over several factors. */
#include "tests/support/pairs.h"

#include <check.h>
#include <stdint.h>
#include <string.h>

enum { TRIALS = 40, NO_VALUE = FR_PAIRS_VALUES };

typedef struct cover {
    const size_t *values;
    size_t factors;
    fr_pairs_fit *fit;
    uint32_t random;
    /* met[f][a][g][b]: true if some run has both value a of factor f and value b of factor g */
    bool met[FR_PAIRS_FACTORS][FR_PAIRS_VALUES][FR_PAIRS_FACTORS][FR_PAIRS_VALUES];
} cover;

static size_t draw_below(cover *c, size_t limit) {
    c->random = c->random * 1664525u + 1013904223u;
    return (c->random >> 8) % limit;
}

static bool may_meet(const cover *c, size_t f, size_t a, size_t g, size_t b) {
    if (!c->fit) return true;
    return f < g ? c->fit(f, a, g, b) : c->fit(g, b, f, a);
}

/* Returns how many new pairs of values a run gets if factor f has value a in it. Returns -1 if another value of the run
 * excludes value a. */
static int count_added(const cover *c, const size_t *run, size_t f, size_t a) {
    int added = 0;
    for (size_t g = 0; g < c->factors; g++) {
        if (g == f || run[g] == NO_VALUE) continue;
        if (!may_meet(c, f, a, g, run[g])) return -1;
        added += !c->met[f][a][g][run[g]];
    }
    return added;
}

/* Gives a value to each factor that has none yet. The factors come in a random order. The chosen value is the one that
 * adds most pairs. If several values add equally many, it is the first of them after a random start. Returns the number
 * of added pairs. Returns -1 if no value fits for some factor. */
static int complete_run(cover *c, size_t *run) {
    size_t order[FR_PAIRS_FACTORS];
    int pairs = 0;
    for (size_t i = 0; i < c->factors; i++) {
        size_t j = draw_below(c, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; i < c->factors; i++) {
        size_t f = order[i], start = draw_below(c, c->values[f]), best = NO_VALUE;
        int most = -1;
        if (run[f] != NO_VALUE) continue;
        for (size_t v = 0; v < c->values[f]; v++) {
            size_t a = (start + v) % c->values[f];
            int added = count_added(c, run, f, a);
            if (added <= most) continue;
            most = added;
            best = a;
        }
        if (best == NO_VALUE) return -1;
        run[f] = best;
        pairs += most;
    }
    return pairs;
}

/* Makes several runs in which factor f has value a and factor g has value b. Adds the run with the most new pairs. */
static void add_run_with(cover *c, size_t f, size_t a, size_t g, size_t b, size_t *best) {
    int most = -1;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        fr_pairs_run run;
        for (size_t i = 0; i < c->factors; i++) run[i] = NO_VALUE;
        run[f] = a;
        run[g] = b;
        int pairs = complete_run(c, run);
        if (pairs <= most) continue;
        most = pairs;
        memcpy(best, run, sizeof run);
    }
    ck_assert_msg(most >= 0, "no run has values %zu and %zu of factors %zu and %zu", a, b, f, g);
    for (size_t i = 0; i < c->factors; i++)
        for (size_t j = 0; j < c->factors; j++) c->met[i][best[i]][j][best[j]] = true;
}

/* While some pair of values has not met in any run, adds a run that has this pair. At the end all pairs have met. */
size_t fr_pairs_cover(const size_t *values, size_t factors, fr_pairs_fit *fit, fr_pairs_run runs[FR_PAIRS_RUNS]) {
    static cover c;
    size_t count = 0;
    c = (cover){.values = values, .factors = factors, .fit = fit, .random = 1};
    for (size_t f = 0; f < factors; f++)
        for (size_t g = f + 1; g < factors; g++)
            for (size_t a = 0; a < values[f]; a++)
                for (size_t b = 0; b < values[g]; b++) {
                    if (c.met[f][a][g][b] || !may_meet(&c, f, a, g, b)) continue;
                    ck_assert_uint_lt(count, FR_PAIRS_RUNS);
                    add_run_with(&c, f, a, g, b, runs[count++]);
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
