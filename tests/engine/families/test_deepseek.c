/* Tests DeepSeek-V3 beyond what test_reference.c tests for every family: the file formats of latent attention, its
 * cache, and configurations. Also tests that quantized heads give the same answer for every instruction set, number of
 * threads and chunk.
 *
 * The expected values are in tests/data/deepseek-v3. transformers computed them (reference.safetensors,
 * reference.json), and llama.cpp's converter wrote model-bf16.gguf. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/answer.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define FOLDER "tests/data/deepseek-v3"
#define FLASH  FR_TEST_MODELS "glm-4.7-flash-odd"

enum { IDS = 40 };

static char folder[64], file[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-deepseek-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    static const char *const names[] = {"config.json", "model.safetensors", "model.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, names[i]);
        unlink(file);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Converts a folder or a file to a GGUF file of this type, folder/model.gguf. Returns the path of the new file. */
static const char *written(const char *path, const char *type, bool pure) {
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    FILE *out = fopen(file, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &(fr_lab_quantization){.type = type, .pure = pure}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    return file;
}

/* ----------------------------------------------------------------------------------------------------------- logits */

/* Bounds of the logits' error, relative to the reference's largest logit. `most` must hold for every row. `half` must
 * hold for at least half of the rows; in the other rows rounding may choose another expert. */
typedef struct apart {
    double most, half;
} apart;

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static apart difference(const fr_reference *r, fr_session *session, size_t prompt) {
    size_t count, expected_count;
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r->info, "prompts"), prompt), &count);
    const float *expected = fr_reference_floats(r, &expected_count, "prompt.%zu.logits", prompt);
    fr_rows got = {malloc(expected_count * sizeof(float)), 0, expected_count};
    double scale = 0;
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
    ck_assert_uint_eq(got.count, expected_count);
    for (size_t i = 0; i < got.count; i++) {
        scale = fmax(scale, fabs((double)expected[i]));
        ck_assert(isfinite(got.values[i]));
        got.values[i] = fabsf(got.values[i] - expected[i]);
    }
    qsort(got.values, got.count, sizeof *got.values, ascending);
    apart found = {(double)got.values[got.count - 1] / scale, (double)got.values[got.count / 2] / scale};
    free(got.values);
    free(ids);
    return found;
}

/* Replaces the reference's logits by those of another file of the fixture. */
static void replace_tensors(fr_reference *r, const char *path) {
    fr_tensors unread = {0};
    fr_tensors_free(&r->tensors);
    fr_map_close(&r->map);
    require(fr_map_open(&r->map, path, true));
    require(fr_safetensors_read(&r->map, 0, &r->tensors, &unread));
    fr_tensors_free(&unread);
}

/* Compares the logits of a fixture's prompts with the reference. Every difference must be below `bounds`. A bound of 0
 * is not checked. */
static void check_logits(const char *name, const char *path, const fr_options *options, apart bounds) {
    fr_reference r;
    fr_model *model;
    fr_session *session;
    fr_reference_open(&r, name, NULL);
    if (strstr(path, "q8_0")) {
        snprintf(file, sizeof file, "%.*s.reference.safetensors", (int)(strlen(path) - strlen(".gguf")), path);
        replace_tensors(&r, file);
    }
    require(fr_model_open(path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    for (size_t p = 0; p < json_array_size(json_object_get(r.info, "prompts")); p++) {
        apart found = difference(&r, session, p);
        bool near = (bounds.most == 0 || found.most < bounds.most) && (bounds.half == 0 || found.half < bounds.half);
        ck_assert_msg(near, "%s, prompt %zu: %g of the scale, half of them %g", path, p, found.most, found.half);
    }
    fr_session_close(session);
    fr_model_close(model);
    fr_reference_close(&r);
}

/* Some files have the whole matrix kv_b, which is transposed when it is loaded. Other files have it split into k_b and
 * v_b. */
START_TEST(both_forms_of_file_have_the_references_logits) {
    static const apart bounds = {.most = 5e-5};
    check_logits("../deepseek-v3", FOLDER, NULL, bounds);
    check_logits("../deepseek-v3", FOLDER "/model-bf16.gguf", NULL, bounds);
    check_logits("../deepseek-v3", written(FOLDER "/model-bf16.gguf", "f32", true), NULL, bounds);
    check_logits("glm-4.7-flash-odd", written(FLASH, "bf16", true), NULL, bounds);
}
END_TEST

/* The references of the Q8_0 files were computed with float activations, but the engine quantizes activations to 8
 * bits. So the bounds are wide. */
START_TEST(both_quantized_forms_are_near_their_references) {
    check_logits("../deepseek-v3", FOLDER "/model-whole-q8_0.gguf", NULL, (apart){.half = 8e-3});
    check_logits("../deepseek-v3", FOLDER "/model-apart-q8_0.gguf", NULL, (apart){.half = 8e-3});
}
END_TEST

/* Each type of cache rounds the latents, which changes the logits a little. If no type is given for values, values have
 * the keys' type. */
START_TEST(every_cache_is_near_the_reference) {
    static const struct {
        const char *k, *v;
        apart bounds;
    } caches[] = {{"f32", NULL, {.most = 5e-5}},
                  {"f16", "f16", {.half = 2e-4}},
                  {"bf16", NULL, {.half = 2e-3}},
                  {"q8_0", "q8_0", {.half = 5e-3}}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        fr_options *options = fr_options_new();
        require(fr_options_set_text(options, FR_OPT_KV_K, caches[i].k));
        if (caches[i].v) require(fr_options_set_text(options, FR_OPT_KV_V, caches[i].v));
        check_logits("glm-4.7-flash-odd", FLASH, options, caches[i].bounds);
        fr_options_free(options);
    }
}
END_TEST

/* The latents have 36 values and the rotary part has 10, so block types can't hold them. */
START_TEST(a_cache_that_does_not_fit_is_refused) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    require(fr_options_set_text(options, FR_OPT_KV_K, "q8_0"));
    require(fr_model_open(FR_TEST_MODELS "deepseek-v3-odd", options, &model));
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "multiples of 32"));
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* With latent attention, keys and values are in one cache. So a type for values is refused if it differs from the keys'
 * type. */
START_TEST(values_of_another_type_are_refused) {
    static const struct {
        const char *k, *v;
        fr_status status;
    } cases[] = {{NULL, "f16", FR_INPUT}, {"f16", "f32", FR_INPUT}, {"q8_0", "q4_0", FR_INPUT},
                 {"q8_0", "q8_0", FR_OK}, {NULL, "f32", FR_OK},     {"bf16", NULL, FR_OK}};
    fr_model *model;
    require(fr_model_open(FLASH, NULL, &model));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_options *options = fr_options_new();
        fr_session *session;
        if (cases[i].k) require(fr_options_set_text(options, FR_OPT_KV_K, cases[i].k));
        if (cases[i].v) require(fr_options_set_text(options, FR_OPT_KV_V, cases[i].v));
        ck_assert_msg(fr_session_open(model, NULL, options, &session) == cases[i].status, "%zu", i);
        if (cases[i].status == FR_OK)
            fr_session_close(session);
        else
            ck_assert_msg(strstr(fr_last_error(), "caches latents") && strstr(fr_last_error(), "cache-type-v"), "%s",
                          fr_last_error());
        fr_options_free(options);
    }
    fr_model_close(model);
}
END_TEST

/* `forerun quantize` writes the folder as a GGUF file. The file must have every tensor as llama.cpp's converter writes
 * it, and the MTP layer as well. */
START_TEST(a_folder_as_gguf_is_the_converters) {
    fr_checkpoint ours, theirs;
    const fr_tensor *mine;
    size_t mtp = 0;
    require(fr_checkpoint_open(&ours, written(FOLDER, "bf16", false), true));
    require(fr_checkpoint_open(&theirs, FOLDER "/model-bf16.gguf", true));
    for (size_t i = 0; i < theirs.tensors.count; i++) {
        const fr_tensor *tensor = &theirs.tensors.items[i];
        require(fr_checkpoint_tensor(&ours, tensor->name, &mine));
        ck_assert_msg(mine->type == tensor->type && mine->dims == tensor->dims, "%s", tensor->name);
        ck_assert_mem_eq(mine->shape, tensor->shape, tensor->dims * sizeof *tensor->shape);
        ck_assert_msg(memcmp(mine->data, tensor->data, tensor->bytes) == 0, "%s", tensor->name);
    }
    for (size_t i = 0; i < ours.tensors.count; i++) mtp += strncmp(ours.tensors.items[i].name, "blk.3.", 6) == 0;
    ck_assert_uint_eq(ours.tensors.count, theirs.tensors.count + mtp);
    ck_assert_uint_gt(mtp, 0);
    fr_checkpoint_close(&theirs);
    fr_checkpoint_close(&ours);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- one answer */

static fr_answer answer_of(const char *path, const char *isa, int threads, int chunk, fr_test_method method,
                           const char *k) {
    const fr_manner manner = {.isa = isa, .threads = threads, .chunk = chunk, .depth = 3, .method = method, .k = k};
    return fr_answer_of(path, NULL, &manner, IDS, NULL, NULL, false);
}

/* Checks that all instruction sets, numbers of threads and chunks give the same answer. */
static void check_one_answer(const char *path, fr_test_method method, const char *k) {
    static const int chunks[] = {64, 1, 7};
    fr_answer first = {0};
    int number = 0;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        for (int threads = 1; threads <= 3; threads++, number++) {
            fr_test_method here = number % 2 ? method : FR_TEST_NONE;
            fr_answer a = answer_of(path, fr_lab_word(FR_LAB_ISA, i), threads, chunks[number % 3], here, k);
            if (number == 0) first = a;
            ck_assert_msg(a.ids == first.ids && a.logits == first.logits, "%s, cache %s: %s, %d threads", path,
                          k ? k : "as usual", fr_lab_word(FR_LAB_ISA, i), threads);
        }
    }
}

/* The folder has the matrix kv_b. The GGUF file has the same numbers in two tensors, k_b and v_b. So with float types
 * the folder and the file must give the same bits. */
START_TEST(a_folder_as_gguf_gives_its_answer) {
    fr_answer expected = answer_of(FOLDER, NULL, 2, 64, FR_TEST_MTP, NULL);
    fr_answer same = answer_of(written(FOLDER, "bf16", false), NULL, 2, 64, FR_TEST_MTP, NULL);
    ck_assert(same.ids == expected.ids && same.logits == expected.logits);
    check_one_answer(written(FOLDER, "q8_0", false), FR_TEST_MTP, NULL);
}
END_TEST

START_TEST(heads_apart_give_one_answer) {
    check_one_answer(FOLDER "/model-bf16.gguf", FR_TEST_NGRAM, NULL);
}
END_TEST

START_TEST(heads_whole_give_one_answer) {
    check_one_answer(FOLDER "/model-whole-q8_0.gguf", FR_TEST_NGRAM, NULL);
}
END_TEST

static const char *const quantized[] = {"q8_0", "q4_0", "q4_k", "q6_k", "iq4_nl"};

START_TEST(quantized_heads_give_one_answer) {
    check_one_answer(written(FOLDER "/model-bf16.gguf", quantized[_i], false), FR_TEST_NGRAM, NULL);
}
END_TEST

static const char *const caches[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};

START_TEST(every_cache_gives_one_answer) {
    check_one_answer(FLASH, FR_TEST_MTP, caches[_i]);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

#define YARN "\"type\": \"yarn\", \"factor\": 4"

static const struct {
    const char *changes;
    fr_status status;
    const char *line; /* a part of the error line */
} cases[] = {
    {"{}", FR_OK, ""},
    {"{\"rope_scaling\": null}", FR_OK, ""},
    {"{\"rope_scaling\": {\"rope_type\": \"default\"}, \"rope_interleave\": false}", FR_OK, ""},
    {"{\"rope_scaling\": {" YARN "}}", FR_OK, ""},
    {"{\"rope_scaling\": {" YARN ", \"original_max_position_embeddings\": 64, \"truncate\": false}}", FR_OK, ""},
    {"{\"rope_scaling\": {" YARN ", \"original_max_position_embeddings\": 64, \"beta_fast\": 0}}", FR_INPUT,
     "beta_fast"},
    {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}}", FR_OK, ""},
    {"{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 4}}", FR_UNBUILT, "rope_type ntk"},
    {"{\"rope_theta\": 1, \"rope_scaling\": null}", FR_INPUT, "rope_theta"},
    {"{\"rope_scaling\": {\"partial_rotary_factor\": 0.5}}", FR_UNBUILT, "partial_rotary_factor"},
    {"{\"num_nextn_predict_layers\": 2}", FR_UNBUILT, "num_nextn_predict_layers: 2 MTP layers are not built, 1 is"},
    {"{\"attention_bias\": true}", FR_UNBUILT, "attention_bias"},
    {"{\"topk_method\": \"greedy\"}", FR_UNBUILT, "topk_method greedy"},
    {"{\"scoring_func\": \"softmax\"}", FR_UNBUILT, "scoring_func softmax"},
    {"{\"moe_layer_freq\": 2}", FR_UNBUILT, "moe_layer_freq"},
    {"{\"mlp_layer_types\": [\"dense\", \"sparse\", \"sparse\"]}", FR_OK, ""},
    {"{\"mlp_layer_types\": [\"sparse\", \"dense\", \"sparse\"]}", FR_INPUT,
     "model.layers.0.mlp.gate.weight is missing"},
    {"{\"mlp_layer_types\": [\"dense\"]}", FR_INPUT, "mlp_layer_types is no array of 3 words"},
    {"{\"mlp_layer_types\": [\"dense\", 1, \"sparse\"]}", FR_INPUT, "no word for layer 1, expected dense or sparse"},
    {"{\"mlp_layer_types\": [\"dense\", \"dense\", \"x\"]}", FR_INPUT,
     "has \"x\" for layer 2, expected dense or sparse"},
    {"{\"q_lora_rank\": 0}", FR_INPUT, "self_attn.q_proj.weight"},
    {"{\"q_lora_rank\": 63}", FR_INPUT, "self_attn.q_a_proj.weight has shape"},
    {"{\"kv_lora_rank\": 48}", FR_INPUT, "self_attn.kv_a_proj_with_mqa.weight has shape"},
    {"{\"qk_nope_head_dim\": 48}", FR_INPUT, "self_attn.q_b_proj.weight has shape"},
    {"{\"v_head_dim\": 48}", FR_INPUT, "self_attn.kv_b_proj.weight has shape"},
    {"{\"qk_rope_head_dim\": 15}", FR_INPUT, "rotary values"},
    {"{\"kv_lora_rank\": 0}", FR_INPUT, "kv_lora_rank"},
    {"{\"num_experts_per_tok\": 9}", FR_INPUT, "experts"},
    {"{\"topk_group\": 5}", FR_INPUT, "groups"},
    {"{\"num_hidden_layers\": 2}", FR_INPUT, "nothing reads tensor"},
};

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    fr_status status = fr_reference_open_changed("../deepseek-v3", cases[_i].changes, folder);
    ck_assert_msg(status == cases[_i].status, "%s: %d, %s", cases[_i].changes, status,
                  status == FR_OK ? "" : fr_last_error());
    if (status == FR_OK) return;
    ck_assert_msg(strstr(fr_last_error(), cases[_i].line) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
}
END_TEST

FR_SUITE("deepseek") {
    TCase *tests = tcase_create("deepseek");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, both_forms_of_file_have_the_references_logits);
    tcase_add_test(tests, both_quantized_forms_are_near_their_references);
    tcase_add_test(tests, every_cache_is_near_the_reference);
    tcase_add_test(tests, a_cache_that_does_not_fit_is_refused);
    tcase_add_test(tests, values_of_another_type_are_refused);
    tcase_add_test(tests, a_folder_as_gguf_is_the_converters);
    fr_test_add_long(tests, a_folder_as_gguf_gives_its_answer);
    tcase_add_test(tests, heads_apart_give_one_answer);
    fr_test_add_long(tests, heads_whole_give_one_answer);
    fr_test_add_loop(tests, quantized_heads_give_one_answer, sizeof quantized / sizeof *quantized, 1);
    fr_test_add_loop(tests, every_cache_gives_one_answer, sizeof caches / sizeof *caches, 1);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
}
