/* Tests forerun embed and forerun rerank: their output formats, prompts, notes and errors. Their values must equal
 * those of sentence-transformers (tests/data/encoders). */
/* suite: native links=command */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define BERT  "-m tests/data/encoders/bert-cls -t 1 "
#define CROSS "-m tests/data/encoders/cross-bert -t 1 "

static json_t *cases_of(const char *path) {
    json_t *cases = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(cases);
    return cases;
}

static const json_t *row_of(const json_t *cases, size_t entry, size_t text) {
    return json_array_get(json_object_get(json_array_get(json_object_get(cases, "cases"), entry), "rows"), text);
}

static void expect_row(const json_t *got, const json_t *expected) {
    ck_assert_uint_eq(json_array_size(got), json_array_size(expected));
    for (size_t i = 0; i < json_array_size(got); i++)
        ck_assert_double_eq_tol(json_number_value(json_array_get(got, i)),
                                json_number_value(json_array_get(expected, i)), 1e-5);
}

START_TEST(rows_are_json_or_floats) {
    json_t *cases = cases_of("tests/data/encoders/bert-cls/cases.json");
    fr_command c = fr_command_feed("a house by the sea\nThe Sea, the SEA!\n\n", "embed " BERT "-f -");
    json_t *rows = json_loads(c.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(rows), 3);
    for (size_t t = 0; t < 3; t++) expect_row(json_array_get(rows, t), row_of(cases, 0, t));
    fr_command_free(&c);
    c = fr_command_ok("embed " BERT "-p 'The Sea, the SEA!' -o f32");
    ck_assert_uint_eq(c.out_length, 32 * sizeof(float));
    for (size_t i = 0; i < 32; i++) {
        float value;
        memcpy(&value, c.out + i * sizeof value, sizeof value);
        ck_assert(value == (float)json_number_value(json_array_get(json_array_get(rows, 1), i)));
    }
    fr_command_free(&c);
    c = fr_command_ok("embed " BERT "-p 'The Sea, the SEA!' --prompt-name query");
    json_t *asked = json_loads(c.out, 0, NULL);
    expect_row(json_array_get(asked, 0), row_of(cases, 2, 1));
    fr_command_free(&c);
    c = fr_command_ok("embed " BERT "-p a --dimensions 4 --embd-normalize 2");
    json_t *cut = json_loads(c.out, 0, NULL);
    double squares = 0;
    for (size_t i = 0; i < 4; i++) squares += pow(json_number_value(json_array_get(json_array_get(cut, 0), i)), 2);
    ck_assert_uint_eq(json_array_size(json_array_get(cut, 0)), 4);
    ck_assert_double_eq_tol(squares, 1.0, 1e-6);
    fr_command_free(&c);
    json_decref(cut);
    json_decref(asked);
    json_decref(rows);
    json_decref(cases);
}
END_TEST

START_TEST(a_text_that_is_cut_is_told) {
    fr_command c =
        fr_command_ok("embed " BERT "-p '%s'",
                      "sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea "
                      "sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea "
                      "sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea sea");
    ck_assert_msg(strstr(c.err, "68 tokens, of which 64 are read") != NULL, "%s", c.err);
    fr_command_free(&c);
}
END_TEST

START_TEST(documents_are_scored_in_their_order_or_the_best_first) {
    json_t *cases = cases_of("tests/data/encoders/cross-bert/cases.json");
    double first = json_number_value(json_array_get(json_object_get(cases, "scores"), 0));
    fr_command c = fr_command_feed("the book of the sea\na house\n", "rerank " CROSS "-p 'who wrote the book' -f -");
    ck_assert_double_eq_tol(strtod(c.out, NULL), first, 1e-5);
    ck_assert_ptr_nonnull(strstr(c.out, "\t0\tthe book of the sea\n"));
    ck_assert_ptr_nonnull(strstr(c.out, "\t1\ta house\n"));
    fr_command_free(&c);
    c = fr_command_feed("the book of the sea\na house\n",
                        "rerank " CROSS "-p 'who wrote the book' -f - -o json --top-n 1");
    json_t *best = json_loads(c.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(best), 1);
    ck_assert(json_is_integer(json_object_get(json_array_get(best, 0), "index")));
    fr_command_free(&c);
    json_decref(best);
    json_decref(cases);
}
END_TEST

static const struct {
    const char *line;
    int status;
    const char *word;
} wrong[] = {{"embed " BERT, 1, "no text"},
             {"embed " BERT "-p a --prompt-name none-such", 1, "passage"},
             {"embed " BERT "-p a --dimensions 33", 2, "32"},
             {"embed " BERT "-p a --embd-normalize 0", 2, "not built"},
             {"embed -m tools/demo/target -p a", 1, "--pooling"},
             {"rerank " BERT "-p a -f README.md", 1, "classifier"},
             {"rerank " CROSS "-p a", 2, "-f FILE"},
             {"generate " BERT "-p a", 1, "text encoder"},
             {"quantize -m tests/data/encoders/mpnet --type q8_0 -o /tmp/none.gguf", 2, "text encoder"}};

START_TEST(wrong_lines_are_refused_with_the_reason) {
    fr_command c = fr_command_run(wrong[_i].line, NULL);
    ck_assert_msg(c.status == wrong[_i].status, "%s: exit %d, %s", wrong[_i].line, c.status, c.err);
    ck_assert_msg(strstr(c.err, wrong[_i].word) != NULL, "%s: %s", wrong[_i].line, c.err);
    fr_command_free(&c);
}
END_TEST

/* sentence-transformers' CrossEncoder.rank refuses a model without exactly one label before it reads any document. So
 * the only line is the refusal, without a note about documents that are too long. */
START_TEST(a_model_without_scores_is_refused_before_documents_are_read) {
    char document[4096];
    for (size_t i = 0; i + 1 < sizeof document; i++) document[i] = "sea "[i % 4];
    document[sizeof document - 1] = '\0';
    fr_command c = fr_command_feed(document, "rerank " CROSS "-p a -f -");
    ck_assert_int_eq(c.status, 0);
    ck_assert_ptr_nonnull(strstr(c.err, "longer than the model reads"));
    fr_command_free(&c);
    c = fr_command_run("rerank " BERT "-p a -f -", document);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "its classifier has 0 labels, and 1 is needed"));
    ck_assert_ptr_null(strstr(c.err, "longer than the model reads"));
    fr_command_free(&c);
}
END_TEST

START_TEST(inspect_tells_an_encoder) {
    fr_command c = fr_command_ok("inspect -m tests/data/encoders/modernbert");
    ck_assert_ptr_nonnull(strstr(c.out, "ModernBERT, 4 layers of width 32"));
    ck_assert_ptr_nonnull(strstr(c.out, "8 tokens on either side"));
    fr_command_free(&c);
}
END_TEST

FR_SUITE("cli_embed") {
    TCase *cases = tcase_create("embed and rerank");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, rows_are_json_or_floats);
    tcase_add_test(cases, a_text_that_is_cut_is_told);
    tcase_add_test(cases, documents_are_scored_in_their_order_or_the_best_first);
    tcase_add_loop_test(cases, wrong_lines_are_refused_with_the_reason, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(cases, a_model_without_scores_is_refused_before_documents_are_read);
    tcase_add_test(cases, inspect_tells_an_encoder);
    suite_add_tcase(suite, cases);
}
