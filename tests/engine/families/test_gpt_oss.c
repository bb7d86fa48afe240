/* Tests gpt-oss with experts in MXFP4 (tests/references/gpt_oss_mx.py). One model is in the published form, which has
 * codes and exponents in separate tensors. The other is llama.cpp's GGUF file of it. test_dense.c tests gpt-oss with
 * float experts.
 *
 * With MXFP4 weights the engine quantizes the rows of activations, so logits differ from transformers' by about a
 * hundredth. Two tests show nevertheless that each 4-bit code is in its place. The same weights decoded to float32 keep
 * the bound of all float models, and the folder and the file give the same bits. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/changed_folder.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DATA   "tests/data/gpt-oss/"
#define FOLDER DATA "mx"
#define MLX    DATA "mlx"
#define FILE_  DATA "mx.gguf"

static fr_test_folder folder;
static fr_map map;
static fr_tensors tensors, unread;
static const float *expected;
static const int32_t *ids;
static size_t count, vocab;

static void open_reference(void) {
    fr_folder_make(&folder);
    tensors = unread = (fr_tensors){0};
    require(fr_map_open(&map, DATA "logits.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *logits = fr_tensors_find(&tensors, "logits"), *prompt = fr_tensors_find(&tensors, "ids");
    ck_assert(logits && prompt);
    expected = logits->data;
    ids = prompt->data;
    count = (size_t)logits->shape[0];
    vocab = (size_t)logits->shape[1];
}

static void close_reference(void) {
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_folder_remove(&folder);
}

static fr_rows logits_of(const char *path, const char *isa, int threads, int chunk) {
    fr_model *model;
    fr_session *session;
    fr_options *options = fr_options_new();
    if (isa) require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_model_open(path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    fr_rows rows = {malloc(count * vocab * sizeof(float)), 0, count * vocab};
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    return rows;
}

/* Returns the root mean square of the logits' differences, divided by the root mean square of the expected logits. */
static double apart(const float *got) {
    double difference = 0, all = 0;
    for (size_t i = 0; i < count * vocab; i++) {
        double d = (double)got[i] - (double)expected[i];
        difference += d * d;
        all += (double)expected[i] * (double)expected[i];
    }
    return sqrt(difference / all);
}

START_TEST(decoded_weights_have_the_references_logits) {
    char path[128];
    const char *const from[] = {FOLDER, FILE_};
    snprintf(path, sizeof path, "%s/f32.gguf", folder.path);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(from[_i], &(fr_lab_quantization){.type = "f32", .pure = true}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    fr_rows got = logits_of(path, NULL, 2, 16);
    fr_rows_compare(got.values, expected, count * vocab);
    free(got.values);
    unlink(path);
}
END_TEST

/* Two folders must give the same bits as the file: the published form, and the form in which mlx-lm saves the published
 * one (tests/references/gpt_oss_mlx.py). */
START_TEST(a_folder_is_the_file) {
    fr_rows file = logits_of(FILE_, NULL, 1, 64), of_folder = logits_of(_i ? MLX : FOLDER, NULL, 3, 7);
    fr_rows_expect_same(&of_folder, &file);
    ck_assert(apart(file.values) < 3e-2);
    free(file.values);
    free(of_folder.values);
}
END_TEST

START_TEST(every_instruction_set_gives_one_answer) {
    fr_rows first = logits_of(FOLDER, NULL, 2, 64);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        const char *isa = fr_lab_word(FR_LAB_ISA, i);
        if (!fr_lab_isa_here(isa)) continue;
        fr_rows got = logits_of(FOLDER, isa, 2, 5);
        fr_rows_expect_same(&got, &first);
        free(got.values);
    }
    free(first.values);
}
END_TEST

/* Damages to model.safetensors: names, types and shapes in its header are replaced by others of the same length. The
 * error line must name the tensor that is missing or has the wrong shape. */
static const struct {
    const char *from, *to, *says;
} damages[] = {
    {"layers.1.mlp.experts.gate_up_proj_scales", "layers.1.mlp.experts.gate_up_proj_scalez",
     "model.layers.1.mlp.experts.gate_up_proj_scales is missing"},
    {"layers.2.mlp.experts.down_proj_scales", "layers.2.mlp.experts.down_proj_scalez",
     "model.layers.2.mlp.experts.down_proj_scales is missing"},
    {"layers.1.mlp.experts.down_proj_blocks", "layers.1.mlp.experts.down_proj_blockz", "down_proj"},
    {"layers.0.mlp.experts.down_proj_blocks\":{\"dtype\":\"U8\",\"shape\":[4,64,3,16]",
     "layers.0.mlp.experts.down_proj_blocks\":{\"dtype\":\"U8\",\"shape\":[4,64,16,3]", "shape [4, 64, 16, 3]"},
    {"layers.0.mlp.experts.down_proj_scales\":{\"dtype\":\"U8\",\"shape\":[4,64,3]",
     "layers.0.mlp.experts.down_proj_scales\":{\"dtype\":\"U8\",\"shape\":[4,3,64]", "shape [4, 3, 64]"},
    {"layers.1.mlp.experts.gate_up_proj_blocks\":{\"dtype\":\"U8\",\"shape\":[4,192,2,16]",
     "layers.1.mlp.experts.gate_up_proj_blocks\":{\"dtype\":\"U8\",\"shape\":[4,192,32,1]", "shape [4, 192, 32, 1]"},
    {"layers.1.mlp.experts.gate_up_proj_scales\":{\"dtype\":\"U8\",\"shape\":[4,192,2]",
     "layers.1.mlp.experts.gate_up_proj_scales\":{\"dtype\":\"U8\",\"shape\":[2,192,4]", "shape [2, 192, 4]"},
    {"layers.0.mlp.experts.gate_up_proj_blocks\":{\"dtype\":\"U8\"",
     "layers.0.mlp.experts.gate_up_proj_blocks\":{\"dtype\":\"I8\"", "model.layers.0.mlp.experts.gate_up_proj_blocks"},
    {"layers.0.mlp.experts.down_proj_scales\":{\"dtype\":\"U8\"",
     "layers.0.mlp.experts.down_proj_scales\":{\"dtype\":\"I8\"", "model.layers.0.mlp.experts.down_proj_scales"},
};

START_TEST(damaged_experts_are_refused) {
    fr_changed_folder damaged;
    fr_model *model;
    fr_changed_folder_make(&damaged, FOLDER, "{}");
    fr_changed_folder_edit(&damaged, damages[_i].from, damages[_i].to);
    ck_assert_int_eq(fr_model_open(damaged.path, NULL, &model), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), damages[_i].says) != NULL, "%s", fr_last_error());
    fr_changed_folder_remove(&damaged);
}
END_TEST

/* As in transformers 5.24, swiglu_limit and swiglu_alpha are read. The published limit is 7.0. A lower limit clamps
 * more values, so it must change the logits. An alpha other than the published 1.702 must be refused. */
START_TEST(the_activation_is_as_the_folder_says) {
    static const struct {
        const char *keys;
        fr_status status;
        bool same;
    } cases[] = {{"{\"swiglu_limit\": 7.0, \"swiglu_alpha\": 1.702}", FR_OK, true},
                 {"{\"swiglu_limit\": 0.01}", FR_OK, false},
                 {"{\"swiglu_alpha\": 1.5}", FR_UNBUILT, false}};
    fr_changed_folder changed;
    fr_model *model;
    fr_changed_folder_make(&changed, FOLDER, cases[_i].keys);
    fr_status status = fr_model_open(changed.path, NULL, &model);
    ck_assert_msg(status == cases[_i].status, "%s", fr_last_error());
    if (status == FR_OK) {
        fr_model_close(model);
        fr_rows usual = logits_of(FOLDER, NULL, 1, 8), got = logits_of(changed.path, NULL, 1, 8);
        ck_assert_int_eq(memcmp(usual.values, got.values, usual.count * sizeof *got.values) == 0, cases[_i].same);
        free(usual.values);
        free(got.values);
    } else {
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "swiglu_alpha"));
    }
    fr_changed_folder_remove(&changed);
}
END_TEST

FR_SUITE("gpt_oss") {
    TCase *tests = tcase_create("gpt_oss");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_reference, close_reference);
    tcase_add_loop_test(tests, decoded_weights_have_the_references_logits, 0, 2);
    tcase_add_loop_test(tests, a_folder_is_the_file, 0, 2);
    tcase_add_test(tests, every_instruction_set_gives_one_answer);
    tcase_add_loop_test(tests, the_activation_is_as_the_folder_says, 0, 3);
    tcase_add_loop_test(tests, damaged_experts_are_refused, 0, sizeof damages / sizeof *damages);
    suite_add_tcase(suite, tests);
}
