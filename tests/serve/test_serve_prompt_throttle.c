/* Simulates how many prompt rows a round may run together with running texts. An invented machine determines how long a
 * round takes and how much time each row adds. */
/* suite: links=command */
#include <check.h>
#include <stdlib.h>

#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tools/serve/prompt_throttle.h"

typedef struct machine {
    /* round: seconds of a round without a prompt; row: seconds of each prompt row; free: number of first rows that cost
     * nothing */
    double round, row, free;
} machine;

static double takes(const machine *m, size_t rows, uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    double noise = 1 + 0.1 * ((double)(*state >> 8) / 16777216 - 0.5);
    double paid = (double)rows > m->free ? (double)rows - m->free : 0;
    return (m->round + m->row * paid) * noise;
}

static const machine machines[] = {{0.006, 0.0016, 0}, {0.030, 0.009, 0},    {0.030, 0.002, 7}, {0.080, 0.030, 4},
                                   {0.001, 0.005, 0},  {0.030, 0.00002, 16}, {0.500, 0.100, 2}};

/* After a few rounds, almost no round may take more than twice as long as a round without prompts. There is an
 * exception: a machine on which a single prompt row already takes that long. Prompts must still progress: they must get
 * a third of the rows that fit in this time. */
START_TEST(rounds_at_most_double) {
    const machine *m = &machines[_i];
    fr_prompt_throttle throttle = {0};
    uint32_t state = 7;
    size_t slow = 0, rows = 0, fits = (size_t)(m->free + m->round / m->row);
    for (size_t i = 0; i < 20; i++)
        fr_prompt_throttle_learn(&throttle, takes(m, 64, &state), 0, 64); /* rounds with a prompt and no running text */
    for (size_t i = 0; i < 20; i++) fr_prompt_throttle_learn(&throttle, takes(m, 0, &state), 3, 0);
    for (size_t i = 0; i < 400; i++) {
        size_t piece = fr_prompt_throttle_rows(&throttle, 3);
        if (piece > 256) piece = 256;
        ck_assert_uint_ge(piece, 1);
        double seconds = takes(m, piece, &state);
        slow += i >= 20 && seconds > 2.1 * m->round && piece > 1;
        rows += piece;
        fr_prompt_throttle_learn(&throttle, seconds, 3, piece);
    }
    ck_assert_uint_le(slow, 4);
    ck_assert_uint_ge(rows, 400 * (fits < 256 ? fits : 256) / 3);
}
END_TEST

START_TEST(nobody_waits) {
    fr_prompt_throttle throttle = {0};
    ck_assert_uint_eq(fr_prompt_throttle_rows(&throttle, 0), 0);
    ck_assert_uint_ge(fr_prompt_throttle_rows(&throttle, 1), 1);
    fr_prompt_throttle_learn(&throttle, 0.1, 0, 64);
    ck_assert_uint_eq(fr_prompt_throttle_rows(&throttle, 0), 0);
    ck_assert_uint_le(fr_prompt_throttle_rows(&throttle, 1), 64);
}
END_TEST

/* A text that has its first id may wait for other prompts of the same burst. These are the prompts of requests that
 * came before this first id. The test's text began at second 10 and got its first id at second 12. Request 7 was the
 * last request that came before second 12. */
START_TEST(a_burst_is_waited_for) {
    static const uint64_t before[] = {5}, at[] = {9, 7}, behind[] = {8, 9};
    const fr_prompt_throttle_first text = {10, 12, 7};
    ck_assert(fr_prompt_throttle_waits(&text, 12, 4, before, 1));
    ck_assert(fr_prompt_throttle_waits(&text, 17.9, 4, at, 2));
    /* these prompts came later, so the text does not wait for them */
    ck_assert(!fr_prompt_throttle_waits(&text, 12, 4, behind, 2));
    ck_assert(!fr_prompt_throttle_waits(&text, 12, 4, NULL, 0));
    /* The text waits at most three times as long as its own prompt took, once for each of three other slots. */
    ck_assert(!fr_prompt_throttle_waits(&text, 18.1, 4, before, 1));
    ck_assert(fr_prompt_throttle_waits(&text, 18.1, 5, before, 1));
    ck_assert(!fr_prompt_throttle_waits(&text, 12.1, 1, before, 1)); /* with one slot there is no other prompt */
}
END_TEST

FR_SUITE("serve_prompt_throttle") {
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, rounds_at_most_double, 0, sizeof machines / sizeof *machines);
    tcase_add_test(all, nobody_waits);
    tcase_add_test(all, a_burst_is_waited_for);
    suite_add_tcase(suite, all);
}
