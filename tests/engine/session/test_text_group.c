/* An embedder runs several texts in one batch. Each text must get the same embedding as when it is run alone.
 *
 * The expected values come from fr_session_rows, which runs a single text. This test pools its rows and compares every
 * bit of the result. The models have full, sliding and recurrent layers. The tests vary the number of threads, and use
 * chunks that divide texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun.h"
#include "tests/support/changed_folder.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { TEXTS = 45, LONGEST = 150, IDS = 90, WIDEST = 256, DAMAGED_ID = 275 };

static const char *const folders[] = {"tests/data/encoders/qwen3", "tests/data/models/gemma2-odd",
                                      "tests/data/models/qwen35-odd", "tests/data/models/lfm2-long",
                                      "tests/data/models/qwen3-moe-odd"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static const fr_pooling poolings[] = {FR_POOLING_MEAN, FR_POOLING_CLS, FR_POOLING_LAST};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

/* There are more texts than a group of the embedder has sessions. Most texts are short. Every seventh text is longer
 * than the usual chunk. */
static int32_t ids[TEXTS][LONGEST];
static fr_embedder_text texts[TEXTS];

static void make_texts(void) {
    uint32_t state = 7;
    for (size_t t = 0; t < TEXTS; t++) {
        texts[t] = (fr_embedder_text){.ids = ids[t], .count = t % 7 == 3 ? LONGEST - t : 1 + t % 5 * t % 23};
        for (size_t i = 0; i < LONGEST; i++) {
            state = state * 1664525U + 1013904223U;
            ids[t][i] = (int32_t)(3 + (state >> 16) % IDS);
        }
    }
}

typedef struct pooled {
    fr_pooling pooling;
    size_t seen;
    double sums[WIDEST];
} pooled;

static fr_status pool(void *context, const float *values, size_t rows, size_t width) {
    pooled *p = context;
    for (size_t r = 0; r < rows; r++, p->seen++)
        for (size_t i = 0; i < width && (p->pooling != FR_POOLING_CLS || p->seen == 0); i++)
            p->sums[i] = (p->pooling == FR_POOLING_MEAN ? p->sums[i] : 0) + (double)values[r * width + i];
    return FR_OK;
}

static fr_options *settings(int threads, int chunk) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    if (chunk) require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    return options;
}

/* Returns the expected embeddings with this pooling, an array [TEXTS, width]. The caller frees it. */
static float *rows_alone(const char *folder, fr_pooling pooling, size_t *width) {
    fr_model *model;
    fr_session *session;
    fr_options *options = settings(1, 0);
    require(fr_model_open(folder, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    *width = (size_t)fr_model_fact(model, FR_FACT_HIDDEN);
    ck_assert_uint_le(*width, WIDEST);
    float *rows = calloc(TEXTS * *width, sizeof *rows);
    for (size_t t = 0; t < TEXTS; t++) {
        pooled p = {.pooling = pooling};
        require(fr_session_rows(session, texts[t].ids, texts[t].count, NULL, 0, pool, &p));
        double divisor = pooling == FR_POOLING_MEAN ? (double)texts[t].count : 1;
        for (size_t i = 0; i < *width; i++) rows[t * *width + i] = (float)(p.sums[i] / divisor);
    }
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    return rows;
}

static void compare(const float *got, const float *expected, size_t count, size_t width, const char *what) {
    for (size_t t = 0; t < count; t++)
        ck_assert_msg(memcmp(got + t * width, expected + t * width, width * sizeof *got) == 0,
                      "%s: text %zu of %zu tokens has other bits than alone", what, t, texts[t].count);
}

START_TEST(rows_are_those_of_each_text_alone) {
    static const int runs[][2] = {{1, 0}, {1, 1}, {3, 7}, {2, 33}, {1, 200}};
    const char *folder = folders[_i / POOLINGS];
    fr_pooling pooling = poolings[_i % POOLINGS];
    size_t width;
    float *expected = rows_alone(folder, pooling, &width), *got = calloc(TEXTS * width, sizeof *got);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        fr_model *model;
        fr_embedder *embedder;
        fr_options *options = settings(runs[i][0], runs[i][1]);
        require(fr_model_open(folder, options, &model));
        require(fr_embedder_open(model, NULL, options, pooling, &embedder));
        require(fr_embedder_rows(embedder, texts, 2, 0, 0, got)); /* opens an engine with two sessions */
        compare(got, expected, 2, width, folder);
        memset(got, 0, TEXTS * width * sizeof *got);
        require(fr_embedder_rows(embedder, texts, TEXTS, 0, 0, got));
        compare(got, expected, TEXTS, width, folder);
        fr_embedder_close(embedder);
        fr_model_close(model);
        fr_options_free(options);
    }
    free(expected);
    free(got);
}
END_TEST

/* If an engine has pages for only one text, the embedder runs fewer texts at a time. The caller's own sessions of this
 * engine stay open meanwhile. */
START_TEST(a_shared_engine_and_few_pages_change_no_bit) {
    static const size_t sessions[] = {2, 9};
    size_t width;
    float *expected = rows_alone(folders[_i], FR_POOLING_MEAN, &width), *got = calloc(TEXTS * width, sizeof *got);
    for (size_t i = 0; i < 2; i++) {
        fr_model *model;
        fr_engine *engine;
        fr_session *others[9] = {NULL}, *before;
        fr_embedder *embedder;
        fr_options *options = settings(1, 0);
        require(fr_options_set(options, FR_OPT_CONTEXT, 192));
        require(fr_model_open(folders[_i], options, &model));
        require(fr_options_set(options, FR_OPT_KV_MEMORY, 1));
        ck_assert_int_eq(fr_engine_open(model, NULL, options, sessions[i], &engine), FR_INPUT);
        const char *fewest = strstr(fr_last_error(), "needs at least ");
        ck_assert_msg(fewest != NULL, "%s", fr_last_error());
        require(fr_options_set(options, FR_OPT_KV_MEMORY, strtoll(fewest + strlen("needs at least "), NULL, 10)));
        require(fr_engine_open(model, NULL, options, sessions[i], &engine));
        require(fr_engine_session(engine, options, &before));
        require(fr_embedder_open(model, engine, options, FR_POOLING_MEAN, &embedder));
        require(fr_embedder_rows(embedder, texts, TEXTS, 0, 0, got));
        compare(got, expected, TEXTS, width, folders[_i]);
        for (size_t k = 0; k + 2 < sessions[i]; k++) require(fr_engine_session(engine, options, &others[k]));
        memset(got, 0, TEXTS * width * sizeof *got);
        /* all other places of the engine are taken, so only the embedder's own session is left */
        require(fr_embedder_rows(embedder, texts, TEXTS, 0, 0, got));
        compare(got, expected, TEXTS, width, folders[_i]);
        for (size_t k = 0; k + 2 < sessions[i]; k++) fr_session_close(others[k]);
        fr_embedder_close(embedder);
        fr_session_close(before);
        fr_engine_close(engine);
        fr_model_close(model);
        fr_options_free(options);
    }
    free(expected);
    free(got);
}

/* If one text fails, the texts before it must get their embeddings, even those in the same forward pass. The texts
 * after it get none. The embedder must be usable afterwards. */
START_TEST(an_error_in_one_text_spares_those_before_it) {
    enum { BAD = 20 };
    fr_changed_folder folder;
    fr_model *model;
    fr_embedder *embedder;
    size_t width;
    float *expected = rows_alone(folders[0], FR_POOLING_MEAN, &width), *got = calloc(TEXTS * width, sizeof *got);
    float *none = calloc(TEXTS * width, sizeof *none);
    fr_options *options = settings(2, 64);
    fr_changed_folder_make(&folder, folders[0], "{}");
    fr_changed_folder_damage(&folder, "embed_tokens.weight", DAMAGED_ID);
    require(fr_model_open(folder.path, options, &model));
    require(fr_embedder_open(model, NULL, options, FR_POOLING_MEAN, &embedder));
    int32_t *last = &texts[BAD].ids[texts[BAD].count - 1], kept = *last;
    *last = DAMAGED_ID;
    ck_assert_int_eq(fr_embedder_rows(embedder, texts, TEXTS, 0, 0, got), FR_NUMERIC);
    ck_assert_msg(strstr(fr_last_error(), "finite") != NULL, "%s", fr_last_error());
    compare(got, expected, BAD, width, "before the damaged text");
    ck_assert_mem_eq(got + BAD * width, none, (TEXTS - BAD) * width * sizeof *got);
    *last = kept;
    require(fr_embedder_rows(embedder, texts, TEXTS, 0, 0, got));
    compare(got, expected, TEXTS, width, "after the damaged text");
    fr_embedder_close(embedder);
    fr_model_close(model);
    fr_options_free(options);
    fr_changed_folder_remove(&folder);
    free(none);
    free(expected);
    free(got);
}
END_TEST

FR_SUITE("text_group") {
    TCase *tests = tcase_create("text_group");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, make_texts, NULL);
    tcase_add_loop_test(tests, rows_are_those_of_each_text_alone, 0, FOLDERS * POOLINGS);
    tcase_add_loop_test(tests, a_shared_engine_and_few_pages_change_no_bit, 0, FOLDERS);
    tcase_add_test(tests, an_error_in_one_text_spares_those_before_it);
    suite_add_tcase(suite, tests);
}
