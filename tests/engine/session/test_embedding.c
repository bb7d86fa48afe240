/* Tests the embeddings of texts. The results of fr_session_embed are compared with transformers
 * (tests/references/embeddings.py). A model's folder states its pooling. Every way of computing an embedding must give
 * the same bits. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/changed_folder.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define FOLDER "tests/data/embedding"

enum { TEXTS = 3, WIDTH = 48 };

static const struct {
    const char *name;
    fr_pooling pooling;
} poolings[] = {{"mean", FR_POOLING_MEAN}, {"cls", FR_POOLING_CLS}, {"last", FR_POOLING_LAST}};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

static fr_map map;
static fr_tensors tensors, unread;

static void open_reference(void) {
    tensors = unread = (fr_tensors){0};
    require(fr_map_open(&map, FOLDER "/reference.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
}

static void close_reference(void) {
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}

static const fr_tensor *stored(const char *what, int text) {
    char name[32];
    snprintf(name, sizeof name, "%s.%d", what, text);
    const fr_tensor *tensor = fr_tensors_find(&tensors, name);
    ck_assert_msg(tensor != NULL, "%s", name);
    return tensor;
}

static fr_options *settings(const char *isa, int threads, int chunk) {
    fr_options *options = fr_options_new();
    if (isa) require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    return options;
}

/* Fills values[POOLINGS][TEXTS][WIDTH] with embeddings. They are computed with this instruction set, number of threads
 * and chunk. */
static void embed_all(const char *isa, int threads, int chunk, float *values) {
    fr_model *model;
    fr_session *session;
    fr_options *options = settings(isa, threads, chunk);
    require(fr_model_open(FOLDER, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    for (size_t p = 0; p < POOLINGS; p++)
        for (int text = 0; text < TEXTS; text++, values += WIDTH) {
            const fr_tensor *ids = stored("ids", text);
            require(fr_session_embed(session, ids->data, (size_t)ids->shape[0], poolings[p].pooling, values));
        }
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}

START_TEST(rows_are_the_references) {
    float values[POOLINGS][TEXTS][WIDTH];
    embed_all(NULL, 2, 64, values[0][0]);
    for (size_t p = 0; p < POOLINGS; p++)
        for (int text = 0; text < TEXTS; text++) {
            const float *expected = stored(poolings[p].name, text)->data;
            double squares = 0;
            for (size_t i = 0; i < WIDTH; i++) {
                float got = values[p][text][i];
                ck_assert_msg(fabsf(got - expected[i]) < 5e-6F, "%s, text %d, value %zu: %g, not %g", poolings[p].name,
                              text, i, (double)got, (double)expected[i]);
                squares += (double)got * (double)got;
            }
            ck_assert_double_eq_tol(squares, 1, 1e-6);
        }
}
END_TEST

START_TEST(every_manner_of_running_gives_one_answer) {
    float first[POOLINGS * TEXTS * WIDTH], other[POOLINGS * TEXTS * WIDTH];
    embed_all(NULL, 2, 64, first);
    embed_all(NULL, 1, 1, other);
    ck_assert_mem_eq(other, first, sizeof first);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        embed_all(fr_lab_word(FR_LAB_ISA, i), 3, 7, other);
        ck_assert_mem_eq(other, first, sizeof first);
    }
}
END_TEST

/* The engine must use the pooling that the folder's 1_Pooling/config.json states. */
START_TEST(a_model_says_how_it_pools) {
    static const struct {
        const char *text;
        fr_status status;
        fr_pooling pooling;
    } cases[] = {
        {"{\"pooling_mode_lasttoken\": true}", FR_OK, FR_POOLING_LAST},
        {"{\"pooling_mode_mean_tokens\": true, \"pooling_mode_lasttoken\": false}", FR_OK, FR_POOLING_MEAN},
        {"{\"pooling_mode_cls_token\": true}", FR_OK, FR_POOLING_CLS},
        {"{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": true}", FR_OK, FR_POOLING_NONE},
        {"{\"pooling_mode_max_tokens\": true}", FR_OK, FR_POOLING_NONE},
        {"{}", FR_OK, FR_POOLING_NONE},
        {"{\"pooling_mode_cls_token\": \"yes\"}", FR_INPUT, FR_POOLING_NONE},
        {"[]", FR_INPUT, FR_POOLING_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_changed_folder changed;
        fr_model *model;
        char path[128], inner[96];
        fr_changed_folder_make(&changed, FOLDER, "{}");
        snprintf(inner, sizeof inner, "%s/1_Pooling", changed.path);
        snprintf(path, sizeof path, "%s/config.json", inner);
        unlink(inner); /* removes the link to the fixture's folder */
        ck_assert_int_eq(mkdir(inner, 0700), 0);
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs(cases[i].text, file);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert_int_eq(fr_model_open(changed.path, NULL, &model), cases[i].status);
        if (model)
            ck_assert_int_eq(fr_model_fact(model, FR_FACT_POOLING), cases[i].pooling);
        else
            ck_assert_msg(strstr(fr_last_error(), "1_Pooling/config.json") != NULL, "%s", fr_last_error());
        fr_model_close(model);
        unlink(path);
        rmdir(inner);
        fr_changed_folder_remove(&changed);
    }
}
END_TEST

START_TEST(what_pools_nothing_is_refused) {
    fr_model *model;
    fr_session *session;
    const int32_t ids[] = {3, 4};
    float values[WIDTH];
    require(fr_model_open(FOLDER, NULL, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_POOLING), FR_POOLING_LAST);
    require(fr_session_open(model, NULL, NULL, &session));
    ck_assert_int_eq(fr_session_embed(session, ids, 2, FR_POOLING_NONE, values), FR_USAGE);
    ck_assert_int_eq(fr_session_embed(session, ids, 2, FR_POOLING_RANK, values), FR_USAGE);
    ck_assert_int_eq(fr_session_embed(session, ids, 2, FR_POOLING_LAST, NULL), FR_USAGE);
    ck_assert_int_eq(fr_session_embed(session, ids, 0, FR_POOLING_LAST, values), FR_INPUT);
    fr_session_close(session);
    fr_model_close(model);
}
END_TEST

FR_SUITE("embedding") {
    TCase *tests = tcase_create("embedding");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, open_reference, close_reference);
    tcase_add_test(tests, rows_are_the_references);
    tcase_add_test(tests, every_manner_of_running_gives_one_answer);
    tcase_add_test(tests, a_model_says_how_it_pools);
    tcase_add_test(tests, what_pools_nothing_is_refused);
    suite_add_tcase(suite, tests);
}
