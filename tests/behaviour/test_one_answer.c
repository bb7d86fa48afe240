/* Tests that ids and logits are the same, bit for bit, however they are computed. The drafters are of every kind.
 *
 * The factors are the model with its drafter, the instruction set, the threads, the prompt chunk, the draft method, the
 * draft depth and the question. A question is a pair of types of the KV cache, or a way of sampling tokens. A question
 * changes the answer, so each question has its own base run, which is decoding without drafts by one thread.
 *
 * The suite does not run all combinations, but a pairwise cover (tests/support/pairs.h): any two values of two factors
 * occur together in at least one run. Each run is compared with its base run over 64 ids. The cover takes 8 of the 15
 * depths, and the automatic depth, which is chosen from measured times. Tokens are sampled at two temperatures, with
 * top-p and a penalty, and with rejection sampling. The text of rejection sampling may depend on method and depth, so a
 * run has the same method and depth as its base run. In further runs, wrong drafts force rejection at each of 15
 * depths. As a negative control one rounding in one kernel is broken, and the comparison must notice this.
 *
 * FULL=1 in the environment compares 400 ids and forces rejection with drafts of every depth. The case "product", which
 * is split into parts (tests/support/parts.h), takes every combination.
 *
 * Under an emulator a run takes fifty times as long. So the smallest model generates 16 ids, and there are fewer
 * depths, methods and ways of sampling. With FULL the emulator runs the first model instead. With FULL and
 * FORERUN_BRIEF it runs the smallest model. tests/neon.sh compares 400 ids of the demo model in an emulator with those
 * of the native program. */
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

enum { COUNT = 400, VALUES_MAX = FR_PAIRS_VALUES };

typedef enum factor { WHO, WORD, THREADS, CHUNK, METHOD, DEPTH, QUESTION, FACTORS } factor;

/* The values of the factors. With 5 threads, each forward and each draft may use a different number of them, as if
 * other programs took cores away. Depth 0 means a run without drafts. */
static const int threads[] = {1, 2, 3, 5}, chunks[] = {1, 7, 64, 512},
                 every_depth[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, FR_DRAFT_AUTO},
                 some_depths[] = {0, 1, 2, 3, 4, 7, 8, 12, 15, FR_DRAFT_AUTO},
                 few_depths[] = {0, 1, 3, 15, FR_DRAFT_AUTO};
enum { SOME_THREADS = 3 };

/* The types of cached keys and values, which are tested with greedy text. The last five pairs need heads whose width is
 * a multiple of 32. */
static const char *const caches[][2] = {{"f32", "f32"},   {"f16", "f16"},   {"bf16", "f16"},      {"q8_0", "q8_0"},
                                        {"q4_0", "q4_0"}, {"q8_0", "q4_0"}, {"turbo4", "turbo3"}, {"turbo3", "f16"}};
enum { CACHES = sizeof caches / sizeof *caches };

/* The ways of sampling. In the list of questions they come after the pairs of cache types. All of them use the first
 * pair of cache types. */
static const fr_test_draws draws[] = {{.temperature = 0.8, .top_p = 0.95},
                                      {.temperature = 0.8, .top_p = 0.95, .repeat = 1.1, .rejection = true},
                                      {.temperature = 1.3, .top_p = 0.9, .repeat = 1.1}};
enum { DRAWS = sizeof draws / sizeof *draws, FEW_DRAWS = 2, REJECTION = 1 };

static const fr_test_method every_method[] = {FR_TEST_NONE,      FR_TEST_MTP,      FR_TEST_NGRAM,
                                              FR_TEST_NGRAM_MTP, FR_TEST_SCRIPTED, FR_TEST_REPLACED},
                            few_methods[] = {FR_TEST_NONE, FR_TEST_MTP, FR_TEST_REPLACED};
enum { NO_DRAFTS, MTP }; /* indexes in every_method and in few_methods */

typedef struct subject {
    const char *target, *assistant; /* assistant: NULL if the target has an MTP layer */
    bool product;                   /* true: the case "product" runs this model */
    size_t caches;                  /* number of pairs of cache types that the model's heads allow. These are the first
                                     * pairs of the list */
    const char *drafts;             /* the name of the drafter's method; NULL: it is mtp */
} subject;

#define LLAMA "tests/data/models/llama"
static fr_changed_folder llama; /* a copy of the fixture whose context is large enough for the longest text */

static const subject subjects[] = {
    {"tests/data/models/gemma4-e", "tests/data/models/gemma4-e/assistant", true, 3, NULL},
    {"tests/data/models/gemma4-moe", "tests/data/models/gemma4-moe/assistant", true, 3, NULL},
    {"tests/data/models/gemma4-dense", "tests/data/models/gemma4-dense/assistant", false, 3, NULL},
    {"tools/demo/target", "tools/demo/assistant", false, CACHES, NULL},
    {"tests/data/glm-ocr", NULL, false, CACHES, NULL},
    {"tests/data/models/qwen35-odd", NULL, false, 3, NULL},
    {"tests/data/models/qwen35-fp8", NULL, false, 1, NULL},
    {llama.path, "tests/data/llama/eagle3", false, 3, "eagle3"},
    {llama.path, "tests/data/llama/eagle3-layers", false, 1, "eagle3"},
    {llama.path, "tests/data/llama/eagle", false, 3, "eagle"},
    {llama.path, "tests/data/llama/q4_0.gguf", false, 3, "draft"},
    {"tests/data/models/gemma4-e-odd", "tests/data/models/gemma4-e-odd/assistant", false, 3, NULL},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* The models of this run are the elements of `subjects` from first_subject up to, but not including, end_subject. */
static size_t first_subject, end_subject;

static size_t text_length(void) {
    if (fr_test_emulated()) return 16;
    return fr_test_full() ? COUNT : 64;
}

static const char *words[VALUES_MAX];
static const fr_test_method *methods;
static const int *depths;
static size_t depth_3; /* the index of depth 3 in `depths` */
static size_t cached;  /* number of questions about cache types in this run, which is that of the model with the most
                        * such questions */
static size_t values[FACTORS] = {[THREADS] = 4, [CHUNK] = 4};

static void find_values(void) {
    bool brief = fr_test_emulated() && (fr_test_brief() || !fr_test_full());
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) words[values[WORD]++] = fr_lab_word(FR_LAB_ISA, i);
    first_subject = brief ? SUBJECTS - 1 : 0;
    end_subject = fr_test_emulated() ? first_subject + 1 : SUBJECTS;
    values[WHO] = end_subject - first_subject;
    for (size_t i = first_subject; i < end_subject; i++)
        if (subjects[i].caches > cached) cached = subjects[i].caches;
    values[QUESTION] = cached + (fr_test_emulated() ? FEW_DRAWS : DRAWS);
    methods = fr_test_emulated() ? few_methods : every_method;
    values[METHOD] = fr_test_emulated() ? sizeof few_methods / sizeof *few_methods : FR_TEST_METHODS;
    depths = fr_test_emulated() ? few_depths : fr_test_full() ? every_depth : some_depths;
    while (depths[depth_3] != 3) depth_3++;
    while (depths[values[DEPTH]] != FR_DRAFT_AUTO) values[DEPTH]++;
    values[DEPTH]++; /* adds FR_DRAFT_AUTO, which ends the list */
}

/* Returns true if value `a` of factor f and value `b` of factor g may be in one run. Two values exclude each other if
 * they make no sense together, or if with them the answer would differ from that of the base run. */
static bool may_meet(size_t f, size_t a, size_t g, size_t b) {
    if (f == METHOD && g == DEPTH) return (a == NO_DRAFTS) == (b == 0);
    if (f == WHO && g == QUESTION) return b < subjects[first_subject + a].caches || b >= cached;
    if (g != QUESTION || b != cached + REJECTION) return true;
    if (f == METHOD) return a == MTP;
    return f != DEPTH || a == depth_3;
}

static fr_manner manner_of(const size_t *at) {
    bool drawn = at[QUESTION] >= cached;
    const char *const *cache = caches[drawn ? 0 : at[QUESTION]];
    return (fr_manner){.isa = words[at[WORD]],
                       .threads = threads[at[THREADS]],
                       .some = at[THREADS] == SOME_THREADS,
                       .chunk = chunks[at[CHUNK]],
                       .method = methods[at[METHOD]],
                       .depth = at[METHOD] == NO_DRAFTS ? 1 : depths[at[DEPTH]],
                       .drafts = subjects[first_subject + at[WHO]].drafts,
                       .k = cache[0],
                       .v = cache[1],
                       .draws = drawn ? draws[at[QUESTION] - cached] : (fr_test_draws){0}};
}

typedef struct base {
    fr_answer answer;
    int32_t text[COUNT];
} base;

/* Compares a run with the base run of its question. */
static void compare(const base *bases, size_t length, const size_t *at) {
    const subject *who = &subjects[first_subject + at[WHO]];
    const base *right = &bases[at[QUESTION]];
    fr_manner manner = manner_of(at);
    fr_answer got = fr_answer_of(who->target, who->assistant, &manner, length, right->text, NULL, false);
    ck_assert_msg(got.ids == right->answer.ids && got.logits == right->answer.logits,
                  "%s: isa %s, %s%d threads, chunk %d, method %d, depth %d, cache %s %s, %s gives other %s",
                  who->target, manner.isa, manner.some ? "some of " : "", manner.threads, manner.chunk, manner.method,
                  manner.depth, manner.k, manner.v, at[QUESTION] < cached ? "greedy" : "drawn",
                  got.ids == right->answer.ids ? "logits" : "ids");
}

/* Sets the factors of the base run: no drafts, one thread, the best instruction set. With rejection sampling the text
 * depends on method and depth, so then the base run drafts too. */
static void base_run(size_t *at, size_t who, size_t question) {
    const size_t plain[FACTORS] = {
        [WHO] = who, [WORD] = values[WORD] - 1, [CHUNK] = 2, [METHOD] = NO_DRAFTS, [QUESTION] = question};
    memcpy(at, plain, sizeof plain);
    if (question != cached + REJECTION) return;
    at[METHOD] = MTP;
    at[DEPTH] = depth_3;
}

/* Makes the base runs of the first `count` questions. A question that this model does not allow is skipped. Any two
 * base runs must give different answers. This shows that each type of cache and each way of sampling is really used. */
static base *make_bases(size_t who, size_t count, size_t length) {
    const subject *whose = &subjects[first_subject + who];
    base *bases = calloc(values[QUESTION], sizeof *bases);
    ck_assert_ptr_nonnull(bases);
    for (size_t question = 0; question < count; question++) {
        size_t at[FACTORS];
        if (!may_meet(WHO, who, QUESTION, question)) continue;
        base_run(at, who, question);
        fr_manner manner = manner_of(at);
        base *b = &bases[question];
        b->answer = fr_answer_of(whose->target, whose->assistant, &manner, length, NULL, b->text, false);
        for (size_t other = 0; other < question; other++)
            ck_assert_msg(b->answer.logits != bases[other].answer.logits, "%s: questions %zu and %zu have one answer",
                          whose->target, question, other);
    }
    return bases;
}

START_TEST(every_two_values_together) {
    static fr_pairs_run runs[FR_PAIRS_RUNS];
    size_t count = fr_pairs_cover(values, FACTORS, may_meet, runs);
    base *bases = make_bases((size_t)_i, values[QUESTION], text_length());
    for (size_t i = 0; i < count; i++)
        if (runs[i][WHO] == (size_t)_i) compare(bases, text_length(), runs[i]);
    free(bases);
}
END_TEST

/* In successive rounds the drafts are wrong at depth 0, 1, 2 and so on, so the rounds give 1, 2, 3 and so on ids. With
 * 15 drafts each depth has been tried after 136 ids. */
START_TEST(rejection_at_every_depth) {
    size_t length = fr_test_full() || fr_test_emulated() ? text_length() : 136;
    base *bases = make_bases((size_t)_i, 1, length);
    for (size_t depth = fr_test_full() ? 1 : values[DEPTH] - 2; depth < values[DEPTH]; depth++)
        for (size_t method = 0; method < values[METHOD]; method++) {
            if (methods[method] < FR_TEST_SCRIPTED) continue;
            size_t at[FACTORS];
            base_run(at, (size_t)_i, 0);
            at[THREADS] = 1;
            at[METHOD] = method;
            at[DEPTH] = depth;
            compare(bases, length, at);
        }
    free(bases);
}
END_TEST

/* Compares every combination of one model's factors. To save time, only the widest instruction set generates a text of
 * the full length. The other instruction sets generate OTHERS_LENGTH ids here. Other cases compare them over the full
 * length. */
START_TEST(every_combination) {
    enum { OTHERS_LENGTH = 64 };
    fr_test_part part = fr_test_part_here();
    base *widest = make_bases((size_t)_i, cached, text_length()),
         *others = make_bases((size_t)_i, cached, OTHERS_LENGTH);
    size_t of_one[FACTORS];
    memcpy(of_one, values, sizeof of_one);
    of_one[WHO] = 1;
    of_one[QUESTION] = cached;
    for (size_t run = part.first; run < fr_pairs_combinations(of_one, FACTORS); run += part.step) {
        size_t at[FACTORS];
        fr_pairs_combination(run, of_one, FACTORS, at);
        at[WHO] = (size_t)_i;
        bool fit = true;
        for (size_t f = 0; f < FACTORS; f++)
            for (size_t g = f + 1; g < FACTORS; g++) fit = fit && may_meet(f, at[f], g, at[g]);
        if (!fit) continue;
        bool wide = at[WORD] + 1 == values[WORD];
        compare(wide ? widest : others, wide ? text_length() : OTHERS_LENGTH, at);
    }
    free(widest);
    free(others);
}
END_TEST

START_TEST(one_rounding_more_is_told_apart) {
    const subject *who = &subjects[first_subject + (size_t)_i];
    base *bases = make_bases((size_t)_i, 1, text_length());
    size_t at[FACTORS];
    base_run(at, (size_t)_i, 0);
    fr_manner manner = manner_of(at);
    fr_answer got = fr_answer_of(who->target, who->assistant, &manner, text_length(), NULL, NULL, true);
    ck_assert_msg(got.logits != bases[0].answer.logits, "%s: a wrong rounding in a kernel went unnoticed", who->target);
    free(bases);
}
END_TEST

static void make_llama(void) {
    fr_changed_folder_make(&llama, LLAMA, "{\"max_position_embeddings\": 1024}");
}

static void remove_llama(void) {
    fr_changed_folder_remove(&llama);
}

FR_SUITE("one answer") {
    find_values();
    int count = (int)values[WHO], products = 0;
    while (products < count && subjects[first_subject + (size_t)products].product) products++;
    TCase *matrix = tcase_create("matrix");
    tcase_add_unchecked_fixture(matrix, make_llama, remove_llama);
    tcase_set_timeout(matrix, 0);
    tcase_add_loop_test(matrix, every_two_values_together, 0, count);
    tcase_add_loop_test(matrix, rejection_at_every_depth, 0, count);
    tcase_add_loop_test(matrix, one_rounding_more_is_told_apart, 0, count);
    suite_add_tcase(suite, matrix);
    TCase *product = tcase_create("product");
    tcase_set_timeout(product, 0);
    tcase_add_loop_test(product, every_combination, 0, fr_test_in_parts() ? products : 0);
    suite_add_tcase(suite, product);
}
