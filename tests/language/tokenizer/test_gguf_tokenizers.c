/* Tests those tokenizers of GGUF files that are not byte-level BPE: unigram models, WordPiece, and BPE on the
 * characters of words. The ids must be those of Hugging Face's tokenizers (tests/data/tokenizers/make_gguf_models.py).
 * Wrong lists and maps are refused. */
/* suite: hostile */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

enum { CASES = 9 };

static fr_test_folder folder;
static json_t *cases;

static void set_up(void) {
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "made.gguf"));
    cases = fr_load_json(TOKENIZERS "gguf_models.json");
    ck_assert_uint_eq(json_array_size(cases), CASES);
}

static void tear_down(void) {
    json_decref(cases);
    unlink(folder.file);
    fr_folder_remove(&folder);
}

/* ------------------------------------------------------------------------------------------------------------ files */

static void build_texts(fr_builder *b, const char *key, const json_t *texts) {
    fr_build_key_array(b, key, FR_GGUF_STRING, json_array_size(texts));
    for (size_t i = 0; i < json_array_size(texts); i++) fr_build_string(b, json_string_value(json_array_get(texts, i)));
}

static void build_types(fr_builder *b, const json_t *types) {
    fr_build_key_array(b, "tokenizer.ggml.token_type", FR_GGUF_I32, json_array_size(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        fr_build_u32(b, (uint32_t)json_integer_value(json_array_get(types, i)));
}

static void build_scores(fr_builder *b, const json_t *scores) {
    fr_build_key_array(b, "tokenizer.ggml.scores", FR_GGUF_F32, json_array_size(scores));
    for (size_t i = 0; i < json_array_size(scores); i++) {
        float score = (float)json_number_value(json_array_get(scores, i));
        fr_build_bytes(b, &score, sizeof score);
    }
}

static void build_charsmap(fr_builder *b, const json_t *bytes, fr_gguf_type element) {
    fr_build_key_array(b, "tokenizer.ggml.precompiled_charsmap", element, json_array_size(bytes));
    for (size_t i = 0; i < json_array_size(bytes); i++) {
        uint8_t byte = (uint8_t)json_integer_value(json_array_get(bytes, i));
        fr_build_bytes(b, &byte, 1);
    }
}

static void build_settings(fr_builder *b, const json_t *of) {
    char key[64];
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(of, "flags"), name, value) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
        fr_build_key_bool(b, key, json_is_true(value));
    }
    json_object_foreach (json_object_get(of, "ids"), name, value) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", name);
        fr_build_key_u32(b, key, (uint32_t)json_integer_value(value));
    }
}

/* Writes the file of a case and opens its tokenizer. `element` is the type of the elements in the file's map of
 * characters (precompiled_charsmap). */
static fr_status open_case(const json_t *of, fr_gguf_type element, fr_tokenizer **tokenizer) {
    static const char *const lists[] = {"scores", "charsmap", "merges"};
    size_t keys = 4 + json_object_size(json_object_get(of, "flags")) + json_object_size(json_object_get(of, "ids"));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) keys += json_object_get(of, lists[i]) != NULL;
    fr_builder b = {0};
    fr_build_header(&b, 0, keys);
    fr_build_key_string(&b, "general.architecture", "t5");
    fr_build_key_string(&b, "tokenizer.ggml.model", json_string_value(json_object_get(of, "model")));
    build_settings(&b, of);
    build_texts(&b, "tokenizer.ggml.tokens", json_object_get(of, "tokens"));
    build_types(&b, json_object_get(of, "types"));
    if (json_object_get(of, "scores")) build_scores(&b, json_object_get(of, "scores"));
    if (json_object_get(of, "charsmap")) build_charsmap(&b, json_object_get(of, "charsmap"), element);
    if (json_object_get(of, "merges")) build_texts(&b, "tokenizer.ggml.merges", json_object_get(of, "merges"));
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    return fr_tokenizer_open(folder.file, NULL, tokenizer);
}

/* ------------------------------------------------------------------------------------------------------------- ids */

START_TEST(ids) {
    const json_t *of = json_array_get(cases, (size_t)_i), *pairs = json_object_get(of, "encode"), *pair;
    const char *name = json_string_value(json_object_get(of, "name"));
    fr_tokenizer *tokenizer;
    size_t i;
    ck_assert_msg(open_case(of, _i % 2 ? FR_GGUF_I8 : FR_GGUF_U8, &tokenizer) == FR_OK, "%s: %s", name,
                  fr_last_error());
    json_array_foreach (pairs, i, pair) {
        const json_t *text = json_array_get(pair, 0);
        size_t count, wanted_count;
        int32_t *found, *wanted = fr_ids_of(json_array_get(pair, 1), &wanted_count);
        ck_assert_int_eq(
            fr_tokenize(tokenizer, json_string_value(text), json_string_length(text), true, true, &found, &count),
            FR_OK);
        ck_assert_msg(count == wanted_count && memcmp(found, wanted, count * sizeof *found) == 0,
                      "%s: other ids for text %zu, \"%s\"", name, i, json_string_value(text));
        fr_free(found);
        free(wanted);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Tokens must have the names and texts of the published tokenizer, even if the file writes them in another way. */
START_TEST(printed) {
    static const struct {
        size_t of;
        const char *text, *printed;
    } texts[] = {{0, "Hello  world", "Hello world</s>"},
                 {3, "x  y", "x  y</s>"},
                 {5, "Hello, world", "[CLS] Hello , world [SEP]"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fr_tokenizer *tokenizer;
        int32_t *found;
        size_t count, length;
        char *text;
        ck_assert_int_eq(open_case(json_array_get(cases, texts[i].of), FR_GGUF_U8, &tokenizer), FR_OK);
        ck_assert_int_eq(fr_tokenize(tokenizer, texts[i].text, strlen(texts[i].text), true, true, &found, &count),
                         FR_OK);
        ck_assert_int_eq(fr_detokenize(tokenizer, found, count, &text, &length), FR_OK);
        ck_assert_str_eq(text, texts[i].printed);
        fr_free(text);
        fr_free(found);
        fr_tokenizer_close(tokenizer);
    }
    fr_tokenizer *words;
    ck_assert_int_eq(open_case(json_array_get(cases, 4), FR_GGUF_U8, &words), FR_OK);
    ck_assert_int_eq(fr_tokenizer_id(words, "[MASK]"), 4);
    ck_assert_int_eq(fr_tokenizer_id(words, "[unused1]"), 5);
    ck_assert_int_ge(fr_tokenizer_id(words, "##a"), 0);
    fr_tokenizer_close(words);
}
END_TEST

/* Some vocabularies have several tokens without a text, which must get different names. In some vocabularies the scores
 * are integers. */
START_TEST(empty_tokens) {
    json_t *of = json_deep_copy(json_array_get(cases, 0)), *tokens = json_object_get(of, "tokens");
    json_t *types = json_object_get(of, "types");
    size_t count = json_array_size(tokens);
    for (size_t i = 0; i < 2; i++) {
        json_array_append_new(tokens, json_string(""));
        json_array_append_new(types, json_integer(3));
        json_array_append_new(json_object_get(of, "scores"), json_real(0));
    }
    fr_tokenizer *tokenizer;
    char name[32];
    ck_assert_msg(open_case(of, FR_GGUF_U8, &tokenizer) == FR_OK, "%s", fr_last_error());
    for (size_t i = count; i < count + 2; i++) {
        snprintf(name, sizeof name, "[EMPTY_%zu]", i);
        ck_assert_int_eq(fr_tokenizer_id(tokenizer, name), (int32_t)i);
    }
    fr_tokenizer_close(tokenizer);
    json_decref(of);
}
END_TEST

START_TEST(whole_scores) {
    static const char *const tokens[] = {"<unk>", "a", "b", "\u2581", "ab", "\u2581a", "bb"};
    static const int32_t scores[] = {0, -9, -9, -9, -2, -1, -3}, wanted[] = {5, 6, 4};
    enum { TOKENS = sizeof scores / sizeof *scores };
    fr_tokenizer *tokenizer;
    fr_builder b = {0};
    int32_t *found;
    size_t count;
    fr_build_header(&b, 0, 4);
    fr_build_key_string(&b, "general.architecture", "llama");
    fr_build_key_string(&b, "tokenizer.ggml.model", "llama");
    fr_build_key_array(&b, "tokenizer.ggml.tokens", FR_GGUF_STRING, TOKENS);
    for (size_t i = 0; i < TOKENS; i++) fr_build_string(&b, tokens[i]);
    fr_build_key_array(&b, "tokenizer.ggml.scores", FR_GGUF_I32, TOKENS);
    fr_build_bytes(&b, scores, sizeof scores);
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    ck_assert_msg(fr_tokenizer_open(folder.file, NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fr_tokenize(tokenizer, "abbab", 5, false, false, &found, &count), FR_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_mem_eq(found, wanted, sizeof wanted);
    fr_free(found);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- wrong values */

static const struct {
    size_t of;
    const char *key, *value; /* value: JSON, or NULL if the file lacks the key */
    const char *part;
} lies[] = {
    {0, "scores", NULL, "key tokenizer.ggml.scores is missing"},
    {0, "scores", "[0.5]", "1 scores for "},
    {0, "tokens", "[]", "key tokenizer.ggml.tokens is empty"},
    {0, "charsmap", "[1, 2, 3]", "precompiled_charsmap has no tree"},
    {0, "charsmap", "[255, 255, 255, 255, 0, 0, 0, 0]", "precompiled_charsmap has no tree"},
    {4, "ids", "{\"unknown\": 100000}", "the unk_token \"\" is not in the vocabulary"},
    {7, "merges", NULL, "key tokenizer.ggml.merges is missing"},
    {7, "model", "\"rwkv\"", "tokenizer.ggml.model \"rwkv\" is not built yet"},
    {7, "model", "\"plamo2\"", "tokenizer.ggml.model \"plamo2\" is not built yet"},
    {7, "model", "\"hybriddna\"", "tokenizer.ggml.model \"hybriddna\" is not built yet"},
    {7, "model", "\"none\"", "tokenizer.ggml.model \"none\" is not built yet"},
};

START_TEST(lists_that_lie) {
    json_t *of = json_deep_copy(json_array_get(cases, lies[_i].of));
    fr_tokenizer *tokenizer;
    json_object_del(of, lies[_i].key);
    if (lies[_i].value) json_object_set_new(of, lies[_i].key, json_loads(lies[_i].value, JSON_DECODE_ANY, NULL));
    ck_assert_int_ne(open_case(of, FR_GGUF_U8, &tokenizer), FR_OK);
    ck_assert_ptr_null(tokenizer);
    ck_assert_msg(strstr(fr_last_error(), lies[_i].part) != NULL, "%s", fr_last_error());
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
    json_decref(of);
}
END_TEST

START_TEST(map_of_another_type) {
    fr_tokenizer *tokenizer;
    json_t *of = json_deep_copy(json_array_get(cases, 0));
    json_object_set_new(of, "charsmap", json_array());
    ck_assert_int_eq(open_case(of, FR_GGUF_F32, &tokenizer), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "tokenizer.ggml.precompiled_charsmap is an array of f32, ") != NULL, "%s",
                  fr_last_error());
    json_decref(of);
}
END_TEST

FR_SUITE("gguf_tokenizers") {
    TCase *tests = tcase_create("gguf_tokenizers");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, ids, 0, CASES);
    tcase_add_test(tests, printed);
    tcase_add_test(tests, empty_tokens);
    tcase_add_test(tests, whole_scores);
    tcase_add_loop_test(tests, lists_that_lie, 0, sizeof lies / sizeof *lies);
    tcase_add_test(tests, map_of_another_type);
    suite_add_tcase(suite, tests);
}
