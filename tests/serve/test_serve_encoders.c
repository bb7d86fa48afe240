/* Tests servers of text encoders. Embeddings and scores must be those of sentence-transformers (tests/data/encoders),
 * in the formats of OpenAI, Jina and text-embeddings-inference. Requests for generated text must be refused. */
/* suite: threads native links=command */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/asking.h"
#include "tests/support/changed_folder.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define FOLDER "tests/data/encoders/"

static fr_server server;

static json_t *cases_of(const char *path) {
    json_t *cases = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(cases);
    return cases;
}

/* Sends the body and frees it. Returns the answer, which must have this status. */
static json_t *ask(const char *path, json_t *body, int status) {
    json_t *answer;
    ck_assert_ptr_nonnull(body);
    int got = fr_ask_json(server.port, path, body, &answer);
    char *said = json_dumps(answer, JSON_COMPACT);
    ck_assert_msg(got == status, "%s: %d, %s", path, got, said);
    free(said);
    json_decref(body);
    return answer;
}

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

START_TEST(rows_come_for_many_texts_at_once) {
    json_t *cases = cases_of(FOLDER "bert-mean/cases.json"), *texts = json_array();
    const json_t *all = json_object_get(cases, "texts");
    const json_t *rows = json_object_get(json_array_get(json_object_get(cases, "cases"), 0), "rows");
    const size_t used[] = {0, 1, 3, 4, 5, 6}; /* all other texts are too long or empty */
    server = fr_server_start("-m " FOLDER "bert-mean -t 2");
    for (size_t i = 0; i < 6; i++) json_array_append(texts, json_array_get(all, used[i]));
    json_t *answer = ask("/v1/embeddings", json_pack("{s:o}", "input", texts), 200);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "data")), 6);
    for (size_t t = 0; t < 6; t++) {
        const json_t *row = json_object_get(json_array_get(json_object_get(answer, "data"), t), "embedding");
        ck_assert_uint_eq(json_array_size(row), 32);
        for (size_t i = 0; i < 32; i++)
            ck_assert_double_eq_tol(json_number_value(json_array_get(row, i)),
                                    json_number_value(json_array_get(json_array_get(rows, used[t]), i)), 1e-5);
    }
    ck_assert(number(json_object_get(answer, "usage"), "prompt_tokens") > 12);
    json_decref(answer);
    answer = ask("/v1/embeddings", json_pack("{s:s, s:i}", "input", "a house", "dimensions", 8), 200);
    const json_t *row = json_object_get(json_array_get(json_object_get(answer, "data"), 0), "embedding");
    double squares = 0;
    for (size_t i = 0; i < json_array_size(row); i++) squares += pow(json_number_value(json_array_get(row, i)), 2);
    ck_assert_uint_eq(json_array_size(row), 8);
    ck_assert_double_eq_tol(squares, 1.0, 1e-5);
    json_decref(answer);
    json_decref(cases);
    fr_server_stop(&server);
}
END_TEST

/* Models whose makers leave the rows of a prompt out of the pooling. bert-cls gives embeddings whose length is not 1.
 * qwen3-dense is a model that generates text; it has a dense layer, and a prompt that is used by default. */
static const char *const with_prompts[] = {"bert-cls", "qwen3-dense"};

START_TEST(a_prompt_is_pooled_as_the_makers_say) {
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s/cases.json", with_prompts[_i]);
    json_t *cases = cases_of(path);
    const json_t *text = json_array_get(json_object_get(cases, "texts"), 0), *kinds = json_object_get(cases, "cases");
    server = fr_server_start("-m " FOLDER "%s -t 2 --embeddings", with_prompts[_i]);
    ck_assert_uint_ge(json_array_size(kinds), 3);
    for (size_t k = 0; k < json_array_size(kinds); k++) {
        const json_t *kind = json_array_get(kinds, k), *prompt = json_object_get(kind, "prompt");
        const json_t *expected = json_array_get(json_object_get(kind, "rows"), 0);
        json_t *answer = ask("/v1/embeddings", json_pack("{s:O, s:O}", "input", text, "prompt_name", prompt), 200);
        const json_t *row = json_object_get(json_array_get(json_object_get(answer, "data"), 0), "embedding");
        double squares = 0;
        for (size_t i = 0; i < json_array_size(expected); i++)
            squares += pow(json_number_value(json_array_get(expected, i)), 2);
        ck_assert_uint_eq(json_array_size(row), json_array_size(expected));
        for (size_t i = 0; i < json_array_size(row); i++)
            ck_assert_double_eq_tol(json_number_value(json_array_get(row, i)),
                                    json_number_value(json_array_get(expected, i)) / sqrt(squares), 1e-5);
        json_decref(answer);
    }
    json_decref(cases);
    fr_server_stop(&server);
}
END_TEST

START_TEST(texts_that_are_too_long_are_refused_or_cut) {
    char text[600] = "";
    for (size_t i = 0; i < 100; i++) memcpy(text + 4 * i, "sea ", 5);
    server = fr_server_start("-m " FOLDER "bert-cls -t 2");
    json_decref(ask("/v1/embeddings", json_pack("{s:s}", "input", text), 400));
    json_t *answer = ask("/api/embed", json_pack("{s:s}", "input", text), 200);
    ck_assert_int_eq((int)number(answer, "prompt_eval_count"), 64);
    json_decref(answer);
    json_decref(ask("/v1/embeddings", json_pack("{s:s, s:s}", "input", "a", "prompt_name", "query"), 200));
    json_decref(ask("/v1/embeddings", json_pack("{s:s, s:s}", "input", "a", "prompt_name", "none such"), 400));
    json_decref(ask("/v1/embeddings", json_pack("{s:[[i,i,i]]}", "input", 2, 4000, 3), 400));
    fr_server_stop(&server);
}
END_TEST

START_TEST(an_encoder_refuses_to_write) {
    server = fr_server_start("-m " FOLDER "bert-cls -t 2");
    json_decref(ask("/v1/completions", json_pack("{s:s}", "prompt", "a"), 501));
    json_decref(
        ask("/v1/chat/completions", json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", "a"), 501));
    json_decref(ask("/infill", json_pack("{s:s, s:s}", "input_prefix", "a", "input_suffix", "b"), 501));
    json_decref(ask("/api/generate", json_pack("{s:s}", "prompt", "a"), 501));
    json_decref(ask("/v1/rerank", json_pack("{s:s, s:[s]}", "query", "a", "documents", "b"), 501));
    json_decref(ask("/tokenize", json_pack("{s:s}", "content", "a house"), 200));
    fr_server_stop(&server);
}
END_TEST

START_TEST(documents_are_scored_best_first) {
    json_t *cases = cases_of(FOLDER "cross-bert/cases.json");
    const json_t *pairs = json_object_get(cases, "pairs");
    server = fr_server_start("-m " FOLDER "cross-bert -t 2");
    for (size_t raw = 0; raw < 2; raw++) {
        const json_t *expected = json_object_get(cases, raw ? "raw" : "scores");
        for (size_t i = 0; i < json_array_size(pairs); i++) {
            json_t *answer =
                ask("/v1/rerank",
                    json_pack("{s:O, s:[O], s:b}", "query", json_array_get(json_array_get(pairs, i), 0), "documents",
                              json_array_get(json_array_get(pairs, i), 1), "raw_scores", (int)raw),
                    200);
            const json_t *best = json_array_get(json_object_get(answer, "results"), 0);
            ck_assert_double_eq_tol(number(best, "relevance_score"), json_number_value(json_array_get(expected, i)),
                                    1e-5);
            json_decref(answer);
        }
    }
    json_t *answer = ask("/rerank",
                         json_pack("{s:s, s:[s,{s:s},s], s:i, s:b}", "query", "a house by the sea", "documents", "sea",
                                   "text", "a house", "the book", "top_n", 2, "return_documents", 1),
                         200);
    const json_t *results = json_object_get(answer, "results");
    ck_assert_uint_eq(json_array_size(results), 2);
    ck_assert(number(json_array_get(results, 0), "relevance_score") >=
              number(json_array_get(results, 1), "relevance_score"));
    ck_assert(json_is_string(json_object_get(json_object_get(json_array_get(results, 0), "document"), "text")));
    json_decref(answer);
    answer = ask("/reranking", json_pack("{s:s, s:[s,s]}", "query", "a", "texts", "sea", "house"), 200);
    ck_assert_uint_eq(json_array_size(answer), 2);
    ck_assert(json_is_number(json_object_get(json_array_get(answer, 0), "score")));
    json_decref(answer);
    json_decref(ask("/v1/rerank", json_pack("{s:s}", "query", "a"), 400));
    json_decref(ask("/v1/rerank", json_pack("{s:[s]}", "documents", "a"), 400));
    json_decref(ask("/v1/rerank", json_pack("{s:s, s:[i]}", "query", "a", "documents", 3), 400));
    json_decref(ask("/v1/rerank", json_pack("{s:s, s:[s], s:i}", "query", "a", "documents", "b", "top_n", 0), 400));
    json_decref(cases);
    fr_server_stop(&server);
}
END_TEST

enum { ASKERS = 8 };

/* Sends bodies at the same time, gets the answers, and frees the bodies. */
static void ask_together(const char *path, json_t *bodies[ASKERS], json_t *answers[ASKERS], int status[ASKERS]) {
    fr_client *clients[ASKERS];
    for (size_t c = 0; c < ASKERS; c++) {
        char *text = json_dumps(bodies[c], JSON_COMPACT);
        clients[c] = fr_client_open(server.port);
        ck_assert(fr_client_ask(clients[c], "POST", path, "Content-Type: application/json\r\n", text));
        free(text);
        json_decref(bodies[c]);
    }
    for (size_t c = 0; c < ASKERS; c++) {
        status[c] = fr_client_head(clients[c]);
        char *text = fr_client_body(clients[c], NULL);
        answers[c] = json_loads(text, 0, NULL);
        free(text);
        fr_client_close(clients[c]);
    }
}

static const char *const scorers[] = {"cross-bert", "cross-qwen3"};

static json_t *pair_body(size_t c) {
    static const char *const documents[] = {"sea", "a house", "the book of the house", "who wrote"};
    return json_pack("{s:s, s:[s,s], s:b}", "query", c % 2 ? "a house by the sea" : "the book", "documents",
                     documents[c % 4], documents[c / 2 % 4], "raw_scores", (int)(c % 2));
}

/* Several waiting requests ask for scores of pairs. The pairs must be scored in fewer forward passes than there are
 * requests. The scores must keep all their bits. */
START_TEST(pairs_of_requests_that_wait_run_together) {
    json_t *alone[ASKERS], *bodies[ASKERS], *together[ASKERS];
    int status[ASKERS];
    server = fr_server_start("-m " FOLDER "%s -t 1 -np 8 --embeddings --metrics", scorers[_i]);
    for (size_t c = 0; c < ASKERS; c++) alone[c] = ask("/v1/rerank", pair_body(c), 200);
    long long least = ASKERS;
    for (int times = 0; times < 20; times++) {
        long long before = (long long)fr_client_metric(server.port, "n_decode_total");
        for (size_t c = 0; c < ASKERS; c++) bodies[c] = pair_body(c);
        ask_together("/v1/rerank", bodies, together, status);
        for (size_t c = 0; c < ASKERS; c++) {
            ck_assert_int_eq(status[c], 200);
            ck_assert(json_equal(together[c], alone[c]));
            json_decref(together[c]);
        }
        long long rounds = (long long)fr_client_metric(server.port, "n_decode_total") - before;
        if (rounds < least) least = rounds;
    }
    ck_assert_msg(least < ASKERS, "no two requests were scored together");
    for (size_t c = 0; c < ASKERS; c++) json_decref(alone[c]);
    fr_server_stop(&server);
}
END_TEST

static const char *const damaged[][2] = {{"bert-mean", "embeddings.word_embeddings.weight"},
                                         {"qwen3-dense", "embed_tokens.weight"}};

/* If the embedding of a text is not finite, only its own request must fail. The others must get their embeddings. */
START_TEST(a_damaged_text_fails_its_own_request) {
    enum { BAD = 60 };
    char path[128];
    fr_changed_folder folder;
    json_t *bodies[ASKERS], *answers[ASKERS];
    int status[ASKERS];
    snprintf(path, sizeof path, FOLDER "%s", damaged[_i][0]);
    fr_changed_folder_make(&folder, path, "{}");
    fr_changed_folder_damage(&folder, damaged[_i][1], BAD);
    server = fr_server_start("-m %s -t 1 -np 8 --embeddings --metrics", folder.path);
    json_t *expected = ask("/v1/embeddings", json_pack("{s:[[i,i,i]]}", "input", 7, 8, 9), 200);
    for (int times = 0; times < 6; times++) {
        long long before = (long long)fr_client_metric(server.port, "prompt_tokens_total");
        for (size_t c = 0; c < ASKERS; c++) bodies[c] = json_pack("{s:[[i,i,i]]}", "input", 7, c == 3 ? BAD : 8, 9);
        ask_together("/v1/embeddings", bodies, answers, status);
        for (size_t c = 0; c < ASKERS; c++) {
            ck_assert_int_eq(status[c] == 200, c != 3);
            if (c == 3)
                ck_assert_ptr_nonnull(strstr(
                    json_string_value(json_object_get(json_object_get(answers[c], "error"), "message")), "finite"));
            else
                ck_assert(json_equal(answers[c], expected));
            json_decref(answers[c]);
        }
        ck_assert_int_eq((long long)fr_client_metric(server.port, "prompt_tokens_total") - before, 3 * (ASKERS - 1));
    }
    json_decref(expected);
    fr_server_stop(&server);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Requests the scores of the pairs from the server, and compares them. */
static void expect_scores(const json_t *pairs, const json_t *expected) {
    size_t i;
    json_t *pair;
    json_array_foreach ((json_t *)(uintptr_t)pairs, i, pair) {
        json_t *answer =
            ask("/v1/rerank",
                json_pack("{s:O, s:[O]}", "query", json_array_get(pair, 0), "documents", json_array_get(pair, 1)), 200);
        ck_assert_double_eq_tol(number(json_array_get(json_object_get(answer, "results"), 0), "relevance_score"),
                                json_number_value(json_array_get(expected, i)), 1e-5);
        json_decref(answer);
    }
}

START_TEST(a_model_that_writes_judges_documents) {
    json_t *cases = cases_of(FOLDER "cross-qwen3/cases.json");
    const json_t *pairs = json_object_get(cases, "pairs"), *expected = json_object_get(cases, "scores");
    server = fr_server_start("-m " FOLDER "cross-qwen3 -t 2 --embeddings");
    expect_scores(pairs, expected);
    json_decref(cases);
    fr_server_stop(&server);
}
END_TEST

/* The scale of an adapter must influence the scores. After a change of the scale, requests must use the new scale. */
START_TEST(adapters_count_in_scores) {
    json_t *cases = cases_of(FOLDER "cross-qwen3/cases.json"), *one;
    const json_t *pairs = json_object_get(cases, "pairs"), *adapted = json_object_get(cases, "adapted");
    size_t i;
    ck_assert_uint_eq(json_array_size(adapted), 2);
    server = fr_server_start("-m " FOLDER "cross-qwen3 --lora " FOLDER "cross-qwen3/adapter -t 2 --embeddings");
    json_array_foreach ((json_t *)(uintptr_t)adapted, i, one) {
        json_decref(
            ask("/lora-adapters", json_pack("[{s:i, s:O}]", "id", 0, "scale", json_object_get(one, "scale")), 200));
        expect_scores(pairs, json_object_get(one, "scores"));
    }
    json_decref(ask("/lora-adapters", json_pack("[{s:i, s:i}]", "id", 0, "scale", 0), 200));
    expect_scores(pairs, json_object_get(cases, "scores"));
    json_decref(cases);
    fr_server_stop(&server);
}
END_TEST

FR_SUITE("serve_encoders") {
    TCase *tests = tcase_create("serve_encoders");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, rows_come_for_many_texts_at_once);
    tcase_add_loop_test(tests, a_prompt_is_pooled_as_the_makers_say, 0, sizeof with_prompts / sizeof *with_prompts);
    tcase_add_loop_test(tests, pairs_of_requests_that_wait_run_together, 0, sizeof scorers / sizeof *scorers);
    tcase_add_loop_test(tests, a_damaged_text_fails_its_own_request, 0, sizeof damaged / sizeof *damaged);
    tcase_add_test(tests, texts_that_are_too_long_are_refused_or_cut);
    tcase_add_test(tests, an_encoder_refuses_to_write);
    tcase_add_test(tests, documents_are_scored_best_first);
    tcase_add_test(tests, a_model_that_writes_judges_documents);
    tcase_add_test(tests, adapters_count_in_scores);
    suite_add_tcase(suite, tests);
}
