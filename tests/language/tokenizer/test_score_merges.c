/* Tests tokenizers of GGUF files that choose merges by scores. The ids must be those of Hugging Face's tokenizers with
 * the merges that the scores imply (tests/data/tokenizers/make_scores.py). Also tests equal scores, files that lack
 * some keys, and wrong lists. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/tokenizer_gguf.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

static fr_test_folder folder;
static json_t *cases;

static void set_up(void) {
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "made.gguf"));
    cases = fr_load_json(TOKENIZERS "scores.json");
}

static void tear_down(void) {
    json_decref(cases);
    unlink(folder.file);
    fr_folder_remove(&folder);
}

/* ------------------------------------------------------------------------------------------------------------ files */

/* How a test's file differs from the usual file with the cases' tokens. */
typedef struct made_file {
    const bool *space_prefix; /* NULL: the file lacks the key */
    const float *score;       /* one score for all tokens, or NULL for the cases' own scores */
    size_t scores;            /* a wrong number of scores, or 0 for one score per token */
    bool no_scores;
    const char *architecture; /* NULL: Llama's */
} made_file;

static void build_scores(fr_builder *b, const made_file *made) {
    const json_t *scores = json_object_get(cases, "scores");
    size_t count = made->scores ? made->scores : json_array_size(scores);
    if (made->no_scores) return;
    fr_build_key_array(b, "tokenizer.ggml.scores", FR_GGUF_F32, count);
    for (size_t i = 0; i < count; i++) {
        float score = made->score ? *made->score : (float)json_number_value(json_array_get(scores, i));
        fr_build_bytes(b, &score, sizeof score);
    }
}

static fr_status open_made(const made_file *made, fr_tokenizer **tokenizer) {
    const json_t *tokens = json_object_get(cases, "tokens"), *types = json_object_get(cases, "types");
    fr_builder b = {0};
    fr_build_header(&b, 0, 4 + !made->no_scores + (made->space_prefix != NULL));
    fr_build_key_string(&b, "general.architecture", made->architecture ? made->architecture : "llama");
    fr_build_key_string(&b, "tokenizer.ggml.model", "llama");
    if (made->space_prefix) fr_build_key_bool(&b, "tokenizer.ggml.add_space_prefix", *made->space_prefix);
    fr_build_key_array(&b, "tokenizer.ggml.tokens", FR_GGUF_STRING, json_array_size(tokens));
    for (size_t i = 0; i < json_array_size(tokens); i++)
        fr_build_string(&b, json_string_value(json_array_get(tokens, i)));
    fr_build_key_array(&b, "tokenizer.ggml.token_type", FR_GGUF_I32, json_array_size(types));
    for (size_t i = 0; i < json_array_size(types); i++)
        fr_build_u32(&b, (uint32_t)json_integer_value(json_array_get(types, i)));
    build_scores(&b, made);
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    return fr_tokenizer_open(folder.file, NULL, tokenizer);
}

static fr_tokenizer *open_good(const made_file *made) {
    fr_tokenizer *tokenizer;
    ck_assert_msg(open_made(made, &tokenizer) == FR_OK, "%s", fr_last_error());
    return tokenizer;
}

/* ------------------------------------------------------------------------------------------------------------ tests */

static const struct {
    const char *name;
    const bool *space_prefix;
} prefixes[] = {{"plain", &(bool){false}}, {"prefixed", &(bool){true}}, {"prefixed", NULL}};

START_TEST(reference_ids) {
    const json_t *texts = json_object_get(cases, "texts"), *text;
    const json_t *wanted = json_object_get(json_object_get(cases, "ids"), prefixes[_i].name);
    fr_tokenizer *tokenizer = open_good(&(made_file){.space_prefix = prefixes[_i].space_prefix});
    size_t i;
    ck_assert_uint_gt(json_array_size(texts), 100);
    json_array_foreach (texts, i, text) {
        size_t count, wanted_count;
        int32_t *ids, *wanted_ids = fr_ids_of(json_array_get(wanted, i), &wanted_count);
        const char *bytes = json_string_value(text);
        ck_assert_int_eq(fr_tokenize(tokenizer, bytes, strlen(bytes), false, false, &ids, &count), FR_OK);
        ck_assert_msg(count == wanted_count && memcmp(ids, wanted_ids, count * sizeof *ids) == 0,
                      "other ids for text %zu, \"%s\"", i, bytes);
        fr_free(ids);
        free(wanted_ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

static bool has_ids(const fr_tokenizer *tokenizer, const json_t *pair) {
    size_t count, wanted_count;
    int32_t *ids, *wanted = fr_ids_of(json_array_get(pair, 1), &wanted_count);
    const char *text = json_string_value(json_array_get(pair, 0));
    ck_assert_int_eq(fr_tokenize(tokenizer, text, strlen(text), false, true, &ids, &count), FR_OK);
    bool same = count == wanted_count && memcmp(ids, wanted, count * sizeof *ids) == 0;
    fr_free(ids);
    free(wanted);
    return same;
}

/* Phi-3's special tokens also include the white space after them, although Phi-3's files do not say this. Other models'
 * special tokens do not. */
START_TEST(blanks_behind_tokens) {
    const json_t *pairs = json_object_get(cases, "stripping");
    fr_tokenizer *phi = open_good(&(made_file){.architecture = "phi3"}), *llama = open_good(&(made_file){0});
    for (size_t i = 0; i < json_array_size(pairs); i++)
        ck_assert_msg(has_ids(phi, json_array_get(pairs, i)), "text %zu", i);
    ck_assert(!has_ids(llama, json_array_get(pairs, 0)));
    fr_tokenizer_close(llama);
    fr_tokenizer_close(phi);
}
END_TEST

static void check_printed(const fr_tokenizer *tokenizer, const char *text) {
    size_t count, length;
    int32_t *ids;
    ck_assert_int_eq(fr_tokenize(tokenizer, text, strlen(text), false, false, &ids, &count), FR_OK);
    char *printed = fr_print_ids(tokenizer, ids, count, &length);
    ck_assert_str_eq(printed, text);
    fr_free(printed);
    fr_free(ids);
}

/* The tokenizer puts a space before a text. When the ids are printed, this space must be removed, and the text's own
 * spaces must be kept. */
START_TEST(printed_texts) {
    static const char *const texts[] = {"Hello world", " a", "  b c", "\u2603 \u00e9\u4e00", "it's 12345", ""};
    fr_tokenizer *tokenizer = open_good(&(made_file){.space_prefix = prefixes[_i].space_prefix});
    /* with a prefix, " b c" is left out, because " " is itself a token, which is found first */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (_i == 0 || texts[i][1] != ' ') check_printed(tokenizer, texts[i]);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* This text is not UTF-8, so no reference has its ids. If the ids are printed, the result must have the same bytes. */
START_TEST(bytes_that_are_no_text) {
    fr_tokenizer *tokenizer = open_good(&(made_file){.space_prefix = prefixes[0].space_prefix});
    check_printed(tokenizer, "\xff\x80z\xe2\x98");
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* If several pairs have equal scores, the leftmost pair is merged. The expected ids were worked out by hand: "///"
 * becomes "//" and "/", because only "//" is a token. */
START_TEST(equal_scores) {
    static const char text[] = "x///y";
    fr_tokenizer *tokenizer = open_good(&(made_file){.space_prefix = prefixes[0].space_prefix, .score = &(float){0}});
    size_t count;
    int32_t *ids;
    ck_assert_int_eq(fr_tokenize(tokenizer, text, strlen(text), false, false, &ids, &count), FR_OK);
    int32_t one[8];
    size_t wanted = 0;
    const json_t *tokens = json_object_get(cases, "tokens");
    static const char *const pieces[] = {"x", "//", "/", "y"};
    for (size_t p = 0; p < 4; p++)
        for (size_t id = 0; id < json_array_size(tokens); id++)
            if (strcmp(json_string_value(json_array_get(tokens, id)), pieces[p]) == 0) one[wanted++] = (int32_t)id;
    ck_assert_uint_eq(wanted, 4);
    ck_assert_uint_eq(count, 4);
    ck_assert_mem_eq(ids, one, 4 * sizeof *ids);
    fr_free(ids);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Files of early converters lack the keys for the ids of the unknown token, bos and eos. In this case the ids are 0, 1
 * and 2, and bos is put before texts. */
START_TEST(ids_that_files_leave_out) {
    fr_tokenizer *tokenizer = open_good(&(made_file){.space_prefix = prefixes[0].space_prefix});
    fr_checkpoint files;
    fr_notes notes = {0};
    size_t count;
    int32_t *ids, ends[8];
    ck_assert_int_eq(fr_tokenize(tokenizer, "", 0, true, false, &ids, &count), FR_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(ids[0], 1);
    fr_free(ids);
    count = 0;
    ck_assert_int_eq(fr_checkpoint_open(&files, folder.file, true), FR_OK);
    ck_assert_int_eq(fr_tokenizer_gguf_ends(files.gguf, "", 1000, &notes, ends, 8, &count), FR_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(ends[0], 2);
    ck_assert_int_eq(ends[1], 4); /* <end_of_turn> */
    ck_assert_uint_eq(notes.count, 0);
    fr_notes_free(&notes);
    fr_checkpoint_close(&files);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(scores_that_lie) {
    const float no_number = NAN;
    const struct {
        made_file made;
        const char *line;
    } wrong[] = {
        {{.no_scores = true}, ": key tokenizer.ggml.scores is missing"},
        {{.scores = 1000}, ": 1000 scores for 1163 tokens"},
        {{.score = &no_number}, ": the score of token 0 is no number"},
    };
    char line[256];
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(open_made(&wrong[_i].made, &tokenizer), FR_INPUT);
    snprintf(line, sizeof line, "%s%s", folder.file, wrong[_i].line);
    ck_assert_str_eq(fr_last_error(), line);
}
END_TEST

FR_SUITE("score_merges") {
    TCase *tests = tcase_create("score_merges");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, reference_ids, 0, 3);
    tcase_add_test(tests, blanks_behind_tokens);
    tcase_add_loop_test(tests, printed_texts, 0, 3);
    tcase_add_test(tests, bytes_that_are_no_text);
    tcase_add_test(tests, equal_scores);
    tcase_add_test(tests, ids_that_files_leave_out);
    tcase_add_loop_test(tests, scores_that_lie, 0, 3);
    suite_add_tcase(suite, tests);
}
