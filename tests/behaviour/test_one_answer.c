/* Tests that the same ids and the same logits result, bit for bit, however they are computed, with drafters of every
 * kind.
 *
 * The factors are the instruction set, the threads, the prompt chunk, the draft method, the draft depth and the types
 * of the KV cache. Over 96 ids a base run is compared with a run for every value of each factor, and with a pairwise
 * cover (tests/support/pairs.h) that takes 8 of the 15 depths and the depth that is chosen by the clock. The cache's
 * types change the answer, so each pair of types has a base run of its own. So does the way in which tokens are
 * sampled: at two temperatures, with top-p and a penalty, every value of every factor (only four of the depths) must
 * give the base run's text; under rejection sampling, where the text may depend on method and depth, every value of
 * the other factors. As a negative control one rounding in one kernel is broken, and the comparison must notice it.
 *
 * FULL=1 in the environment compares 400 ids, without the cover: the case "product", which is split into parts
 * (tests/support/parts.h), takes every combination.
 *
 * Under an emulator (FORERUN_EMULATOR is set), where a run takes fifty times as long, one model writes 16 ids, depths
 * and sampled text have fewer values, and there is no cover; with FULL tests/neon.sh compares 400 ids of the demo
 * model with the native ones. FORERUN_BRIEF makes that one model the last, which takes a fifth of the time. */
/* suite: threads alone hosts-hour neon no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tests/support/answer.h"
#include "tests/support/brief.h"
#include "tests/support/changed_folder.h"
#include "tests/support/pairs.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"

#define COUNT      400
#define FACTORS    6
#define VALUES_MAX 16

static const int threads[] = {1, 2, 3}, chunks[] = {1, 7, 64, 512},
                 depths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, FR_DRAFT_AUTO};

/* Types of cached keys and values; the last three need heads that are multiples of 32 wide. */
static const char *const caches[][2] = {{"f32", "f32"},   {"f16", "f16"},   {"bf16", "f16"},
                                        {"q8_0", "q8_0"}, {"q4_0", "q4_0"}, {"q8_0", "q4_0"}};
#define CACHES (sizeof caches / sizeof *caches)

typedef struct subject {
    const char *target, *assistant; /* NULL: an MTP layer in the target */
    bool covered;                   /* also the pairwise cover */
    size_t caches;                  /* that it can have, the first of the list */
    const char *drafts;             /* the word of its drafter's method; NULL: mtp */
} subject;

#define LLAMA "tests/data/models/llama"
static fr_changed_folder llama; /* with a context for the longest text */

static const subject subjects[] = {
    {"tests/data/models/gemma4-e", "tests/data/models/gemma4-e/assistant", true, 3, NULL},
    {"tests/data/models/gemma4-moe", "tests/data/models/gemma4-moe/assistant", true, 3, NULL},
    {"tests/data/models/gemma4-dense", "tests/data/models/gemma4-dense/assistant", false, 3, NULL},
    {"tools/demo/target", "tools/demo/assistant", false, CACHES, NULL},
    {"tests/data/glm-ocr", NULL, false, CACHES, NULL},
    {"tests/data/models/qwen35-odd", NULL, false, 3, NULL},
    {"tests/data/models/qwen35-fp8", NULL, false, 1, NULL},
    {llama.path, "tests/data/llama/eagle3", false, 3, "eagle3"},
    {llama.path, "tests/data/llama/eagle", false, 3, "eagle"},
    {llama.path, "tests/data/llama/q4_0.gguf", false, 3, "draft"},
    {"tests/data/models/gemma4-e-odd", "tests/data/models/gemma4-e-odd/assistant", false, 3, NULL},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static bool emulated(void) {
    return getenv("FORERUN_EMULATOR") != NULL;
}

static size_t text_length(void) {
    if (emulated()) return 16;
    return fr_test_full() ? COUNT : 96;
}

/* The instruction-set words that this machine runs. */
static size_t words_here(const char **words) {
    size_t count = 0;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) words[count++] = fr_lab_word(FR_LAB_ISA, i);
    return count;
}

typedef struct space {
    const char *words[VALUES_MAX];
    size_t values[FACTORS]; /* how many each factor has: isa, threads, chunk, method, depth, cache */
    const char *drafts;
    fr_test_draws draws;
} space;

static space make_space(const subject *who) {
    space s = {.values = {0, 3, 4, FR_TEST_METHODS, 16, who->caches}, .drafts = who->drafts};
    s.values[0] = words_here(s.words);
    return s;
}

static fr_manner manner_of(const space *s, const size_t *at) {
    return (fr_manner){.isa = s->words[at[0]],
                       .threads = threads[at[1]],
                       .chunk = chunks[at[2]],
                       .method = (fr_test_method)at[3],
                       .depth = depths[at[4]],
                       .drafts = s->drafts,
                       .k = caches[at[5]][0],
                       .v = caches[at[5]][1],
                       .draws = s->draws};
}

typedef struct comparison {
    const subject *who;
    size_t length; /* of the texts */
    struct base {
        fr_answer answer;
        int32_t text[COUNT];
    } bases[CACHES];
} comparison;

/* Values by factor, as in `space`. */
static void compare(const comparison *c, const space *s, const size_t *at) {
    fr_manner manner = manner_of(s, at);
    const struct base *base = &c->bases[at[5]];
    fr_answer got = fr_answer_of(c->who->target, c->who->assistant, &manner, c->length, base->text, NULL, false);
    ck_assert_msg(got.ids == base->answer.ids && got.logits == base->answer.logits,
                  "%s: isa %s, %d threads, chunk %d, method %d, depth %d, cache %s %s gives other %s", c->who->target,
                  manner.isa, manner.threads, manner.chunk, manner.method, manner.depth, manner.k, manner.v,
                  got.ids == base->answer.ids ? "logits" : "ids");
}

/* Plain decoding, one thread, the best instruction set. */
static fr_manner base_manner(const space *s, size_t cache) {
    return manner_of(s, (size_t[]){s->values[0] - 1, 0, 2, FR_TEST_NONE, 0, cache});
}

/* The bases of the first `count` caches; no two of them give the same answer, so each type is really used. */
static comparison bases_of_length(const space *s, const subject *who, size_t count, size_t length) {
    comparison c = {.who = who, .length = length};
    for (size_t cache = 0; cache < count; cache++) {
        fr_manner manner = base_manner(s, cache);
        struct base *base = &c.bases[cache];
        base->answer = fr_answer_of(who->target, who->assistant, &manner, length, NULL, base->text, false);
        for (size_t other = 0; other < cache; other++)
            ck_assert_msg(base->answer.logits != c.bases[other].answer.logits, "%s: cache %s %s is no other than %s %s",
                          who->target, caches[cache][0], caches[cache][1], caches[other][0], caches[other][1]);
    }
    return c;
}

static comparison bases_of(const space *s, const subject *who, size_t count) {
    return bases_of_length(s, who, count, text_length());
}

START_TEST(every_value_of_every_factor) {
    space s = make_space(&subjects[_i]);
    comparison c = bases_of(&s, &subjects[_i], subjects[_i].caches);
    const size_t usual[FACTORS] = {s.values[0] - 1, 1, 2, FR_TEST_MTP, 2, 0};
    for (size_t factor = 0; factor < FACTORS; factor++)
        for (size_t value = 0; value < s.values[factor]; value += emulated() && factor == 4 ? 7 : 1) {
            size_t at[FACTORS];
            memcpy(at, usual, sizeof at);
            at[factor] = value;
            compare(&c, &s, at);
        }
}
END_TEST

/* Beside other programs each forward and each draft may be run by another number of threads. */
START_TEST(any_number_of_the_threads) {
    static const fr_test_method methods[] = {FR_TEST_NONE, FR_TEST_MTP, FR_TEST_REPLACED};
    const subject *who = &subjects[_i];
    space s = make_space(who);
    comparison c = bases_of(&s, who, 1);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        fr_manner manner = manner_of(&s, (size_t[]){s.values[0] - 1, 0, i, methods[i], 2 + i, 0});
        manner.threads = i ? 3 : 5;
        manner.some = true;
        fr_answer got = fr_answer_of(who->target, who->assistant, &manner, c.length, c.bases[0].text, NULL, false);
        ck_assert_msg(got.ids == c.bases[0].answer.ids && got.logits == c.bases[0].answer.logits,
                      "%s: changing numbers of threads, method %d, give another answer", who->target, manner.method);
    }
}
END_TEST

/* Small models have no heads for the caches of blocks, so the cover leaves these out. */
START_TEST(every_cache_on_every_instruction_set) {
    space s = make_space(&subjects[_i]);
    comparison c = bases_of(&s, &subjects[_i], subjects[_i].caches);
    for (size_t cache = 1; cache < s.values[5]; cache++)
        for (size_t word = 0; word < s.values[0]; word++)
            compare(&c, &s, (size_t[]){word, 1, 2, FR_TEST_MTP, 2, cache});
}
END_TEST

START_TEST(rejection_at_every_depth) {
    space s = make_space(&subjects[_i]);
    comparison c = bases_of(&s, &subjects[_i], 1);
    for (size_t depth = 0; depth < s.values[4]; depth += emulated() ? 7 : fr_test_full() ? 1 : 2)
        for (size_t method = FR_TEST_SCRIPTED; method <= FR_TEST_REPLACED; method++)
            compare(&c, &s, (size_t[]){s.values[0] - 1, 1, 2, method, depth, 0});
}
END_TEST

static const fr_test_draws draws[] = {{.temperature = 0.8, .top_p = 0.95},
                                      {.temperature = 1.3, .top_p = 0.9, .repeat = 1.1}};
#define DRAWS (sizeof draws / sizeof *draws)

/* All factors change from run to run, each in its own cycle. The last depth is the one that follows the clock. */
static void compare_in_turn(const comparison *c, const space *s, size_t runs, bool methods) {
    static const size_t some_depths[] = {0, 2, 14, 15};
    for (size_t run = 0; run < runs; run++)
        compare(c, s,
                (size_t[]){run % s->values[0], run % s->values[1], run % s->values[2],
                           methods ? run % FR_TEST_METHODS : FR_TEST_MTP, methods ? some_depths[run % 4] : 2, 0});
}

/* So many, and each instruction set at least once. */
static size_t runs_in_turn(const space *s, size_t runs) {
    return s->values[0] > runs ? s->values[0] : runs;
}

START_TEST(drawn_text_is_the_same_however_it_is_computed) {
    const subject *who = &subjects[_i / (int)DRAWS];
    space s = make_space(who);
    comparison greedy = bases_of(&s, who, 1);
    s.draws = draws[_i % (int)DRAWS];
    comparison c = bases_of(&s, who, 1);
    ck_assert_msg(c.bases[0].answer.ids != greedy.bases[0].answer.ids, "%s: greedy text was drawn", who->target);
    compare_in_turn(&c, &s, runs_in_turn(&s, fr_test_full() ? 12 : emulated() || !who->covered ? 4 : 8), true);
}
END_TEST

/* The same random numbers, drafter and depth: nothing else has a say. */
START_TEST(rejection_draws_the_same_on_any_machine) {
    space s = make_space(&subjects[_i]);
    comparison c = {.who = &subjects[_i], .length = text_length()};
    s.draws = (fr_test_draws){.temperature = 0.8, .top_p = 0.95, .repeat = 1.1, .rejection = true};
    fr_manner manner = manner_of(&s, (size_t[]){s.values[0] - 1, 0, 2, FR_TEST_MTP, 2, 0});
    c.bases[0].answer = fr_answer_of(c.who->target, c.who->assistant, &manner, text_length(), NULL, NULL, false);
    compare_in_turn(&c, &s, runs_in_turn(&s, fr_test_full() ? 5 : 3), false);
}
END_TEST

/* The widest instruction set says more; the others' texts have been compared at that length in other cases. */
static void full_product(const space *s, const comparison *widest, const comparison *others) {
    fr_test_part part = fr_test_part_here();
    for (size_t run = part.first; run < fr_pairs_combinations(s->values, FACTORS); run += part.step) {
        size_t at[FACTORS];
        fr_pairs_combination(run, s->values, FACTORS, at);
        compare(at[0] + 1 == s->values[0] ? widest : others, s, at);
    }
}

START_TEST(every_two_values_together) {
    const subject *who = &subjects[_i];
    space s = make_space(who);
    comparison c = bases_of(&s, who, who->caches);
    static const size_t some_depths[] = {0, 1, 2, 3, 6, 7, 11, 14, 15};
    size_t values[FACTORS];
    fr_pairs_run runs[FR_PAIRS_RUNS];
    memcpy(values, s.values, sizeof values);
    values[4] = sizeof some_depths / sizeof *some_depths;
    size_t count = fr_pairs_cover(values, FACTORS, runs);
    for (size_t i = 0; i < count; i++) {
        runs[i][4] = some_depths[runs[i][4]];
        compare(&c, &s, runs[i]);
    }
}
END_TEST

START_TEST(every_combination) {
    space s = make_space(&subjects[_i]);
    comparison widest = bases_of(&s, &subjects[_i], subjects[_i].caches);
    comparison others = bases_of_length(&s, &subjects[_i], subjects[_i].caches, 64);
    full_product(&s, &widest, &others);
}
END_TEST

START_TEST(one_rounding_more_is_told_apart) {
    space s = make_space(&subjects[_i]);
    comparison c = bases_of(&s, &subjects[_i], 1);
    fr_manner manner = base_manner(&s, 0);
    fr_answer got = fr_answer_of(c.who->target, c.who->assistant, &manner, text_length(), NULL, NULL, true);
    ck_assert_msg(got.logits != c.bases[0].answer.logits, "%s: a wrong rounding in a kernel went unnoticed",
                  c.who->target);
}
END_TEST

static void make_llama(void) {
    fr_changed_folder_make(&llama, LLAMA, "{\"max_position_embeddings\": 1024}");
}

static void remove_llama(void) {
    fr_changed_folder_remove(&llama);
}

FR_SUITE("one answer") {
    int first = emulated() && fr_test_brief() ? SUBJECTS - 1 : 0, end = emulated() ? first + 1 : SUBJECTS;
    int others = first; /* than the covered ones */
    while (others < end && subjects[others].covered) others++;
    TCase *matrix = tcase_create("matrix");
    tcase_add_unchecked_fixture(matrix, make_llama, remove_llama);
    tcase_set_timeout(matrix, 0);
    tcase_add_loop_test(matrix, every_value_of_every_factor, first, end);
    tcase_add_loop_test(matrix, any_number_of_the_threads, first, end);
    tcase_add_loop_test(matrix, every_cache_on_every_instruction_set, others, end);
    tcase_add_loop_test(matrix, rejection_at_every_depth, first, end);
    tcase_add_loop_test(matrix, drawn_text_is_the_same_however_it_is_computed, first * (int)DRAWS, end * (int)DRAWS);
    tcase_add_loop_test(matrix, rejection_draws_the_same_on_any_machine, first, end);
    tcase_add_loop_test(matrix, every_two_values_together, first, emulated() || fr_test_full() ? first : others);
    tcase_add_loop_test(matrix, one_rounding_more_is_told_apart, first, end);
    suite_add_tcase(suite, matrix);
    TCase *product = tcase_create("product");
    tcase_set_timeout(product, 0);
    tcase_add_loop_test(product, every_combination, first, fr_test_in_parts() ? others : first);
    suite_add_tcase(suite, product);
}
