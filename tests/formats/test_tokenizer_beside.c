/* Tests the files next to tokenizer.json, such as tokenizer_config.json and special_tokens_map.json. forerun must read
 * them as transformers does (tests/data/tokenizers/make_beside.py). There is one exception: transformers invents ids
 * for some tokens, and forerun does not. Wrong files are refused. In one model only these files name the end token. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

static fr_test_folder folder;

static void set_up(void) {
    fr_folder_make(&folder);
}

static void tear_down(void) {
    fr_folder_remove(&folder);
}

static void put_text(const char *name, const char *text) {
    FILE *file = fr_folder_create(&folder, name);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Writes a value as a JSON file. If the value is NULL, no file is written. */
static void put_value(const char *name, const json_t *value) {
    if (!value) return;
    char *text = json_dumps(value, 0);
    put_text(name, text);
    free(text);
}

static void put_tokenizer(void) {
    json_t *root = fr_load_json(TOKENIZERS "llama3/tokenizer.json");
    put_value("tokenizer.json", root);
    json_decref(root);
}

static fr_tokenizer *open_folder(void) {
    fr_tokenizer *tokenizer;
    ck_assert_msg(fr_tokenizer_open(folder.path, NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    return tokenizer;
}

static void check_whole(const fr_tokenizer *tokenizer, const char *text, bool special, const json_t *wanted,
                        const char *name) {
    size_t count, wanted_count;
    int32_t *ids, *wanted_ids = fr_ids_of(wanted, &wanted_count);
    ck_assert_int_eq(fr_tokenize(tokenizer, text, strlen(text), special, true, &ids, &count), FR_OK);
    ck_assert_msg(count == wanted_count && memcmp(ids, wanted_ids, count * sizeof *ids) == 0,
                  "%s: other ids for \"%s\"", name, text);
    fr_free(ids);
    free(wanted_ids);
}

static void check_ids(const fr_tokenizer *tokenizer, const char *text, const json_t *wanted, const char *name) {
    check_whole(tokenizer, text, false, wanted, name);
}

static void check_case(const json_t *item, const json_t *texts) {
    const char *name = json_string_value(json_object_get(item, "name"));
    fr_tokenizer *tokenizer = open_folder();
    fr_marked_text prompt;
    for (size_t i = 0; i < json_array_size(texts); i++)
        check_ids(tokenizer, json_string_value(json_array_get(texts, i)),
                  json_array_get(json_object_get(item, "ids"), i), name);
    ck_assert_msg(fr_chat_render(tokenizer, "[{\"role\": \"user\", \"content\": \"a\"}]", NULL, &prompt) == FR_OK, "%s",
                  fr_last_error());
    ck_assert_str_eq(prompt.text, json_string_value(json_object_get(item, "prompt")));
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 0));
    fr_marked_text_free(&prompt);
    fr_tokenizer_close(tokenizer);
}

START_TEST(reference_cases) {
    json_t *root = fr_load_json(TOKENIZERS "beside.json"), *cases = json_object_get(root, "cases"), *item;
    size_t i;
    json_array_foreach (cases, i, item) {
        put_tokenizer();
        put_text("chat_template.jinja", json_string_value(json_object_get(root, "template")));
        put_value("tokenizer_config.json", json_object_get(item, "config"));
        put_value("special_tokens_map.json", json_object_get(item, "map"));
        put_value("added_tokens.json", json_object_get(item, "added"));
        check_case(item, json_object_get(root, "texts"));
        fr_folder_remove(&folder);
        fr_folder_make(&folder);
    }
    ck_assert_uint_ge(i, 26);
    json_decref(root);
}
END_TEST

/* Flags in tokenizer_config.json decide which tokens are added before and after a text
 * (tests/data/tokenizers/make_flags.py). */
START_TEST(flags_decide) {
    json_t *root = fr_load_json(TOKENIZERS "flags.json"), *cases = json_object_get(root, "cases"), *item, *text;
    size_t i, t;
    put_tokenizer();
    json_array_foreach (cases, i, item) {
        json_t *config = json_object_get(item, "config");
        put_value("tokenizer_config.json", config);
        fr_tokenizer *tokenizer = open_folder();
        char *name = json_dumps(config, 0);
        json_array_foreach (json_object_get(root, "texts"), t, text)
            check_whole(tokenizer, json_string_value(text), true, json_array_get(json_object_get(item, "ids"), t),
                        name);
        free(name);
        fr_tokenizer_close(tokenizer);
    }
    ck_assert_uint_eq(i, 9);
    json_decref(root);
}
END_TEST

/* Older folders have vocab.json and merges.txt instead of tokenizer.json (tests/data/tokenizers/make_vocabulary.py). */
START_TEST(vocabulary_and_merges) {
    json_t *root = fr_load_json(TOKENIZERS "vocabulary.json"), *item, *text;
    size_t i, t;
    put_value("vocab.json", json_object_get(root, "vocab"));
    put_text("merges.txt", json_string_value(json_object_get(root, "merges")));
    json_array_foreach (json_object_get(root, "cases"), i, item) {
        put_value("tokenizer_config.json", json_object_get(item, "config"));
        fr_tokenizer *tokenizer = open_folder();
        json_array_foreach (json_object_get(root, "texts"), t, text)
            check_whole(tokenizer, json_string_value(text), true, json_array_get(json_object_get(item, "ids"), t),
                        json_string_value(json_object_get(item, "name")));
        ck_assert_uint_eq(t, 7);
        fr_tokenizer_close(tokenizer);
    }
    ck_assert_uint_eq(i, 4);
    json_decref(root);
}
END_TEST

/* The error line must name the file or the class that is wrong. */
START_TEST(wrong_vocabulary_and_merges) {
    static const struct {
        const char *vocab, *merges, *config, *says;
    } cases[] = {{"[]", "a b\n", "{}", "vocab.json is not a JSON object"},
                 {"{\"a\": 0}", "\xff a\n", "{}", "merges.txt: line 1 is no UTF-8"},
                 {"{\"a\": 0}", "a\n", "{}", "/vocab.json and merges.txt: merge 0 is neither"},
                 {"{\"a\": -1}", "", "{}", "/vocab.json and merges.txt: the id of token \"a\" is not"},
                 {"{\"a\": 0}", "", "{\"tokenizer_class\": \"CLIPTokenizer\"}", "tokenizer_class CLIPTokenizer"}};
    fr_tokenizer *tokenizer;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("vocab.json", cases[i].vocab);
        put_text("merges.txt", cases[i].merges);
        put_text("tokenizer_config.json", cases[i].config);
        ck_assert_int_ne(fr_tokenizer_open(folder.path, NULL, &tokenizer), FR_OK);
        ck_assert_msg(strstr(fr_last_error(), cases[i].says) != NULL, "no \"%s\" in %s", cases[i].says,
                      fr_last_error());
    }
}
END_TEST

/* tokenizer_config.json may define more tokens. Each gets the id that the file gives it. If another token already has
 * this id, the new token is left out. */
START_TEST(ids_of_new_tokens) {
    char line[320];
    put_tokenizer();
    put_text("tokenizer_config.json", "{\"added_tokens_decoder\": {\"1600\": {\"content\": \"<|extra|>\"},"
                                      " \"7\": {\"content\": \"<|x|>\"}, \"8\": {\"special\": true}}}");
    fr_tokenizer *tokenizer = open_folder();
    json_t *wanted = json_pack("[i, i]", 64, 1600);
    check_ids(tokenizer, "a<|extra|>", wanted, "1600");
    json_decref(wanted);
    snprintf(
        line, sizeof line,
        "%s/tokenizer.json: the added token \"<|x|>\" beside it has the id 7, which another token has: it is left out",
        folder.path);
    ck_assert_ptr_nonnull(fr_tokenizer_note(tokenizer, 0));
    ck_assert_str_eq(fr_tokenizer_note(tokenizer, 0), line);
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 1));
    fr_tokenizer_close(tokenizer);
}
END_TEST

static const struct {
    const char *file, *text, *line;
} wrong[] = {
    {"tokenizer_config.json", "[]", "tokenizer_config.json is not a JSON object"},
    {"tokenizer_config.json", "{\"eos_token\": [\"a\"]}", "tokenizer_config.json: \"eos_token\" is not a string"},
    {"tokenizer_config.json", "{\"pad_token\": {\"content\": 5}}",
     "tokenizer_config.json: \"pad_token\" is not a string"},
    {"tokenizer_config.json", "{\"added_tokens_decoder\": []}",
     "tokenizer_config.json: \"added_tokens_decoder\" is not"},
    {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"1e3\": {\"content\": \"x\"}}}",
     "tokenizer_config.json: added_tokens_decoder: \"1e3\" is no id of a token"},
    {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"16777216\": {\"content\": \"x\"}}}",
     "tokenizer_config.json: added_tokens_decoder: \"16777216\" is no id of a token"},
    {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"\": {\"content\": \"x\"}}}", "\"\" is no id of a token"},
    {"tokenizer_config.json", "{\"added_tokens_decoder\": {\"1600\": {\"content\": \"x\", \"lstrip\": 1}}}",
     "tokenizer_config.json: \"lstrip\" is neither true nor false"},
    {"special_tokens_map.json", "{\"bos_token\": 1}", "special_tokens_map.json: \"bos_token\" is not a string"},
    {"special_tokens_map.json", "{\"additional_special_tokens\": [1]}",
     "special_tokens_map.json: \"additional_special_tokens\" is not a string"},
    {"added_tokens.json", "{\"x\": -1}", "added_tokens.json: \"x\" is"},
    {"added_tokens.json", "{", "added_tokens.json"},
};

START_TEST(files_that_lie) {
    fr_tokenizer *tokenizer;
    put_tokenizer();
    put_text(wrong[_i].file, wrong[_i].text);
    ck_assert_int_eq(fr_tokenizer_open(folder.path, NULL, &tokenizer), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), wrong[_i].line), "\"%s\" is not in \"%s\"", wrong[_i].line, fr_last_error());
    ck_assert_int_eq(strncmp(fr_last_error(), folder.path, strlen(folder.path)), 0);
}
END_TEST

/* ------------------------------------------------------------------------------------------ ends of texts by model */

#define MODEL_FOLDER "tests/data/models/llama"

static void link_file(const char *name, bool made) {
    char from[512], to[128];
    snprintf(to, sizeof to, "%s/%s", folder.path, name);
    if (made) {
        ck_assert_ptr_nonnull(realpath(MODEL_FOLDER, from));
        snprintf(from + strlen(from), sizeof from - strlen(from), "/%s", name);
        ck_assert_int_eq(symlink(from, to), 0);
    } else {
        unlink(to);
    }
}

static const struct {
    const char *config, *map, *generation; /* NULL: no such file */
    int end;
} ends[] = {
    {"{\"eos_token\": \"<|end_of_text|>\"}", NULL, NULL, 505},
    {"{\"eos_token\": {\"__type\": \"AddedToken\", \"content\": \"<|eot_id|>\"}}", NULL, NULL, 509},
    {NULL, "{\"eos_token\": {\"content\": \"<|eot_id|>\", \"lstrip\": false}}", NULL, 509},
    {"{\"eos_token\": \"<|end_of_text|>\"}", NULL, "{\"eos_token_id\": null}", 505},
    {"{\"eos_token\": \"<|end_of_text|>\"}", NULL, "{\"eos_token_id\": [509]}", 509},
};

/* A large bias makes the model generate id 505 or 509 at once. If this id ends texts, the text has only this one id.
 * Otherwise it has as many ids as allowed. */
START_TEST(ends_of_models) {
    json_t *config = fr_load_json(MODEL_FOLDER "/config.json");
    json_object_del(config, "eos_token_id");
    put_value("config.json", config);
    link_file("model.safetensors", true);
    link_file("tokenizer.json", true);
    if (ends[_i].config) put_text("tokenizer_config.json", ends[_i].config);
    if (ends[_i].map) put_text("special_tokens_map.json", ends[_i].map);
    if (ends[_i].generation) put_text("generation_config.json", ends[_i].generation);
    for (int id = 505; id <= 509; id += 4) {
        fr_command run =
            fr_command_ok("generate -m %s -t 1 -n 4 --ids 504,5,6 -l %d+1000 --quiet --output json", folder.path, id);
        ck_assert((strstr(run.out, "\"stop\":\"eos\"") || strstr(run.out, "\"stop\": \"eos\"")) ==
                  (id == ends[_i].end));
        fr_command_free(&run);
    }
    json_decref(config);
    static const char *const made[] = {"config.json", "model.safetensors", "generation_config.json"};
    for (size_t i = 0; i < 3; i++) link_file(made[i], false);
}
END_TEST

FR_SUITE("tokenizer_beside") {
    TCase *tests = tcase_create("tokenizer_beside");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, reference_cases);
    tcase_add_test(tests, flags_decide);
    tcase_add_test(tests, vocabulary_and_merges);
    tcase_add_test(tests, wrong_vocabulary_and_merges);
    tcase_add_test(tests, ids_of_new_tokens);
    tcase_add_loop_test(tests, files_that_lie, 0, sizeof wrong / sizeof *wrong);
    tcase_add_loop_test(tests, ends_of_models, 0, sizeof ends / sizeof *ends);
    suite_add_tcase(suite, tests);
}
