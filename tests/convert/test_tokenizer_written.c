/* Tests tokenizers with merges. When a folder is written as GGUF, the merges become scores. The file must give the same
 * ids and the same printed texts as Hugging Face's tokenizers give for the folder.
 *
 * tests/data/tokenizers/runs.json and styles have the tokenizers, and the results of Hugging Face's package
 * (tests/references/tokenizer_styles.py). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/convert/export.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define LOWER_BLOCK "\xe2\x96\x81"

static char file[64];

/* Writes a tokenizer as a GGUF file without tensors. VOCAB is larger than the number of ids that the tokenizer has. */
static fr_status write_tokenizer(const json_t *value, const char *names) {
    static const fr_tokenizer_form form = {.model = "llama"};
    enum { VOCAB = 520 };
    fr_test_folder folder;
    fr_gguf_writer writer;
    fr_folder_make(&folder);
    FILE *out = fr_folder_create(&folder, "tokenizer.json");
    ck_assert_int_eq(json_dumpf(value, out, JSON_COMPACT), 0);
    ck_assert_int_eq(fclose(out), 0);
    out = fr_folder_create(&folder, "tokenizer_config.json");
    ck_assert_int_ge(fputs(names, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    snprintf(file, sizeof file, "/tmp/test_tokenizer_written_XXXXXX");
    int descriptor = mkstemp(file);
    out = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    ck_assert_ptr_nonnull(out);
    fr_checkpoint files = {.path = folder.path, .config = json_object()};
    fr_gguf_writer_open(&writer, out, "gemma3");
    fr_status status = fr_export_tokenizer(&files, &form, VOCAB, &writer);
    if (status == FR_OK) status = fr_gguf_write_header(&writer);
    fr_gguf_writer_close(&writer);
    ck_assert_int_eq(fclose(out), 0);
    json_decref(files.config);
    fr_folder_remove(&folder);
    return status;
}

static fr_tokenizer *open_written(const json_t *value, const char *names) {
    fr_tokenizer *tokenizer;
    require(write_tokenizer(value, names));
    require(fr_tokenizer_open(file, NULL, &tokenizer));
    ck_assert_int_eq(unlink(file), 0);
    return tokenizer;
}

static const char gemma_names[] = "{\"bos_token\": \"<bos>\", \"eos_token\": \"<eos>\", \"unk_token\": \"<unk>\"}";
static const char llama_names[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"unk_token\": \"<unk>\"}";

static void check_ids(const fr_tokenizer *tokenizer, const json_t *text, bool special, const json_t *list) {
    size_t count, wanted_count;
    int32_t *ids, *wanted = fr_ids_of(list, &wanted_count);
    const char *bytes = json_string_value(text);
    require(fr_tokenize(tokenizer, bytes, json_string_length(text), special, true, &ids, &count));
    ck_assert_msg(count == wanted_count && memcmp(ids, wanted, count * sizeof *ids) == 0, "ids of \"%s\"", bytes);
    fr_free(ids);
    free(wanted);
}

static void check_printed(const fr_tokenizer *tokenizer, const json_t *list, const json_t *wanted) {
    size_t count, length;
    int32_t *ids = fr_ids_of(list, &count);
    char *printed = fr_print_ids(tokenizer, ids, count, &length);
    ck_assert_msg(length == json_string_length(wanted) && memcmp(printed, json_string_value(wanted), length) == 0,
                  "\"%.*s\" instead of \"%s\"", (int)length, printed, json_string_value(wanted));
    fr_free(printed);
    free(ids);
}

/* Runs of blanks, of newlines and of tabs become tokens. The order in which they are joined is given only by the
 * merges. */
START_TEST(runs) {
    static const char *const names[] = {"by-id", "by-score", "trained"};
    json_t *root = fr_load_json(TOKENIZERS "runs.json"), *texts = json_object_get(root, "texts"), *text;
    const json_t *made = json_object_get(root, names[_i]), *ids = json_object_get(made, "ids");
    fr_tokenizer *tokenizer = open_written(json_object_get(made, "tokenizer"), gemma_names);
    size_t i;
    json_array_foreach (texts, i, text) {
        check_ids(tokenizer, text, false, json_array_get(ids, i));
        check_printed(tokenizer, json_array_get(ids, i), text);
    }
    ck_assert_uint_ge(i, 400);
    fr_tokenizer_close(tokenizer);
    json_decref(root);
}
END_TEST

/* If a text contains U+2581 itself, the package finds an added token with this character in it. The file's readers make
 * the token only by merges. So such texts are left out. */
START_TEST(styles) {
    static const char *const names[] = {"gemma", "llama2"}, *const tokens[] = {gemma_names, llama_names};
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "styles/%s.json", names[_i]);
    json_t *root = fr_load_json(path), *item, *letter = json_string("a");
    fr_tokenizer *tokenizer = open_written(json_object_get(root, "tokenizer"), tokens[_i]);
    size_t i, compared = 0;
    check_ids(tokenizer, letter, true, json_object_get(root, "around"));
    json_array_foreach (json_object_get(root, "cases"), i, item) {
        const json_t *text = json_array_get(item, 0), *ids = json_array_get(item, 1),
                     *decoded = json_array_get(item, 2);
        if (strstr(json_string_value(text), LOWER_BLOCK)) continue;
        check_ids(tokenizer, text, false, ids);
        check_printed(tokenizer, ids, decoded ? decoded : text);
        compared++;
    }
    ck_assert_uint_ge(compared, 150);
    fr_tokenizer_close(tokenizer);
    json_decref(letter);
    json_decref(root);
}
END_TEST

static void check_refused(const json_t *value, const char *reason) {
    ck_assert_int_eq(write_tokenizer(value, gemma_names), FR_UNBUILT);
    ck_assert_msg(strstr(fr_last_error(), reason) != NULL, "%s", fr_last_error());
    ck_assert_int_eq(unlink(file), 0);
}

/* If scores can't express what a tokenizer does, it must be refused. In the last case the merge of a token is removed,
 * but the token stays in the vocabulary. If two other tokens together have its text, a reader that has scores would
 * join them to this token. */
START_TEST(what_scores_cannot_say) {
    json_t *root = fr_load_json(TOKENIZERS "runs.json");
    json_t *value = json_object_get(json_object_get(root, "trained"), "tokenizer"),
           *model = json_object_get(value, "model"), *vocabulary = json_object_get(model, "vocab");
    json_t *added = json_object_get(value, "added_tokens"), *last = json_array_get(added, json_array_size(added) - 1);
    static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        json_object_set_new(last, flags[i], json_true());
        check_refused(value, "is searched for in a way that has no form in GGUF");
        json_object_set_new(last, flags[i], json_false());
    }
    json_t *byte = json_incref(json_object_get(vocabulary, "<0xE2>"));
    json_object_del(vocabulary, "<0xE2>");
    check_refused(value, "without the token <0xE2> has no form in GGUF");
    json_object_set_new(vocabulary, "<0xE2>", byte);
    json_array_remove(json_object_get(model, "merges"), 1);
    check_refused(value, "token 321, \"??\", is made of two tokens that no merge joins");
    json_decref(root);
}
END_TEST

FR_SUITE("tokenizer_written") {
    TCase *cases = tcase_create("tokenizer_written");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, runs, 0, 3);
    tcase_add_loop_test(cases, styles, 0, 2);
    tcase_add_test(cases, what_scores_cannot_say);
    suite_add_tcase(suite, cases);
}
