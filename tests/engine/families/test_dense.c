/* Compares dense decoders with transformers (tests/references/dense.py): the logits of prompts, and greedy text. The
 * models are read from folders and from the GGUF files that llama.cpp makes of them. Also tests that every way of
 * running a model gives the same answer. Families that differ only in rows of tables are tested here.
 *
 * If the engine left out a window, a bias or a norm, the logits would change by at least a hundred times the bound.
 * Each reference records how far its logits change when one of these features is left out, and this suite checks the
 * recorded numbers. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/always.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define GGUF       "tests/data/dense/"
#define LEAST_MOVE 1e-2 /* least change of the largest logit if a feature is left out; the bound is 5e-5 */

enum { IDS = 48, CHUNKS = 3 };

typedef enum gguf { GGUF_OF_FOLDER, GGUF_OF_FILE, GGUF_OF_TOKENIZER } gguf;

static const struct {
    const char *name;
    size_t features;
    gguf gguf; /* whether a GGUF file exists too, and whether it has a tokenizer (dense_models.def) */
} models[] = {
#define FR_DENSE(name, features, has) {name, features, GGUF_OF_##has},
#include "tests/engine/families/dense_models.def"
#undef FR_DENSE
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void generate(fr_session *session, const int32_t *prompt, size_t count, int32_t *ids, size_t wanted) {
    require(fr_session_prompt(session, prompt, count));
    for (size_t made = 0, got, accepted; made < wanted; made += got)
        require(fr_session_step(session, ids + made, wanted - made, &got, &accepted));
}

static fr_options *endless(void) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    return options;
}

/* These models have indexers that select 160 positions. In a context of up to 160 positions, attention reads all of
 * them. Longer contexts are refused, because the engine has no code for the selection. */
static const char *const indexed[] = {"deepseek-v3.2-odd", "glm-5-odd"};

START_TEST(a_context_longer_than_a_selection_is_refused) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    char folder[64];
    snprintf(folder, sizeof folder, FR_TEST_MODELS "%s", indexed[_i]);
    require(fr_model_open(folder, NULL, &model));
    require(fr_options_set(options, FR_OPT_CONTEXT, 160));
    require(fr_session_open(model, NULL, options, &session));
    fr_session_close(session);
    require(fr_options_set(options, FR_OPT_CONTEXT, 161));
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_UNBUILT);
    ck_assert_msg(strstr(fr_last_error(), "beyond 160 positions (index_topk)"), "%s", fr_last_error());
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* ----------------------------------------------------------------------------------- comparison with the reference */

/* Compares the logits of all rows of all prompts. */
static void compare_logits(const fr_reference *r, const fr_model *model) {
    fr_session *session;
    json_t *prompt;
    size_t p;
    require(fr_session_open(model, NULL, NULL, &session));
    json_array_foreach (json_object_get(r->info, "prompts"), p, prompt) {
        size_t count, expected_count;
        int32_t *ids = fr_json_ids_of(prompt, &count);
        const float *expected = fr_reference_floats(r, &expected_count, "prompt.%zu.logits", p);
        fr_rows got = {malloc(expected_count * sizeof(float)), 0, expected_count};
        require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
        ck_assert_uint_eq(got.count, expected_count);
        fr_rows_compare(got.values, expected, expected_count);
        free(got.values);
        free(ids);
    }
    ck_assert_uint_ge(p, 4);
    fr_session_close(session);
}

static void compare_greedy(const fr_reference *r, const fr_model *model) {
    fr_options *options = endless();
    json_t *prompts = json_object_get(r->info, "prompts"), *text;
    size_t i;
    json_array_foreach (json_object_get(r->info, "greedy"), i, text) {
        fr_session *session;
        size_t count, expected_count, prompt = (size_t)json_integer_value(json_object_get(text, "prompt"));
        int32_t *ids = fr_json_ids_of(json_array_get(prompts, prompt), &count), got[IDS];
        int32_t *expected = fr_json_ids_of(json_object_get(text, "tokens"), &expected_count);
        require(fr_session_open(model, NULL, options, &session));
        generate(session, ids, count, got, IDS);
        ck_assert_uint_eq(expected_count, IDS);
        ck_assert_mem_eq(got, expected, sizeof got);
        fr_session_close(session);
        free(expected);
        free(ids);
    }
    ck_assert_uint_ge(i, 2);
    fr_options_free(options);
}

START_TEST(a_folder_has_the_references_logits) {
    fr_reference r;
    fr_reference_open(&r, models[_i].name, NULL);
    compare_logits(&r, r.model);
    fr_reference_close(&r);
}
END_TEST

START_TEST(a_folder_says_what_the_reference_says) {
    fr_reference r;
    fr_reference_open(&r, models[_i].name, NULL);
    compare_greedy(&r, r.model);
    fr_reference_close(&r);
}
END_TEST

START_TEST(no_feature_could_be_overlooked) {
    fr_reference r;
    json_t *moves;
    const char *feature;
    json_t *move;
    fr_reference_open(&r, models[_i].name, NULL);
    moves = json_object_get(r.info, "overlooked");
    ck_assert_uint_ge(json_object_size(moves), models[_i].features);
    json_object_foreach (moves, feature, move)
        ck_assert_msg(json_number_value(move) > LEAST_MOVE, "%s: %s", models[_i].name, feature);
    fr_reference_close(&r);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static fr_model *open_file(const char *name) {
    char path[128];
    fr_model *model;
    snprintf(path, sizeof path, GGUF "%s.gguf", name);
    require(fr_model_open(path, NULL, &model));
    return model;
}

START_TEST(a_file_is_the_references_model) {
    fr_reference r;
    if (models[_i].gguf < GGUF_OF_FILE) return;
    fr_model *model = open_file(models[_i].name);
    fr_reference_open(&r, models[_i].name, NULL);
    compare_logits(&r, model);
    compare_greedy(&r, model);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* Older converters did not write the rotary base of sliding layers. Readers then take 10000 for Gemma 3, which is also
 * this model's base. */
START_TEST(a_file_may_leave_out_the_local_base) {
    char path[64];
    fr_reference r;
    fr_model *model;
    snprintf(path, sizeof path, "%s/forerun-dense-XXXXXX", P_tmpdir);
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    fr_gguf_hide_key(GGUF "gemma3-tower.gguf", path, ".rope.freq_base_swa");
    require(fr_model_open(path, NULL, &model));
    unlink(path);
    fr_reference_open(&r, "gemma3-tower", NULL);
    compare_logits(&r, model);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* Compares the tokenizers of the folder and of the file. The texts have spaces, lines, digits, special tokens, and
 * letters that the vocabulary has only as single bytes. */
START_TEST(a_file_has_the_folders_tokenizer) {
    static const char *const texts[] = {"", "Hello, world! 12345 isn't  here\n\n ", "    return self.name\t\n",
                                        "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\xa6\x99", "<|im_end|><turn|>"};
    fr_reference r;
    if (models[_i].gguf < GGUF_OF_TOKENIZER) return;
    fr_model *model = open_file(models[_i].name);
    fr_reference_open(&r, models[_i].name, NULL);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        int32_t *ids, *expected;
        size_t count, expected_count, length = strlen(texts[t]);
        require(fr_tokenize(fr_model_tokenizer(r.model), texts[t], length, true, true, &expected, &expected_count));
        require(fr_tokenize(fr_model_tokenizer(model), texts[t], length, true, true, &ids, &count));
        ck_assert_uint_eq(count, expected_count);
        ck_assert_mem_eq(ids, expected, count * sizeof *ids);
        fr_free(ids);
        fr_free(expected);
    }
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- one answer */

/* Generates sampled text, because sampled text depends on every logit. */
static void text_of(const char *path, const char *isa, int threads, int chunk, const char *method, int32_t *ids) {
    static const int32_t prompt[] = {2, 30, 31, 32, 33, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31};
    fr_options *options = endless();
    fr_model *model;
    fr_session *session;
    require(fr_options_set_text(options, FR_OPT_ISA, isa));
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
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

/* A model can be run in six ways, with different numbers of threads, chunks and draft methods. Each instruction set
 * runs a model in one of the six ways, which differs from model to model. If FULL is set in the environment, it runs
 * all six. */
START_TEST(every_manner_of_running_gives_one_answer) {
    static const char *const methods[] = {"none", "ngram"};
    static const int chunks[CHUNKS] = {1, 7, 64};
    int32_t first[IDS], ids[IDS];
    bool begun = false;
    char path[128];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", models[_i].name);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        const char *isa = fr_lab_word(FR_LAB_ISA, i);
        for (size_t manner = 0; fr_lab_isa_here(isa) && manner < 2 * CHUNKS; manner++) {
            size_t c = manner % CHUNKS, m = manner / CHUNKS;
            if (!fr_test_full() && manner != (i + (size_t)_i) % (2 * CHUNKS)) continue;
            text_of(path, isa, (int)c + 1, chunks[c], methods[m], begun ? ids : first);
            if (begun)
                ck_assert_msg(memcmp(ids, first, sizeof ids) == 0, "%s: %s, %zu threads, %s", path, isa, c + 1,
                              methods[m]);
            begun = true;
        }
    }
    ck_assert(begun);
}
END_TEST

/* MiMo's MTP layer places the hidden row before the embedding when it concatenates the two. Other families place the
 * embedding first (tests/references/dense_of_mimo.py). */
START_TEST(an_mtp_layer_drafts_as_the_reference) {
    fr_reference r;
    fr_session *session;
    size_t count, expected_count;
    fr_reference_open(&r, "mimo-odd", NULL);
    ck_assert_ptr_nonnull(r.drafter);
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), 2), &count);
    const float *expected = fr_reference_floats(&r, &expected_count, "draft.logits");
    fr_rows got = {malloc(expected_count * sizeof(float)), 0, expected_count};
    require(fr_session_open(r.model, r.drafter, NULL, &session));
    require(fr_session_draft_logits(session, ids, count, 4, fr_rows_collect, &got));
    ck_assert_uint_eq(got.count, expected_count);
    fr_rows_compare(got.values, expected, expected_count);
    free(got.values);
    free(ids);
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

/* llama.cpp's converter copies K-EXAONE's MTP layer, although llama.cpp itself ignores it. From such a file the layer
 * must draft as from the folder. */
START_TEST(an_mtp_layer_in_a_file_drafts_as_the_reference) {
    fr_reference r;
    fr_session *session;
    fr_drafter *drafter;
    fr_model *model = open_file("exaone-moe-mtp");
    size_t count, index, expected_count;
    json_t *one;
    fr_reference_open(&r, "exaone-moe-mtp", NULL);
    require(fr_drafter_open(NULL, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    json_array_foreach (json_object_get(json_object_get(r.info, "draft"), "cases"), index, one) {
        if (json_integer_value(json_object_get(one, "n_generated")) != 1) continue;
        size_t prompt = (size_t)json_integer_value(json_object_get(one, "prompt"));
        int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), prompt), &count);
        const json_t *text = json_array_get(json_object_get(r.info, "greedy"), index ? 1 : 0);
        ids[count++] = (int32_t)json_integer_value(json_array_get(json_object_get(text, "tokens"), 0));
        const float *expected = fr_reference_floats(&r, &expected_count, "draft.%zu.1.logits", prompt);
        fr_rows got = {malloc(expected_count * sizeof(float)), 0, expected_count};
        require(fr_session_draft_logits(session, ids, count, 4, fr_rows_collect, &got));
        ck_assert_uint_eq(got.count, expected_count);
        fr_rows_compare(got.values, expected, expected_count);
        free(got.values);
        free(ids);
    }
    ck_assert_uint_ge(index, 2);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* Checks that a session that was truncated to its first `kept` ids generates the same ids again. */
static void expect_again(fr_session *session, size_t kept, const int32_t *ids, size_t prompt) {
    int32_t again[IDS];
    size_t count = IDS - (kept - prompt);
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, again + made, count - made, &got, &accepted));
    ck_assert_mem_eq(again, ids + (kept - prompt), count * sizeof *again);
}

/* Truncates a text within sliding windows, at the edges of windows, and at the length where LongRoPE changes its
 * factors. After each truncation the same ids must follow in the session itself, in a fork and in a restored session.
 * All three are sessions of one engine. */
START_TEST(a_text_that_was_cut_goes_on_the_same) {
    static const int32_t prompt[] = {2, 30, 31, 32, 33, 30, 31, 32, 33, 30, 31, 90, 77, 30, 31};
    static const size_t cuts[] = {62, 50, 41, 40, 39, 24, 17, 60};
    enum { PROMPT = sizeof prompt / sizeof *prompt };
    int32_t ids[IDS];
    char path[128];
    fr_options *options = endless();
    fr_model *model;
    fr_engine *engine;
    fr_session *session, *fork, *restored;
    void *bytes;
    size_t size;
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.7));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", models[_i].name);
    require(fr_model_open(path, NULL, &model));
    require(fr_engine_open(model, NULL, options, 3, &engine));
    require(fr_engine_session(engine, options, &session));
    require(fr_engine_session(engine, options, &restored));
    generate(session, prompt, PROMPT, ids, IDS);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        require(fr_session_truncate(session, cuts[i]));
        require(fr_session_save_bytes(session, &bytes, &size));
        require(fr_session_restore_bytes(restored, bytes, size));
        fr_free(bytes);
        require(fr_session_fork(session, options, &fork));
        expect_again(session, cuts[i], ids, PROMPT);
        expect_again(restored, cuts[i], ids, PROMPT);
        expect_again(fork, cuts[i], ids, PROMPT);
        fr_session_close(fork);
    }
    fr_session_close(restored);
    fr_session_close(session);
    fr_engine_close(engine);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* From a certain length on, LongRoPE uses other rotary factors. A chain of drafts must end at that length, because
 * later drafts would be verified with the factors of short texts. Before that length each step must accept as many
 * drafts as possible. */
START_TEST(drafts_end_where_long_texts_begin) {
    enum { LONGEST = 40, BEGIN = 20, WANTED = 40 }; /* LONGEST: the model's original_max_position_embeddings */
    int32_t script[BEGIN + WANTED + FR_STEP_MAX] = {2}, plain[WANTED], ids[WANTED + FR_STEP_MAX];
    fr_options *options = endless();
    fr_model *model;
    fr_session *session;
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 15));
    require(fr_model_open(FR_TEST_MODELS "phi4-longrope", options, &model));
    for (int32_t i = 1; i < BEGIN; i++) script[i] = 30 + i * 7 % 60;
    require(fr_session_open(model, NULL, options, &session));
    generate(session, script, BEGIN, plain, WANTED);
    fr_session_close(session);
    memcpy(script + BEGIN, plain, sizeof plain);
    require(fr_session_open(model, NULL, options, &session));
    require(fr_lab_session_script(session, script, BEGIN + WANTED, fr_test_always, NULL));
    require(fr_session_prompt(session, script, BEGIN));
    for (size_t made = 0, got, accepted; made < WANTED; made += got) {
        size_t length = BEGIN + made, most = length + 15 < LONGEST ? 15 : LONGEST - length;
        require(fr_session_step(session, ids + made, WANTED - made, &got, &accepted));
        if (made && length <= LONGEST) /* the first step generates the id after the prompt */
            ck_assert_msg(accepted == most, "%zu drafts stood behind %zu ids, not %zu", accepted, length, most);
    }
    ck_assert_mem_eq(ids, plain, sizeof plain);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("dense") {
    TCase *tests = tcase_create("dense");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_context_longer_than_a_selection_is_refused, 0, (int)COUNT_OF(indexed));
    tcase_add_loop_test(tests, a_folder_has_the_references_logits, 0, COUNT_OF(models));
    tcase_add_loop_test(tests, a_folder_says_what_the_reference_says, 0, COUNT_OF(models));
    tcase_add_loop_test(tests, no_feature_could_be_overlooked, 0, COUNT_OF(models));
    tcase_add_loop_test(tests, a_file_is_the_references_model, 0, COUNT_OF(models));
    tcase_add_test(tests, a_file_may_leave_out_the_local_base);
    tcase_add_loop_test(tests, a_file_has_the_folders_tokenizer, 0, COUNT_OF(models));
    tcase_add_loop_test(tests, every_manner_of_running_gives_one_answer, 0, COUNT_OF(models));
    tcase_add_test(tests, an_mtp_layer_drafts_as_the_reference);
    tcase_add_test(tests, an_mtp_layer_in_a_file_drafts_as_the_reference);
    tcase_add_loop_test(tests, a_text_that_was_cut_goes_on_the_same, 0, COUNT_OF(models));
    tcase_add_test(tests, drafts_end_where_long_texts_begin);
    suite_add_tcase(suite, tests);
}
