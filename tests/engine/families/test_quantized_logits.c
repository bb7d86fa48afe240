/* Compares quantized files with llama.cpp running the same files (tests/data/quantized, made by
 * tests/references/quantized_logits.py). The models are Qwen3.5, its mixture, DeepSeek-V3, GLM-4.5 and Qwen3-MoE in
 * Q8_0, Q4_0 and Q4_K.
 *
 * Both engines quantize rows of activations, each in its own way. So three sets of logits are compared: forerun's,
 * llama.cpp's, and exact ones, which are computed from the same weights decoded to float32. forerun's logits may be
 * about as far from the exact ones as llama.cpp's are. test_reference.c compares the exact logits with transformers.
 *
 * In some rows rounding chooses another expert. To ignore these rows, the test compares the row with the median
 * difference. If another expert were chosen in an early row, all later rows would change. So the ids were selected such
 * that this happens in neither engine. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DATA "tests/data/"

enum { IDS = 16 };

static fr_test_folder folder;

static void make_folder(void) {
    fr_folder_make(&folder);
}

static void remove_folder(void) {
    fr_folder_remove(&folder);
}

static const struct {
    const char *name, *path;
} models[] = {{"qwen35", DATA "quantized/qwen35.gguf"},
              {"qwen35moe", DATA "quantized/qwen35moe.gguf"},
              {"deepseek-v3", DATA "deepseek-v3"},
              {"glm4-moe-odd", FR_TEST_MODELS "glm4-moe-odd"},
              {"qwen3-moe-odd", FR_TEST_MODELS "qwen3-moe-odd"}};

static const char *const types[] = {"q8_0", "q4_0", "q4_k"};

enum { MODELS = sizeof models / sizeof *models, TYPES = sizeof types / sizeof *types };

/* Quantizes a model to this type and writes it to the folder. Writes the file's path to `to` and returns it. */
static const char *quantized(const char *path, const char *type, bool pure, char *to, size_t size) {
    snprintf(to, size, "%s/%s.gguf", folder.path, type);
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &(fr_lab_quantization){.type = type, .pure = pure}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    return to;
}

static fr_rows logits_of(const char *path, const int32_t *ids) {
    fr_model *model;
    fr_session *session;
    fr_options *options = fr_options_new();
    require(fr_options_set_text(options, FR_OPT_KV_K, "f32"));
    require(fr_options_set_text(options, FR_OPT_KV_V, "f32"));
    require(fr_model_open(path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    size_t count = IDS * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows all = {malloc(count * sizeof(float)), 0, count};
    require(fr_session_logits(session, ids, IDS, 0, fr_rows_collect, &all));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    return all;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Computes for each row the mean difference of a and b, divided by the range of b. Returns the median over all rows. */
static double apart(const float *a, const float *b, size_t vocab) {
    double rows[IDS];
    for (size_t r = 0; r < IDS; r++) {
        double sum = 0, low = INFINITY, high = -INFINITY;
        for (size_t i = r * vocab; i < (r + 1) * vocab; i++) {
            sum += fabs((double)a[i] - (double)b[i]);
            low = fmin(low, (double)b[i]);
            high = fmax(high, (double)b[i]);
        }
        rows[r] = sum / (double)vocab / (high - low);
    }
    qsort(rows, IDS, sizeof *rows, ascending);
    return rows[IDS / 2];
}

static size_t largest(const float *row, size_t vocab) {
    size_t best = 0;
    for (size_t i = 1; i < vocab; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static size_t same_ids(const float *a, const float *b, size_t vocab) {
    size_t same = 0;
    for (size_t r = 0; r < IDS; r++) same += largest(a + r * vocab, vocab) == largest(b + r * vocab, vocab);
    return same;
}

static void compare(const char *name, const float *ours, const float *theirs, const float *floats, size_t vocab) {
    double our = apart(ours, floats, vocab), their = apart(theirs, floats, vocab), both = apart(ours, theirs, vocab);
    size_t same = same_ids(ours, theirs, vocab);
    ck_assert_msg(our < 1.15 * their, "%s: %g from float32, llama.cpp's %g", name, our, their);
    ck_assert_msg(both < 5e-3, "%s: %g from llama.cpp", name, both);
    ck_assert_msg(same >= IDS - 1, "%s: %zu of %d ids are llama.cpp's", name, same, IDS);
}

START_TEST(quantized_logits_are_as_near_as_llama_cpps) {
    const char *path = models[_i / TYPES].path, *type = types[_i % TYPES];
    char name[64], file[128], floats[128];
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    size_t count;
    json_t *list = fr_load_json(DATA "quantized/ids.json");
    int32_t *ids = fr_ids_of(list, &count);
    ck_assert_uint_eq(count, IDS);
    snprintf(name, sizeof name, "%s.%s", models[_i / TYPES].name, type);
    require(fr_map_open(&map, DATA "quantized/logits.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *theirs = fr_tensors_find(&tensors, name);
    fr_rows ours = logits_of(quantized(path, type, false, file, sizeof file), ids);
    fr_rows exact = logits_of(quantized(file, "f32", true, floats, sizeof floats), ids);
    ck_assert(theirs && theirs->bytes == ours.count * sizeof(float) && exact.count == ours.count);
    compare(name, ours.values, theirs->data, exact.values, ours.count / IDS);
    unlink(file);
    unlink(floats);
    free(exact.values);
    free(ours.values);
    free(ids);
    json_decref(list);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}
END_TEST

FR_SUITE("quantized_logits") {
    TCase *tests = tcase_create("quantized_logits");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_loop_test(tests, quantized_logits_are_as_near_as_llama_cpps, 0, MODELS * TYPES);
    suite_add_tcase(suite, tests);
}
