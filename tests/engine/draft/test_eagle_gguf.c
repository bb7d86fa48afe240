/* Tests EAGLE-3 drafters that `forerun quantize` wrote as GGUF files. Each file must give the scores of the folder that
 * it was made from.
 *
 * test_quantize.c tests that the files are the same as those of llama.cpp's converter. test_eagle.c tests that a file's
 * drafts are the reference's. This suite tests a drafter of odd dimensions, with biases and everything else that a
 * folder may contain. It also tests every type of weights, and drafters that can't be written. */
#include <check.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define LLAMA  "tests/data/llama/"
#define TARGET FR_TEST_MODELS "llama"

enum { DEPTH = 4, VOCAB = 512, SCORES = DEPTH * VOCAB };

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-eagle-gguf-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    unlink(in_folder("config.json"));
    unlink(in_folder("model.safetensors"));
    unlink(in_folder("drafter.gguf"));
    unlink(in_folder("keyless.gguf"));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Writes the odd drafter with norm_output off, because GGUF can't express norm_output. If norm_output is off, each
 * draft step receives the row of the previous step from before the final norm. */
static void write_odd(bool norm_before_residual) {
    char weights[PATH_MAX];
    json_t *config = fr_load_json(LLAMA "eagle3-odd/config.json");
    json_object_set_new(config, "norm_output", json_false());
    json_object_set_new(config, "norm_before_residual", json_boolean(norm_before_residual));
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
    ck_assert_ptr_nonnull(realpath(LLAMA "eagle3-odd/model.safetensors", weights));
    ck_assert_int_eq(symlink(weights, in_folder("model.safetensors")), 0);
}

static fr_status quantize(const char *target, const char *drafter, const char *type) {
    const fr_lab_quantization how = {.type = type, .drafter = drafter};
    FILE *out = fopen(in_folder("drafter.gguf"), "wb");
    fr_status status = fr_lab_quantize(target, &how, NULL, out);
    ck_assert_int_eq(fclose(out), 0);
    return status;
}

/* Runs one chain of drafts after a text, and writes the scores of these drafts to `scores`. */
static void score(const char *path, float *scores) {
    fr_model *model;
    fr_drafter *drafter;
    fr_session *session;
    fr_rows rows = {scores, 0, SCORES};
    size_t count;
    json_t *reference = fr_load_json(TARGET "/reference.json");
    int32_t *ids = fr_ids_of(json_array_get(json_object_get(reference, "prompts"), 4), &count);
    require(fr_model_open(TARGET, NULL, &model));
    require(fr_drafter_open(path, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    require(fr_session_draft_logits(session, ids, count, DEPTH, fr_rows_collect, &rows));
    ck_assert_uint_eq(rows.count, SCORES);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    json_decref(reference);
    free(ids);
}

/* A GGUF file has the rows of the query and key matrices, and their biases, in another order within each head. This
 * changes only the rounding of attention scores. The target may be a folder or a GGUF file. */
START_TEST(an_odd_drafter_scores_the_same) {
    static const char *const types[] = {"f32", "bf16"}, *const targets[] = {TARGET, LLAMA "q4_0.gguf"};
    float expected[SCORES], got[SCORES];
    write_odd(_i);
    score(folder, expected);
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        require(quantize(targets[i], folder, types[i]));
        snprintf(path, sizeof path, "%s", in_folder("drafter.gguf"));
        score(path, got);
        for (size_t s = 0; s < SCORES; s++)
            ck_assert(isinf(expected[s]) ? isinf(got[s]) : fabsf(got[s] - expected[s]) < 1e-5F);
    }
}
END_TEST

/* Compares the first draft step of a quantized drafter with the first step of the drafter's folder. Later steps are not
 * compared, because they may follow different drafts. */
START_TEST(every_type_is_near) {
    static const struct {
        const char *type;
        double error; /* the largest error, divided by the standard deviation of the scores */
    } types[] = {{"f32", 1e-5}, {"bf16", 1e-5}, {"f16", 1e-3}, {"q8_0", 0.02},  {"q6_k", 0.05}, {"q5_k", 0.1},
                 {"q5_1", 0.1}, {"q5_0", 0.1},  {"q4_k", 0.2}, {"iq4_nl", 0.2}, {"q4_1", 0.2},  {"q4_0", 0.2}};
    float expected[SCORES], got[SCORES];
    score(LLAMA "eagle3", expected);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char path[128];
        double wrong = 0, squares = 0;
        require(quantize(TARGET, LLAMA "eagle3", types[i].type));
        snprintf(path, sizeof path, "%s", in_folder("drafter.gguf"));
        score(path, got);
        for (size_t v = 0; v < VOCAB; v++) {
            ck_assert_int_eq(isinf(got[v]), isinf(expected[v]));
            if (isinf(got[v])) continue;
            wrong += pow((double)got[v] - (double)expected[v], 2);
            squares += pow((double)expected[v], 2);
        }
        ck_assert_msg(sqrt(wrong / squares) < types[i].error, "%s: %g", types[i].type, sqrt(wrong / squares));
    }
}
END_TEST

/* Writes a copy named keyless.gguf. It lacks the key with the size of the vocabulary. */
static void write_keyless(const char *from) {
    fr_gguf_hide_key(from, in_folder("keyless.gguf"), "eagle3.vocab_size");
}

static void copy_without_ids(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        if (strcmp(t->name, "d2t") == 0) continue;
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
    }
}

/* Runs inspect on keyless.gguf without a target. Sets *ids to the size of the target's vocabulary that inspect
 * prints. */
static fr_status inspect_keyless(size_t *ids) {
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    fr_status status = fr_lab_inspect(in_folder("keyless.gguf"), NULL, NULL, out);
    ck_assert_int_eq(fclose(out), 0);
    const char *needs = strstr(text, "needs ");
    if (status == FR_OK) ck_assert(needs && sscanf(needs, "needs a target of %zu ids", ids) == 1);
    return status;
}

/* A drafter's file may lack the key with the size of the target's vocabulary. In that case the size is taken from the
 * drafter's embedding table, or from a head that scores all ids. */
START_TEST(a_drafters_tensors_say_of_how_many_ids_its_target_is) {
    char path[128];
    float expected[SCORES], got[SCORES];
    size_t ids;
    fr_model *model;
    fr_drafter *drafter;
    write_odd(false);
    require(quantize(TARGET, folder, "f32"));
    snprintf(path, sizeof path, "%s", in_folder("drafter.gguf"));
    score(path, expected);
    write_keyless(path);
    require(inspect_keyless(&ids));
    ck_assert_uint_eq(ids, 512);
    score(in_folder("keyless.gguf"), got);
    ck_assert_mem_eq(got, expected, sizeof got);

    write_keyless(LLAMA "eagle3.gguf"); /* this file has no embedding table, and its head scores only some ids */
    ck_assert_int_eq(inspect_keyless(&ids), FR_USAGE);
    score(LLAMA "eagle3.gguf", expected);
    score(in_folder("keyless.gguf"), got);
    ck_assert_mem_eq(got, expected, sizeof got);

    fr_gguf_copy(LLAMA "eagle3.gguf", path, copy_without_ids);
    write_keyless(path);
    require(inspect_keyless(&ids));
    ck_assert_uint_eq(ids, 256);
    require(fr_model_open(TARGET, NULL, &model));
    ck_assert_int_eq(fr_drafter_open(in_folder("keyless.gguf"), model, NULL, &drafter), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "its own vocabulary is 256, the target's 512: it drafts for another model"),
                  "%s", fr_last_error());
    fr_model_close(model);
}
END_TEST

static const struct {
    const char *target, *drafter, *line;
    fr_status status;
} refused[] = {
    {TARGET, LLAMA "eagle", "EAGLE-1 has no form in GGUF", FR_UNBUILT},
    {LLAMA "eagle", NULL, "EAGLE-1 has no form in GGUF", FR_UNBUILT},
    {LLAMA "eagle3", NULL, "give it with -md, and the target with -m", FR_USAGE},
    {TARGET, LLAMA "eagle3-odd", "norm_output has no key in GGUF", FR_UNBUILT},
    {TARGET, LLAMA "eagle3-qwen", "fc_norm.0.weight has no name in GGUF", FR_INPUT},
    {TARGET, LLAMA "eagle3-layers", "layers.1.input_layernorm.weight has no name in GGUF", FR_INPUT},
    {TARGET, LLAMA "eagle3.gguf", "no folder of an EAGLE-3 drafter", FR_USAGE},
    {TARGET, TARGET, "no folder of an EAGLE-3 drafter", FR_USAGE},
    {FR_TEST_MODELS "llama-odd", LLAMA "eagle3", "it drafts for another model", FR_INPUT},
    {TARGET, LLAMA "nowhere", "nowhere", FR_INPUT},
};

START_TEST(what_is_not_written_says_why) {
    fr_status status = quantize(refused[_i].target, refused[_i].drafter, "q8_0");
    ck_assert_msg(status == refused[_i].status && strstr(fr_last_error(), refused[_i].line), "%d: %s", status,
                  fr_last_error());
}
END_TEST

FR_SUITE("eagle_gguf") {
    TCase *tests = tcase_create("eagle_gguf");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, an_odd_drafter_scores_the_same, 0, 2);
    tcase_add_test(tests, every_type_is_near);
    tcase_add_test(tests, a_drafters_tensors_say_of_how_many_ids_its_target_is);
    tcase_add_loop_test(tests, what_is_not_written_says_why, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(suite, tests);
}
