/* Tests the pre-tokenizers of GGUF files. The table has several kinds. Each kind must split texts as Hugging Face's
 * tokenizers do with the regular expressions of this kind's models (tests/data/tokenizers/make_pre_tokenizers.py). A
 * kind may have several names, and each name must select it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/pre_tokenizers.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

static fr_test_folder folder;
static json_t *cases;

static void set_up(void) {
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "made.gguf"));
    cases = fr_load_json(TOKENIZERS "pre_tokenizers.json");
}

static void tear_down(void) {
    json_decref(cases);
    unlink(folder.file);
    fr_folder_remove(&folder);
}

static fr_text text_of(const char *string) {
    return (fr_text){string, strlen(string)};
}

static void build_texts(fr_builder *b, const char *key, const json_t *texts) {
    size_t i;
    const json_t *text;
    fr_build_key_array(b, key, FR_GGUF_STRING, json_array_size(texts));
    json_array_foreach (texts, i, text) fr_build_string(b, json_string_value(text));
}

static void build_merges(fr_builder *b, const json_t *merges) {
    size_t i;
    const json_t *merge;
    fr_build_key_array(b, "tokenizer.ggml.merges", FR_GGUF_STRING, json_array_size(merges));
    json_array_foreach (merges, i, merge) {
        char both[512];
        snprintf(both, sizeof both, "%s %s", json_string_value(json_array_get(merge, 0)),
                 json_string_value(json_array_get(merge, 1)));
        fr_build_string(b, both);
    }
}

static fr_status open_kind(const char *model, const char *pre, fr_tokenizer **tokenizer) {
    fr_builder b = {0};
    fr_build_header(&b, 0, 5);
    fr_build_key_string(&b, "general.architecture", "llama");
    fr_build_key_string(&b, "tokenizer.ggml.model", model);
    fr_build_key_string(&b, "tokenizer.ggml.pre", pre);
    build_texts(&b, "tokenizer.ggml.tokens", json_object_get(cases, "tokens"));
    build_merges(&b, json_object_get(cases, "merges"));
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    return fr_tokenizer_open(folder.file, NULL, tokenizer);
}

/* Compares the ids of all texts with `wanted`. Closes the tokenizer. */
static void check_ids(fr_tokenizer *tokenizer, const char *name, const json_t *wanted) {
    const json_t *texts = json_object_get(cases, "texts"), *text;
    size_t i;
    ck_assert_uint_eq(json_array_size(wanted), json_array_size(texts));
    json_array_foreach (texts, i, text) {
        size_t count, wanted_count;
        int32_t *ids, *wanted_ids = fr_ids_of(json_array_get(wanted, i), &wanted_count);
        fr_status status =
            fr_tokenize(tokenizer, json_string_value(text), json_string_length(text), false, false, &ids, &count);
        ck_assert_msg(status == FR_OK, "%s: %s", name, fr_last_error());
        ck_assert_msg(count == wanted_count && memcmp(ids, wanted_ids, count * sizeof *ids) == 0,
                      "%s: other ids for text %zu, \"%s\"", name, i, json_string_value(text));
        fr_free(ids);
        free(wanted_ids);
    }
    fr_tokenizer_close(tokenizer);
}

static void check_name(const char *name, const json_t *wanted) {
    fr_tokenizer *tokenizer;
    ck_assert_msg(open_kind("gpt2", name, &tokenizer) == FR_OK, "%s", fr_last_error());
    check_ids(tokenizer, name, wanted);
}

/* Returns the expected ids of a kind, which are stored under the kind's first name. If two kinds split texts in the
 * same way, one of them has the other's name there instead of ids. */
static const json_t *cases_of(const fr_pre_tokenizer *kind) {
    const json_t *all = json_object_get(cases, "ids"), *own = json_object_get(all, kind->names[0]);
    return json_is_string(own) ? json_object_get(all, json_string_value(own)) : own;
}

START_TEST(each_name) {
    const fr_pre_tokenizer *kind;
    size_t kinds = 0;
    for (size_t i = 0; (kind = fr_pre_tokenizer_at(i)); i++) {
        if (kind->rules) continue;
        kinds++;
        for (size_t n = 0; n < FR_PRE_NAMES_MAX && kind->names[n]; n++) {
            ck_assert_ptr_eq(fr_pre_tokenizer_find(text_of("gpt2"), text_of(kind->names[n])), kind);
            check_name(kind->names[n], cases_of(kind));
        }
    }
    /* the file has one more case, which the test rules_by_name uses */
    ck_assert_uint_eq(kinds + 1, json_object_size(json_object_get(cases, "ids")));
}
END_TEST

START_TEST(unknown_names) {
    fr_tokenizer *tokenizer;
    char line[256];
    ck_assert_int_eq(open_kind("gpt2", "of-tomorrow", &tokenizer), FR_UNBUILT);
    snprintf(line, sizeof line, "%s: tokenizer.ggml.pre \"of-tomorrow\" is not known\nbuilt are llama-bpe, qwen2, ",
             folder.file);
    ck_assert_ptr_eq(strstr(fr_last_error(), line), fr_last_error());
    ck_assert_int_eq(fr_last_error_option(), FR_OPT_TOKENIZER_PRE);
    ck_assert_int_eq(open_kind("rwkv", "llama-bpe", &tokenizer), FR_UNBUILT);
    snprintf(line, sizeof line, "%s: tokenizer.ggml.model \"rwkv\" is not built yet", folder.file);
    ck_assert_str_eq(fr_last_error(), line);
}
END_TEST

/* These pre-tokenizers of tokenizer.json files have named rules (Digits, ByteLevel) instead of a regular expression. */
static const struct {
    const char *kind, *pre_tokenizer;
} named[] = {
    {"gpt-2", "{'type': 'ByteLevel', 'add_prefix_space': false, 'use_regex': true}"},
    {"gpt-2", "{'type': 'ByteLevel', 'add_prefix_space': false}"},
    {"smollm", "{'type': 'Sequence', 'pretokenizers': [{'type': 'Digits', 'individual_digits': true},"
               " {'type': 'ByteLevel', 'add_prefix_space': false, 'trim_offsets': true, 'use_regex': true}]}"},
    {"digits", "{'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'},"
               " {'type': 'ByteLevel', 'add_prefix_space': false, 'use_regex': true}]}"},
};

START_TEST(rules_by_name) {
    char text[512];
    size_t i;
    const json_t *token;
    snprintf(text, sizeof text, "%s", named[_i].pre_tokenizer);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    json_t *vocabulary = json_object(), *pre_tokenizer = json_loads(text, 0, NULL);
    json_array_foreach (json_object_get(cases, "tokens"), i, token)
        json_object_set_new(vocabulary, json_string_value(token), json_integer((json_int_t)i));
    json_t *value =
        json_pack("{s:{s:s, s:o, s:O}, s:o, s:{s:s}}", "model", "type", "BPE", "vocab", vocabulary, "merges",
                  json_object_get(cases, "merges"), "pre_tokenizer", pre_tokenizer, "decoder", "type", "ByteLevel");
    ck_assert_ptr_nonnull(value);
    check_ids(fr_open_value(value), named[_i].kind, json_object_get(json_object_get(cases, "ids"), named[_i].kind));
    json_decref(value);
}
END_TEST

FR_SUITE("pre_tokenizers") {
    TCase *tests = tcase_create("pre_tokenizers");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_name);
    tcase_add_test(tests, unknown_names);
    tcase_add_loop_test(tests, rules_by_name, 0, sizeof named / sizeof *named);
    suite_add_tcase(suite, tests);
}
