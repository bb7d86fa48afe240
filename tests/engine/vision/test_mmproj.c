/* Tests GGUF text models with a vision encoder in a separate file, as llama.cpp's converter writes them.
 *
 * tests/data/glm-ocr/mmproj-bf16.gguf has the same vision encoder as model.safetensors in that folder (make_mmproj.py).
 * So it must give the values that transformers computed for the folder. Damaged files are made by changing bytes of
 * good files. */
/* suite: hostile */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "src/engine/model/model.h"
#include "src/engine/vision/mmproj.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define FOLDER  "tests/data/glm-ocr"
#define TEXT    FOLDER "/model-bf16.gguf"
#define TOWER   FOLDER "/mmproj-bf16.gguf"
#define PICTURE FOLDER "/image/digits.png"
#define BOUND   1e-3
#define PROMPT  5 /* index of the reference's prompt that has the picture */

static fr_status open_pair(const char *text, const char *tower, fr_model **model) {
    fr_options *options = fr_options_new();
    require(fr_options_set_text(options, FR_OPT_MMPROJ, tower));
    fr_status status = fr_model_open(text, options, model);
    fr_options_free(options);
    return status;
}

static int32_t *prompt_of(const fr_reference *r, size_t *count) {
    return fr_json_ids_of(json_array_get(json_object_get(r->info, "prompts"), PROMPT), count);
}

static void show(fr_session *session, const fr_model *model) {
    fr_picture *picture;
    require(fr_picture_open(PICTURE, model, &picture));
    require(fr_session_show(session, (const fr_picture *const[]){picture}, 1));
    fr_picture_close(picture);
}

/* Returns the logits of the prompt with the picture. If there is a drafter, returns the logits of its 4 draft steps
 * after the prompt instead. */
static fr_rows logits_of(const fr_model *model, const fr_drafter *drafter, const int32_t *ids, size_t count) {
    fr_session *session;
    size_t capacity = (drafter ? 4 : count) * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows all = {malloc(capacity * sizeof(float)), 0, capacity};
    require(fr_session_open(model, drafter, NULL, &session));
    show(session, model);
    require(drafter ? fr_session_draft_logits(session, ids, count, 4, fr_rows_collect, &all)
                    : fr_session_logits(session, ids, count, 0, fr_rows_collect, &all));
    ck_assert_uint_eq(all.count, capacity);
    fr_session_close(session);
    return all;
}

/* ------------------------------------------------------------------------------------------------- the same model */

/* The GGUF text model has the rows of queries and keys in another order than the folder. So its logits may differ in
 * the last bits. */
START_TEST(logits_behind_a_picture) {
    fr_reference r;
    fr_model *model;
    fr_reference_open(&r, "../glm-ocr", NULL);
    size_t count, expected_count;
    int32_t *ids = prompt_of(&r, &count);
    const float *expected = fr_reference_floats(&r, &expected_count, "prompt.%d.logits", PROMPT);
    require(open_pair(TEXT, TOWER, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_IMAGE_TOKEN), 507);
    fr_rows all = logits_of(model, NULL, ids, count);
    ck_assert_uint_eq(all.count, expected_count);
    for (size_t i = 0; i < all.count; i++)
        ck_assert_double_lt(fabs((double)all.values[i] - (double)expected[i]), BOUND);
    free(all.values);
    free(ids);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

START_TEST(drafts_behind_a_picture) {
    fr_reference r;
    fr_model *model;
    fr_drafter *drafter;
    fr_reference_open(&r, "../glm-ocr", NULL);
    size_t count;
    int32_t *ids = prompt_of(&r, &count);
    require(open_pair(TEXT, TOWER, &model));
    require(fr_drafter_open(NULL, model, NULL, &drafter));
    fr_rows got = logits_of(model, drafter, ids, count), folder = logits_of(r.model, r.drafter, ids, count);
    for (size_t i = 0; i < got.count; i++)
        ck_assert_double_lt(fabs((double)got.values[i] - (double)folder.values[i]), BOUND);
    free(got.values);
    free(folder.values);
    free(ids);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

static bool stop_at_the_third(void *context) {
    return ++*(int *)context == 3;
}

/* A prompt with a picture is aborted, as when a user presses Ctrl-C in a chat. The rest of the prompt must run later,
 * and the caller need not show the picture again. */
START_TEST(a_prompt_that_was_stopped_can_be_run_again) {
    fr_reference r;
    fr_model *model;
    fr_session *session;
    int asked = 0;
    size_t count, made, accepted;
    fr_reference_open(&r, "../glm-ocr", NULL);
    int32_t *ids = prompt_of(&r, &count), got[FR_STEP_MAX];
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_CHUNK, 7));
    require(open_pair(TEXT, TOWER, &model));
    require(fr_session_open(model, NULL, options, &session));
    show(session, model);
    fr_session_set_abort(session, stop_at_the_third, &asked);
    ck_assert_int_eq(fr_session_set_prompt(session, ids, count), FR_ABORTED);
    ck_assert_uint_eq(fr_session_length(session), count);
    fr_session_reset(session);
    require(fr_session_set_prompt(session, ids, count));
    require(fr_session_step(session, got, 1, &made, &accepted));
    ck_assert_int_eq(got[0], 367); /* the first id of the reference's greedy text */
    free(ids);
    fr_session_close(session);
    fr_options_free(options);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- numbers */

/* Returns the embeddings of the picture, computed by the model's vision encoder. */
static fr_vision_rows embeddings(const fr_model *model) {
    fr_vision_rows rows;
    fr_image image;
    fr_pool *pool;
    require(fr_image_open(&image, PICTURE));
    require(fr_pool_open(&model->plan, &pool));
    require(fr_vision_run(model->vision, pool, model->plan.threads, &image, &rows));
    fr_pool_close(pool);
    fr_image_close(&image);
    return rows;
}

/* Writes a copy of the vision encoder with another type of weights, as `forerun quantize` does. */
static void write_as(const char *type, const char *path) {
    const fr_lab_quantization how = {.type = type, .pure = true};
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(TOWER, &how, NULL, out));
    fclose(out);
}

/* The largest and the mean allowed difference between embeddings, whose mean size is 0.61. If only the weights are
 * rounded, the difference is 0.0074 with q8_0 and 0.052 with q5_k; transformers computed this from weights that gguf-py
 * decoded. The rounding of activations to 8 bits adds the rest. */
START_TEST(embeddings_from_every_kind_of_type) {
    static const struct {
        const char *type; /* NULL: the file is used unchanged */
        double largest, mean;
    } kinds[] = {
        {NULL, 1e-4, 1e-5}, {"f32", 1e-4, 1e-5}, {"f16", 1e-3, 1e-4}, {"q8_0", 0.1, 0.02}, {"q5_k", 0.5, 0.07}};
    char path[64] = "/tmp/test_mmproj_XXXXXX";
    close(mkstemp(path));
    fr_reference r;
    fr_model *model;
    size_t expected_count;
    fr_reference_open(&r, "../glm-ocr", NULL);
    const float *expected = fr_reference_floats(&r, &expected_count, "image.vision_embeddings");
    if (kinds[_i].type) write_as(kinds[_i].type, path);
    require(open_pair(TEXT, kinds[_i].type ? path : TOWER, &model));
    unlink(path);
    fr_vision_rows rows = embeddings(model);
    ck_assert_uint_eq(rows.count * rows.hidden, expected_count);
    double largest = 0, sum = 0;
    for (size_t i = 0; i < expected_count; i++) {
        double difference = fabs((double)rows.rows[i] - (double)expected[i]);
        largest = fmax(largest, difference);
        sum += difference;
    }
    ck_assert_double_lt(largest, kinds[_i].largest);
    ck_assert_double_lt(sum / (double)expected_count, kinds[_i].mean);
    fr_vision_rows_close(&rows);
    fr_model_close(model);
    fr_reference_close(&r);
}
END_TEST

/* The file has a separate convolution for each of two frames, and the folder has both in one tensor. The embeddings
 * must be equal, bit for bit. */
START_TEST(embeddings_are_those_of_the_folder_bit_for_bit) {
    fr_model *folder, *model;
    fr_options *options = fr_options_new();
    require(fr_model_open(FOLDER, NULL, &folder));
    require(fr_options_set_text(options, FR_OPT_MMPROJ, TOWER));
    require(fr_options_set(options, FR_OPT_MMAP, _i));
    require(fr_model_open(TEXT, options, &model));
    fr_vision_rows got = embeddings(model), expected = embeddings(folder);
    ck_assert_uint_eq(got.count, expected.count);
    ck_assert_mem_eq(got.rows, expected.rows, expected.count * expected.hidden * sizeof(float));
    fr_vision_rows_close(&got);
    fr_vision_rows_close(&expected);
    fr_options_free(options);
    fr_model_close(model);
    fr_model_close(folder);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- wrong files */

typedef struct damage {
    const char *text; /* a text that occurs once; the bytes to change begin `skip` bytes after its end */
    size_t skip;
    const void *value;
    size_t length;
    const char *words;
} damage;

#define NUMBER 4 /* a number's type takes these bytes between the key and the number */
#define SHAPE  4 /* the number of dimensions takes these bytes between a tensor's name and its dimensions */

static const damage damages[] = {
    {"general.architecture", 12, "clap", 4, "expected a vision tower, a GGUF file of architecture \"clip\""},
    {"clip.projector_type", 12, "glm5v", 5, "projector \"glm5v\" is not built (glm4v"},
    {"clip.projector_typ", 0, "x", 1, "projector \"\" is not built"},
    {"clip.projector_type", 4, &(uint64_t){1ull << 62}, 8, "cut short"},
    {"clip.use_silu", NUMBER, "\0", 1, "without clip.use_silu is not built"},
    {"clip.vision.block_count", 0, &(uint32_t){FR_GGUF_F32}, 4, "block_count is of type f32, expected an integer"},
    {"clip.vision.block_count", NUMBER, &(uint32_t){0}, 4, "key clip.vision.block_count is 0, not in 1 to 1024"},
    {"clip.vision.block_count", NUMBER, &(uint32_t){3}, 4, "tensor v.blk.2.ln1.weight is missing"},
    {"clip.vision.block_count", NUMBER, &(uint32_t){1}, 4, "tensor v.blk.1.attn_k_norm.weight is none of the vision"},
    {"clip.vision.embedding_lengt", 0, "x", 1, "key clip.vision.embedding_length is missing"},
    {"clip.vision.embedding_length", NUMBER, &(uint32_t){60}, 4, "a vision tower of width 60 with 2 heads"},
    {"clip.vision.embedding_length", NUMBER, &(uint32_t){72}, 4, "the configuration asks for [72]"},
    {"clip.vision.attention.head_count", NUMBER, &(uint32_t){4}, 4, "attn_q_norm.weight has shape [32]"},
    {"clip.vision.feed_forward_length", NUMBER, &(uint32_t){127}, 4, "the configuration asks for [127, 64]"},
    {"clip.vision.projection_dim", NUMBER, &(uint32_t){255}, 4, "gives rows of 255, the text model reads rows of 256"},
    {"clip.vision.patch_size", NUMBER, &(uint32_t){257}, 4, "is 257, not in 1 to 256"},
    {"clip.vision.patch_size", NUMBER, &(uint32_t){13}, 4, "the configuration asks for [64, 3, 13, 13]"},
    {"clip.vision.attention.layer_norm_epsilon", NUMBER, "\0\0\xc0\x7f", 4, "is nan, not in 0 to 1"},
    {"clip.vision.image_std", 16, "\0\0\0", 4, "key clip.vision.image_std must be 3 numbers of 1e-06 to 1e6"},
    {"clip.vision.image_mean", 16, "\0\0\x80\x7f", 4, "key clip.vision.image_mean must be 3 numbers"},
    {"clip.vision.image_mea", 0, "x", 1, "key clip.vision.image_mean must be 3 numbers"},
    {"v.patch_embd.weight.", 0, "2", 1, "tensor v.patch_embd.weight.1 is missing"},
    {"mm.patch_merger.weigh", 0, "x", 1, "tensor mm.patch_merger.weight is missing"},
    {"mm.patch_merger.weight", SHAPE + 16, &(uint64_t){16}, 8, "has shape [256, 16, 2, 2]"},
    {"mm.patch_merger.weight", SHAPE, &(uint64_t){1ull << 47}, 8, "mmproj"},
    {"v.blk.1.attn_qkv.weight", SHAPE, &(uint64_t){32}, 8, "has shape [192, 32]"},
    {"v.blk.1.attn_qkv.weight", SHAPE + 16, &(uint32_t){FR_GGUF_TYPES + 99}, 4, "mmproj"},
    {"v.patch_embd.bias", SHAPE + 8, &(uint32_t){26}, 4, "expected F32, F16 or BF16"},
    {"v.patch_embd.weight.1", SHAPE + 32, &(uint32_t){26}, 4, "v.patch_embd.weight.1 has type I32"},
};

static uint8_t *read_tower(size_t *size) {
    FILE *file = fopen(TOWER, "rb");
    ck_assert_ptr_nonnull(file);
    uint8_t *bytes = malloc(1 << 22);
    *size = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

/* Opens the bytes as a vision encoder of the text model. This must fail with one line that contains `words`. */
static void expect_refusal(const uint8_t *bytes, size_t size, const char *words) {
    char path[64] = "/tmp/test_mmproj_XXXXXX";
    fr_model *model;
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    fr_status status = open_pair(TEXT, path, &model);
    unlink(path);
    fr_status wanted = strstr(fr_last_error(), "not built") ? FR_UNBUILT : FR_INPUT;
    ck_assert_msg(status == wanted, "status %d where \"%s\" was expected", status, words);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(fr_last_error(), words), "\"%s\" is not in \"%s\"", words, fr_last_error());
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
}

START_TEST(wrong_files) {
    const damage *d = &damages[_i];
    size_t size;
    uint8_t *bytes = read_tower(&size), *found = memmem(bytes, size, d->text, strlen(d->text));
    ck_assert_msg(found != NULL, "%s", d->text);
    memcpy(found + strlen(d->text) + d->skip, d->value, d->length);
    expect_refusal(bytes, size, d->words);
    free(bytes);
}
END_TEST

/* The convolution of the second frame gets a wrong type, and the only other tensor with four dimensions gets a wrong
 * type too. So no tensor can be joined with the convolution of the first frame, and the file must be refused. */
START_TEST(one_frame_alone_is_refused) {
    static const char *const others[] = {"v.patch_embd.weight.1", "mm.patch_merger.weight"};
    size_t size;
    uint8_t *bytes = read_tower(&size);
    for (size_t i = 0; i < 2; i++) {
        uint8_t *found = memmem(bytes, size, others[i], strlen(others[i]));
        ck_assert_ptr_nonnull(found);
        memcpy(found + strlen(others[i]) + SHAPE + 32, &(uint32_t){26}, 4);
    }
    expect_refusal(bytes, size, "tensor v.patch_embd.weight.1 has type I32");
    free(bytes);
}
END_TEST

START_TEST(files_cut_short) {
    size_t size;
    uint8_t *bytes = read_tower(&size);
    for (size_t i = 0; i < 12; i++) expect_refusal(bytes, size * i / 12 + (i > 0), "/tmp/test_mmproj_");
    expect_refusal(bytes, size - 1, "/tmp/test_mmproj_");
    free(bytes);
}
END_TEST

/* Valid files are given in wrong roles, such as a text model as the vision encoder. */
START_TEST(wrong_roles) {
    static const struct {
        const char *text, *tower, *words;
    } pairs[] = {
        {TOWER, "", "is a vision tower (clip), which is opened with its text model"},
        {TOWER, TOWER, "is a vision tower (clip)"},
        {TEXT, TEXT, "model-bf16.gguf: expected a vision tower"},
        {TEXT, FOLDER, "glm-ocr: expected a vision tower"},
        {TEXT, FOLDER "/none.gguf", "none.gguf"},
        {FOLDER, TOWER, "glm-ocr has a vision tower of its own and no use for " TOWER},
        {FR_TEST_MODELS "qwen2-tied", TOWER, "takes no pictures"},
        {FR_TEST_MODELS "gemma4-e", TOWER, "is a vision tower of another architecture"},
    };
    fr_model *model;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ck_assert_int_eq(open_pair(pairs[i].text, pairs[i].tower, &model), FR_INPUT);
        ck_assert_ptr_null(model);
        ck_assert_msg(strstr(fr_last_error(), pairs[i].words), "%s", fr_last_error());
    }
}
END_TEST

START_TEST(a_text_model_without_the_token_is_refused) {
    char path[64] = "/tmp/test_mmproj_XXXXXX";
    static uint8_t bytes[1 << 22];
    fr_model *model;
    FILE *file = fopen(TEXT, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    uint8_t *token = memmem(bytes, size, "<|image|>", 9);
    ck_assert_ptr_nonnull(token);
    token[2] = 'I';
    int out = mkstemp(path);
    ck_assert_int_eq(write(out, bytes, size), (ssize_t)size);
    close(out);
    ck_assert_int_eq(open_pair(path, TOWER, &model), FR_INPUT);
    unlink(path);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "has no token <|image|> to stand for a picture"));
}
END_TEST

START_TEST(a_path_that_is_too_long_is_usage) {
    char path[5000];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_MMPROJ, path), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "mmproj: a path of more than 4095 bytes");
    ck_assert_int_eq(fr_options_set(options, FR_OPT_MMPROJ, 0), FR_USAGE);
    fr_options_free(options);
}
END_TEST

START_TEST(descriptions) {
    static const char *const lines[] = {
        "architecture   clip\n", "types          26 F32, 14 BF16\n",
        "tower          2 layers, hidden 64, feed-forward 128, 2 attention heads\n",
        "pictures       6272 to 5880000 pixels, in patches of 14 x 14; 2 x 2 of them are a row of 256\n",
        "fits           not checked"};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    require(fr_lab_inspect(TOWER, NULL, NULL, out));
    fclose(out);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", text);
    free(text);
}
END_TEST

FR_SUITE("mmproj") {
    TCase *same = tcase_create("same"), *wrong = tcase_create("wrong");
    tcase_add_test(same, logits_behind_a_picture);
    tcase_add_test(same, drafts_behind_a_picture);
    tcase_add_test(same, a_prompt_that_was_stopped_can_be_run_again);
    tcase_add_loop_test(same, embeddings_from_every_kind_of_type, 0, 5);
    tcase_add_loop_test(same, embeddings_are_those_of_the_folder_bit_for_bit, 0, 2);
    tcase_add_test(same, descriptions);
    tcase_add_loop_test(wrong, wrong_files, 0, sizeof damages / sizeof *damages);
    tcase_add_test(wrong, one_frame_alone_is_refused);
    tcase_add_test(wrong, files_cut_short);
    tcase_add_test(wrong, wrong_roles);
    tcase_add_test(wrong, a_text_model_without_the_token_is_refused);
    tcase_add_test(wrong, a_path_that_is_too_long_is_usage);
    suite_add_tcase(suite, same);
    suite_add_tcase(suite, wrong);
}
