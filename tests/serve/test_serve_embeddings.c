/* Tests /v1/embeddings. The embeddings must be those of an embedder of the library, whatever else the server does at
 * the same time. Wrong requests must be refused. */
/* suite: threads native links=command */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tests/support/asking.h"
#include "tests/support/require.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"
#include "tools/serve/base64.h"

#define PATH   "/v1/embeddings"
#define FOLDER "tests/data/embedding"
#define DEMO   "-m tools/demo/target -t 2"

static fr_server server;

static void stop(void) {
    fr_server_stop(&server);
}

/* Returns the embedding of these ids as the library computes it. The caller frees it. */
static float *embed(const char *path, const int32_t *ids, size_t count, fr_pooling pooling) {
    fr_model *model;
    fr_embedder *embedder;
    fr_embedder_text text;
    require(fr_model_open(path, NULL, &model));
    require(fr_embedder_open(model, NULL, NULL, pooling, &embedder));
    require(fr_embedder_encode_ids(embedder, ids, count, &text));
    float *values = malloc((size_t)fr_model_fact(model, FR_FACT_HIDDEN) * sizeof *values);
    require(fr_embedder_rows(embedder, &text, 1, 0, 1, values));
    fr_embedder_text_free(&text);
    fr_embedder_close(embedder);
    fr_model_close(model);
    return values;
}

/* Returns embedding number `index` of an answer. Checks that the answer gives it this number. */
static const json_t *row_of(const json_t *answer, size_t index) {
    const json_t *data = json_array_get(json_object_get(answer, "data"), index);
    ck_assert_uint_eq((size_t)json_integer_value(json_object_get(data, "index")), index);
    return json_object_get(data, "embedding");
}

static void expect_row(const json_t *row, const float *expected, size_t width) {
    ck_assert_uint_eq(json_array_size(row), width);
    for (size_t i = 0; i < width; i++)
        ck_assert_msg((float)json_real_value(json_array_get(row, i)) == expected[i], "value %zu", i);
}

static json_t *asked(const char *body, int status) {
    json_t *request = json_loads(body, 0, NULL), *answer;
    ck_assert_ptr_nonnull(request);
    int got = fr_ask_json(server.port, PATH, request, &answer);
    char *said = json_dumps(answer, JSON_COMPACT);
    ck_assert_msg(got == status, "%s: %d, %s", body, got, said);
    free(said);
    json_decref(request);
    return answer;
}

START_TEST(ids_are_rows_by_the_models_pooling) {
    static const int32_t first[] = {3, 40, 7}, second[] = {9};
    float *rows[] = {embed(FOLDER, first, 3, FR_POOLING_LAST), embed(FOLDER, second, 1, FR_POOLING_LAST)};
    server = fr_server_start("-m " FOLDER " -t 2 --embeddings --metrics");
    json_t *answer = asked("{\"input\": [[3, 40, 7], [9]]}", 200);
    fr_client *client = fr_client_open(server.port);
    ck_assert(fr_client_ask(client, "GET", "/metrics", NULL, NULL));
    ck_assert_int_eq(fr_client_head(client), 200);
    char *since = fr_client_header(client, "Process-Start-Time-Unix"), *page = fr_client_body(client, NULL);
    ck_assert_msg(strstr(page, "\nllamacpp:prompt_tokens_total 4\n") != NULL, "%s", page);
    ck_assert_msg(strstr(page, "\nllamacpp:tokens_predicted_total 0\n") != NULL, "%s", page);
    ck_assert_int_gt(strtoll(since, NULL, 10), 1700000000);
    free(since);
    free(page);
    fr_client_close(client);
    for (size_t i = 0; i < 2; i++) expect_row(row_of(answer, i), rows[i], 48);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(answer, "usage"), "prompt_tokens")), 4);
    json_decref(answer);

    answer = asked("{\"input\": [3, 40, 7], \"encoding_format\": \"base64\"}", 200);
    const json_t *text = row_of(answer, 0);
    size_t size;
    unsigned char *bytes = fr_base64_read(json_string_value(text), json_string_length(text), &size);
    ck_assert_uint_eq(size, 48 * sizeof(float));
    ck_assert_mem_eq(bytes, rows[0], size);
    free(bytes);
    json_decref(answer);

    answer = asked("{\"input\": [9], \"dimensions\": 5}", 200);
    const json_t *row = row_of(answer, 0);
    double squares = 0;
    ck_assert_uint_eq(json_array_size(row), 5);
    for (size_t i = 0; i < 5; i++) {
        double value = json_real_value(json_array_get(row, i));
        squares += value * value;
        ck_assert_double_eq_tol(value / json_real_value(json_array_get(row, 0)),
                                (double)rows[1][i] / (double)rows[1][0], 1e-5);
    }
    ck_assert_double_eq_tol(squares, 1, 1e-6);
    json_decref(answer);
    free(rows[0]);
    free(rows[1]);
    stop();
}
END_TEST

/* Embeddings are computed while a stream runs. Each text must get the embedding that it gets alone, and the stream must
 * give the same text as alone. */
START_TEST(texts_are_rows_beside_others) {
    int32_t *ids;
    size_t count;
    fr_model *model;
    require(fr_model_open("tools/demo/target", NULL, &model));
    require(fr_tokenize(fr_model_tokenizer(model), "a small dog", 11, true, false, &ids, &count));
    size_t width = (size_t)fr_model_fact(model, FR_FACT_HIDDEN);
    float *expected = embed("tools/demo/target", ids, count, FR_POOLING_MEAN);
    server = fr_server_start(DEMO " -md tools/demo/assistant --embeddings --pooling mean");
    json_t *body =
        fr_body("{s:s, s:i, s:b, s:i}", "prompt", "Once upon a time", "max_tokens", 60, "stream", 1, "seed", 5);
    json_t *alone, *beside;
    fr_events events = fr_ask_stream(server.port, COMPLETION, body);
    alone = fr_events_said(&events);
    fr_events_close(&events);
    events = fr_ask_stream(server.port, COMPLETION, body);
    for (int i = 0; i < 3; i++) {
        json_t *answer = asked("{\"input\": [\"a small dog\", \"another one\", \"a small dog\"]}", 200);
        expect_row(row_of(answer, 0), expected, width);
        expect_row(row_of(answer, 2), expected, width);
        json_decref(answer);
    }
    json_t *parts = asked("{\"input\": [\"another\", {\"type\": \"text\", \"text\": \"a small dog\"}]}", 200);
    expect_row(row_of(parts, 1), expected, width);
    json_decref(parts);
    parts = asked("{\"input\": {\"type\": \"text\", \"text\": \"a small dog\"}}", 200);
    expect_row(row_of(parts, 0), expected, width);
    json_decref(parts);
    parts = asked("{\"input\": [{\"content\": [{\"type\": \"text\", \"text\": \"a sm\"}, {\"type\": "
                  "\"text\", \"text\": \"all dog\"}]}, {\"prompt_string\": \"a small dog\"}]}",
                  200);
    expect_row(row_of(parts, 0), expected, width);
    expect_row(row_of(parts, 1), expected, width);
    json_decref(parts);
    json_t *mixed = json_array(), *request = json_object();
    for (size_t i = 0; i < count; i++) json_array_append_new(mixed, json_integer(ids[i]));
    json_array_append_new(mixed, json_string("")); /* an empty text between ids adds no id */
    json_object_set_new(request, "input", mixed);
    ck_assert_int_eq(fr_ask_json(server.port, "/v1/embeddings", request, &parts), 200);
    ck_assert_uint_eq(json_array_size(json_object_get(parts, "data")), 1);
    expect_row(row_of(parts, 0), expected, width);
    json_decref(request);
    json_decref(parts);
    beside = fr_events_said(&events);
    fr_events_close(&events);
    fr_same_said(alone, beside, "a stream beside embeddings");
    json_decref(alone);
    json_decref(beside);
    json_decref(body);
    free(expected);
    fr_free(ids);
    fr_model_close(model);
    stop();
}
END_TEST

enum { MANY = 40, ASKERS = 6, WIDTH = 48 };

/* Makes different texts of 1 to 9 ids. */
static json_t *draw_texts(size_t first, size_t count) {
    json_t *texts = json_array();
    for (size_t t = first; t < first + count; t++) {
        json_t *ids = json_array();
        for (size_t i = 0; i < 1 + t % 9; i++)
            json_array_append_new(ids, json_integer((json_int_t)(t * 7 + i * 13) % 120));
        json_array_append_new(texts, ids);
    }
    return texts;
}

static void expect_texts(const json_t *answer, size_t first, size_t count) {
    for (size_t t = 0; t < count; t++) {
        json_t *texts = draw_texts(first + t, 1);
        const json_t *text = json_array_get(texts, 0);
        int32_t ids[16];
        for (size_t i = 0; i < json_array_size(text); i++)
            ids[i] = (int32_t)json_integer_value(json_array_get(text, i));
        float *row = embed(FOLDER, ids, json_array_size(text), FR_POOLING_LAST);
        expect_row(row_of(answer, t), row, WIDTH);
        free(row);
        json_decref(texts);
    }
}

/* The texts of one request must be run in one batch, and so must the texts of several waiting requests. The embeddings
 * must keep all their bits. */
START_TEST(several_texts_run_together) {
    server = fr_server_start("-m " FOLDER " -t 2 -np 3 --embeddings --metrics");
    json_t *body = json_pack("{s:o}", "input", draw_texts(0, MANY)), *answer;
    ck_assert_int_eq(fr_ask_json(server.port, PATH, body, &answer), 200);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "data")), MANY);
    expect_texts(answer, 0, MANY);
    /* the metric counts the forward passes of embeddings and of rounds */
    ck_assert(fr_client_metric(server.port, "n_decode_total") <= MANY / 4);
    json_decref(answer);
    json_decref(body);
    fr_client *clients[ASKERS];
    for (size_t c = 0; c < ASKERS; c++) {
        json_t *asked_for = json_pack("{s:o, s:i}", "input", draw_texts(c, 5 + c), "dimensions", c % 2 ? WIDTH : 7);
        char *text = json_dumps(asked_for, JSON_COMPACT);
        clients[c] = fr_client_open(server.port);
        ck_assert(fr_client_ask(clients[c], "POST", PATH, "Content-Type: application/json\r\n", text));
        free(text);
        json_decref(asked_for);
    }
    for (size_t c = 0; c < ASKERS; c++) {
        ck_assert_int_eq(fr_client_head(clients[c]), 200);
        char *text = fr_client_body(clients[c], NULL);
        answer = json_loads(text, 0, NULL);
        ck_assert_uint_eq(json_array_size(json_object_get(answer, "data")), 5 + c);
        ck_assert_uint_eq(json_array_size(row_of(answer, 0)), c % 2 ? WIDTH : 7);
        if (c % 2) expect_texts(answer, c, 5 + c);
        free(text);
        json_decref(answer);
        fr_client_close(clients[c]);
    }
    stop();
}
END_TEST

/* If a text has an id that the model lacks, only its own request must fail. Other waiting requests must get their
 * embeddings. */
START_TEST(a_failing_text_fails_its_own_request) {
    static const char *const bodies[] = {"{\"input\": [[3, 40, 7], [9]]}", "{\"input\": [[5], [1, 99999], [6]]}",
                                         "{\"input\": [[3, 40, 7], [9]]}"};
    static const int32_t first[] = {3, 40, 7};
    fr_client *clients[3];
    float *row = embed(FOLDER, first, 3, FR_POOLING_LAST);
    server = fr_server_start("-m " FOLDER " -t 1 --embeddings");
    for (int times = 0; times < 4; times++) {
        for (size_t c = 0; c < 3; c++) {
            clients[c] = fr_client_open(server.port);
            ck_assert(fr_client_ask(clients[c], "POST", PATH, NULL, bodies[c]));
        }
        for (size_t c = 0; c < 3; c++) {
            ck_assert_int_eq(fr_client_head(clients[c]), c == 1 ? 400 : 200);
            char *text = fr_client_body(clients[c], NULL);
            json_t *answer = json_loads(text, 0, NULL);
            if (c == 1)
                ck_assert_ptr_nonnull(strstr(text, "99999"));
            else
                expect_row(row_of(answer, 0), row, WIDTH);
            free(text);
            json_decref(answer);
            fr_client_close(clients[c]);
        }
    }
    free(row);
    stop();
}
END_TEST

START_TEST(what_is_no_input_is_refused) {
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"{}", "\"input\" is missing"},
        {"{\"input\": []}", "1 to 2048"},
        {"{\"input\": 5}", "\"input\"[0] is neither"},
        {"{\"input\": {\"content\": \"a\"}}", "\"input\"[0] is neither"},
        {"{\"input\": {\"content\": [{\"type\": \"image_url\"}]}}", "\"input\"[0] is neither"},
        {"{\"input\": [{\"type\": \"text\"}]}", "\"input\"[0] is neither"},
        {"{\"input\": [{\"type\": \"image_url\", \"text\": \"a\"}]}", "\"input\"[0] is neither"},
        {"{\"input\": [[1], null]}", "\"input\"[1] is neither"},
        {"{\"input\": [[1], []]}", "\"input\"[1] has no tokens"},
        {"{\"input\": [1, -1]}", "\"input\"[1] is no id"},
        {"{\"input\": [1, 99999]}", "99999"},
        {"{\"input\": [1], \"encoding_format\": \"hex\"}", "encoding_format"},
        {"{\"input\": [1], \"encoding_format\": 1}", "encoding_format"},
        {"{\"input\": [1], \"dimensions\": 0}", "\"dimensions\" must be 1 to 48"},
        {"{\"input\": [1], \"dimensions\": 49}", "\"dimensions\" must be 1 to 48"},
    };
    server = fr_server_start("-m " FOLDER " -t 1 --embeddings -c 64");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *answer = asked(cases[i].body, 400);
        const char *message = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
        ck_assert_msg(message && strstr(message, cases[i].says), "%s: %s", cases[i].body, message);
        json_decref(answer);
    }
    json_decref(asked("{\"input\": [7]}", 200)); /* after refusals the server must still work */
    stop();
}
END_TEST

/* Some models do not state their pooling. For these models the server needs the option --pooling. */
START_TEST(a_pooling_must_be_known) {
    server = fr_server_start(DEMO " --embeddings");
    json_t *answer = asked("{\"input\": \"a\"}", 501);
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(json_object_get(answer, "error"), "message")), "--pooling"));
    json_decref(answer);
    stop();
}
END_TEST

static json_t *ask_ollama(const char *path, const char *body, int status) {
    json_t *request = json_loads(body, 0, NULL), *answer;
    ck_assert_int_eq(fr_ask_json(server.port, path, request, &answer), status);
    json_decref(request);
    return answer;
}

/* In ollama's format the embeddings must be the same. If a text is too long, its end is cut off. If "truncate" is
 * false, the text is refused instead. */
START_TEST(ollama_has_the_same_rows) {
    server = fr_server_start(DEMO " -c 64 --embeddings --pooling mean");
    json_t *expected = asked("{\"input\": [\"a small dog\", \"another\"]}", 200);
    json_t *answer = ask_ollama("/api/embed", "{\"model\": \"m\", \"input\": [\"a small dog\", \"another\"]}", 200);
    for (size_t i = 0; i < 2; i++)
        ck_assert(json_equal(json_array_get(json_object_get(answer, "embeddings"), i),
                             (json_t *)(uintptr_t)row_of(expected, i)));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "prompt_eval_count")),
                     json_integer_value(json_object_get(json_object_get(expected, "usage"), "prompt_tokens")));
    json_decref(answer);
    answer = ask_ollama("/api/embed", "{\"input\": \"a small dog\"}", 200);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "embeddings")), 1);
    json_decref(answer);
    answer = ask_ollama("/api/embeddings", "{\"prompt\": \"a small dog\"}", 200);
    ck_assert(json_equal(json_object_get(answer, "embedding"), (json_t *)(uintptr_t)row_of(expected, 0)));
    json_decref(answer);
    json_decref(ask_ollama("/api/embeddings", "{\"prompt\": [\"a\"]}", 400));
    for (int cut = 0; cut < 2; cut++) {
        char words[512] = "", body[640];
        for (int i = 0; i < 100; i++) strncat(words, "a b ", sizeof words - strlen(words) - 1);
        snprintf(body, sizeof body, "{\"input\": \"%s\"%s}", words, cut ? "" : ", \"truncate\": false");
        answer = ask_ollama("/api/embed", body, cut ? 200 : 400);
        if (cut)
            ck_assert_int_eq(json_integer_value(json_object_get(answer, "prompt_eval_count")), 64);
        else
            ck_assert(json_is_string(json_object_get(answer, "error")));
        json_decref(answer);
    }
    json_decref(expected);
    stop();
}
END_TEST

FR_SUITE("serve_embeddings") {
    TCase *tests = tcase_create("serve_embeddings");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, ids_are_rows_by_the_models_pooling);
    tcase_add_test(tests, texts_are_rows_beside_others);
    tcase_add_test(tests, several_texts_run_together);
    tcase_add_test(tests, a_failing_text_fails_its_own_request);
    tcase_add_test(tests, what_is_no_input_is_refused);
    tcase_add_test(tests, ollama_has_the_same_rows);
    tcase_add_test(tests, a_pooling_must_be_known);
    suite_add_tcase(suite, tests);
}
