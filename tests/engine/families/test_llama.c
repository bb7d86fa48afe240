/* Tests Llama. llama.cpp's GGUF files must give the logits that transformers gives with the same weights. Every way of
 * running a model must give the same answer. Some configurations and tensors must be refused. test_reference.c compares
 * folders with transformers. */
/* suite: threads */
#include <check.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "tests/support/brief.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define MODELS "tests/data/models/"
#define GGUF   "tests/data/llama/q4_0"

enum { IDS = 48 };

static char folder[64], file[128];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-llama-XXXXXX", P_tmpdir);
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

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Converts a file or a folder to a GGUF file of type float32, and opens the new file. */
static fr_model *open_decoded(const char *path) {
    fr_model *model;
    const fr_lab_quantization how = {.type = "f32", .pure = true};
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    FILE *out = fopen(file, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &how, NULL, out));
    fclose(out);
    require(fr_model_open(file, NULL, &model));
    return model;
}

/* The file has the rows of queries and keys in llama.cpp's order. It also has a tensor with factors for rotary
 * positions. Its logits must be those of the reference. */
START_TEST(a_file_has_the_references_logits) {
    fr_model *model = open_decoded(GGUF ".gguf");
    fr_session *session;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    json_t *info = fr_load_json(MODELS "llama/reference.json");
    size_t compared = 0;
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_map_open(&map, GGUF ".reference.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    for (size_t p = 0; p < json_array_size(json_object_get(info, "prompts")); p++) {
        char name[64];
        size_t count;
        snprintf(name, sizeof name, "prompt.%zu.logits", p);
        const fr_tensor *expected = fr_tensors_find(&tensors, name);
        if (!expected) continue;
        int32_t *ids = fr_ids_of(json_array_get(json_object_get(info, "prompts"), p), &count);
        fr_rows got = {malloc(expected->bytes), 0, expected->bytes / sizeof(float)};
        require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
        fr_rows_compare(got.values, expected->data, got.count);
        compared += got.count;
        free(got.values);
        free(ids);
    }
    ck_assert_uint_gt(compared, 20000);
    json_decref(info);
    fr_tensors_free(&tensors);
    fr_map_close(&map);
    fr_session_close(session);
    fr_model_close(model);
}
END_TEST

static void generate(fr_session *session, const int32_t *prompt, size_t count, int32_t *ids, size_t wanted) {
    require(fr_session_prompt(session, prompt, count));
    for (size_t made = 0, got, accepted; made < wanted; made += got)
        require(fr_session_step(session, ids + made, wanted - made, &got, &accepted));
}

START_TEST(a_file_says_what_the_reference_says) {
    fr_model *model = open_decoded(GGUF ".gguf");
    fr_session *session;
    fr_options *options = fr_options_new();
    json_t *info = fr_load_json(MODELS "llama/reference.json"), *own = fr_load_json(GGUF ".reference.json"), *text;
    size_t i;
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    json_array_foreach (json_object_get(own, "greedy"), i, text) {
        size_t count, expected_count, prompt = (size_t)json_integer_value(json_object_get(text, "prompt"));
        int32_t *ids = fr_ids_of(json_array_get(json_object_get(info, "prompts"), prompt), &count), got[IDS];
        int32_t *expected = fr_ids_of(json_object_get(text, "tokens"), &expected_count);
        require(fr_session_open(model, NULL, options, &session));
        generate(session, ids, count, got, IDS);
        ck_assert_uint_eq(expected_count, IDS);
        ck_assert_mem_eq(got, expected, sizeof got);
        fr_session_close(session);
        free(expected);
        free(ids);
    }
    ck_assert_uint_gt(i, 0);
    json_decref(info);
    json_decref(own);
    fr_options_free(options);
    fr_model_close(model);
}
END_TEST

/* The second folder has biases, heads of width 22, and positions scaled by one factor. One of the other folders scales
 * positions as Llama 3 does. */
START_TEST(a_folder_as_gguf_is_the_same_model) {
    static const char *const folders[] = {MODELS "llama", MODELS "llama-odd", MODELS "llama-fp8"};
    static const int32_t prompt[] = {1, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31, 12, 13, 14, 200, 201, 202};
    enum { COUNT = sizeof prompt / sizeof *prompt };
    fr_model *models[2];
    fr_rows rows[2];
    int32_t ids[2][IDS];
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(folders[_i], NULL, &models[0]));
    models[1] = open_decoded(folders[_i]);
    for (size_t i = 0; i < 2; i++) {
        fr_session *session;
        size_t capacity = COUNT * (size_t)fr_model_fact(models[i], FR_FACT_VOCAB);
        rows[i] = (fr_rows){malloc(capacity * sizeof(float)), 0, capacity};
        require(fr_session_open(models[i], NULL, options, &session));
        require(fr_session_logits(session, prompt, COUNT, 0, fr_rows_collect, &rows[i]));
        generate(session, prompt, COUNT, ids[i], IDS);
        fr_session_close(session);
        fr_model_close(models[i]);
    }
    ck_assert_uint_eq(rows[0].count, rows[1].count);
    fr_rows_compare(rows[1].values, rows[0].values, rows[0].count);
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    free(rows[0].values);
    free(rows[1].values);
    fr_options_free(options);
}
END_TEST

/* The keys of a file that scale rotary positions. If a value is NULL or 0, the file lacks its key. */
typedef struct scaling {
    const char *type;
    float factor, older; /* older: the factor that the file has under the key's older name */
} scaling;

static scaling said;

static void copy_scaled(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    if (!data && said.type) fr_gguf_put_string(w, ".rope.scaling.type", said.type);
    if (!data && said.factor != 0) fr_gguf_put_f32(w, ".rope.scaling.factor", said.factor);
    if (!data && said.older != 0) fr_gguf_put_f32(w, ".rope.scale_linear", said.older);
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
    }
}

/* Returns the logits after a prompt. The model is a file with these scaling keys. */
static fr_rows logits_scaled(scaling how) {
    static const int32_t prompt[] = {1, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31, 12, 13, 14, 200, 201, 202};
    enum { COUNT = sizeof prompt / sizeof *prompt };
    fr_model *model;
    fr_session *session;
    said = how;
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    fr_gguf_copy(GGUF ".gguf", file, copy_scaled);
    require(fr_model_open(file, NULL, &model));
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows rows = {malloc(vocab * sizeof(float)), 0, vocab};
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, prompt, COUNT, COUNT - 1, fr_rows_collect, &rows));
    fr_session_close(session);
    fr_model_close(model);
    return rows;
}

static void copy_with_sampling(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    said = (scaling){0};
    if (!data) {
        fr_gguf_put_f32(w, "general.sampling.min_p", 0.125f);
        fr_gguf_put_f32(w, "general.sampling.penalty_repeat", 1.25f);
        fr_gguf_put_i32(w, "general.sampling.penalty_last_n", 32);
        fr_gguf_put_f32(w, "general.sampling.xtc_probability", 7);
        fr_gguf_put_i32(w, "general.sampling.mirostat", 2);
        fr_gguf_put_f32(w, "general.sampling.mirostat_tau", 4.5f);
        fr_gguf_put_string(w, "general.sampling.mirostat_eta", "0.2");
        fr_gguf_put_string(w, "general.sampling.sequence", "top_k;temperature");
    }
    copy_scaled(all, w, data);
}

static bool recommended(fr_options *options, const fr_model *model, fr_option option) {
    bool found = true;
    require(fr_options_recommend(options, model, option, &found));
    return found;
}

static double number_of(const fr_options *options, fr_option option) {
    double number = 0;
    require(fr_options_get_number(options, option, &number));
    return number;
}

/* A file may recommend settings for sampling. The keys are those of llama.cpp (gguf-py's constants). A value is ignored
 * if it is not a number or is outside the range of its option. */
START_TEST(files_recommend_how_to_sample) {
    fr_model *model;
    int64_t whole;
    char order[16];
    size_t length;
    fr_options *options = fr_options_new();
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    fr_gguf_copy(GGUF ".gguf", file, copy_with_sampling);
    require(fr_model_open(file, NULL, &model));
    ck_assert(recommended(options, model, FR_OPT_MIN_P) && number_of(options, FR_OPT_MIN_P) == 0.125);
    ck_assert(recommended(options, model, FR_OPT_REPEAT_PENALTY) && number_of(options, FR_OPT_REPEAT_PENALTY) == 1.25);
    ck_assert(recommended(options, model, FR_OPT_REPEAT_LAST_N));
    require(fr_options_get(options, FR_OPT_REPEAT_LAST_N, &whole));
    ck_assert_int_eq(whole, 32);
    ck_assert(recommended(options, model, FR_OPT_MIROSTAT) && recommended(options, model, FR_OPT_MIROSTAT_ENT));
    ck_assert(number_of(options, FR_OPT_MIROSTAT_ENT) == 4.5);
    ck_assert(recommended(options, model, FR_OPT_SAMPLERS));
    require(fr_options_get_text(options, FR_OPT_SAMPLERS, order, sizeof order, &length));
    ck_assert_str_eq(order, "kt");
    static const fr_option others[] = {FR_OPT_XTC_PROBABILITY, FR_OPT_XTC_THRESHOLD, FR_OPT_MIROSTAT_LR, FR_OPT_SEED,
                                       FR_OPT_COUNT};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) ck_assert(!recommended(options, model, others[i]));
    ck_assert(number_of(options, FR_OPT_XTC_PROBABILITY) == 0);
    ck_assert_int_eq(fr_options_recommend(NULL, model, FR_OPT_MIN_P, &(bool){false}), FR_USAGE);
    ck_assert_int_eq(fr_options_recommend(options, NULL, FR_OPT_MIN_P, &(bool){false}), FR_USAGE);
    ck_assert_int_eq(fr_options_recommend(options, model, FR_OPT_MIN_P, NULL), FR_USAGE);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* Rotary positions must be scaled by llama.cpp's rules (src/llama-model.cpp). If the file does not give the type of
 * scaling, the scaling is linear. If the factor's newer key is missing, the factor is read from the older key. */
START_TEST(positions_are_scaled_without_a_type) {
    static const struct {
        scaling said;
        bool scaled; /* true: positions must be scaled by 4 */
    } files[] = {{{NULL, 4, 0}, true},     {{NULL, 0, 4}, true},    {{NULL, 4, 8}, true},
                 {{"linear", 0, 4}, true}, {{NULL, 1, 0}, false},   {{NULL, 1, 4}, false},
                 {{"none", 4, 0}, false},  {{"none", 0, 4}, false}, {{"linear", 0, 0}, false}};
    fr_rows plain = logits_scaled((scaling){NULL, 0, 0}), scaled = logits_scaled((scaling){"linear", 4, 0});
    ck_assert(memcmp(plain.values, scaled.values, plain.count * sizeof *plain.values) != 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fr_rows got = logits_scaled(files[i].said);
        const float *expected = files[i].scaled ? scaled.values : plain.values;
        ck_assert_msg(memcmp(got.values, expected, got.count * sizeof *expected) == 0, "file %zu", i);
        free(got.values);
    }
    free(plain.values);
    free(scaled.values);
}
END_TEST

/* llama.cpp's converter writes a K-EXAONE whose positions are scaled with the type "none" and the factor
 * (conversion/exaone.py). The file runs as in llama.cpp, unscaled, and a note says that the factor has no effect. */
START_TEST(a_factor_without_effect_is_noted) {
    static const struct {
        scaling said;
        bool noted;
    } files[] = {{{"none", 4, 0}, true}, {{"none", 1, 0}, false}, {{"none", 0, 0}, false}, {{"linear", 4, 0}, false}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fr_model *model;
        said = files[i].said;
        snprintf(file, sizeof file, "%s/model.gguf", folder);
        fr_gguf_copy(GGUF ".gguf", file, copy_scaled);
        require(fr_model_open(file, NULL, &model));
        const char *note = fr_model_note(model, 0);
        ck_assert_int_eq(note && strstr(note, "not scaled by .rope.scaling.factor 4"), files[i].noted);
        fr_model_close(model);
    }
}
END_TEST

/* Compares the file's own tokenizer with the folder's. */
START_TEST(both_tokenizers_are_the_same) {
    static const char *const texts[] = {"", "Hello, world! 12345 isn't  here\n\n ",
                                        "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac", "<|eot_id|>"};
    fr_model *folder_model, *file_model;
    require(fr_model_open(MODELS "llama", NULL, &folder_model));
    require(fr_model_open(GGUF ".gguf", NULL, &file_model));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t *ids[2];
        size_t counts[2];
        require(
            fr_tokenize(fr_model_tokenizer(folder_model), texts[i], strlen(texts[i]), true, true, &ids[0], &counts[0]));
        require(
            fr_tokenize(fr_model_tokenizer(file_model), texts[i], strlen(texts[i]), true, true, &ids[1], &counts[1]));
        ck_assert_uint_eq(counts[0], counts[1]);
        ck_assert_uint_ge(counts[0], 1);
        ck_assert_mem_eq(ids[0], ids[1], counts[0] * sizeof **ids);
        fr_free(ids[0]);
        fr_free(ids[1]);
    }
    fr_model_close(folder_model);
    fr_model_close(file_model);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- one answer */

/* Generates sampled text, because sampled text depends on every logit. */
static void text_of(const char *path, const char *isa, int threads, int chunk, const char *method, int32_t *ids) {
    static const int32_t prompt[] = {1, 30, 31, 32, 33, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31};
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, method));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.7));
    require(fr_model_open(path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    generate(session, prompt, sizeof prompt / sizeof *prompt, ids, IDS);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}

START_TEST(every_manner_of_running_gives_one_answer) {
    static const char *const paths[] = {MODELS "llama", MODELS "llama-odd", GGUF ".gguf", MODELS "llama-fp8"};
    static const char *const methods[] = {"none", "ngram"};
    static const int chunks[] = {1, 7, 64};
    int32_t first[IDS], ids[IDS];
    bool begun = false;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        const char *isa = fr_lab_word(FR_LAB_ISA, i);
        if (!fr_lab_isa_here(isa)) continue;
        for (int threads = 1; threads <= 3; threads++)
            for (size_t m = 0; m < 2; m++) {
                text_of(paths[_i], isa, threads, chunks[(size_t)threads - 1], methods[m], begun ? ids : first);
                if (begun)
                    ck_assert_msg(memcmp(ids, first, sizeof ids) == 0, "%s: %s, %d threads, %s", paths[_i], isa,
                                  threads, methods[m]);
                begun = true;
            }
    }
    ck_assert(begun);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

#define LLAMA3 "\"rope_type\": \"llama3\", \"factor\": 8, \"original_max_position_embeddings\": 32"

static const struct {
    const char *name, *changes;
    fr_status status;
    const char *line; /* a part of the error line */
} cases[] = {
    {"llama", "{}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": null}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": {\"rope_type\": \"yarn\"}}", FR_INPUT, "factor"},
    {"llama", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4}}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4, \"mscale_all_dim\": 1}}", FR_UNBUILT,
     "mscale_all_dim 1 is not built with rope_type dynamic"},
    {"llama", "{\"rope_scaling\": {\"type\": \"ntk\", \"factor\": 4}}", FR_UNBUILT, "rope_type ntk"},
    {"llama", "{\"rope_scaling\": {\"rope_type\": \"linear\"}}", FR_INPUT, "factor"},
    {"llama", "{\"rope_scaling\": {" LLAMA3 ", \"low_freq_factor\": 1}}", FR_INPUT, "high_freq_factor"},
    {"llama", "{\"rope_scaling\": {" LLAMA3 ", \"low_freq_factor\": 4, \"high_freq_factor\": 2}}", FR_INPUT,
     "is above"},
    {"llama", "{\"rope_scaling\": {" LLAMA3 ", \"low_freq_factor\": 4, \"high_freq_factor\": 4}}", FR_OK, ""},
    {"llama", "{\"rope_scaling\": []}", FR_INPUT, "rope_scaling"},
    {"llama", "{\"hidden_act\": \"gelu\"}", FR_UNBUILT, "hidden_act gelu"},
    {"llama", "{\"num_key_value_heads\": 3}", FR_INPUT, "no multiple"},
    {"llama", "{\"head_dim\": 17}", FR_INPUT, "17 rotary values"},
    {"llama", "{\"hidden_size\": 0}", FR_INPUT, "hidden_size"},
    {"llama", "{\"num_hidden_layers\": 8}", FR_INPUT, "model.layers.7."},
    {"llama", "{\"mlp_bias\": true}", FR_INPUT, "model.layers.0.mlp.gate_proj.bias"},
    {"llama", "{\"num_hidden_layers\": 6}", FR_INPUT, "nothing reads tensor model.layers.6."},
    {"llama-odd", "{\"attention_bias\": false}", FR_INPUT, "nothing reads tensor model.layers.0.self_attn."},
    {"llama-odd", "{\"mlp_bias\": false}", FR_INPUT, "nothing reads tensor model.layers.0.mlp."},
};

START_TEST(a_configuration_is_taken_or_refused_in_a_line) {
    fr_status status = fr_reference_open_changed(cases[_i].name, cases[_i].changes, folder);
    ck_assert_msg(status == cases[_i].status, "%s: %d, %s", cases[_i].changes, status,
                  status == FR_OK ? "" : fr_last_error());
    if (status == FR_OK) return;
    ck_assert_msg(strstr(fr_last_error(), cases[_i].line) && !strchr(fr_last_error(), '\n'), "%s", fr_last_error());
}
END_TEST

FR_SUITE("llama") {
    TCase *tests = tcase_create("llama");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, a_file_has_the_references_logits);
    tcase_add_test(tests, a_file_says_what_the_reference_says);
    tcase_add_loop_test(tests, a_folder_as_gguf_is_the_same_model, 0, 3);
    tcase_add_test(tests, positions_are_scaled_without_a_type);
    tcase_add_test(tests, a_factor_without_effect_is_noted);
    tcase_add_test(tests, files_recommend_how_to_sample);
    tcase_add_test(tests, both_tokenizers_are_the_same);
    fr_test_add_loop(tests, every_manner_of_running_gives_one_answer, 4, 1);
    tcase_add_loop_test(tests, a_configuration_is_taken_or_refused_in_a_line, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
}
