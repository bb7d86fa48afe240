/* Tests quantize on text encoders. The file that it writes from a folder must equal the file of llama.cpp's converter.
 * It must give the same vectors as the folder.
 *
 * tests/data/encoders/gguf has files in float32 that the converter wrote from some of the folders
 * (tests/references/encoders_gguf.py). */
/* suite: hostile threads */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "forerun_lab.h"
#include "tests/support/changed_folder.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define ENCODERS "tests/data/encoders/"

static const char *const converted[] = {"bert-mean", "modernbert", "nomic", "nomic-moe"};
static const char *const written[] = {"bert-mean",  "bert-cls", "distilbert", "nomic",
                                      "modernbert", "roberta",  "nomic-moe"};
enum { WIDTH = 32 }; /* the largest number of values of a row */

static char file[64];

static fr_status write_path(const char *path, const char *type) {
    const fr_lab_quantization how = {.type = type};
    snprintf(file, sizeof file, "/tmp/test_quantize_encoder_XXXXXX");
    int descriptor = mkstemp(file);
    FILE *out = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    ck_assert_ptr_nonnull(out);
    fr_status status = fr_lab_quantize(path, &how, NULL, out);
    ck_assert_int_eq(fclose(out), 0);
    return status;
}

static fr_status write_file(const char *name, const char *type) {
    char path[128];
    snprintf(path, sizeof path, ENCODERS "%s", name);
    return write_path(path, type);
}

static fr_checkpoint open_file(const char *path) {
    fr_checkpoint files;
    require(fr_checkpoint_open(&files, path, true));
    return files;
}

/* The converter's file has keys that forerun's file may lack, and this function returns true for them. They are names,
 * keys that repeat another key, and the pre-tokenizer's name, which llama.cpp needs only for byte-level tokenizers. */
static bool is_left_out(const char *key) {
    static const char *const words[] = {"general.name",
                                        "general.size_label",
                                        "modern-bert.attention.layer_norm_rms_epsilon",
                                        "modern-bert.classifier.pooling_type",
                                        "modern-bert.rope.scaling.type",
                                        "modern-bert.vocab_size",
                                        "nomic-bert.attention.key_length",
                                        "nomic-bert.attention.value_length",
                                        "tokenizer.ggml.pre",
                                        "tokenizer.ggml.seperator_token_id"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i]) == 0) return true;
    return false;
}

/* Compares a tensor of the converter with forerun's. In forerun's file the same rows may be in several tensors, one
 * after the other. */
static void compare_tensor(const fr_checkpoint *own, const fr_tensor *expected) {
    static const char *const parts[] = {"attn_q", "attn_k", "attn_v"};
    const char *fused = strstr(expected->name, "attn_qkv");
    const fr_tensor *whole = fr_tensors_find(&own->tensors, expected->name);
    size_t done = 0, count = whole ? 1 : 3;
    ck_assert_msg(whole || fused, "%s is missing", expected->name);
    for (size_t i = 0; i < count; i++) {
        char name[96];
        snprintf(name, sizeof name, "%.*s%s%s", whole ? 0 : (int)(fused - expected->name), expected->name,
                 whole ? expected->name : parts[i], whole ? "" : fused + strlen("attn_qkv"));
        const fr_tensor *part = fr_tensors_find(&own->tensors, name);
        ck_assert_msg(part && part->type == expected->type && part->dims == expected->dims, "%s", name);
        ck_assert_uint_le(done + part->bytes, expected->bytes);
        ck_assert_msg(memcmp(part->data, (const char *)expected->data + done, (size_t)part->bytes) == 0,
                      "the values of %s", name);
        done += (size_t)part->bytes;
    }
    ck_assert_uint_eq(done, expected->bytes);
}

START_TEST(files_are_those_of_the_converter) {
    char path[128];
    require(write_file(converted[_i], "f32"));
    snprintf(path, sizeof path, ENCODERS "gguf/%s.gguf", converted[_i]);
    fr_checkpoint own = open_file(file), expected = open_file(path);
    for (size_t i = 0; i < expected.tensors.count; i++) compare_tensor(&own, &expected.tensors.items[i]);
    for (size_t i = 0; i < expected.gguf->count; i++) {
        const fr_gguf_value *e = &expected.gguf->values[i];
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)e->key.length, e->key.bytes);
        if (is_left_out(key)) continue;
        const fr_gguf_value *o = fr_gguf_find(own.gguf, key);
        ck_assert_msg(o != NULL, "%s is missing", key);
        ck_assert_msg(o->type == e->type && o->element == e->element && o->bytes == e->bytes, "the type of %s", key);
        ck_assert_msg(memcmp(o->data, e->data, e->bytes) == 0, "the value of %s", key);
    }
    fr_checkpoint_close(&own);
    fr_checkpoint_close(&expected);
    ck_assert_int_eq(unlink(file), 0);
}
END_TEST

static void make_rows(const char *path, float *rows) {
    static const char *const texts[] = {"a house by the sea", "Who wrote it?", "x"};
    fr_model *model;
    fr_embedder *embedder;
    require(fr_model_open(path, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder));
    ck_assert_int_le(fr_embedder_fact_of(embedder, FR_EMBEDDER_WIDTH), WIDTH);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fr_embedder_text text;
        require(fr_embedder_encode(embedder, NULL, texts[i], strlen(texts[i]), &text));
        require(fr_embedder_rows(embedder, &text, 1, 0, 1, rows + i * WIDTH));
        fr_embedder_text_free(&text);
    }
    fr_embedder_close(embedder);
    fr_model_close(model);
}

/* The file in float32 must give the same bits as the folder. With the file in eight bits, each value may differ by 0.1.
 * The vectors have length 1. */
START_TEST(rows_are_those_of_the_folder) {
    float expected[3 * WIDTH] = {0}, got[3 * WIDTH] = {0};
    char path[128];
    snprintf(path, sizeof path, ENCODERS "%s", written[_i]);
    make_rows(path, expected);
    require(write_file(written[_i], "f32"));
    make_rows(file, got);
    ck_assert_msg(memcmp(got, expected, sizeof got) == 0, "%s", written[_i]);
    ck_assert_int_eq(unlink(file), 0);
    require(write_file(written[_i], "q8_0"));
    make_rows(file, got);
    for (size_t i = 0; i < 3 * WIDTH; i++) ck_assert_double_eq_tol((double)got[i], (double)expected[i], 0.1);
    ck_assert_int_eq(unlink(file), 0);
}
END_TEST

static void make_scores(const char *path, float *scores) {
    static const char *const documents[] = {"a house by the sea", "Who wrote it?", "x"};
    fr_model *model;
    fr_embedder *embedder;
    require(fr_model_open(path, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder));
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        fr_embedder_text pair;
        require(fr_embedder_encode_pair(embedder, NULL, "the sea", 7, documents[i], strlen(documents[i]), &pair));
        require(fr_embedder_scores(embedder, &pair, 1, true, scores + i));
        fr_embedder_text_free(&pair);
    }
    fr_embedder_close(embedder);
    fr_model_close(model);
}

/* A cross-encoder scores pairs of texts. Its file must have the classifier, and the pooler that comes before the
 * classifier. The two texts of a pair must be joined in the same way as with the folder. */
START_TEST(scores_are_those_of_the_folder) {
    static const char *const names[] = {"cross-bert", "cross-modernbert"};
    float expected[3], got[3];
    char path[128];
    snprintf(path, sizeof path, ENCODERS "%s", names[_i]);
    make_scores(path, expected);
    require(write_file(names[_i], "f32"));
    make_scores(file, got);
    ck_assert_msg(memcmp(got, expected, sizeof got) == 0, "%s", names[_i]);
    ck_assert_int_eq(unlink(file), 0);
}
END_TEST

/* If a tokenizer gives no token types, the second text of a pair has the same types as the first one. With the file it
 * must be the same. */
START_TEST(files_give_no_types_that_the_folder_lacks) {
    float expected[3], got[3], typed[3];
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, ENCODERS "cross-bert", "{}");
    fr_changed_folder_write(&folder, "tokenizer_config.json",
                            "{\"model_input_names\": [\"input_ids\", \"attention_mask\"]}");
    make_scores(folder.path, expected);
    make_scores(ENCODERS "cross-bert", typed);
    ck_assert_mem_ne(expected, typed, sizeof typed);
    require(write_path(folder.path, "f32"));
    make_scores(file, got);
    ck_assert_mem_eq(got, expected, sizeof got);
    ck_assert_int_eq(unlink(file), 0);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Makes a folder of XLM-RoBERTa's kind. Its tokenizer first replaces characters by SentencePiece's map, as the
 * published tokenizers do, and then splits the text into words. The other files and the vocabulary are those of
 * cross-xlm-roberta. */
static void make_unigram_folder(char *folder) {
    static const char *const files[] = {"config.json", "tokenizer_config.json", "model.safetensors"};
    char path[128], *real = realpath(ENCODERS "cross-xlm-roberta", NULL), target[4096];
    snprintf(folder, 64, "/tmp/test_quantize_encoder_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_ptr_nonnull(real);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        snprintf(target, sizeof target, "%s/%s", real, files[i]);
        ck_assert_int_eq(symlink(target, path), 0);
    }
    json_t *tokenizer = json_load_file(ENCODERS "cross-xlm-roberta/tokenizer.json", 0, NULL);
    json_t *style = json_load_file("tests/data/tokenizers/styles/xlm-r.json", JSON_ALLOW_NUL, NULL);
    const json_t *published = json_object_get(style, "tokenizer");
    ck_assert_int_eq(json_object_set(tokenizer, "normalizer", json_object_get(published, "normalizer")), 0);
    ck_assert_int_eq(json_object_set(tokenizer, "pre_tokenizer", json_object_get(published, "pre_tokenizer")), 0);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    ck_assert_int_eq(json_dump_file(tokenizer, path, 0), 0);
    json_decref(tokenizer);
    json_decref(style);
    free(real);
}

static void remove_unigram_folder(const char *folder) {
    static const char *const files[] = {"config.json", "tokenizer_config.json", "model.safetensors", "tokenizer.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* The text has wide letters, a ligature and runs of blanks. With the map of characters in the file they must become the
 * same ids as with the folder. */
START_TEST(unigram_tokenizers_are_written) {
    static const char text[] = "\xef\xbc\xb4he   sea \xef\xac\x81  house <mask> \xc3\xa9 x";
    float expected[3], got[3];
    char folder[64];
    const char *const paths[] = {folder, file};
    int32_t *ids[2];
    size_t counts[2];
    make_unigram_folder(folder);
    make_scores(folder, expected);
    require(write_path(folder, "f32"));
    make_scores(file, got);
    ck_assert_mem_eq(got, expected, sizeof got);
    for (size_t i = 0; i < 2; i++) {
        fr_model *model;
        require(fr_model_open(paths[i], NULL, &model));
        require(fr_tokenize(fr_model_tokenizer(model), text, strlen(text), true, true, &ids[i], &counts[i]));
        fr_model_close(model);
    }
    ck_assert_uint_eq(counts[0], counts[1]);
    ck_assert_mem_eq(ids[0], ids[1], counts[0] * sizeof **ids);
    fr_free(ids[0]);
    fr_free(ids[1]);
    ck_assert_int_eq(unlink(file), 0);
    remove_unigram_folder(folder);
}
END_TEST

static void encode_pair(const char *path, fr_embedder_text *pair) {
    fr_model *model;
    fr_embedder *embedder;
    require(fr_model_open(path, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, FR_POOLING_NONE, &embedder));
    require(fr_embedder_encode_pair(embedder, NULL, "the sea", 7, "a house", 7, pair));
    fr_embedder_close(embedder);
    fr_model_close(model);
}

/* The file does not say how two texts are joined, so its reader must know this for each kind of model. RoBERTa puts two
 * separators between the texts. BERT gives the second text another token type. */
START_TEST(pairs_are_those_of_the_folder) {
    static const char *const names[] = {"roberta", "cross-bert"};
    fr_embedder_text expected, got;
    char path[128];
    snprintf(path, sizeof path, ENCODERS "%s", names[_i]);
    encode_pair(path, &expected);
    require(write_file(names[_i], "f32"));
    encode_pair(file, &got);
    ck_assert_uint_eq(got.count, expected.count);
    ck_assert_mem_eq(got.ids, expected.ids, got.count * sizeof *got.ids);
    ck_assert_mem_eq(got.types, expected.types, got.count);
    fr_embedder_text_free(&expected);
    fr_embedder_text_free(&got);
    ck_assert_int_eq(unlink(file), 0);
}
END_TEST

/* Each of these folders needs something that llama.cpp's files can't express. The error line must contain `word`, which
 * says what that is. */
static const struct {
    const char *name, *word;
} refused[] = {{"cross-xlm-roberta", "tokenizer"},
               {"bert-modes", "module 1"},
               {"gemma", "scale of the scores"},
               {"mpnet", "not built"},
               {"xlm-roberta", "tokenizer"}};

START_TEST(what_files_cannot_say_is_refused) {
    fr_status status = write_file(refused[_i].name, "f32");
    ck_assert_int_eq(status, FR_UNBUILT);
    ck_assert_msg(strstr(fr_last_error(), refused[_i].word) != NULL, "%s", fr_last_error());
    ck_assert_int_eq(unlink(file), 0);
}
END_TEST

/* GGUF has no tensor for the bias of a mixture's experts. So a folder in which this bias is not zero must be
 * refused. */
START_TEST(a_bias_of_experts_is_refused) {
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, ENCODERS "nomic-moe", "{}");
    fr_changed_folder_fill(&folder, "encoder.layers.1.mlp.experts.bias", 0, 0x3f);
    fr_status status = write_path(folder.path, "f32");
    ck_assert_msg(status == FR_UNBUILT, "%s", fr_last_error());
    ck_assert_msg(strstr(fr_last_error(), "layers.1.mlp.experts.bias is not 0") != NULL, "%s", fr_last_error());
    ck_assert_int_eq(unlink(file), 0);
    fr_changed_folder_remove(&folder);
}
END_TEST

FR_SUITE("quantize encoder") {
    TCase *cases = tcase_create("encoder");
    tcase_add_loop_test(cases, files_are_those_of_the_converter, 0, sizeof converted / sizeof *converted);
    tcase_add_loop_test(cases, rows_are_those_of_the_folder, 0, sizeof written / sizeof *written);
    tcase_add_loop_test(cases, scores_are_those_of_the_folder, 0, 2);
    tcase_add_test(cases, files_give_no_types_that_the_folder_lacks);
    tcase_add_loop_test(cases, pairs_are_those_of_the_folder, 0, 2);
    tcase_add_test(cases, unigram_tokenizers_are_written);
    tcase_add_test(cases, a_bias_of_experts_is_refused);
    tcase_add_loop_test(cases, what_files_cannot_say_is_refused, 0, sizeof refused / sizeof *refused);
    suite_add_tcase(suite, cases);
}
