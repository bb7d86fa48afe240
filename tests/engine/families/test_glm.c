/* Tests GLM-OCR beyond what test_reference.c tests for every family: prompts with a picture, the GGUF files, and the
 * MTP layer's own KV cache.
 *
 * The expected values are in tests/data/glm-ocr and come from transformers (reference.safetensors, reference.json).
 * make_quantized.py in that folder describes how the values of the quantized file were made. */
/* suite: threads native */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "src/engine/session/state.h"
#include "tests/support/answer.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define FOLDER "tests/data/glm-ocr"
#define BOUND  1e-3

/* Returns the largest difference between the session's logits and the expected ones. If `steps` is not 0, the drafter's
 * logits of that many draft steps are compared instead. */
static double difference(fr_session *session, const int32_t *ids, size_t count, size_t steps, const float *expected,
                         size_t expected_count) {
    fr_rows got = {malloc(expected_count * sizeof(float)), 0, expected_count};
    double largest = 0;
    require(steps ? fr_session_draft_logits(session, ids, count, steps, fr_rows_collect, &got)
                  : fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
    ck_assert_uint_eq(got.count, expected_count);
    for (size_t i = 0; i < got.count; i++) largest = fmax(largest, fabs((double)got.values[i] - (double)expected[i]));
    free(got.values);
    return largest;
}

static int32_t *prompt_of(const fr_reference *r, size_t index, size_t *count) {
    return fr_json_ids_of(json_array_get(json_object_get(r->info, "prompts"), index), count);
}

/* Returns a prompt followed by the first n ids of the reference's greedy text. The caller frees the result. */
static int32_t *text_of(const fr_reference *r, size_t prompt, size_t n, size_t *count) {
    int32_t *ids = prompt_of(r, prompt, count);
    size_t index, length;
    json_t *item;
    json_array_foreach (json_object_get(r->info, "greedy"), index, item) {
        if ((size_t)json_integer_value(json_object_get(item, "prompt")) != prompt) continue;
        int32_t *tokens = fr_json_ids_of(json_object_get(item, "tokens"), &length);
        ids = realloc(ids, (*count + n) * sizeof *ids);
        memcpy(ids + *count, tokens, n * sizeof *ids);
        *count += n;
        free(tokens);
    }
    return ids;
}

static fr_options *endless(int chunk) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_CONTEXT, 512));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    return options;
}

/* The fixtures with a picture. */
static const char *const seeing[] = {"../glm-ocr", "glm-ocr-odd"};

static void show_picture(fr_session *session, const fr_reference *r, fr_picture *picture) {
    const json_t *tokens = json_object_get(json_object_get(r->info, "image"), "n_image_tokens");
    ck_assert_int_eq((json_int_t)fr_picture_tokens(picture), json_integer_value(tokens));
    require(fr_session_show(session, (const fr_picture *const[]){picture}, 1));
    fr_picture_close(picture);
}

static void show(fr_session *session, const fr_reference *r) {
    fr_picture *picture;
    char path[320];
    snprintf(path, sizeof path, "%s/image/digits.png", r->folder);
    require(fr_picture_open(path, r->model, &picture));
    show_picture(session, r, picture);
}

/* Reads the file of the fixture's picture. The caller frees the bytes. */
static void *picture_bytes(const fr_reference *r, size_t *size) {
    char path[320], *bytes = malloc(1 << 16);
    snprintf(path, sizeof path, "%s/image/digits.png", r->folder);
    FILE *file = fopen(path, "rb");
    ck_assert(file && bytes);
    *size = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

/* Shows the picture to the session, from the bytes of the picture's file. Frees the bytes at once, because a decoded
 * picture must not depend on them. */
static void show_bytes(fr_session *session, const fr_reference *r) {
    fr_picture *picture;
    size_t size;
    void *bytes = picture_bytes(r, &size);
    require(fr_picture_open_bytes(bytes, size, "digits", NULL, r->model, &picture));
    memset(bytes, 0, size);
    free(bytes);
    show_picture(session, r, picture);
}

/* ------------------------------------------------------------------------------------------------------- a picture */

#define PICTURE_PROMPT 5

START_TEST(logits_behind_a_picture) {
    static const int chunks[] = {1, 7, 512};
    fr_reference r;
    fr_session *session;
    fr_reference_open(&r, seeing[_i / 3], NULL);
    fr_options *options = endless(chunks[_i % 3]);
    size_t count, expected_count;
    int32_t *ids = prompt_of(&r, PICTURE_PROMPT, &count);
    const float *expected = fr_reference_floats(&r, &expected_count, "prompt.%d.logits", PICTURE_PROMPT);
    require(fr_session_open(r.model, r.drafter, options, &session));
    for (int again = 0; again < 2; again++) {
        if (again)
            show_bytes(session, &r);
        else
            show(session, &r);
        ck_assert_double_lt(difference(session, ids, count, 0, expected, expected_count), BOUND);
    }
    free(ids);
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

/* Compares the logits of every draft step with the reference. At the picture's positions, the drafter's embeddings are
 * the rows of the picture. */
START_TEST(drafts_behind_a_picture) {
    fr_reference r;
    fr_session *session;
    fr_reference_open(&r, seeing[_i], NULL);
    fr_options *options = endless(7);
    require(fr_session_open(r.model, r.drafter, options, &session));
    size_t index, cases = 0;
    json_t *item;
    json_array_foreach (json_object_get(json_object_get(r.info, "draft"), "cases"), index, item) {
        if (json_integer_value(json_object_get(item, "prompt")) != PICTURE_PROMPT) continue;
        size_t count, expected_count;
        int32_t *ids =
            text_of(&r, PICTURE_PROMPT, (size_t)json_integer_value(json_object_get(item, "n_generated")), &count);
        const char *name = json_string_value(json_object_get(item, "case"));
        const float *expected = fr_reference_floats(&r, &expected_count, "%s.logits", name);
        show(session, &r);
        ck_assert_msg(difference(session, ids, count, 4, expected, expected_count) < BOUND, "%s", name);
        free(ids);
        cases++;
    }
    ck_assert_uint_ge(cases, 4);
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

static void step_to(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
}

/* Generates the text after a prompt with a picture. The ids must be the reference's with any chunk, with and without
 * drafts. The numbers of accepted drafts must be the reference's too. */
START_TEST(text_behind_a_picture) {
    static const int chunks[] = {1, 7, 64, 512};
    fr_reference r;
    fr_reference_open(&r, seeing[_i], NULL);
    size_t count, text_count, index, at;
    int32_t *ids = text_of(&r, PICTURE_PROMPT, 48, &text_count), got[48];
    free(prompt_of(&r, PICTURE_PROMPT, &count));
    for (size_t run = 0; run < 8; run++) {
        fr_session *session;
        fr_options *options = endless(chunks[run % 4]);
        require(fr_session_open(r.model, run < 4 ? r.drafter : NULL, options, &session));
        show(session, &r);
        require(fr_session_prompt(session, ids, count));
        step_to(session, got, 48);
        ck_assert_mem_eq(got, ids + count, sizeof got);
        const uint8_t *lengths;
        size_t rounds = fr_session_accepted_lengths(session, &lengths);
        json_t *loop, *round;
        json_array_foreach (json_object_get(json_object_get(r.info, "draft"), "loop"), index, loop) {
            if (run >= 4 || json_integer_value(json_object_get(loop, "prompt")) != PICTURE_PROMPT) continue;
            json_t *expected = json_object_get(loop, "rounds");
            /* The last round is left out: it ends at 48 ids or has no room for a draft. */
            size_t whole = json_array_size(expected) - 1;
            ck_assert(rounds == whole + 1 || rounds == whole);
            json_array_foreach (expected, at, round)
                if (at < whole) ck_assert_int_eq(lengths[at], json_integer_value(json_object_get(round, "accepted")));
        }
        fr_session_close(session);
        fr_options_free(options);
    }
    free(ids);
    fr_reference_close(&r);
}
END_TEST

START_TEST(image_tokens_need_their_picture) {
    fr_reference r;
    fr_session *session;
    fr_picture *picture;
    size_t count;
    fr_reference_open(&r, "../glm-ocr", NULL);
    int32_t *ids = prompt_of(&r, PICTURE_PROMPT, &count);
    require(fr_session_open(r.model, r.drafter, NULL, &session));
    ck_assert_int_eq(fr_session_prompt(session, ids, count), FR_INPUT);
    ck_assert_uint_eq(fr_session_length(session), 0);
    show(session, &r);
    ck_assert_int_eq(fr_session_prompt(session, ids + 6, count - 6), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "needs 4 x 5 = 20 image tokens"));
    require(fr_session_prompt(session, ids, count));
    const int32_t other[] = {ids[0], (int32_t)fr_model_fact(r.model, FR_FACT_IMAGE_TOKEN)};
    ck_assert_int_eq(fr_session_set_prompt(session, other, 2), FR_INPUT);
    ck_assert_uint_eq(fr_session_length(session), count);
    ck_assert_int_eq(fr_picture_open(FOLDER "/config.json", r.model, &picture), FR_INPUT);
    ck_assert_ptr_null(picture);
    free(ids);
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

static void refuse_bytes(const void *bytes, size_t size, size_t *pixels, const fr_model *model, const char *words) {
    fr_picture *picture;
    ck_assert_int_eq(fr_picture_open_bytes(bytes, size, "picture 3", pixels, model, &picture), FR_INPUT);
    ck_assert_ptr_null(picture);
    ck_assert_msg(strstr(fr_last_error(), words), "%s", fr_last_error());
}

/* The caller limits the total number of pixels of all pictures. A picture is refused if its header states more pixels
 * than remain. */
START_TEST(bytes_that_are_no_picture) {
    fr_reference r;
    fr_picture *picture;
    size_t size;
    fr_reference_open(&r, "../glm-ocr", NULL);
    uint8_t *bytes = picture_bytes(&r, &size);
    size_t pixels = ((size_t)bytes[18] << 8 | bytes[19]) * ((size_t)bytes[22] << 8 | bytes[23]), left = 2 * pixels - 1;
    require(fr_picture_open_bytes(bytes, size, "picture 3", &left, r.model, &picture));
    fr_picture_close(picture);
    ck_assert_uint_eq(left, pixels - 1);
    refuse_bytes(bytes, size, &left, r.model, "picture 3: a picture of ");
    ck_assert_uint_eq(left, pixels - 1);
    refuse_bytes(bytes, size - 20, NULL, r.model, "picture 3: damaged PNG");
    refuse_bytes(bytes, 3, NULL, r.model, "picture 3: neither a PNG, JPEG, WebP nor GIF");
    refuse_bytes("", 0, NULL, r.model, "picture 3: neither a PNG, JPEG, WebP nor GIF");
    free(bytes);
    fr_reference_close(&r);
}
END_TEST

/* A fork does not have the pictures of the original session. If a fork would have to run a picture's rows again, it is
 * refused. All other forks are made. */
START_TEST(a_fork_without_its_picture) {
    enum { TEXT = 6 };
    fr_reference r;
    fr_engine *engine;
    fr_session *session, *fork;
    fr_options *plain = fr_options_new();
    size_t count, given, accepted;
    int32_t text[2][FR_STEP_MAX];
    fr_reference_open(&r, "../glm-ocr", NULL);
    int32_t *ids = prompt_of(&r, PICTURE_PROMPT, &count), image = (int32_t)fr_model_fact(r.model, FR_FACT_IMAGE_TOKEN);
    size_t behind = count;
    while (ids[behind - 1] != image) behind--;
    require(fr_options_set_text(plain, FR_OPT_SPEC_TYPE, "none"));
    require(fr_engine_open(r.model, r.drafter, NULL, 3, &engine));
    require(fr_engine_session(engine, plain, &session));
    show(session, &r);
    /* the prompt ends with the picture, so the fork would have to run a row of the picture again */
    require(fr_session_prompt(session, ids, behind));
    ck_assert_int_eq(fr_session_fork(session, NULL, &fork), FR_INPUT);
    ck_assert_ptr_null(fork);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "without its picture"));
    require(fr_session_prompt(session, ids + behind, count - behind));
    fr_options *drafts = fr_options_new(); /* to fork with a drafter, the whole text must be run again */
    ck_assert_int_eq(fr_session_fork(session, drafts, &fork), FR_INPUT);
    ck_assert_ptr_null(fork);
    require(fr_session_fork(session, NULL, &fork));
    for (size_t i = 0; i < TEXT; i++) {
        require(fr_session_step(session, text[0] + i, 1, &given, &accepted));
        require(fr_session_step(fork, text[1] + i, 1, &given, &accepted));
    }
    ck_assert_mem_eq(text[0], text[1], TEXT * sizeof **text);
    fr_session_close(fork);
    fr_session_close(session);
    fr_engine_close(engine);
    fr_options_free(plain);
    fr_options_free(drafts);
    free(ids);
    fr_reference_close(&r);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ partial rotation */

/* An abort callback. It returns true once, after *left calls that return false. */
static bool count_down(void *context) {
    int *left = context;
    return (*left)-- == 0;
}

/* Generates the continuation of a session, one id at a time. */
static void go_on(fr_session *session, int32_t *ids, size_t count) {
    size_t given, accepted;
    for (size_t i = 0; i < count; i++) {
        require(fr_session_step(session, ids + i, 1, &given, &accepted));
        ck_assert_uint_eq(given, 1);
    }
}

/* A prompt with a picture is aborted before forward pass number _i. Then it is truncated before, within or after the
 * picture, and another text is appended. The removed part must not influence what follows. */
START_TEST(an_aborted_picture_can_be_cut_away) {
    enum { CHUNK = 7, STEPS = 6 };
    fr_reference r;
    fr_session *aborted, *fresh;
    int32_t got[STEPS], expected[STEPS];
    size_t count, text_count, first = 0, last;
    fr_reference_open(&r, seeing[0], NULL);
    fr_options *options = endless(CHUNK);
    int32_t *ids = prompt_of(&r, PICTURE_PROMPT, &count), *text = prompt_of(&r, 2, &text_count);
    int32_t image = (int32_t)fr_model_fact(r.model, FR_FACT_IMAGE_TOKEN);
    while (ids[first] != image) first++;
    for (last = first; ids[last] == image;) last++;
    const size_t cuts[] = {0, 1, first, first + 1, last - 1, last, count - 1};
    require(fr_session_open(r.model, r.drafter, options, &aborted));
    require(fr_session_open(r.model, r.drafter, options, &fresh));
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        int forwards = _i, none = 0;
        fr_session_reset(aborted);
        show(aborted, &r);
        fr_session_set_abort(aborted, count_down, &forwards);
        ck_assert_int_eq(fr_session_prompt(aborted, ids, count), FR_ABORTED);
        fr_session_set_abort(aborted, NULL, NULL);
        require(fr_session_truncate(aborted, cuts[c]));
        /* The second session gets the same ids but never runs the removed part. For this, its prompt is aborted before
         * the first forward pass, or ends before the picture. */
        fr_session_reset(fresh);
        if (cuts[c] > first) {
            show(fresh, &r);
            fr_session_set_abort(fresh, count_down, &none);
            ck_assert_int_eq(fr_session_prompt(fresh, ids, count), FR_ABORTED);
            fr_session_set_abort(fresh, NULL, NULL);
            require(fr_session_truncate(fresh, cuts[c]));
        } else if (cuts[c]) {
            require(fr_session_prompt(fresh, ids, cuts[c]));
        }
        require(fr_session_prompt(aborted, text, text_count));
        require(fr_session_prompt(fresh, text, text_count));
        go_on(aborted, got, STEPS);
        go_on(fresh, expected, STEPS);
        ck_assert_mem_eq(got, expected, sizeof got);
        show(aborted, &r);
    }
    fr_session_close(aborted);
    fr_session_close(fresh);
    fr_options_free(options);
    fr_reference_close(&r);
    free(ids);
    free(text);
}
END_TEST

/* A truncation removes a picture. The text that takes its place must be run as text; it must not get the picture's
 * rows. */
START_TEST(a_cut_picture_gives_no_rows_to_text) {
    fr_reference r;
    fr_session *session;
    size_t count, first = 0;
    int none = 0;
    fr_reference_open(&r, seeing[0], NULL);
    fr_options *options = endless(7);
    int32_t *ids = prompt_of(&r, PICTURE_PROMPT, &count);
    while (ids[first] != fr_model_fact(r.model, FR_FACT_IMAGE_TOKEN)) first++;
    require(fr_session_open(r.model, r.drafter, options, &session));
    show(session, &r);
    fr_session_set_abort(session, count_down, &none);
    ck_assert_int_eq(fr_session_prompt(session, ids, count), FR_ABORTED);
    size_t hidden = (size_t)fr_model_fact(r.model, FR_FACT_HIDDEN);
    ck_assert_ptr_nonnull(fr_input_embedding(session->embeddings, first + 2, hidden));
    require(fr_session_truncate(session, first + 2));
    ck_assert_ptr_nonnull(fr_input_embedding(session->embeddings, first + 1, hidden));
    ck_assert_ptr_null(fr_input_embedding(session->embeddings, first + 2, hidden));
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
    free(ids);
}
END_TEST

/* Makes a folder with a model in which only half of each head's values rotate. The caller removes the folder. */
static const char *make_partial(void) {
    static char folder[64];
    char command[512];
    snprintf(folder, sizeof folder, "/tmp/forerun-partial-%d", (int)getpid());
    snprintf(command, sizeof command,
             "mkdir -p %s && cp %s/partial.config.json %s/config.json && cp %s/model.safetensors %s", folder, FOLDER,
             folder, FOLDER, folder);
    ck_assert_int_eq(system(command), 0);
    return folder;
}

static void remove_folder(const char *folder) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(partial_rotation) {
    fr_reference r;
    fr_model *model;
    fr_session *session;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    size_t count;
    const char *folder = make_partial();
    fr_reference_open(&r, "../glm-ocr", NULL);
    require(fr_map_open(&map, FOLDER "/partial.reference.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    require(fr_model_open(folder, NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    int32_t *ids = prompt_of(&r, 3, &count);
    const fr_tensor *expected = fr_tensors_find(&tensors, "prompt.3.logits");
    ck_assert_double_lt(difference(session, ids, count, 0, expected->data, expected->bytes / sizeof(float)), BOUND);
    remove_folder(folder);
    free(ids);
    fr_session_close(session);
    fr_model_close(model);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_reference_close(&r);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* llama.cpp's file has the rows of queries and keys in another order. Its text model and MTP layer must still give the
 * same results. */
START_TEST(gguf_is_the_same_model) {
    fr_reference r;
    fr_model *model;
    fr_drafter *drafter;
    fr_session *session;
    fr_reference_open(&r, "../glm-ocr", NULL);
    require(fr_model_open(FOLDER "/model-bf16.gguf", NULL, &model));
    require(fr_drafter_open(NULL, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    for (size_t p = 0; p < PICTURE_PROMPT; p++) {
        size_t count, expected_count;
        int32_t *ids = prompt_of(&r, p, &count);
        const float *expected = fr_reference_floats(&r, &expected_count, "prompt.%zu.logits", p);
        ck_assert_double_lt(difference(session, ids, count, 0, expected, expected_count), BOUND);
        free(ids);
    }
    size_t count, expected_count;
    int32_t *ids = text_of(&r, 4, 7, &count);
    const float *expected = fr_reference_floats(&r, &expected_count, "draft.4.7.logits");
    ck_assert_double_lt(difference(session, ids, count, 4, expected, expected_count), BOUND);
    free(ids);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* Compares two models: their logits, their drafts, and a text of 40 ids that is generated with drafts. */
static void compare_models(const char *expected_path, const char *path) {
    const char *const paths[] = {expected_path, path};
    fr_model *models[2];
    fr_drafter *drafters[2];
    fr_session *sessions[2];
    fr_reference r;
    fr_options *options = endless(7);
    fr_rows logits = {0}, drafts = {0};
    size_t count;
    int32_t texts[2][40];
    fr_reference_open(&r, "../glm-ocr", NULL);
    int32_t *ids = prompt_of(&r, 4, &count);
    for (size_t i = 0; i < 2; i++) {
        require(fr_model_open(paths[i], NULL, &models[i]));
        require(fr_drafter_open(NULL, models[i], NULL, &drafters[i]));
        require(fr_session_open(models[i], drafters[i], options, &sessions[i]));
    }
    size_t vocab = (size_t)fr_model_fact(models[0], FR_FACT_VOCAB);
    logits = (fr_rows){malloc(count * vocab * sizeof(float)), 0, count * vocab};
    drafts = (fr_rows){malloc(4 * vocab * sizeof(float)), 0, 4 * vocab};
    require(fr_session_logits(sessions[0], ids, count, 0, fr_rows_collect, &logits));
    require(fr_session_draft_logits(sessions[0], ids, count, 4, fr_rows_collect, &drafts));
    ck_assert_double_lt(difference(sessions[1], ids, count, 0, logits.values, logits.count), BOUND);
    ck_assert_double_lt(difference(sessions[1], ids, count, 4, drafts.values, drafts.count), BOUND);
    for (size_t i = 0; i < 2; i++) {
        require(fr_session_prompt(sessions[i], ids, count));
        step_to(sessions[i], texts[i], 40);
        fr_session_close(sessions[i]);
        fr_drafter_close(drafters[i]);
        fr_model_close(models[i]);
    }
    ck_assert_mem_eq(texts[0], texts[1], sizeof texts[0]);
    free(logits.values);
    free(drafts.values);
    free(ids);
    fr_options_free(options);
    fr_reference_close(&r);
}

/* When `forerun quantize` writes a file, it must order the rows of queries and keys as readers of the file expect. The
 * folders have heads of 32 values, heads of 20 values, and heads of 32 values of which 16 rotate. */
START_TEST(a_folder_as_gguf_is_the_same_model) {
    char path[64];
    const char *folders[] = {FOLDER, FR_TEST_MODELS "glm-ocr-odd", make_partial()};
    static const char *const types[] = {"f32", "bf16"};
    snprintf(path, sizeof path, "/tmp/forerun-glm-written-%d.gguf", (int)getpid());
    for (size_t i = 0; i < 6; i++) {
        FILE *out = fopen(path, "wb");
        ck_assert_ptr_nonnull(out);
        require(fr_lab_quantize(folders[i / 2], &(fr_lab_quantization){.type = types[i % 2]}, NULL, out));
        ck_assert_int_eq(fclose(out), 0);
        compare_models(folders[i / 2], path);
    }
    unlink(path);
    remove_folder(folders[2]);
}
END_TEST

/* The reference was computed with float activations, but the engine quantizes activations to 8 bits. The measured mean
 * difference of the logits is 0.037, and the logits have a range of 22. */
START_TEST(quantized_logits) {
    fr_reference r;
    fr_model *model;
    fr_session *session;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    fr_reference_open(&r, "../glm-ocr", NULL);
    require(fr_map_open(&map, FOLDER "/model-q4_0.reference.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    require(fr_model_open(FOLDER "/model-q4_0.gguf", NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    for (size_t p = 1; p < 4; p++) {
        char name[32];
        size_t count;
        snprintf(name, sizeof name, "prompt.%zu.logits", p);
        int32_t *ids = prompt_of(&r, p, &count);
        const fr_tensor *tensor = fr_tensors_find(&tensors, name);
        const float *expected = tensor->data;
        fr_rows got = {malloc(tensor->bytes), 0, tensor->bytes / sizeof(float)};
        require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &got));
        double sum = 0;
        for (size_t i = 0; i < got.count; i++) sum += fabs((double)got.values[i] - (double)expected[i]);
        ck_assert_msg(sum / (double)got.count < 0.05, "%s: mean difference %g", name, sum / (double)got.count);
        free(got.values);
        free(ids);
    }
    fr_session_close(session);
    fr_model_close(model);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_reference_close(&r);
}
END_TEST

/* This model has gate and up in one matrix, and its MTP layer uses the model's head. This matrix and the head are
 * packed, either in the file or when the model is loaded, and quantized kernels run them. */
START_TEST(quantized_text_is_one_answer) {
    static const int threads[] = {1, 2, 3}, chunks[] = {1, 7, 64, 512}, depths[] = {3, 1, 15, 7, 2};
    enum { COUNT = 200 };
    char packed[64];
    int32_t text[COUNT];
    snprintf(packed, sizeof packed, "/tmp/forerun-glm-%d.gguf", (int)getpid());
    FILE *out = fopen(packed, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_pack(FOLDER "/model-q4_0.gguf", NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    fr_manner plain = {.threads = 1, .chunk = 64, .depth = 1, .method = FR_TEST_NONE};
    fr_answer base = fr_answer_of(FOLDER "/model-q4_0.gguf", NULL, &plain, COUNT, NULL, text, false);
    for (size_t i = 0, here = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        fr_manner manner = {.isa = fr_lab_word(FR_LAB_ISA, i),
                            .threads = threads[here % 3],
                            .chunk = chunks[here % 4],
                            .depth = depths[here % 5],
                            .method = here % 3 == 2 ? FR_TEST_SCRIPTED : FR_TEST_MTP};
        const char *model = here++ % 2 ? packed : FOLDER "/model-q4_0.gguf";
        fr_answer got = fr_answer_of(model, NULL, &manner, COUNT, text, NULL, false);
        ck_assert_msg(got.ids == base.ids && got.logits == base.logits, "%s, isa %s", model, manner.isa);
    }
    unlink(packed);
}
END_TEST

/* -------------------------------------------------------------------------------------------- the MTP layer's cache */

static void compare_caches(const fr_kv *a, const fr_kv *b, size_t positions) {
    for (size_t l = 0; l < a->count; l++)
        for (size_t head = 0; head < a->layers[l].heads; head++)
            for (size_t p = 0; p < positions; p++) {
                const fr_kv_layer *x = &a->layers[l], *y = &b->layers[l];
                ck_assert_mem_eq(fr_kv_slot(x, &x->k, head, p), fr_kv_slot(y, &y->k, head, p), x->k.bytes);
                ck_assert_mem_eq(fr_kv_slot(x, &x->v, head, p), fr_kv_slot(y, &y->v, head, p), x->v.bytes);
            }
}

static bool reject_in_turn(void *context, size_t round, size_t depth) {
    size_t drafts = *(size_t *)context;
    return depth != round % (drafts + 1);
}

typedef struct speculation {
    size_t prompt;
    int64_t depth;
    bool again; /* in the middle of the text the prompt's ids come again */
} speculation;

static const speculation speculations[] = {{2, 3, false}, {4, 1, false}, {4, 7, true}, {PICTURE_PROMPT, 3, false}};

/* Runs 50 rounds with wrong drafts at every depth. Then a fresh session gets the whole text as one prompt, in other
 * chunks. The MTP layers of both sessions must have the same keys and values. */
START_TEST(the_mtp_cache_is_that_of_the_text) {
    const speculation *how = &speculations[_i];
    enum { ROUNDS = 50, CONTEXT = 512 };
    fr_reference r;
    fr_session *session, *fresh;
    fr_options *options = endless(16), *other = endless(5);
    int32_t ids[CONTEXT], step[FR_STEP_MAX];
    size_t count, got, accepted, rejected = 0;
    fr_reference_open(&r, "../glm-ocr", NULL);
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, how->depth));
    require(fr_session_open(r.model, r.drafter, options, &session));
    require(fr_session_open(r.model, r.drafter, other, &fresh));
    int32_t *prompt = prompt_of(&r, how->prompt, &count);
    size_t length = count;
    memcpy(ids, prompt, count * sizeof *ids);
    if (how->prompt == PICTURE_PROMPT) show(session, &r);
    require(fr_session_prompt(session, prompt, count));
    for (size_t round = 0; round <= ROUNDS; round++) {
        if (how->again && round == ROUNDS / 2) {
            require(fr_session_prompt(session, prompt, count));
            memcpy(ids + length, prompt, count * sizeof *ids);
            length += count;
        }
        require(fr_session_step(session, step, FR_STEP_MAX, &got, &accepted));
        rejected += accepted < (size_t)how->depth;
        memcpy(ids + length, step, got * sizeof *ids);
        length += got;
    }
    ck_assert_uint_gt(rejected, 0);
    if (how->prompt == PICTURE_PROMPT) show(fresh, &r);
    require(fr_session_prompt(fresh, ids, length));
    const fr_kv *kept = session->drafting.draft->method->kv(session->drafting.draft),
                *made = fresh->drafting.draft->method->kv(fresh->drafting.draft);
    ck_assert_uint_ge(kept->length + (size_t)how->depth + 3, length);
    ck_assert_uint_ge(made->length, kept->length);
    compare_caches(kept, made, kept->length);
    compare_caches(&session->cache.kv, &fresh->cache.kv, session->cache.kv.length);
    free(prompt);
    fr_session_close(session);
    fr_session_close(fresh);
    fr_options_free(options);
    fr_options_free(other);
    fr_reference_close(&r);
}
END_TEST

/* The drafter runs, but scripted drafts replace its drafts. In each round the scripted drafts are wrong from another
 * depth on. The text and the cache must be the same as without rejections. */
START_TEST(rejection_at_every_depth_leaves_no_trace) {
    enum { TEXT = 200 };
    fr_reference r;
    fr_session *session, *fresh, *plain;
    size_t depth = (size_t)_i, count;
    fr_options *options = endless(16);
    int32_t ids[512];
    fr_reference_open(&r, "../glm-ocr", NULL);
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, (int64_t)depth));
    int32_t *prompt = prompt_of(&r, 4, &count);
    memcpy(ids, prompt, count * sizeof *ids);
    require(fr_session_open(r.model, NULL, options, &plain));
    require(fr_session_prompt(plain, ids, count));
    step_to(plain, ids + count, TEXT);
    require(fr_session_open(r.model, r.drafter, options, &session));
    require(fr_lab_session_script(session, ids, count + TEXT, reject_in_turn, &depth));
    fr_draft *inner = session->drafting.draft;
    require(fr_session_prompt(session, prompt, count));
    int32_t again[TEXT];
    step_to(session, again, TEXT);
    ck_assert_mem_eq(again, ids + count, sizeof again);
    ck_assert(inner->method == &fr_draft_own_method && inner->follows);
    require(fr_session_open(r.model, r.drafter, options, &fresh));
    require(fr_session_prompt(fresh, ids, count + TEXT));
    compare_caches(&session->cache.kv, &fresh->cache.kv, session->cache.kv.length);
    free(prompt);
    fr_session_close(plain);
    fr_session_close(session);
    fr_session_close(fresh);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

static void compare_with_fresh(fr_session *session, const fr_reference *r, const fr_options *options) {
    fr_session *fresh;
    require(fr_session_open(r->model, r->drafter, options, &fresh));
    require(fr_session_prompt(fresh, session->ids, session->length));
    const fr_kv *kept = session->drafting.draft->method->kv(session->drafting.draft),
                *made = fresh->drafting.draft->method->kv(fresh->drafting.draft);
    ck_assert_uint_ge(kept->length + 20, session->length);
    ck_assert_uint_ge(made->length, kept->length);
    compare_caches(kept, made, kept->length);
    fr_session_close(fresh);
}

/* The MTP layer's cache must be that of the current text after each of three events: a truncation, another prompt with
 * the same beginning, and saving with restoring. */
START_TEST(turns_leave_the_mtp_cache_that_of_the_text) {
    fr_reference r;
    fr_session *session;
    fr_options *options = endless(16);
    int32_t ids[FR_STEP_MAX];
    size_t count, got, accepted;
    char saved[64];
    snprintf(saved, sizeof saved, "/tmp/forerun-glm-%d.session", (int)getpid());
    fr_reference_open(&r, "../glm-ocr", NULL);
    int32_t *prompt = prompt_of(&r, 4, &count);
    require(fr_session_open(r.model, r.drafter, options, &session));
    require(fr_session_prompt(session, prompt, count));
    for (int turn = 0; turn < 4; turn++) {
        for (int round = 0; round < 9; round++) require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
        compare_with_fresh(session, &r, options);
        if (turn == 0) require(fr_session_truncate(session, session->length - 3));
        prompt[count - 5] = 300 + turn;
        if (turn == 1) require(fr_session_set_prompt(session, prompt, count));
        if (turn != 2) continue;
        require(fr_session_save(session, saved));
        require(fr_session_restore(session, saved));
    }
    unlink(saved);
    free(prompt);
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

FR_SUITE("glm") {
    TCase *cases = tcase_create("glm");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, logits_behind_a_picture, 0, 6);
    tcase_add_loop_test(cases, drafts_behind_a_picture, 0, 2);
    tcase_add_loop_test(cases, text_behind_a_picture, 0, 2);
    tcase_add_test(cases, image_tokens_need_their_picture);
    tcase_add_test(cases, bytes_that_are_no_picture);
    tcase_add_test(cases, a_fork_without_its_picture);
    fr_test_add_loop(cases, an_aborted_picture_can_be_cut_away, 4, 1);
    tcase_add_test(cases, a_cut_picture_gives_no_rows_to_text);
    tcase_add_test(cases, partial_rotation);
    tcase_add_test(cases, gguf_is_the_same_model);
    tcase_add_test(cases, a_folder_as_gguf_is_the_same_model);
    tcase_add_test(cases, quantized_logits);
    fr_test_add_long(cases, quantized_text_is_one_answer);
    tcase_add_loop_test(cases, the_mtp_cache_is_that_of_the_text, 0, sizeof speculations / sizeof *speculations);
    tcase_add_test(cases, turns_leave_the_mtp_cache_that_of_the_text);
    tcase_add_loop_test(cases, rejection_at_every_depth_leaves_no_trace, 1, 5);
    suite_add_tcase(suite, cases);
}
